"""Writes quadruples.json: four-point brackets at two inputs by `derive.gaussian.evaluation`, to 20 digits, at three and
four inputs by product rules on every orthant of (z_a, z_b, ...) itself, in NumPy; references of the engine's tests.

Each row is [activation, covariance of the inputs, labels, orders, value, error]. Run from the repository's root:
python tests/data/brackets/make_quadruples.py
"""

import json
from itertools import product
from pathlib import Path

import mpmath
import numpy as np
import sympy as sp

import derive
from derive.errors import DeriveError
from derive.gaussian import Sigma, expect, value
from derive.symbols import z

PATTERNS = ((0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 1, 1), (0, 1, 1, 2), (1, 1, 1, 3), (1, 1, 2, 2))
NEAR = 1 - 2**-53  # the correlation of two inputs at an angle of 1e-8
LARGE = ((20.0, 0.8, 30.0), (1000.0, 0.3, 500.0), (900.0, 0.999, 1000.0))
TWO = {
    **dict.fromkeys(("tanh", "swish", "softplus", "gelu", "erf"), LARGE),
    "sin": ((20.0, 0.8, 30.0), (100.0, 0.999, 90.0)),
    **dict.fromkeys(("elu", "softsign"), ((1.0, 0.4, 2.0), (1e-4, -0.7, 2e-4), (1000.0, 0.3, 500.0), (1.0, NEAR, 1.0))),
    "selu": ((1.0, 0.4, 2.0), (20.0, -0.95, 30.0), (1.0, NEAR, 1.0)),
}
PLACES = ((0, 0, 1, 1), (0, 1, 1, 1), (1, 1, 1, 0))

# three and four inputs: activation, scale of the variances, nodes a half line
MANY = (
    ("elu", 1.0, 44), ("softsign", 1.0, 44), ("selu", 1.5, 44), ("elu", 1e-8, 40), ("softsign", 400.0, 56),
    ("tanh", 20.0, 52), ("tanh", 1000.0, 60), ("swish", 100.0, 56), ("softplus", 1000.0, 60),
)  # fmt: skip
INPUTS = np.array([[1.0, 0.2, 0.0, 0.1], [0.3, 0.9, 0.2, -0.1], [-0.3, 0.1, 1.1, 0.2], [0.2, -0.3, 0.2, 0.8]])
ALIKE = INPUTS @ np.full((4, 4), 0.3) + INPUTS * 0.5  # correlations of 0.7 to 0.9
CLOSE = (("elu", 1.0, 64), ("softsign", 1.0, 64), ("selu", 1.0, 64))


def two_inputs() -> list[list]:
    rows = []
    for name, kernels in TWO.items():
        activation = derive.activation(name)
        for a, rho, b in kernels:
            c = rho * a if a == b else rho * float(mpmath.sqrt(a * b))
            for labels, orders in product(PLACES, PATTERNS):
                if name == "selu" and max(orders) > 1:
                    continue  # exists at some places only, so the tensor does not
                try:
                    bracket = expect(sp.prod([Sigma(x, k) for x, k in zip(labels, orders)]))
                    number = value(bracket, activation, {(0, 0): a, (0, 1): c, (1, 1): b}, 20)
                except DeriveError:
                    continue  # it does not exist
                rows.append([name, [[a, c], [c, b]], labels, orders, mpmath.nstr(number, 17), 1e-15])
        print(name, len(rows), flush=True)
    return rows


def one_sided(name: str, order: int, side: int, t: np.ndarray) -> np.ndarray:
    """sigma^(order) at side * t, t > 0, on that side of the kink."""
    expression = derive.activation(name).expression
    if expression.has(sp.Piecewise, sp.Abs, sp.sign):
        positive = sp.Symbol("t", positive=True)
        expression = sp.simplify(sp.piecewise_fold(expression.subs(z, side * positive))).subs(positive, side * z)
    values = sp.lambdify(z, sp.diff(expression, z, order), "mpmath" if name in ("swish", "softplus") else "numpy")
    if name in ("swish", "softplus"):
        return np.array([float(values(mpmath.mpf(float(side * x)))) for x in t])
    return np.broadcast_to(values(side * t), t.shape).astype(float)


