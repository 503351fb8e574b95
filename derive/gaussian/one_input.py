r"""All brackets of one input at once, as a fast function of the number K: what recursions need at each layer.

A bracket is first turned into regular integrals and delta functions (`derive.gaussian.support`), with K as a symbol.
The integrals are then taken by Gauss-Legendre panels between the kinks, in extended precision (numpy longdouble;
functions that numpy lacks, such as erf, in double). Panels shrink geometrically towards the origin, so that an
activation much narrower than the Gaussian is resolved, and are halved until two levels agree; `error` is the largest
relative difference that was left.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import sympy as sp

from derive.activations import Activation
from derive.errors import DeriveError
from derive.gaussian.bracket import Bracket
from derive.gaussian.covariance import covariance
from derive.gaussian.support import regular_integrals
from derive.symbols import K, z

Real = np.longdouble
RANGE = 11.0
"""Standard deviations that the integrals reach: the density there is 2e-27 of its peak."""
NODES = 24
GOAL = 1e-13
"""Relative agreement of two levels of quadrature, next to the integral of the absolute value."""
MOST_HALVINGS = 6
LARGEST = 1e100
"""Of K; its inverse is the smallest."""


class OutOfRange(DeriveError):
    """K is too large, or too small, for its brackets to be taken."""

    def __init__(self, message: str, small: bool) -> None:
        super().__init__(message)
        self.small = small


class OneInputBrackets:
    """The brackets `wanted` of an activation; call it with K for their values.

    >>> from derive.activations import activation
    >>> from derive.gaussian import parse_bracket
    >>> f = OneInputBrackets(activation("tanh"), [parse_bracket("s0 s0")])
    >>> round(float(f(1.0)[0]), 15)
    0.394294490397841
    """

    def __init__(self, activation: Activation, wanted: Sequence[Bracket]) -> None:
        self.wanted = tuple(wanted)
        self.error = 0.0
        self._halvings = 0
        self._knots: list[sp.Expr] = sorted({sp.sympify(k, strict=True) for k in activation.kinks}, key=float)
        terms: list[list[tuple[int, int]]] = []  # for each bracket: (place of the coefficient, place of the integral)
        coefficients: list[sp.Expr] = []
        rows: dict[tuple[sp.Expr, ...], int] = {}
        for bracket in self.wanted:
            own = []
            for term in regular_integrals(bracket, activation, covariance(K, bracket.labels)):
                place = -1
                if term.factors:
                    (factor,) = term.factors
                    pieces = self._on_grid(factor.knots, factor.pieces)
                    place = rows.setdefault(pieces, len(rows))
                own.append((len(coefficients), place))
                coefficients.append(term.coefficient)
            terms.append(own)
        self._terms = terms
        columns = list(zip(*rows)) if rows else [()] * (len(self._knots) + 1)
        self._pieces = [_compiled(list(column)) for column in columns]
        self._coefficients = sp.lambdify(K, [sp.N(c, 25) for c in coefficients], modules=_modules({}))
        self._rows = len(rows)

    def _on_grid(self, knots: Sequence[sp.Expr], pieces: Sequence[sp.Expr]) -> tuple[sp.Expr, ...]:
        """The pieces on the intervals between all kinks."""
        edges = [-sp.oo, *self._knots, sp.oo]
        found = []
        for low, high in itertools.pairwise(edges):
            inside = high - 1 if low == -sp.oo else low + 1 if high == sp.oo else (low + high) / 2
            if low == -sp.oo and high == sp.oo:
                inside = sp.S.Zero
            found.append(pieces[sum(1 for k in knots if float(k) < float(inside))])
        return tuple(found)

    def __call__(self, kernel: float | np.longdouble) -> list[np.longdouble]:
        """The values at K = kernel, which must be positive."""
        variance = Real(kernel)
        if not 1 / LARGEST <= variance <= LARGEST:
            raise OutOfRange(
                f"K = {float(variance):g} is not between {1 / LARGEST:g} and {LARGEST:g}", bool(variance < 1)
            )
        values, sizes = self._integrals(variance, self._halvings)
        while True:
            finer, _ = self._integrals(variance, self._halvings + 1)
            with np.errstate(invalid="ignore"):
                gap = float(np.max(np.abs(finer - values) / sizes, initial=0.0))
            if not np.isfinite(gap):
                raise DeriveError(f"an expectation is not finite at K = {float(variance):g}")
            if gap <= GOAL or self._halvings == MOST_HALVINGS:
                break
            self._halvings += 1
            values = finer
        self.error = max(self.error, gap)
        factors = self._coefficients(variance)
        return [sum((Real(factors[c]) * (finer[i] if i >= 0 else 1) for c, i in own), Real(0)) for own in self._terms]

    def _integrals(self, variance: np.longdouble, halvings: int) -> tuple[np.ndarray, np.ndarray]:
        """Each integrand's mean over N(0, variance), and that of its absolute value."""
        root = np.sqrt(variance)
        total, size = np.zeros(self._rows, Real), np.full(self._rows, np.finfo(float).tiny, Real)
        cuts = [-RANGE * root, *(Real(str(sp.N(k, 25))) for k in self._knots), RANGE * root]
        nodes, weights = _legendre()
        for function, (low, high) in zip(self._pieces, itertools.pairwise(cuts)):
            low, high = max(low, cuts[0]), min(high, cuts[-1])
            if low >= high or not self._rows:
                continue
            edges = _edges(low, high, root, halvings)
            middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
            points = (middle[:, None] + half[:, None] * nodes).ravel()
            density = np.exp(-(points**2) / (2 * variance)) / (root * np.sqrt(2 * Real(str(sp.N(sp.pi, 25)))))
            measure = (half[:, None] * weights).ravel() * density
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                sampled = np.array([np.broadcast_to(v, points.shape) for v in function(points)], dtype=Real)
                total += sampled @ measure
                size += np.abs(sampled) @ measure
        return total, size


