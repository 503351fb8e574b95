"""Independent numbers for the tests of derive.gaussian: activations typed by hand in mpmath, mpmath's own quadrature.

Nothing here shares code with the package: derivatives are typed, not derived, and the integrals are brute force.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

Function = Callable[[mp.mpf], mp.mpf]


def _phi(z: mp.mpf) -> mp.mpf:
    return mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)


def _gauss(z: mp.mpf) -> mp.mpf:
    return 2 / mp.sqrt(mp.pi) * mp.exp(-z * z)


HAND: dict[str, list[Function]] = {
    "monomial(k=3)": [lambda z: z**3, lambda z: 3 * z**2, lambda z: 6 * z, lambda z: mp.mpf(6), lambda z: mp.mpf(0)],
    "sin": [mp.sin, mp.cos, lambda z: -mp.sin(z), lambda z: -mp.cos(z), mp.sin],
    "exp": [mp.exp] * 5,
    "erf": [
        mp.erf,
        _gauss,
        lambda z: -2 * z * _gauss(z),
        lambda z: (4 * z * z - 2) * _gauss(z),
        lambda z: (12 * z - 8 * z**3) * _gauss(z),
    ],
    "gelu": [
        lambda z: z * mp.ncdf(z),
        lambda z: mp.ncdf(z) + z * _phi(z),
        lambda z: (2 - z * z) * _phi(z),
        lambda z: (z**3 - 4 * z) * _phi(z),
        lambda z: (-(z**4) + 7 * z * z - 4) * _phi(z),
    ],
    "tanh": [
        mp.tanh,
        lambda z: mp.sech(z) ** 2,
        lambda z: -2 * mp.tanh(z) * mp.sech(z) ** 2,
        lambda z: (4 * mp.tanh(z) ** 2 - 2 * mp.sech(z) ** 2) * mp.sech(z) ** 2,
    ],
    "relu": [lambda z: max(z, mp.mpf(0)), lambda z: mp.mpf(z > 0)],
    "leaky_relu(slope=1/10)": [lambda z: z if z > 0 else z / 10, lambda z: mp.mpf(1) if z > 0 else mp.mpf(1) / 10],
    "elu": [
        lambda z: z if z > 0 else mp.expm1(z),
        lambda z: mp.mpf(1) if z > 0 else mp.exp(z),
        lambda z: mp.mpf(0) if z > 0 else mp.exp(z),
    ],
    "softsign": [
        lambda z: z / (1 + abs(z)),
        lambda z: 1 / (1 + abs(z)) ** 2,
        lambda z: -2 * mp.sign(z) / (1 + abs(z)) ** 3,
    ],
    "arctan": [mp.atan, lambda z: 1 / (1 + z * z), lambda z: -2 * z / (1 + z * z) ** 2],
    "swish": [
        lambda z: z / (1 + mp.exp(-z)),
        lambda z: (1 + mp.exp(-z) * (1 + z)) / (1 + mp.exp(-z)) ** 2,
    ],
    "softplus": [lambda z: mp.log1p(mp.exp(z)), lambda z: 1 / (1 + mp.exp(-z))],
}


def one_label(orders: tuple[int, ...], name: str, K: mp.mpf, insertions: int = 0) -> mp.mpf:
    """<prod sigma^(k) z^m>_K by mpmath's quad on a ladder of intervals around 0."""
    functions = HAND[name]
    s = mp.sqrt(K)
    ladder = sorted({*(s * x for x in (4, 20)), *((mp.mpf(1), mp.mpf(4)) if K > 10 else ())})
    points = [-x for x in reversed(ladder) if x <= 20 * s] + [mp.mpf(0)] + [x for x in ladder if x <= 20 * s]

    def integrand(z: mp.mpf) -> mp.mpf:
        value = mp.exp(-z * z / (2 * K)) / mp.sqrt(2 * mp.pi * K) * z**insertions
        for k in orders:
            value *= functions[k](z)
        return value

    return mp.quad(integrand, points)


def two_labels(k0: int, k1: int, name: str, K00: mp.mpf, K01: mp.mpf, K11: mp.mpf, h: mp.mpf) -> mp.mpf:
    """<sigma_0^(k0) sigma_1^(k1)> for a smooth activation: the plain trapezoidal rule on a whitened square."""
    f, g = HAND[name][k0], HAND[name][k1]
    s, slope = mp.sqrt(K00), K01 / K00
    rest = mp.sqrt(K11 - K01 * K01 / K00)
    count = int(mp.mpf(12.5) / h)
    nodes = [j * h for j in range(-count, count + 1)]
    weights = [h * _phi(y) for y in nodes]
    total = mp.mpf(0)
    for x, w in zip(nodes, weights):
        first = f(s * x) * w
        if abs(first) > mp.mpf(10) ** -(mp.mp.dps + 3):
            mean = slope * s * x
            total += first * mp.fsum(v * g(mean + rest * y) for y, v in zip(nodes, weights))
    return total


def homogeneous_pair(f: Function, g: Function, degree: int, rho: mp.mpf) -> mp.mpf:
    """E[f(x) g(rho x + sqrt(1-rho^2) y)] for f, g homogeneous of total degree 0 or 2: an integral over the angle."""
    side = mp.sqrt(1 - rho * rho)
    kinks = sorted({mp.mpf(0), mp.pi / 2, mp.pi, 3 * mp.pi / 2, 2 * mp.pi})
    angle = mp.atan2(-rho, side)
    kinks = sorted({*kinks, *(a for k in (0, 1, 2) if 0 < (a := angle + k * mp.pi) < 2 * mp.pi)})
    radial = {0: mp.mpf(1), 2: mp.mpf(2)}[degree]  # E[r^degree] for the radius in the plane
    return radial / (2 * mp.pi) * mp.quad(lambda t: f(mp.cos(t)) * g(rho * mp.cos(t) + side * mp.sin(t)), kinks)
