"""References for nearly parallel inputs of kinked activations: two-input flows in arithmetic of 40 to 150 digits.

    python tests/data/close/make.py [name ...]      # writes <name>.json beside this file

The recursions of PDLT's chapters 4, 8 and 11 as printed there, with derivatives as insertions of K^-1 z, in the plain
variables z_a, z_b: what cancels is simply carried by the digits. Expectations in polar coordinates, sector by sector of
the signs, with Gauss rules of that many digits. Nothing of the package is used.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import mpmath as mp
import numpy as np

NAMES = ("K", "Theta", "V", "G1", "D", "F", "H1", "A")


def gauss(n, low, high):
    """Gauss-Legendre nodes and weights at the working precision, by Newton's method."""
    x, w = [], []
    for k in range(n):
        t = mp.cos(mp.pi * (k + mp.mpf(3) / 4) / (n + mp.mpf(1) / 2))
        for _ in range(100):
            p0, p1 = mp.mpf(1), t
            for m in range(2, n + 1):
                p0, p1 = p1, ((2 * m - 1) * t * p1 - (m - 1) * p0) / m
            slope = n * (t * p1 - p0) / (t * t - 1)
            step = p1 / slope
            t -= step
            if abs(step) < mp.mpf(10) ** (-mp.mp.dps + 3):
                break
        x.append((low + high) / 2 + (high - low) / 2 * t)
        w.append((high - low) / ((1 - t * t) * slope * slope))
    return x, w


def laguerre(n):
    roots = sorted(mp.polyroots([mp.binomial(n, k) * (-1) ** k / mp.factorial(k) for k in range(n, -1, -1)], 400, 200))
    weights = [x / ((n + 1) * mp.laguerre(n + 1, 0, x)) ** 2 for x in roots]
    return [mp.sqrt(2 * x) for x in roots], weights


class Activation:
    """sigma and sigma' for both signs; `linear` ones need few radii."""

    def __init__(self, value, slope, linear, angles=52):
        self.value, self.slope, self.linear = value, slope, linear
        self.angle_rule = gauss(angles, mp.mpf(0), mp.mpf(1))
        if linear:
            self.radii = laguerre(4)
        else:
            a, b = gauss(40, mp.mpf(0), mp.mpf(2)), gauss(52, mp.mpf(2), mp.mpf(13))
            r = a[0] + b[0]
            self.radii = r, [w * x * mp.exp(-x * x / 2) for x, w in zip(r, a[1] + b[1])]


def leaky(plus, minus):
    return Activation(lambda z: (plus if z > 0 else minus) * z, lambda z: mp.mpf(plus if z > 0 else minus), linear=True)


ACTIVATIONS = {
    "relu": lambda: leaky(1, 0),
    "leaky_relu": lambda: leaky(mp.mpf(1), mp.mpf(1) / 100),
    "elu": lambda: Activation(
        lambda z: z if z > 0 else mp.expm1(z), lambda z: mp.mpf(1) if z > 0 else mp.exp(z), linear=False, angles=28
    ),
    "softsign": lambda: Activation(
        lambda z: z / (1 + abs(z)), lambda z: 1 / (1 + abs(z)) ** 2, linear=False, angles=28
    ),
}


READY: dict = {}


