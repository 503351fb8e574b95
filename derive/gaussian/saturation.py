"""Far from the origin tanh, erf and decaying exponentials are constants: an expression without them, and its error.

On a stretch of the real line where a node n(z) (tanh(u), erf(u), erfc(u), exp(u)) is within d of a constant c, the mean
value theorem gives |F(z, n) - F(z, c)| <= d sup |dF/dn| with n anywhere within d of c. What is left of F has no poles
near the line there (those of tanh(z + z^3) crowd towards it), so that complex balls can be large.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations.enclosure import Complement, available, without_cancellation
from derive.activations.intervals import Interval, enclosure
from derive.symbols import z

if TYPE_CHECKING:
    from flint import arb

if available():
    import flint

NODES = (sp.tanh, sp.erf, Complement, sp.exp)
_MARK = sp.Symbol("n", real=True)


@lru_cache(maxsize=1024)
def _nodes(expression: sp.Expr) -> tuple[sp.Expr, ...]:
    """The candidates, outermost first: functions that saturate, and denominators that grow exponentially."""
    form = without_cancellation(expression)
    found = [n for n in form.atoms(*NODES) if n.has(z)]
    found += [n for n in form.atoms(sp.Pow) if n.exp.is_negative and n.base.has(sp.exp, sp.cosh)]
    return tuple(sorted(found, key=lambda n: (-n.count_ops(), str(n))))


@lru_cache(maxsize=4096)
def _replaced(expression: sp.Expr, node: sp.Expr, constant: int) -> tuple[sp.Expr, sp.Expr]:
    """The expression with the node replaced by the constant, and its slope with respect to the node."""
    marked = expression.xreplace({node: _MARK})
    return marked.xreplace({_MARK: sp.Integer(constant)}), sp.diff(marked, _MARK)


def _constant(node: sp.Expr, box: Interval, limit: arb) -> tuple[int, arb] | None:
    """(c, d) with |node - c| <= d on the box, where d is below the limit."""
    error: arb | None = None
    constant = 0
    if node.is_Pow and not isinstance(node, sp.exp):
        low, high = enclosure(node)({z: box})
        error = flint.arb(max(abs(low), abs(high)))
    else:
        low, high = enclosure(node.args[0])({z: box})
        if isinstance(node, sp.exp):
            error = flint.arb(high).exp() if high < 0 else None
        elif low > 0 or high < 0:
            side = 1 if low > 0 else -1
            far = flint.arb(low if low > 0 else -high)
            error = 2 * (-2 * far).exp() if isinstance(node, sp.tanh) else far.erfc()
            constant = (1 - side) if isinstance(node, Complement) else side
    if error is None or not error.is_finite() or not error < limit:
        return None
    return constant, flint.arb(error.abs_upper())


def without_saturated(expression: sp.Expr, low: arb, high: arb, limit: arb) -> tuple[sp.Expr, arb] | None:
    """(G, e): |F - G| <= e on [low, high], where G has fewer functions than F; None where nothing is saturated."""
    ends = (float(low.mid()), float(high.mid()))
    box = (ends[0] - 1e-9 * abs(ends[0]), ends[1] + 1e-9 * abs(ends[1]))
    current, total, changed = without_cancellation(expression), flint.arb(0), False
    for node in _nodes(expression):
        if not current.has(node):
            continue
        found = _constant(node, box, limit)
        if found is None:
            continue
        constant, error = found
        simpler, slope = _replaced(current, node, constant)
        if simpler.has(sp.zoo, sp.nan, sp.oo):
            continue
        if slope != 0:
            sizes = enclosure(_as_function(slope, constant, error))({z: box})
            largest = max(map(abs, sizes))
            if not math.isfinite(largest):
                continue
            total += flint.arb(largest) * error
        current, changed = simpler, True
    return (current, total) if changed and total.is_finite() else None


def _as_function(slope: sp.Expr, constant: int, error: arb) -> sp.Expr:
    """The slope as an expression in z alone: the node is c + d sin(z') with any angle, which fills c - d ... c + d."""
    bits = int(-float(error.log().mid()) / 0.6932) // 16 * 16 if error > 0 else 992
    radius = sp.Rational(1, 2 ** min(992, max(0, bits)))  # few different radii, each at least the error
    return slope.xreplace({_MARK: sp.Integer(constant) + radius * sp.sin(10**30 * z)})
