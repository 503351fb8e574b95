"""Ball arithmetic against quadrature at equal digits, in one run: `python bench/balls.py` (CPU seconds).

Quadrature of four labels is timed at four digits only: fifteen would take it hours.
"""

from __future__ import annotations

import time

import sympy as sp

from derive.gaussian import evaluate, evaluation, parse_bracket

R = sp.Rational
PAIR = [[1, R(1, 2)], [R(1, 2), 2]]
TRIPLE = [[1, R(1, 2), R(1, 3)], [R(1, 2), 1, R(2, 5)], [R(1, 3), R(2, 5), 2]]
QUADRUPLE = [[1, R(1, 2), R(1, 3), R(1, 4)], [R(1, 2), 1, R(2, 5), R(1, 5)], [R(1, 3), R(2, 5), 2, R(1, 7)],
             [R(1, 4), R(1, 5), R(1, 7), 1]]  # fmt: skip
CASES = (
    ("s0 s0", "tanh", 1, 30),
    ("s0 s0", "gelu", 1, 30),
    ("s0 s0", "softplus", 1000, 30),
    ("s0' s0'", "where(z<0,erf(300*z),erf(600*z))", 1, 30),
    ("s0", "abs(z^3-pi*z+1)", 1, 30),
    ("s0 s1", "tanh", PAIR, 15),
    ("s0 s1", "swish", PAIR, 50),
    ("s0 s1", "elu", PAIR, 15),
    ("s0' s1'", "softsign", [[1, R(3, 10)], [R(3, 10), 2]], 15),
    ("s0 s1", "selu", [[1, -R(7, 10)], [-R(7, 10), 1]], 15),
    ("s0 s1 s2", "tanh", TRIPLE, 12),
    ("s0 s1 s2 s3", "tanh", QUADRUPLE, 4),
)
BALLS_ONLY = (
    ("s0 s1 s2", "elu", TRIPLE, 15),
    *(("s0 s1 s2 s3", a, QUADRUPLE, 15) for a in ("tanh", "elu", "softsign")),
)


def seconds(pattern: str, activation: str, K: object, digits: int, balls: bool) -> float:
    """CPU seconds of a second evaluation: symbolic work and compilation are done."""
    present = evaluation.available
    matrix = sp.Matrix(K) if isinstance(K, list) else K
    try:
        evaluation.available = present if balls else lambda: False
        bracket = parse_bracket(pattern)
        evaluate(bracket, activation, matrix, 3, closed_forms=False)
        start = time.process_time()
        evaluate(bracket, activation, matrix, digits, closed_forms=False)
        return time.process_time() - start
    finally:
        evaluation.available = present


def main() -> None:
    print(f"{'bracket':40}{'digits':>7}{'quadrature':>12}{'balls':>9}")
    for case in CASES:
        slow, fast = (seconds(*case, balls=balls) for balls in (False, True))
        print(f"{case[0] + '  ' + case[1]:40.40}{case[3]:7}{slow:12.3f}{fast:9.3f}", flush=True)
    for case in BALLS_ONLY:
        print(f"{case[0] + '  ' + case[1]:40.40}{case[3]:7}{'':12}{seconds(*case, balls=True):9.3f}", flush=True)


if __name__ == "__main__":
    main()
