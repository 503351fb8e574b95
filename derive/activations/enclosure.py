"""A formula as a function of balls: what it returns contains every value of the formula on the ball that it is given.

Real balls (FLINT's arb) serve everywhere; complex ones (acb) on an analytic piece, where the flag `analytic` asks for
"not a number" on every ball that meets a branch cut, which is what rigorous integration needs (F. Johansson, "Numerical
integration in arbitrary-precision ball arithmetic", 2018). FLINT comes with python-flint; where it is not installed,
`require` says so in one sentence and everything that is not a certificate works without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.errors import DeriveError
from derive.safety import check_source
from derive.symbols import ELEMENTARY

if TYPE_CHECKING:
    from flint import acb, arb

try:
    import flint
except ImportError:  # a platform without FLINT
    flint = None  # type: ignore[assignment]

RealBall = Callable[["arb"], "arb"]
ComplexBall = Callable[["acb", bool], "acb"]


def available() -> bool:
    """Whether ball arithmetic is installed."""
    return flint is not None


def require() -> None:
    """Refuse in one sentence where ball arithmetic is not installed."""
    if flint is None:
        raise DeriveError("Certificates need FLINT's ball arithmetic: install the package python-flint.")


class Complement(sp.Function):
    """1 - erf(u) as one function; SymPy's own erfc(-u) turns into 2 - erfc(u) and cancels again."""

    nargs = 1

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        return sp.erfc(self.args[0])._eval_evalf(prec) if self.args[0].is_number else None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return -2 * sp.exp(-(self.args[0] ** 2)) / sp.sqrt(sp.pi)


@lru_cache(maxsize=4096)
def without_cancellation(expression: sp.Expr) -> sp.Expr:
    """The same function with f - f erf(u) written f Complement(u), and f - f tanh(u) written 2 f/(1 + exp(2 u)).

    >>> z = sp.Symbol("z")
    >>> without_cancellation(z * (1 + sp.erf(z)))
    z*Complement(-z)
    """
    if not expression.args or not expression.has(sp.erf, sp.tanh):
        return expression
    expression = expression.func(*map(without_cancellation, expression.args))
    if not expression.is_Add:
        return expression
    terms = list(expression.args)
    for node in sorted(expression.atoms(sp.erf, sp.tanh), key=str):
        for term in list(terms):
            if node not in sp.Mul.make_args(term):
                continue
            rest = term / node
            for sign in (1, -1):
                if sign * rest in terms:
                    terms.remove(term)
                    terms.remove(sign * rest)
                    u = -sign * node.args[0]
                    tail = Complement(u) if isinstance(node, sp.erf) else 2 / (1 + sp.exp(2 * u))
                    terms.append(sign * rest * tail)
                    break
    return sp.Add(*terms)


class BallFunction:
    """One expression in z, ready for balls of any precision (the one set in `flint.ctx` when it is called)."""

    def __init__(self, expression: sp.Expr) -> None:
        require()
        self.expression = expression
        self._code, self._constants = _source(without_cancellation(expression))
        self._known: dict[tuple[int, bool], Callable[..., Any]] = {}

    def _function(self, real: bool) -> Callable[..., Any]:
        key = (flint.ctx.prec, real)
        if key not in self._known:
            values = {name: constant_ball(value) for name, value in self._constants.items()}
            namespace: dict[str, Any] = {**(_REAL if real else _COMPLEX), **values, "__builtins__": {}}
            exec(self._code, namespace)  # our own printer's text, checked when it was compiled
            self._known[key] = namespace["function"]
        return self._known[key]

    @property
    def real(self) -> RealBall:
        """arb -> arb, at the present precision."""
        function = self._function(True)
        return lambda x: function(x, False)

    @property
    def complex(self) -> ComplexBall:
        """(acb, analytic) -> acb, at the present precision; analytic pieces only."""
        if self.expression.atoms(*_SPLIT):
            raise DeriveError("A formula with kinks has complex balls only on its pieces.")
        return self._function(False)

    def __call__(self, x: arb) -> arb:
        return self.real(x)