def _edges(low: np.longdouble, high: np.longdouble, root: np.longdouble, halvings: int) -> np.ndarray:
    """Panels between low and high: geometric in |z| from the Gaussian's scale down to the activation's, then halved."""
    steps = max(3, int(np.ceil(np.log2(float(RANGE * root)))) + 3)
    sizes = RANGE * root / 2.0 ** np.arange(steps)
    marks = [x for x in (*(-sizes), Real(0), *sizes[::-1]) if low < x < high]
    edges: np.ndarray = np.array([low, *marks, high], dtype=Real)
    for _ in range(halvings):
        edges = np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))
    return edges


@lru_cache(maxsize=1)
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [-1, 1], polished by Newton's method in extended precision."""
    nodes: np.ndarray = np.polynomial.legendre.leggauss(NODES)[0].astype(Real)
    for _ in range(2):
        previous, here = np.ones_like(nodes), nodes
        for j in range(2, NODES + 1):
            previous, here = here, ((2 * j - 1) * nodes * here - (j - 1) * previous) / j
        slope = NODES * (nodes * here - previous) / (nodes * nodes - 1)
        nodes = nodes - here / slope
    return nodes, 2 / ((1 - nodes * nodes) * slope**2)


def _compiled(expressions: list[sp.Expr]) -> Callable[[np.ndarray], list[np.ndarray]]:
    """A numpy function of z; rational numbers that no float holds are given to it in extended precision."""
    numbers = sorted({q for e in expressions for q in e.atoms(sp.Rational) if q.q & (q.q - 1)})
    names = {q: sp.Symbol(f"rational_{i}") for i, q in enumerate(numbers)}
    known = {s.name: Real(q.p) / Real(q.q) for q, s in names.items()}
    return sp.lambdify(z, [e.xreplace(names) for e in expressions], modules=_modules(known), cse=True)


def _modules(known: dict[str, np.longdouble]) -> list[dict[str, object] | str]:
    return [{"erf": np.vectorize(math.erf, otypes=[float]), **known}, "numpy"]