class Layer:
    """Expectations over N(0, K) of two inputs."""

    def __init__(self, activation, K):
        a, b = mp.sqrt(K[0, 0]), mp.sqrt(K[1, 1])
        det = K[0, 0] * K[1, 1] - K[0, 1] ** 2
        phi = mp.atan2(mp.sqrt(det), K[0, 1])
        edges = [phi - mp.pi / 2, mp.pi / 2, phi + mp.pi / 2, 3 * mp.pi / 2, phi + 3 * mp.pi / 2]
        z, w = [[], []], []
        for low, high in itertools.pairwise(edges):
            for x, wx in zip(*activation.angle_rule):
                t = low + (high - low) * x
                for r, wr in zip(*activation.radii):
                    z[0].append(a * r * mp.cos(t))
                    z[1].append(b * r * mp.cos(t - phi))
                    w.append(wx * (high - low) * wr / (2 * mp.pi))
        z, self.w = np.array(z, dtype=object), np.array(w, dtype=object)
        self.s = [np.array([activation.value(v) for v in row], dtype=object) for row in z]
        self.d = [np.array([activation.slope(v) for v in row], dtype=object) for row in z]
        inverse = np.array([[K[1, 1], -K[0, 1]], [-K[0, 1], K[0, 0]]], dtype=object) / det
        y = inverse @ z
        I = range(2)
        self.one = [y[i] for i in I]
        self.two = {(i, j): y[i] * y[j] - inverse[i, j] for i in I for j in I}
        self.four = {}
        for i, j, k, l in itertools.combinations_with_replacement(I, 4):
            pairings = (((i, j), (k, l)), ((i, k), (j, l)), ((i, l), (j, k)))
            value = y[i] * y[j] * y[k] * y[l]
            for p, q in pairings:
                value = value - inverse[p] * y[q[0]] * y[q[1]] - inverse[q] * y[p[0]] * y[p[1]]
                value = value + inverse[p] * inverse[q]
            self.four[i, j, k, l] = value

    def mean(self, f):
        return np.dot(self.w, f)

    def derivatives(self, f):
        """(<f>, <d_i d_j f>, <d_i d_j d_k d_l f>) as arrays."""
        g = self.w * f
        two = np.array([[np.dot(g, self.two[i, j]) for j in range(2)] for i in range(2)], dtype=object)
        own = {key: np.dot(g, value) for key, value in self.four.items()}
        four = np.empty((2,) * 4, dtype=object)
        for index in itertools.product(range(2), repeat=4):
            four[index] = own[tuple(sorted(index))]
        return np.sum(g), two, four


def advance(activation, t, C_b, C_W, lambda_b, lambda_W, r):
    layer = Layer(activation, t["K"])
    s, d, I = layer.s, layer.d, range(2)
    ss = {(i, j): s[i] * s[j] for i in I for j in I}
    dd = {(i, j): d[i] * d[j] for i in I for j in I}
    S = {p: layer.derivatives(f) for p, f in ss.items() if p[0] <= p[1]}
    P = {p: layer.derivatives(f) for p, f in dd.items() if p[0] <= p[1]}
    S[1, 0], P[1, 0] = S[0, 1], P[0, 1]
    new = {name: np.empty_like(x) for name, x in t.items()}
    Th, V = t["Theta"], t["V"]

    def dl(value):
        return np.sum(t["G1"] * value[1]) / 2 + np.sum(V * value[2]) / 8

    for p in itertools.product(I, repeat=2):
        new["K"][p] = C_b + C_W * S[p][0]
        new["Theta"][p] = lambda_b + lambda_W * S[p][0] + C_W * P[p][0] * Th[p]
        new["G1"][p] = r * C_W * dl(S[p])
        D, F = t["D"][:, :, p[0], p[1]], t["F"]
        inner = np.sum(P[p][1] * (D + F[:, p[0], :, p[1]] + F[:, p[1], :, p[0]]))
        new["H1"][p] = r * (lambda_W * dl(S[p]) + C_W * Th[p] * dl(P[p]) + C_W * P[p][0] * t["H1"][p] + C_W / 2 * inner)
    Omega = {p: lambda_W * ss[p] + C_W * Th[p] * dd[p] for p in ss}
    O = {p: [lambda_W * S[p][k] + C_W * Th[p] * P[p][k] for k in range(2)] for p in ss}
    first = {(i, j): np.array([layer.mean(s[i] * d[j] * layer.one[g]) for g in I], dtype=object) for i in I for j in I}
    for q in itertools.product(I, repeat=4):
        p, u = q[:2], q[2:]
        VV = np.einsum("ijkl,ij,kl->", V, S[p][1], S[u][1])
        new["V"][q] = C_W**2 * (layer.mean(ss[p] * ss[u]) - S[p][0] * S[u][0]) + r * C_W**2 / 4 * VV
        D = t["D"]
        new["D"][q] = (
            C_W * (layer.mean(ss[p] * Omega[u]) - S[p][0] * O[u][0])
            + r * C_W / 4 * np.einsum("ijkl,ij,kl->", V, S[p][1], O[u][1])
            + r * C_W**2 / 2 * P[u][0] * np.sum(D[:, :, u[0], u[1]] * S[p][1])
        )
        new["A"][q] = (
            layer.mean(Omega[p] * Omega[u])
            - O[p][0] * O[u][0]
            + r / mp.mpf(4) * np.einsum("ijkl,ij,kl->", V, O[p][1], O[u][1])
            + r * C_W / 2 * P[u][0] * np.sum(D[:, :, u[0], u[1]] * O[p][1])
            + r * C_W / 2 * P[p][0] * np.sum(D[:, :, p[0], p[1]] * O[u][1])
            + r * C_W**2 * P[p][0] * P[u][0] * t["A"][q]
        )
        one, three, two, four = q  # F_1324
        FF = np.einsum("g,h,gh->", first[one, three], first[two, four], t["F"][:, three, :, four])
        new["F"][q] = C_W**2 * layer.mean(s[one] * s[two] * dd[three, four]) * Th[three, four] + r * C_W**2 * FF
    return new


