"""Which Gaussian calculus fits an activation, read off its definition: the data of `numeric.brackets.Functions`.

>>> from derive.activations import activation
>>> family(activation("gelu"))
{'calculus': Known(name='Erf', arguments=((), (0.0, 1.0), 1.0)), 'parity': 0}
>>> family(activation("sin"))
{'calculus': Known(name='Exponentials', arguments=(((0.5j, -1j), (-0.5j, 1j)),)), 'parity': -1}
>>> family(activation("tanh"))
{'parity': -1, 'strip': 1.5707963267948966}
"""

from __future__ import annotations

from typing import NamedTuple

import mpmath
import sympy as sp

from derive.activations import Activation
from derive.activations.features import features
from derive.codegen.stable import expand_primitives, rewrite
from derive.errors import FormulaError
from derive.symbols import z


class Known(NamedTuple):
    """What is known of an activation in closed form: a calculus of `numeric.brackets`, and what it is made with."""

    name: str
    arguments: tuple[object, ...]


SHARP = 6.0
"""Features with this rate and above are data of the generated module: float64 rules must be told where they are."""


def family(activation: Activation) -> dict[str, object]:
    """The keyword arguments of `Functions` besides the name and the derivatives."""
    sharp = tuple((place, rate) for piece in activation.pieces for place, rate in features(piece) if rate >= SHARP)
    found = _family(activation)
    return {**found, "features": tuple(sorted(set(sharp)))} if sharp else found


def _family(activation: Activation) -> dict[str, object]:
    parity = -1 if activation.is_odd else 1 if activation.is_even else 0
    if activation.kinks:
        return _kinked(activation, parity)
    expression = activation.pieces[0]
    if activation.is_polynomial:
        return {"calculus": Known("Polynomial", (_coefficients(expression),)), "parity": parity}
    erf_form = _erf_form(expression)
    if erf_form is not None:
        return {"calculus": Known("Erf", erf_form), "parity": parity}
    exponentials = _exponentials(expression)
    if exponentials is not None:
        return {"calculus": Known("Exponentials", (exponentials,)), "parity": parity}
    return {"parity": parity, "strip": strip(expression)}


def _kinked(activation: Activation, parity: int) -> dict[str, object]:
    if activation.kinks != (sp.S.Zero,):
        where = ", ".join(str(k) for k in activation.kinks)
        raise FormulaError(f"The numeric flow takes activations whose only kink is at z = 0; this one has {where}.")
    slopes = activation.scale_invariant
    if slopes is not None:
        return {"calculus": Known("PiecewiseLinear", (float(slopes[0]), float(slopes[1]))), "parity": parity}
    order = (activation.first_delta_order or 1) - 1
    return {"calculus": Known("Kinked", (order,)), "parity": parity}


def _coefficients(expression: sp.Expr) -> tuple[float, ...]:
    """Coefficients of a polynomial in z, constant first; nothing for zero."""
    expanded = sp.expand(expression)
    return () if expanded == 0 else tuple(float(c) for c in reversed(sp.Poly(expanded, z).all_coeffs()))


def _erf_form(expression: sp.Expr) -> tuple[tuple[float, ...], tuple[float, ...], float] | None:
    """(p, q, scale) with sigma = p(z) + q(z) Phi(scale z), Phi the Gaussian's distribution function."""
    expanded = sp.expand(expression)
    errors = sorted(expanded.atoms(sp.erf), key=str)
    if len(errors) != 1:
        return None
    scale = sp.simplify(errors[0].args[0] / z)
    mark = sp.Dummy()
    polynomial = expanded.xreplace({errors[0]: mark})
    if scale.has(z) or not polynomial.is_polynomial(z, mark) or sp.degree(polynomial, mark) != 1:
        return None
    slope = sp.diff(polynomial, mark)
    return _coefficients(polynomial.subs(mark, 0) - slope), _coefficients(2 * slope), float(sp.sqrt(2) * scale)


def _exponentials(expression: sp.Expr) -> tuple[tuple[complex, complex], ...] | None:
    """((c, r), ...) with sigma = sum of c exp(r z), if it is such a sum."""
    if expression.atoms(sp.Function) - expression.atoms(sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh):
        return None
    found: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(sp.expand(expression.rewrite(sp.exp)), power_exp=False)):
        coefficient, rest = sp.powsimp(term).as_independent(z, as_Add=False)
        exponent = sp.S.Zero if rest == 1 else sp.expand(rest.args[0]) if isinstance(rest, sp.exp) else None
        if exponent is None or not exponent.is_polynomial(z) or sp.degree(exponent, z) > 1:
            return None
        rate = exponent.coeff(z, 1)
        found[rate] = found.get(rate, sp.S.Zero) + coefficient * sp.exp(exponent.coeff(z, 0))
    pairs = [(complex(c), complex(r)) for r, c in found.items() if c != 0]
    return tuple(sorted(pairs, key=lambda pair: (pair[1].imag, pair[1].real)))


def strip(expression: sp.Expr) -> float:
    """Distance of the nearest complex singularity from the real line, by Newton's method on all that can vanish.

    Singular are the zeros of denominators, of cosh in tanh, of a logarithm's and a root's argument, and arctan's +-i.
    """
    conditions = _conditions(expand_primitives(rewrite(expression)))
    nearest = mpmath.inf
    for condition in conditions:
        f = sp.lambdify(z, condition, "mpmath")
        slope = sp.lambdify(z, sp.diff(condition, z), "mpmath")
        for real in range(-12, 13, 2):
            for imaginary in (0.3, 1.0, 2.0, 3.0, 5.0, 8.0):
                root = _newton(f, slope, mpmath.mpc(real / 2 + 0.1, imaginary))
                if root is not None and 1e-6 < abs(root.imag) < nearest:
                    nearest = abs(root.imag)
    return float(nearest)


def _newton(f, slope, start: mpmath.mpc) -> mpmath.mpc | None:
    point = start
    for _ in range(40):
        try:
            step = f(point) / slope(point)
        except (ZeroDivisionError, ValueError, OverflowError):
            return None
        point -= step
        if abs(point.imag) > 60 or abs(point.real) > 60:
            return None
        if abs(step) < 1e-14 * (1 + abs(point)):
            return point if abs(f(point)) < 1e-10 else None
    return None


def _conditions(expression: sp.Expr) -> set[sp.Expr]:
    """Expressions whose zeros are the candidates for singularities."""
    found: set[sp.Expr] = set()
    for node in sp.preorder_traversal(expression):
        if isinstance(node, sp.Pow) and node.has(z) and not (node.exp.is_Integer and node.exp.is_positive):
            if node.base.has(z):
                found.add(node.base)
        elif isinstance(node, sp.tanh):
            found.add(sp.cosh(node.args[0]))
        elif isinstance(node, sp.log):
            found.add(node.args[0])
        elif isinstance(node, sp.atan | sp.asinh):
            found.add(1 + node.args[0] ** 2)
    return found
