"""Ball arithmetic against quadrature at equal digits, in one run: `python bench/balls.py` (CPU seconds)."""

from __future__ import annotations

import time

import sympy as sp

from derive.gaussian import evaluate, evaluation, parse_bracket

R = sp.Rational
CASES = (
    ("s0 s0", "tanh", 1, 30),
    ("s0 s0", "gelu", 1, 30),
    ("s0 s0", "softplus", 1000, 30),
    ("s0' s0'", "where(z<0,erf(300*z),erf(600*z))", 1, 30),
    ("s0", "abs(z^3-pi*z+1)", 1, 30),
    ("s0 s1", "elu", [[1, R(1, 2)], [R(1, 2), 2]], 15),
    ("s0' s1'", "softsign", [[1, R(3, 10)], [R(3, 10), 2]], 15),
    ("s0 s1", "selu", [[1, -R(7, 10)], [-R(7, 10), 1]], 15),
)


def main() -> None:
    present = evaluation.available
    print(f"{'bracket':34}{'digits':>7}{'quadrature':>12}{'balls':>9}")
    for pattern, activation, K, digits in CASES:
        matrix = sp.Matrix(K) if isinstance(K, list) else K
        bracket = parse_bracket(pattern)
        times = []
        for balls in (False, True):
            evaluation.available = present if balls else lambda: False
            evaluate(bracket, activation, matrix, 5)  # symbolic work and compilation
            start = time.process_time()
            evaluate(bracket, activation, matrix, digits)
            times.append(time.process_time() - start)
        print(f"{pattern + '  ' + activation:34.34}{digits:7}{times[0]:12.3f}{times[1]:9.3f}", flush=True)


if __name__ == "__main__":
    main()
