r"""Numerically stable forms: an activation's formula rewritten in primitives that neither cancel nor overflow.

The primitives form algebras that differentiation does not leave: tanh and sech^2, the logistic, whose slope is
sech^2(u/2)/4, 1/sqrt(1+u^2) and u/sqrt(1+u^2), erfc and exp(-u^2). So every derivative of sigma is a polynomial
in z and bounded factors, e.g. tanh'' = -2 t s with s = sech^2 z, never 1 - t^2.

>>> from derive.symbols import z
>>> sp.diff(rewrite(sp.tanh(z)), z, 2)
-2*Sech2(z)*Tanh(z)
>>> rewrite(z * (1 + sp.erf(z / sp.sqrt(2))) / 2)
z*Erfc(-sqrt(2)*z/2)/2
>>> rewrite(sp.log(1 + sp.exp(z)))
Softplus(z)
"""

from __future__ import annotations

import sympy as sp

from derive.symbols import z


class Primitive(sp.Function):
    """A function with a stable implementation: `definition` in SymPy, `slope` its derivative in primitives."""

    nargs = 1
    is_real = True

    @classmethod
    def eval(cls, u: sp.Expr) -> sp.Expr | None:
        """Of a number it is a number, which the printer writes as one."""
        return cls.definition(u) if u.is_number else None

    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        raise AssertionError(cls)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        raise AssertionError(cls)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return self.slope(self.args[0])


