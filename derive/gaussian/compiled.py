"""SymPy expressions in z as fast arbitrary-precision functions: common subexpressions, MPFR numbers of gmpy2."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import cast

import gmpy2
import mpmath
import sympy as sp

from derive.errors import DeriveError
from derive.safety import run_checked
from derive.symbols import ELEMENTARY, z

RealFunction = Callable[[gmpy2.mpfr], gmpy2.mpfr]


@lru_cache(maxsize=1024)
def compiled(expression: sp.Expr, bits: int) -> RealFunction:
    """z -> expression as an mpfr; the caller works inside a gmpy2 context of that precision.

    >>> with gmpy2.context(precision=100):
    ...     print(compiled(sp.tanh(z) ** 2, 100)(gmpy2.mpfr(0)))
    0.0
    """
    source, constants = _source(expression)
    with gmpy2.context(precision=bits):
        values = {name: to_mpfr(value, bits) for name, value in constants.items()}
    names = {name: getattr(gmpy2, name) for name in (*ELEMENTARY.values(), "sqrt")} | values
    return cast(RealFunction, run_checked(source, names)["function"])


@lru_cache(maxsize=512)
def _source(expression: sp.Expr) -> tuple[str, dict[str, sp.Expr]]:
    constants: dict[str, sp.Expr] = {}
    steps, (result,) = sp.cse([expression], symbols=sp.numbered_symbols("x", real=True))
    lines = [f"    {name} = {_print(value, constants)}" for name, value in steps]
    text = _print(result, constants)
    if not result.has(z) and not steps:
        text = f"({text}) + 0*z"
    return "\n".join(["def function(z):", *lines, f"    return {text}"]), constants


def _print(e: sp.Expr, constants: dict[str, sp.Expr]) -> str:
    if e.is_Symbol:
        return str(e)
    if e.is_Integer:
        return f"({e})"
    if e.is_number:
        return next((n for n, v in constants.items() if v == e), None) or _new(e, constants)
    if e.is_Add:
        return "(" + " + ".join(_print(a, constants) for a in e.args) + ")"
    if e.is_Mul:
        above = [a for a in e.args if not _is_inverse(a)]
        below = [1 / a for a in e.args if _is_inverse(a)]
        text = "*".join(_print(a, constants) for a in above) or "1"
        return f"({text}/({'*'.join(_print(a, constants) for a in below)}))" if below else f"({text})"
    if e.is_Pow and not isinstance(e, sp.exp):
        base = _print(e.base, constants)
        if e.exp == 2 and e.base.is_Symbol:
            return f"({base}*{base})"
        if e.exp == sp.S.Half:
            return f"sqrt({base})"
        if e.exp.is_Integer and e.exp < 0:
            return f"(1/{_print(e.base**-e.exp, constants)})"
        return f"({base}**{_print(e.exp, constants)})"
    if e.func in ELEMENTARY:
        return f"{ELEMENTARY[e.func]}({_print(e.args[0], constants)})"
    raise DeriveError(f"No arbitrary-precision rule for the function {e.func.__name__}.")


def _is_inverse(e: sp.Expr) -> bool:
    return bool(e.is_Pow and not isinstance(e, sp.exp) and e.exp.is_Rational and e.exp < 0)


def _new(value: sp.Expr, constants: dict[str, sp.Expr]) -> str:
    name = f"c{len(constants)}"
    constants[name] = value
    return name


def to_mpfr(value: sp.Expr, bits: int) -> gmpy2.mpfr:
    """A SymPy real number as an mpfr of the given precision."""
    with gmpy2.context(precision=bits):
        if value.is_Rational:
            return gmpy2.mpfr(gmpy2.mpq(int(value.p), int(value.q)))
        number = value.evalf(int(bits * 0.30103) + 10, maxn=20000)
        if not number.is_Float:
            raise DeriveError(f"{value} is not a real number.")
        sign, mantissa, exponent, _ = number._mpf_
        whole = gmpy2.mpfr(-int(mantissa) if sign else int(mantissa))
        return gmpy2.mul_2exp(whole, int(exponent)) if exponent >= 0 else gmpy2.div_2exp(whole, -int(exponent))


def to_mpf(value: gmpy2.mpfr) -> mpmath.mpf:
    """An mpfr as an mpmath number, exactly."""
    if not gmpy2.is_finite(value):
        raise DeriveError("The expectation could not be evaluated: the integrand is not finite.")
    mantissa, exponent = value.as_mantissa_exp()
    return mpmath.mp.make_mpf(mpmath.libmp.from_man_exp(int(mantissa), int(exponent)))
