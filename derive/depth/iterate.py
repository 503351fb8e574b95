r"""The exact single-input recursions, iterated to any depth: the truth that series are compared with and fitted to.

Brackets are integrated at every layer by Gauss-Legendre panels in z/sqrt(K), split at the origin, in extended precision
(numpy longdouble, 64 bits of mantissa on x86; functions that numpy lacks, such as erf, in double). Delta functions at
the origin are added in closed form. Nothing is shared with the series: not the expansions in K, not `derive.gaussian`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from derive import symbols
from derive.activations import Activation
from derive.errors import DeriveError
from derive.gaussian import Bracket, Sigma
from derive.network.component import Component
from derive.symbols import z

Real = np.longdouble
RANGE = 9.6
"""Standard deviations that the integrals reach: the density there is 1e-20 of its peak."""
PANELS = (3.2,)
NODES = 36


class KernelDerivative(sp.Expr):
    """d^n/dK^n <s^(k) s^(k)>, the form in which brackets of kinked activations exist one by one."""

    is_commutative = True

    @property
    def n(self) -> int:
        return int(self.args[0])

    @property
    def k(self) -> int:
        return int(self.args[1])


def by_kernel_derivatives(expression: sp.Expr) -> sp.Expr:
    """Pair brackets <s^(a) s^(b)> rewritten by <a,b> + 2<a+1,b-1> + <a+2,b-2> = 2 d/dK <a,b-2>."""
    table = {b: _pair(*sorted(a.order for a in b.args)) for b in expression.atoms(Bracket) if len(b.args) == 2}
    return sp.expand(expression.xreplace(table))


@lru_cache(maxsize=64)
def _pair(a: int, b: int, n: int = 0) -> sp.Expr:
    if a == b:
        return KernelDerivative(sp.Integer(n), sp.Integer(a))
    if b == a + 2:
        return _pair(a, a, n + 1) - _pair(a + 1, a + 1, n)
    return 2 * _pair(a, b - 2, n + 1) - 2 * _pair(a + 1, b - 1, n) - _pair(*sorted((a + 2, b - 2)), n)


@lru_cache(maxsize=1)
def _rule() -> tuple[Any, Any]:
    """Nodes and weights (Gaussian density included) for the positive half-line, in extended precision."""
    with mpmath.workdps(25):
        half = []
        for k in range(1, NODES // 2 + 1):
            x = mpmath.cos(mpmath.pi * (k - mpmath.mpf(1) / 4) / (NODES + mpmath.mpf(1) / 2))
            for _ in range(8):
                p0, p1 = mpmath.mpf(1), x
                for j in range(2, NODES + 1):
                    p0, p1 = p1, ((2 * j - 1) * x * p1 - (j - 1) * p0) / j
                slope = NODES * (x * p1 - p0) / (x * x - 1)
                x -= p1 / slope
            half.append((x, 2 / ((1 - x * x) * slope**2)))
        standard = half + [(-x, w) for x, w in half]
        edges = [mpmath.mpf(edge) for edge in (0, *PANELS, RANGE)]
        nodes, weights = [], []
        for low, high in itertools.pairwise(edges):
            middle, width = (low + high) / 2, (high - low) / 2
            for x, w in standard:
                t = middle + width * x
                nodes.append(t)
                weights.append(w * width * mpmath.exp(-t * t / 2) / mpmath.sqrt(2 * mpmath.pi))
        return _array(nodes), _array(weights)


def _array(numbers: list[Any]) -> Any:
    return np.array([Real(mpmath.nstr(x, 22)) for x in numbers], dtype=Real)


class Brackets:
    """All brackets of the recursions at once, as a function of K."""

    def __init__(self, activation: Activation, wanted: Iterable[sp.Expr]) -> None:
        if any(kink != 0 for kink in activation.kinks):
            raise DeriveError("iteration is for activations whose kinks are at the origin")
        self.wanted = list(wanted)
        self._recipes = [_recipe(activation, item) for item in self.wanted]
        self._right = _compiled([recipe.right for recipe in self._recipes])
        self._left = _compiled([recipe.left for recipe in self._recipes])
        self._even = activation.is_odd
        self._nodes, self._weights = _rule()
        self._density = 1 / np.sqrt(2 * Real("3.14159265358979323846264338327950288"))

    def __call__(self, kernel: Any) -> list[Any]:
        root = np.sqrt(kernel)
        points = root * self._nodes
        with np.errstate(over="ignore"):
            halves = [self._right(points)] if self._even else [self._right(points), self._left(-points)]
        factor = 2 if self._even else 1
        values = []
        for place, recipe in enumerate(self._recipes):
            total = factor * sum((self._weights * half[place]).sum() for half in halves)
            for order, coefficient in recipe.deltas:
                m = order // 2
                moment = (-1) ** m * Real(math.prod(range(1, 2 * m, 2)))
                total = total + coefficient * moment * self._density / (kernel**m * root)
            values.append(total)
        return values


def _compiled(expressions: list[sp.Expr]) -> Callable[[Any], list[Any]]:
    """A numpy function of z; rational numbers that no float holds are given to it in extended precision."""
    numbers = {q for e in expressions for q in e.atoms(sp.Rational) if q.q & (q.q - 1)}
    names = {q: sp.Symbol(f"rational_{i}") for i, q in enumerate(sorted(numbers))}
    known = {s.name: Real(q.p) / Real(q.q) for q, s in names.items()}
    modules: list[Any] = [{"erf": np.vectorize(math.erf, otypes=[float]), **known}, "numpy"]
    with_names = [e.xreplace(names) for e in expressions]
    return sp.lambdify(z, with_names, modules=modules, cse=_cse_without_powers)


def _cse_without_powers(expressions: list[sp.Expr]) -> tuple[list[Any], list[Any]]:
    """Common subexpressions, with whole powers written as products: numpy's extended powers are slow."""
    replacements, reduced = sp.cse(expressions, list=False)
    return [(s, _products(e)) for s, e in replacements], [_products(e) for e in reduced]