class Tanh(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return sp.tanh(u)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return Sech2(u)


class Sech2(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return 1 / sp.cosh(u) ** 2

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return -2 * Tanh(u) * Sech2(u)


class Sech(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return 1 / sp.cosh(u)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return -Tanh(u) * Sech(u)


class LogCosh(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return sp.log(sp.cosh(u))

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return Tanh(u)


class Logistic(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return 1 / (1 + sp.exp(-u))

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return Sech2(u / 2) / 4


class Softplus(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return sp.log(1 + sp.exp(u))

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return Logistic(u)


class Erf(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return sp.erf(u)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return 2 / sp.sqrt(sp.pi) * sp.exp(-(u**2))


class Erfc(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return 1 - sp.erf(u)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return -2 / sp.sqrt(sp.pi) * sp.exp(-(u**2))


class Expm1(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return sp.exp(u) - 1

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return sp.exp(u)


class Log1p(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return sp.log(1 + u)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return 1 / (1 + u)


class Bell(Primitive):
    """1/sqrt(1+u^2): its square is the Lorentzian, the slope of arctan."""

    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return 1 / sp.sqrt(1 + u**2)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return -Ramp(u) * Bell(u) ** 2


class Ramp(Primitive):
    """u/sqrt(1+u^2), bounded by 1."""

    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return u / sp.sqrt(1 + u**2)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return Bell(u) ** 3


class Root(Primitive):
    """sqrt(1+u^2)."""

    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return sp.sqrt(1 + u**2)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return Ramp(u)


class Arctan(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return sp.atan(u)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return Bell(u) ** 2


class Arcsinh(Primitive):
    @classmethod
    def definition(cls, u: sp.Expr) -> sp.Expr:
        return sp.asinh(u)

    @classmethod
    def slope(cls, u: sp.Expr) -> sp.Expr:
        return Bell(u)


def rewrite(expression: sp.Expr) -> sp.Expr:
    """The expression in primitives, equal to it everywhere on the real line."""
    if not expression.args:
        return expression
    new = expression.func(*(rewrite(argument) for argument in expression.args))
    if isinstance(new, sp.Pow):
        return _power(new)
    if isinstance(new, sp.Mul):
        return _product(new)
    if isinstance(new, sp.Add):
        return _sum(new)
    if isinstance(new, sp.log):
        return _logarithm(new.args[0])
    known = {sp.tanh: Tanh, sp.erf: Erf, sp.erfc: Erfc, sp.atan: Arctan, sp.asinh: Arcsinh}
    return known[new.func](new.args[0]) if new.func in known else new


def expand_primitives(expression: sp.Expr) -> sp.Expr:
    """The inverse of `rewrite`: every primitive replaced by its definition."""
    return expression.replace(lambda e: isinstance(e, Primitive), lambda e: e.definition(e.args[0]))


def _power(new: sp.Pow) -> sp.Expr:
    base, power = new.args
    if power.is_number and power.is_negative and power.is_integer:
        exponent = _one_plus(base, sp.exp)
        if exponent is not None:
            return Logistic(-exponent.args[0]) ** (-power)
        if isinstance(base, sp.cosh):
            return Sech2(base.args[0]) ** (-power / 2) if power % 2 == 0 else Sech(base.args[0]) ** (-power)
    if power.is_number and (2 * power).is_integer and isinstance(base, sp.Add) and (power < 0 or not power.is_Integer):
        constant, rest = base.as_independent(z)
        root = _square_root(rest / constant) if constant.is_positive else None
        if root is not None:
            return constant**power * (Bell(root) ** (-2 * power) if power < 0 else Root(root) ** (2 * power))
    return new


def _square_root(square: sp.Expr) -> sp.Expr | None:
    """w with w^2 = square, for a positive number times an even power."""
    coefficient, rest = square.as_independent(z, as_Add=False)
    base, power = rest.as_base_exp()
    if coefficient.is_positive and power.is_Integer and power > 0 and power % 2 == 0:
        return sp.sqrt(coefficient) * base ** (power / 2)
    return None


def _product(new: sp.Expr) -> sp.Expr:
    """exp(u) g(-u) = g(u), and u/sqrt(1+u^2) as one factor."""
    for logistic in [f for f in sp.Mul.make_args(new) if isinstance(f, Logistic)]:
        rest = new / logistic
        for factor in sp.Mul.make_args(rest):
            if isinstance(factor, sp.exp) and sp.expand(factor.args[0] + logistic.args[0]) == 0:
                return _product(rest / factor * Logistic(factor.args[0]))
    for bell in [f for f in sp.Mul.make_args(new) if isinstance(f, Bell)]:
        ratio = new / bell / bell.args[0]
        if not ratio.has(z):
            return ratio * Ramp(bell.args[0])
    return new


def _one_plus(base: sp.Expr, head: type) -> sp.Expr | None:
    """head(u) if base is 1 + head(u)."""
    rest = base - 1
    return rest if isinstance(rest, head) else None


def _logarithm(argument: sp.Expr) -> sp.Expr:
    if isinstance(argument, sp.cosh):
        return LogCosh(argument.args[0])
    exponent = _one_plus(argument, sp.exp)
    if exponent is not None:
        return Softplus(exponent.args[0])
    if isinstance(argument, sp.Add) and sp.S.One in argument.args:
        return Log1p(argument - 1)
    return sp.log(argument)


def _pairings(head: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """For a factor f: {c: stable form of f + c} for the constants c at which the plain sum cancels."""
    u = head.args[0]
    if isinstance(head, Tanh):
        return {sp.S.One: 2 * Logistic(2 * u), sp.S.NegativeOne: -2 * Logistic(-2 * u)}
    if isinstance(head, Erf):
        return {sp.S.One: Erfc(-u), sp.S.NegativeOne: -Erfc(u)}
    if isinstance(head, Logistic):
        return {-sp.S.Half: Tanh(u / 2) / 2, sp.S.NegativeOne: -Logistic(-u)}
    if isinstance(head, sp.exp):
        return {sp.S.NegativeOne: Expm1(u)}
    if isinstance(head, sp.cos):
        return {sp.S.NegativeOne: -2 * sp.sin(u / 2) ** 2}
    return {}


def _sum(new: sp.Expr) -> sp.Expr:
    """Pairs of terms B f + B c, with f + c one of the stable forms, become one term."""
    terms = list(sp.Add.make_args(new))
    for i, term in enumerate(terms):
        for head in sp.Mul.make_args(term):
            for constant, form in _pairings(head).items() if head.args else ():
                partner = sp.expand(constant * term / head)
                for j, other in enumerate(terms):
                    if i != j and sp.expand(other - partner) == 0:
                        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
                        return _sum(sp.Add(_product(term / head * form), *rest))
    return new