@lru_cache(maxsize=2048)
def ball_function(expression: sp.Expr) -> BallFunction:
    """The ball version of an expression in z.

    >>> ball_function(sp.tanh(sp.Symbol("z", real=True)) ** 2)(flint.arb(0)).contains(0)
    True
    """
    return BallFunction(expression)


def constant_ball(value: sp.Expr | arb) -> arb:
    """A real SymPy number as a ball at the present precision; a ball is left as it is."""
    require()
    if isinstance(value, flint.arb):
        return value
    arb, prec = flint.arb, flint.ctx.prec
    if value.is_Rational:
        return arb(flint.fmpq(int(value.p), int(value.q)))
    if value.is_Float:
        exact = sp.Rational(value)
        return arb(flint.fmpq(int(exact.p), int(exact.q)))
    if value is sp.pi:
        return arb.pi()
    if value is sp.E:
        return arb(1).exp()
    if hasattr(value, "enclose"):  # a kink that is known by its isolating interval
        low, high = value.enclose(prec)
        return constant_ball(low).union(constant_ball(high))
    if isinstance(value, sp.CRootOf):
        digits = int(prec * 0.30103) + 5
        near = value.eval_rational(n=digits)
        slack = sp.Rational(1, 10**digits) * max(sp.S.One, abs(near))
        return constant_ball(near - slack).union(constant_ball(near + slack))
    if not value.args:
        raise DeriveError(f"No ball is known for the number {value}.")
    parts = [constant_ball(a) for a in value.args if isinstance(a, sp.Expr)]
    if value.is_Add:
        return sum(parts[1:], parts[0])
    if value.is_Mul:
        total = parts[0]
        for part in parts[1:]:
            total = total * part
        return total
    if value.is_Pow and not isinstance(value, sp.exp):
        return _power(parts[0], value.exp)
    name = _NAMES.get(value.func)
    if name is None or name not in _REAL:
        raise DeriveError(f"No ball version of the function {value.func.__name__} is known.")
    return _REAL[name](*parts, *(() if name in _MANY else (False,)))


def _power(base: arb, exponent: sp.Expr) -> arb:
    if exponent.is_Integer:
        return base ** int(exponent)
    if exponent == sp.S.Half:
        return base.sqrt()
    if exponent == -sp.S.Half:
        return base.rsqrt()
    return (base.log() * constant_ball(exponent)).exp()


_SPLIT = (sp.Abs, sp.Max, sp.Min, sp.sign, sp.Heaviside, sp.Piecewise)
_MANY = ("Max", "Min")
_NAMES: dict[type, str] = {
    **ELEMENTARY,
    sp.sech: "sech",
    Complement: "erfc",
    sp.Abs: "Abs",
    sp.sign: "sign",
    sp.Heaviside: "Heaviside",
    sp.Max: "Max",
    sp.Min: "Min",
    sp.asin: "asin",
}


def _method(name: str) -> Callable[..., Any]:
    def apply(x: Any, analytic: bool) -> Any:
        return getattr(x, name)()

    return apply


def _heaviside(x: arb, analytic: bool) -> arb:
    return (x.sgn() + 1) / 2


def _where(sign: Any, above: Any, below: Any) -> Any:
    """`above` where the switch is positive, `below` where it is negative, both where the ball cannot tell."""
    if sign > 0:
        return above
    return below if sign < 0 else above.union(below)


def _folded(method: str) -> Callable[..., Any]:
    def fold(first: Any, *rest: Any) -> Any:
        for other in rest:
            first = getattr(first, method)(other)
        return first

    return fold


def _on_the_cuts(x: acb) -> bool:
    """Whether a ball meets the branch cuts of atan and asinh, on the imaginary axis beyond -i and i."""
    return bool(x.real.contains(0) and not abs(x.imag) < 1)


def _atan(x: acb, analytic: bool) -> acb:
    return flint.acb("nan") if analytic and _on_the_cuts(x) else x.atan()


def _asinh(x: acb, analytic: bool) -> acb:
    """Odd, or by its slope, whichever is narrower: FLINT's own formula cancels on one side and loses wide balls."""
    if _on_the_cuts(x):
        return flint.acb("nan") if analytic else x.asinh()
    middle = flint.acb(x.real.mid(), x.imag.mid())
    found = [x.asinh(), -((-x).asinh()), middle.asinh() + (x - middle) * (1 + x**2).rsqrt(True)]
    return min((y for y in found if y.is_finite()), key=lambda y: float(y.rad()), default=found[0])


