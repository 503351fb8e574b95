"""Iterates the exact two-input recursions of K and Theta for every built-in activation with a K* = 0 or half-stable
critical point, both choices of learning rates: tests/data/nearby/builtin.json. Quadrature in polar coordinates, sector
by sector between the kinks; of the product only sigma's definition, (C_b, C_W) and the powers of the learning rates.

    python tests/data/nearby/make_builtin.py            # all;  names may be given
"""

import json
import math
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import sympy as sp

import derive
from derive.design.recommendation import Hyperparameters
from derive.symbols import L, ell, lambda_b, lambda_W, z

HERE = Path(__file__).parent
NAMES = ("tanh", "sin", "erf", "arctan", "softsign", "elu", "sigmoid_half", "gelu", "gelu_tanh", "swish", "mish")
DEPTHS = (30, 100, 300, 1000, 3000, 10000)
BIAS, WEIGHT = 1.0, 2.0
ANGULAR, RADIAL = 16, 40


def functions(sigma):
    modules = [{"erf": np.vectorize(math.erf)}, "numpy"]
    return [sp.lambdify(z, sigma.derivative(k), modules=modules) for k in (0, 1)]


def half_stable_start(point):
    """A kernel on the side that K* attracts."""
    return float(point.K_star) + (1.0 if "above" in point.stability else -0.5)


def power_laws(sigma, depth, rule):
    """The learning rates' leading power laws at large depth, which the asymptotics under test assume."""
    table, point = derive.exponents(sigma, rule), sigma.criticality().points[0]
    numbers = {lambda_b: BIAS, lambda_W: WEIGHT, L: depth, sp.Symbol("p_perp", real=True): table.p_perp}
    rates = [
        tuple(float(e.subs(numbers).subs(ell, layer)) for layer in range(1, depth + 1)) for e in table.rates.expressions
    ]
    return Hyperparameters(float(point.C_b), float(point.C_W), *rates)


def iterate(name):
    sigma = derive.activation(name)
    point = sigma.criticality().points[0]
    C_b, C_W, flowing = float(point.C_b), float(point.C_W), point.K_star == 0
    K = 1.0 if flowing else half_stable_start(point)
    psi = 0.01 if flowing and not sigma.kinks else 0.001  # a jump in sigma'' leaves corrections of order psi
    depths = DEPTHS if flowing else DEPTHS[:3]
    rules = ("equivalence", "constant") if flowing else ("constant",)  # half-stable p_perp are in the hundreds
    settings = {rule: power_laws(sigma, depths[-1], rule) for rule in rules}
    value, slope = functions(sigma)
    t, w = np.polynomial.legendre.leggauss(ANGULAR if flowing else 4 * ANGULAR)
    r, v = np.polynomial.legendre.leggauss(RADIAL)
    r, v = 4.75 * (r + 1), 4.75 * v
    v = v * r * np.exp(-(r**2) / 2) / (2 * np.pi)
    gram = (K - C_b) / C_W
    same = {rule: s.lambda_b[0] + s.lambda_W[0] * gram for rule, s in settings.items()}
    cross = (K * np.cos(psi) - C_b) / C_W
    other = {rule: s.lambda_b[0] + s.lambda_W[0] * cross for rule, s in settings.items()}
    found = {rule: {} for rule in settings}
    for layer in range(1, depths[-1] + 1):
        if layer in depths:
            for rule in settings:
                found[rule][layer] = {
                    "robustness": other[rule] / same[rule] - 1,
                    "ddK_2": K * np.sin(psi / 2) ** 2,
                    "K": K,
                }
        if layer == depths[-1]:
            break
        edges = np.sort(np.mod([np.pi / 2, 3 * np.pi / 2, np.pi / 2 + psi, 3 * np.pi / 2 + psi], 2 * np.pi))
        second = gap = g_same = g_gap = 0.0
        for low, high in pairwise([*edges, edges[0] + 2 * np.pi]):
            angle = (low + high) / 2 + (high - low) / 2 * t
            weight = np.outer((high - low) / 2 * w, v)
            plus, minus = (np.sqrt(K) * np.outer(np.cos(a), r) for a in (angle, angle - psi))
            sp_, sm, dp, dm = value(plus), value(minus), slope(plus) + 0 * plus, slope(minus) + 0 * minus
            second += (weight * (sp_**2 + sm**2)).sum() / 2
            gap += (weight * (sp_ - sm) ** 2).sum() / 2
            g_same += (weight * (dp**2 + dm**2)).sum() / 2
            g_gap += (weight * (dp - dm) ** 2).sum() / 2
        for rule, s in settings.items():
            bias, rate = s.lambda_b[layer], s.lambda_W[layer]
            same[rule] = bias + rate * second + C_W * g_same * same[rule]
            other[rule] = bias + rate * (second - gap) + C_W * (g_same - g_gap) * other[rule]
        K, psi = C_b + C_W * second, 2 * np.arcsin(np.sqrt(C_W * gap / (2 * (C_b + C_W * second))))
    return found


if __name__ == "__main__":
    target = HERE / "builtin.json"
    data = json.loads(target.read_text()) if target.exists() else {}
    for name in sys.argv[1:] or NAMES:
        data[name] = iterate(name)
        target.write_text(json.dumps(data, indent=1) + "\n")
        print(name, {rule: rows[max(rows)] for rule, rows in data[name].items()}, flush=True)