def _products(expression: sp.Expr) -> sp.Expr:
    def product(base: sp.Expr, power: sp.Expr) -> sp.Expr:
        whole = sp.Mul(*[base] * abs(int(power)), evaluate=False) if abs(power) > 1 else base
        return whole if power > 0 else sp.Pow(whole, -1, evaluate=False)

    return expression.replace(
        lambda e: e.is_Pow and e.exp.is_Integer and abs(e.exp) > 1, lambda e: product(e.base, e.exp)
    )


@dataclass(frozen=True)
class _Recipe:
    right: sp.Expr
    left: sp.Expr
    deltas: list[tuple[int, Any]]


def _recipe(activation: Activation, item: sp.Expr) -> _Recipe:
    """The integrand right and left of the origin, and its delta functions there as (order, coefficient)."""
    factors, derivative, scale = _factors(item)
    plus, minus = (_product(activation, factors, side) for side in (-1, 0))
    deltas: list[tuple[int, Any]] = []
    if activation.kinks:
        smooth = [k for k in factors if activation.deltas(k)]
        if smooth:
            # one factor s^(k+1) with delta functions of order zero, the others continuous: write it as a derivative
            singular = max(factors)
            if factors.count(singular) > 1 or activation.deltas(singular)[0].order > 0:
                raise DeriveError(f"{item} does not exist for {activation.name}")
            rest = [k for k in factors if k != singular]
            values = {
                sp.simplify(sp.Mul(*(activation.one_sided(k, 0, s)[k] * sp.factorial(k) for k in rest))) for s in "+-"
            }
            if len(values) > 1:
                raise DeriveError(f"{item} does not exist for {activation.name}")
            deltas.append((0, _real(activation.deltas(singular)[0].coefficient * values.pop())))
        for j in range(derivative):
            jump = sp.simplify(sp.limit(sp.diff(plus, z, j), z, 0, "+") - sp.limit(sp.diff(minus, z, j), z, 0, "-"))
            order = derivative - 1 - j
            if jump != 0 and order % 2 == 0:
                deltas.append((order, _real(jump * scale)))
    return _Recipe(scale * sp.diff(plus, z, derivative), scale * sp.diff(minus, z, derivative), deltas)


def _factors(item: sp.Expr) -> tuple[list[int], int, sp.Expr]:
    """Orders of sigma's derivatives, how often the product is differentiated, and the factor in front."""
    if isinstance(item, KernelDerivative):
        return [item.k, item.k], 2 * item.n, sp.Rational(1, 2**item.n)
    if isinstance(item, Bracket) and all(isinstance(a, Sigma) for a in item.args):
        return [a.order for a in item.args], 0, sp.S.One
    raise DeriveError(f"iteration cannot integrate {item}")


def _product(activation: Activation, orders: list[int], side: int) -> sp.Expr:
    return sp.Mul(*(activation.derivative_pieces(k)[side] for k in orders))


def _real(number: sp.Expr) -> Any:
    return Real(str(sp.N(number, 25)))


def iterate(
    activation: Activation,
    equations: Mapping[str, sp.Expr],
    start: Mapping[str, Any],
    parameters: Mapping[str, Any],
    rates: tuple[Callable[[int], Any], Callable[[int], Any]],
    checkpoints: Iterable[int],
    brackets: Callable[[Any], list[Any]] | None = None,
) -> dict[int, dict[str, Any]]:
    """All tensors at the layers of `checkpoints`, from `start` at layer 1 (tensors not named there begin at zero).

    `equations` are the right-hand sides in dependency order; `parameters` holds C_b and C_W; `rates` are lambda_b and
    lambda_W as functions of the layer.
    """
    if activation.kinks:
        equations = {name: by_kernel_derivatives(e) for name, e in equations.items()}
    wanted = sorted({b for e in equations.values() for b in e.atoms(Bracket, KernelDerivative)}, key=str)
    evaluate = brackets or Brackets(activation, wanted)
    names = list(equations)
    dummies = {b: sp.Symbol(f"b{i}") for i, b in enumerate(wanted)}
    tensors = {n: sp.Symbol(f"t_{n}") for n in names}
    table = {c: tensors[c.name] for e in equations.values() for c in e.atoms(Component)}
    arguments = [symbols.C_b, symbols.C_W, symbols.lambda_b, symbols.lambda_W, *tensors.values(), *dummies.values()]
    right = [e.xreplace({**dummies, **table}) for e in equations.values()]
    step = sp.lambdify(arguments, right, modules="numpy", cse=_cse_without_powers)
    C_b, C_W = (Real(str(parameters[n])) for n in ("C_b", "C_W"))
    state = [Real(str(start.get(n, 0))) for n in names]
    kernel_place = names.index("K")
    wanted_layers = sorted(set(checkpoints))
    found: dict[int, dict[str, Any]] = {}
    for layer in range(1, wanted_layers[-1] + 1):
        if layer == wanted_layers[len(found)]:
            found[layer] = dict(zip(names, state))
            if not all(np.isfinite(x) for x in state):
                raise DeriveError(f"the iteration left the range of numbers before layer {layer}")
        values = evaluate(state[kernel_place])
        state = step(C_b, C_W, rates[0](layer + 1), rates[1](layer + 1), *state, *values)
    return found