def orthants(name: str, C: np.ndarray, kinds: list[list[tuple[int, ...]]], nodes: int) -> np.ndarray:
    """<product of sigma^(k) over the orders k at each input> for all choices of `kinds`: one axis an input."""
    d = len(C)
    precision = np.linalg.inv(C)
    norm = np.sqrt(np.linalg.det(2 * np.pi * C))
    u, w = np.polynomial.legendre.leggauss(nodes)
    jump = (one_sided(name, 2, 1, np.zeros(1)) - one_sided(name, 2, -1, np.zeros(1)))[0]
    lines, weights = [], []
    for i in range(d):
        grain = min(1.0, np.sqrt(C[i, i]))
        top = np.arcsinh(8.5 * np.sqrt(C[i, i]) / grain)
        x = grain * np.sinh(top * (u + 1) / 2)
        lines.append(np.append(x, 0.0))  # the last node carries the delta function
        weights.append(np.append(w * top / 2 * grain * np.cosh(top * (u + 1) / 2), 0.0))
    total: np.ndarray | float = 0.0
    for signs in product((1, -1), repeat=d):
        exponent = np.zeros((nodes + 1,) * d)
        for i, j in product(range(d), repeat=2):
            shape = [1] * d
            ti, tj = lines[i] * signs[i], lines[j] * signs[j]
            if i == j:
                shape[i] = -1
                exponent = exponent - 0.5 * precision[i, i] * (ti**2).reshape(shape)
            elif i < j:
                shape[i], shape[j] = nodes + 1, nodes + 1
                exponent = exponent - precision[i, j] * np.outer(ti, tj).reshape(shape)
        tensor = np.exp(exponent) / norm
        for i in range(d):
            sigma = {k: one_sided(name, k, signs[i], lines[i]) for k in {k for kind in kinds[i] for k in kind}}
            table = np.array([weights[i] * np.prod([sigma[k] for k in kind], axis=0) for kind in kinds[i]])
            for row, kind in enumerate(kinds[i]):
                if 3 in kind and signs[i] == 1:  # beside continuous factors
                    rest = list(kind)
                    rest.remove(3)
                    table[row, -1] = jump * np.prod([sigma[k][-1] for k in rest])
            tensor = np.tensordot(tensor, table, axes=([0], [1]))  # the axes rotate: after d steps they are in order
        total = total + tensor
    return np.asarray(total)


def many_inputs() -> list[list]:
    rows = []
    for inputs, (name, scale, nodes) in [(INPUTS, own) for own in MANY] + [(ALIKE, own) for own in CLOSE]:
        C = scale * inputs @ inputs.T
        highest = 1 if name == "selu" else 3
        patterns = [p for p in PATTERNS if max(p) <= highest]
        wanted = sorted({q for p in patterns for q in (p, p[::-1], p[2:] + p[:2])})
        for places in ((0, 1, 2, 3), (0, 0, 1, 2)):
            d = max(places) + 1
            split = {p: [tuple(k for k, q in zip(p, places) if q == i) for i in range(d)] for p in wanted}
            kinds = [sorted({split[p][i] for p in wanted}) for i in range(d)]
            fine, coarse = (orthants(name, C[:d, :d], kinds, n) for n in (nodes, nodes - 8))
            for p in wanted:
                at = tuple(kinds[i].index(split[p][i]) for i in range(d))
                size = max(
                    abs(fine[tuple(kinds[i].index(split[q][i]) for i in range(d))])
                    for q in wanted
                    if sorted(q) == sorted(p)
                )
                error = abs(fine[at] - coarse[at]) / size
                rows.append([name, C[:d, :d].tolist(), places, p, f"{fine[at]:.17g}", float(f"{error:.1e}")])
            print(name, scale, places, max(row[-1] for row in rows[-len(wanted) :]), flush=True)
    return rows


def main() -> None:
    rows = many_inputs() + two_inputs()
    target = Path(__file__).with_name("quadruples.json")
    temporary = target.with_suffix(".tmp")
    temporary.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    temporary.replace(target)


if __name__ == "__main__":
    main()