_ENTIRE = ("exp", "tanh", "sech", "sinh", "cosh", "sin", "cos", "tan", "erf", "erfc")
_REAL: dict[str, Callable[..., Any]] = {
    **{name: _method(name) for name in (*_ENTIRE, "log", "sqrt", "rsqrt", "atan", "asinh", "asin")},
    "Abs": lambda x, analytic: abs(x),
    "sign": lambda x, analytic: x.sgn(),
    "Heaviside": _heaviside,
    "Max": _folded("max"),
    "Min": _folded("min"),
    "where": _where,
}
_COMPLEX: dict[str, Callable[..., Any]] = {
    **{name: _method(name) for name in _ENTIRE},
    "log": lambda x, analytic: x.log(analytic),
    "sqrt": lambda x, analytic: x.sqrt(analytic),
    "rsqrt": lambda x, analytic: x.rsqrt(analytic),
    "atan": _atan,
    "asinh": _asinh,
}


def _source(expression: sp.Expr) -> tuple[CodeType, dict[str, sp.Expr]]:
    constants: dict[str, sp.Expr] = {}
    steps, (result,) = sp.cse([expression], symbols=sp.numbered_symbols("x", real=True), order="none")
    lines = [f"    {name} = {_print(value, constants)}" for name, value in steps]
    text = _print(result, constants)
    if not result.free_symbols:
        text = f"{text} + 0*z"
    source = "\n".join(["def function(z, analytic):", *lines, f"    return {text}"])
    return compile(check_source(source, known={*_REAL, *constants}), "<balls>", "exec"), constants


def _print(e: sp.Expr, constants: dict[str, sp.Expr]) -> str:
    if e.is_Symbol:
        return str(e)
    if e.is_Integer and abs(e) < 2**30:
        return f"({e})"
    if not e.free_symbols:
        known = next((n for n, v in constants.items() if v == e), None)
        name = known or f"c{len(constants)}"
        constants[name] = e
        return name
    if isinstance(e, sp.Piecewise):
        return _print_where(e, constants)
    if e.is_Add:
        return "(" + " + ".join(_print(a, constants) for a in e.args) + ")"
    if e.is_Mul:
        return "(" + "*".join(_print(a, constants) for a in e.args) + ")"
    if e.is_Pow and not isinstance(e, sp.exp):
        base = _print(e.base, constants)
        if e.exp.is_Integer:
            return f"({base}**({e.exp}))"
        if e.exp.is_Rational and e.exp.q == 2:
            whole, root = divmod(e.exp - sp.S.Half, 1)[0], "sqrt"
            if e.exp < 0:
                whole, root = e.exp + sp.S.Half, "rsqrt"
            return f"({root}({base}, analytic)*{base}**({whole}))" if whole else f"{root}({base}, analytic)"
        return f"exp(log({base}, analytic)*{_print(e.exp, constants)}, analytic)"
    function = _NAMES.get(e.func)
    if function is None:
        raise DeriveError(f"No ball version of the function {e.func.__name__} is known.")
    arguments = ", ".join(_print(a, constants) for a in e.args)
    return f"{function}({arguments})" if function in _MANY else f"{function}({arguments}, analytic)"


def _print_where(e: sp.Piecewise, constants: dict[str, sp.Expr]) -> str:
    """The branches of a Piecewise, the last one first."""
    if e.args[-1][1] != sp.true:
        raise DeriveError("The pieces of the formula do not cover the whole line.")
    text = _print(e.args[-1][0], constants) + " + 0*z"
    for value, condition in reversed(e.args[:-1]):
        if not isinstance(condition, sp.StrictLessThan | sp.LessThan | sp.StrictGreaterThan | sp.GreaterThan):
            raise DeriveError(f"No ball version of the condition {condition} is known.")
        switch = condition.gts - condition.lts
        text = f"where({_print(switch, constants)}, {_print(value, constants)} + 0*z, {text})"
    return text
