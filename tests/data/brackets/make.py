"""Writes pairs.json: pair brackets to 30 digits by `derive.gaussian.evaluation`, references of the engine's tests.

Run from the repository's root: python tests/data/brackets/make.py
"""

import json
from pathlib import Path

import mpmath

import derive
from derive.gaussian import Sigma, expect, value

ACTIVATIONS = ("tanh", "gelu", "erf", "sin", "swish", "softplus")
ORDERS = ((0, 0), (1, 1), (0, 2), (2, 2), (1, 3), (1, 5), (5, 5))
NEAR = 1 - 2**-53  # the correlation of two inputs at an angle of 1e-8
KERNELS = (
    (1e-10, 0.3, 2e-10),
    (1.0, 0.4, 2.0),
    (1.0, -0.9, 0.7),
    (1.0, NEAR, 1.0),
    (1.5, -1.0, 1.5),
    (20.0, 0.8, 30.0),
    (1000.0, 0.3, 500.0),
    (900.0, 0.999, 1000.0),
    (1000.0, NEAR, 1000.0),
)


def main() -> None:
    rows = []
    for name in ACTIVATIONS:
        activation = derive.activation(name)
        for a, rho, b in KERNELS:
            c = rho * a if a == b else rho * float(mpmath.sqrt(a * b))
            for j, k in ORDERS:
                bracket = expect(Sigma(0, j) * Sigma(1, k))
                number = value(bracket, activation, {(0, 0): a, (0, 1): c, (1, 1): b}, 30)
                rows.append([name, a, c, b, j, k, mpmath.nstr(number, 25)])
        print(name, len(rows), flush=True)
    target = Path(__file__).with_name("pairs.json")
    temporary = target.with_suffix(".tmp")
    temporary.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    temporary.replace(target)


if __name__ == "__main__":
    main()