def flow(name, x, y, depth, width, C_b, C_W, lambda_b, lambda_W, digits):
    mp.mp.dps = digits
    if (name, digits) not in READY:
        READY[name, digits] = ACTIVATIONS[name]()
    activation = READY[name, digits]
    X = [[mp.mpf(v) for v in row] for row in (x, y)]
    C_b, C_W, lambda_b, lambda_W = (mp.mpf(v) for v in (C_b, C_W, lambda_b, lambda_W))
    gram = np.array([[mp.fdot(u, v) / len(u) for v in X] for u in X], dtype=object)
    zero = {2: np.full((2, 2), mp.mpf(0)), 4: np.full((2,) * 4, mp.mpf(0))}
    t = {"K": C_b + C_W * gram, "Theta": lambda_b + lambda_W * gram, "G1": zero[2], "H1": zero[2]}
    t |= {other: zero[4] for other in "VDFA"}
    for layer in range(2, depth + 1):
        ratio = mp.mpf(width) / len(x) if layer == 2 else mp.mpf(1)
        t = advance(activation, t, C_b, C_W, lambda_b, lambda_W, ratio)
    return {key: np.vectorize(float)(t[key]).tolist() for key in NAMES}


def near(distance, factor=1.0):
    """An input at this distance from factor times the first one; both are what float64 holds."""
    return [factor * 1.0 - distance * 0.3, factor * 0.3 + distance]


CASES = {
    "relu": [
        *[dict(y=near(10.0**-k), depth=3, C_b=0.1, C_W=2.0, digits=110) for k in (1, 2, 3, 5, 7, 9)],
        *[dict(y=near(10.0**-k, 1.7), depth=4, C_b=0.0, C_W=2.0, digits=110) for k in (1, 3, 6, 9)],
        dict(y=near(1e-4), depth=10, C_b=0.0, C_W=2.0, digits=110),
        *[dict(y=[-0.4, 1.0], depth=L, C_b=0.1, C_W=1.0, digits=90) for L in (10, 20, 45, 100)],
    ],
    "leaky_relu": [dict(y=near(10.0**-k), depth=3, C_b=0.1, C_W=1.5, digits=110) for k in (2, 4, 8)],
    "elu": [dict(y=near(10.0**-k), depth=3, C_b=0.1, C_W=1.0, digits=40) for k in (3, 5)],
    "softsign": [dict(y=near(1e-3), depth=3, C_b=0.1, C_W=1.0, digits=40)],
}


def main(names):
    for name in names or CASES:
        path = Path(__file__).with_name(f"{name}.json")
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []  # what is there is not made again
        for case in CASES[name]:
            full = dict(x=[1.0, 0.3], width=64, lambda_b=0.3, lambda_W=1.0) | case
            if any(all(old[key] == value for key, value in full.items() if key != "digits") for old in found):
                continue
            found.append(full | {"tensors": flow(name, **full)})
            print(name, full["y"], full["depth"], found[-1]["tensors"]["H1"][0][1], flush=True)
            path.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
