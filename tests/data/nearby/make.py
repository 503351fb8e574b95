"""Iterates the exact two-input recursions of K and Theta to l = 10^4 for inputs of equal norm, and stores robustness
and separation: tests/data/nearby/{tanh,selu}.json. Two-dimensional quadrature; nothing of the product is used.

    python tests/data/nearby/make.py
"""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
REAL = np.longdouble
DEPTHS = (100, 300, 1000, 3000, 10000)
BIAS, WEIGHT = REAL(1), REAL(2)


def line(count, reach=9.5):
    step = REAL(2 * reach) / count
    nodes = -REAL(reach) + step * np.arange(count + 1, dtype=REAL)
    return nodes, step * np.exp(-nodes * nodes / 2) / np.sqrt(2 * REAL(np.pi))


def tanh(rule):
    """z_± = u ± v with independent u ~ N(0, K_[0]) and v ~ N(0, K_[2]): no differences of nearly equal numbers."""
    (x, w), (y, v) = line(120), line(40)
    U, V, W = x[:, None], y[None, :], np.outer(w, v)
    k0, k2 = REAL(1), REAL("1e-4")
    t0, t2 = BIAS + WEIGHT * k0, WEIGHT * k2
    found = {}
    for layer in range(1, DEPTHS[-1] + 1):
        if layer in DEPTHS:
            found[layer] = {"robustness": float(-2 * t2 / (t0 + t2)), "ddK_2": float(k2), "K": float(k0)}
        u, d = np.sqrt(k0) * U, np.sqrt(k2) * V
        plus, minus = np.tanh(u + d), np.tanh(u - d)
        gap, total = np.sinh(2 * d) / (np.cosh(u + d) * np.cosh(u - d)), plus + minus
        slope_plus, slope_minus = 1 - plus**2, 1 - minus**2
        g0 = (W * (slope_plus + slope_minus) ** 2).sum() / 4
        g2 = (W * (gap * total) ** 2).sum() / 4
        b0, b2 = (W * total**2).sum() / 4, (W * gap**2).sum() / 4
        bias = BIAS / (layer + 1) if rule == "equivalence" else BIAS
        t0, t2 = bias + WEIGHT * b0 + g0 * t0 + g2 * t2, WEIGHT * b2 + g0 * t2 + g2 * t0
        k0, k2 = b0, b2
    return found


SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def polar():
    """Angle and radius: the kinks z_+ = 0 and z_- = 0 are rays, between which everything is smooth."""
    radius, radial = np.polynomial.legendre.leggauss(48)
    radius, radial = 4.5 * (radius + 1), 4.5 * radial
    radial = radial * radius * np.exp(-(radius**2) / 2) / (2 * np.pi)
    return radius, radial, *np.polynomial.legendre.leggauss(24)


def selu(rule):
    """z_+ = sqrt(K) r cos(t), z_- = sqrt(K) r cos(t - psi), integrated sector by sector."""
    radius, radial, nodes, weights = polar()
    slope = lambda z: SELU_SCALE * np.where(z > 0, 1.0, SELU_ALPHA * np.exp(np.minimum(z, 0)))  # noqa: E731
    value = lambda z: SELU_SCALE * np.where(z > 0, z, SELU_ALPHA * np.expm1(np.minimum(z, 0)))  # noqa: E731
    C_W = 2 / (SELU_SCALE**2 * (1 + SELU_ALPHA**2))
    K, psi = 1.0, 0.3
    power_b, power_w = (2, 0) if rule == "equivalence" else (0, 0)  # p_perp = p_0 = 2: lambda_b ~ l^-2, lambda_W ~ 1
    diagonal, off = float(BIAS + WEIGHT * K / C_W), float(BIAS) + float(WEIGHT) * K / C_W * np.cos(psi)
    found = {}
    for layer in range(1, DEPTHS[-1] + 1):
        if layer in DEPTHS:
            found[layer] = {"robustness": off / diagonal - 1, "K": K, "psi": psi}
        edges = np.sort(np.mod([np.pi / 2, 3 * np.pi / 2, np.pi / 2 + psi, 3 * np.pi / 2 + psi], 2 * np.pi))
        edges = np.append(edges, edges[0] + 2 * np.pi)
        totals = np.zeros(4)
        for low, high in pairwise(edges):
            angle = (low + high) / 2 + (high - low) / 2 * nodes
            weight = np.outer((high - low) / 2 * weights, radial)
            plus = np.sqrt(K) * np.outer(np.cos(angle), radius)
            minus = np.sqrt(K) * np.outer(np.cos(angle - psi), radius)
            sp, sm, dp, dm = value(plus), value(minus), slope(plus), slope(minus)
            # equal norms: averages over both inputs; the gap is integrated as such, free of cancellation
            totals += [
                (weight * (sp**2 + sm**2)).sum() / 2,
                (weight * (sp - sm) ** 2).sum(),
                (weight * (dp**2 + dm**2)).sum() / 2,
                (weight * dp * dm).sum(),
            ]
        second, gap, g_same, g_other = totals
        bias = float(BIAS) * (layer + 1.0) ** -power_b
        rate = float(WEIGHT) * (layer + 1.0) ** -power_w
        diagonal = bias + rate * second + C_W * g_same * diagonal
        off = bias + rate * (second - gap / 2) + C_W * g_other * off
        K, psi = C_W * second, 2 * np.arcsin(np.sqrt(gap / (4 * second)))
    return found


if __name__ == "__main__":
    for name, iterate in (("tanh", tanh), ("selu", selu)):
        data = {rule: iterate(rule) for rule in ("constant", "equivalence")}
        (HERE / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
        print(name, json.dumps(data, indent=1))
