"""The covariance K of a bracket's labels: read from a number, mapping or matrix, checked, and reduced to its support.

Numbers are kept exact (a float is the dyadic rational that it is), so that a correlation of exactly 1 or -1 is
recognised without a tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.activations.parser import parse_number
from derive.errors import DeriveError
from derive.gaussian.calculus import kernel_symbol
from derive.symbols import K as K_SINGLE

FLOAT_SLACK = sp.Rational(1, 10**14)
"""How far below zero 1 - rho^2 may lie, by rounding of float input, before K counts as not positive semidefinite."""


@dataclass(frozen=True)
class Covariance:
    """Exact entries for sorted labels."""

    labels: tuple[sp.Basic, ...]
    matrix: sp.ImmutableDenseMatrix

    def __getitem__(self, pair: tuple[sp.Basic, sp.Basic]) -> sp.Expr:
        return self.matrix[self.labels.index(pair[0]), self.labels.index(pair[1])]

    def as_mapping(self) -> dict[tuple[sp.Basic, sp.Basic], sp.Expr]:
        """{(a, b): entry}."""
        return {(a, b): self[a, b] for a in self.labels for b in self.labels}

    @property
    def is_numeric(self) -> bool:
        return not self.matrix.free_symbols


def exact_number(value: Any) -> sp.Expr:
    """A SymPy number or expression without rounding: floats become the rationals that they are."""
    if isinstance(value, str):
        return parse_number(value)
    try:
        number = sp.sympify(value, strict=True)
    except sp.SympifyError as error:
        raise DeriveError(f"{value!r} is not a number.") from error
    if not isinstance(number, sp.Expr):
        raise DeriveError(f"{value!r} is not a number.")
    if number.is_number and (number.has(sp.nan, sp.oo, -sp.oo, sp.zoo) or not number.is_real):
        raise DeriveError(f"K must be made of finite real numbers; {value!r} is not.")
    return number.xreplace({f: sp.Rational(f) for f in number.atoms(sp.Float)})


def covariance(K: Any, labels: Sequence[sp.Basic]) -> Covariance:
    """K for the labels of a bracket: None (symbols), a scalar (one label), {(a, b): value}, or a square matrix.

    A matrix belongs to the labels sorted. Symbols are allowed; numbers must make K positive semidefinite.
    """
    labels = tuple(sorted(labels, key=lambda x: (not x.is_Integer, int(x) if x.is_Integer else 0, str(x))))
    n = len(labels)
    if K is None:
        entries = [[K_SINGLE if n == 1 else kernel_symbol(a, b) for b in labels] for a in labels]
    elif isinstance(K, Mapping):
        entries = [[_entry(K, a, b) for b in labels] for a in labels]
    elif isinstance(K, sp.MatrixBase) or hasattr(K, "tolist") or isinstance(K, list | tuple):
        rows = K.tolist() if hasattr(K, "tolist") else [list(r) if isinstance(r, list | tuple) else r for r in K]
        if n == 1 and not isinstance(rows, list):
            rows = [[rows]]
        if len(rows) != n or any(not isinstance(r, list) or len(r) != n for r in rows):
            names = ", ".join(map(str, labels))
            raise DeriveError(f"K must be a {n} x {n} matrix for the labels {names}.")
        entries = [[exact_number(x) for x in row] for row in rows]
    elif n <= 1:
        entries = [[exact_number(K)] for _ in labels]
    else:
        names = ", ".join(map(str, labels))
        raise DeriveError(f"The bracket has the labels {names}: give K as a matrix or as {{(a, b): value}}.")
    matrix = sp.ImmutableDenseMatrix(n, n, [x for row in entries for x in row])
    if any(not sp.expand(matrix[i, j] - matrix[j, i]).equals(0) for i in range(n) for j in range(i)):
        raise DeriveError("K must be symmetric.")
    found = Covariance(labels, matrix)
    if found.is_numeric:
        _check(found)
    return found


def _entry(K: Mapping, a: sp.Basic, b: sp.Basic) -> sp.Expr:
    plain = {tuple(sp.sympify(x, strict=True) for x in key): value for key, value in K.items()}
    for key in ((a, b), (b, a)):
        if key in plain:
            return exact_number(plain[key])
    raise DeriveError(f"K has no entry for the labels ({a}, {b}).")


def _check(K: Covariance) -> None:
    for i, a in enumerate(K.labels):
        if not K.matrix[i, i].is_nonnegative and sign(K.matrix[i, i]) < 0:
            raise DeriveError(f"K must be positive semidefinite; K_{a}{a} = {K.matrix[i, i].evalf(5)} is negative.")
        for j in range(i):
            bound = K.matrix[i, i] * K.matrix[j, j]
            if sign(K.matrix[i, j] ** 2 - bound * (1 + FLOAT_SLACK)) > 0:
                raise DeriveError(
                    f"K must be positive semidefinite; the correlation of labels {K.labels[j]} and {a} exceeds 1."
                )
    factorize(K.matrix)


def sign(number: sp.Expr) -> int:
    """The sign of an exact number; what is zero to 60 digits counts as zero."""
    if number.is_Rational:
        return int(sp.sign(number))
    if number.is_zero:
        return 0
    value = number.evalf(60, maxn=400)
    return 0 if abs(value) < sp.Float("1e-50") else (1 if value > 0 else -1)


def factorize(matrix: sp.ImmutableDenseMatrix) -> tuple[list[list[sp.Expr]], list[sp.Expr]]:
    """(L, D) with matrix = L D L^T, exact; a positive semidefinite matrix has a zero column where D is zero."""
    n = matrix.shape[0]
    lower = [[sp.S.Zero] * n for _ in range(n)]
    diagonal: list[sp.Expr] = []
    for i in range(n):
        for j in range(i):
            rest = matrix[i, j] - sum(lower[i][k] * lower[j][k] * diagonal[k] for k in range(j))
            lower[i][j] = rest / diagonal[j] if diagonal[j] != 0 else sp.S.Zero
        pivot = matrix[i, i] - sum(lower[i][k] ** 2 * diagonal[k] for k in range(i))
        if sign(sp.sympify(pivot, strict=True) + matrix[i, i] * 100 * FLOAT_SLACK) < 0:
            raise DeriveError("K must be positive semidefinite; it has a negative eigenvalue.")
        diagonal.append(pivot if sign(sp.sympify(pivot, strict=True)) > 0 else sp.S.Zero)
    return lower, diagonal
