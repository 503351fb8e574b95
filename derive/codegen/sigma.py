"""Source of `sigma(z, order)`: an activation and its derivatives in numerically stable form, checked before it is used.

The check runs the very source that is emitted, with NumPy in float64 and in float32, from |z| = 1e-8 to 1e4, against
50-digit values of the definition. Where the plain form cancels near z = 0 a Taylor polynomial takes over there; where a
derivative that has become constant would overflow, its argument is clipped; what still fails is refused.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import mpmath
import numpy as np
import sympy as sp

from derive.activations import Activation
from derive.activations.taylor import taylor_coefficients
from derive.codegen.printer import Printer, number
from derive.codegen.stable import Primitive, rewrite
from derive.errors import FormulaError
from derive.safety import run_checked
from derive.symbols import z

ORDERS = 6
"""Derivatives 0 to 5 are written out: what the recursions' brackets use (H1 needs the fifth)."""
GOOD, BAD = 200.0, 1e5
"""Errors in units of rounding: above the first another form is tried, above the second the formula is refused."""
_SCALES = [1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.7, 1.0, 1.5, 2.1, 3.2, 5.0, 8.0, 12.0, 20.0, 40.0, 1e2, 1e4]
NEAR, FAR = 1.0, 100.0  # |z| up to which a derivative's usual size is taken, and from which it is what counts
LARGEST_ARGUMENT = 1e300
POINTS = np.array(sorted([-s for s in _SCALES] + _SCALES))


@dataclass(frozen=True)
class Piece:
    """One analytic piece: its stable derivatives and, if needed, the Taylor radius at 0 and the clipping radius."""

    raw: sp.Expr
    forms: tuple[sp.Expr, ...]
    inner: tuple[tuple[sp.Symbol, sp.Expr], ...] = ()
    taylor: float | None = None
    clip: float | None = None


@dataclass(frozen=True)
class StableSigma:
    """The checked source, and its worst errors (units: rounding of a float64, of a float32)."""

    source: str
    error64: float
    error32: float


def _tidy(e: sp.Expr) -> sp.Expr:
    """Factored as a polynomial in z and in its transcendental parts."""
    if not e.has(z) or e.is_rational_function(z):
        return sp.factor(e)
    back: dict[sp.Dummy, sp.Expr] = {}
    found = [a for a in e.atoms(sp.Function, sp.Pow, sp.NumberSymbol) if _indivisible(a)]
    for atom in sorted(found, key=lambda a: (-sp.count_ops(a), str(a))):
        dummy = sp.Dummy(f"d{len(back):03d}")
        back[dummy] = atom
        e = e.xreplace({atom: dummy})
    e = sp.factor(e)
    for dummy in reversed(back):
        e = e.xreplace({dummy: back[dummy]})
    return e


def _indivisible(a: sp.Expr) -> bool:
    if isinstance(a, sp.Pow):
        fractional = not a.exp.is_Integer
        return fractional or (a.is_number and not a.is_Rational) or (a.exp.is_negative and a.base.is_Add)
    return isinstance(a, Primitive | sp.exp | sp.log | sp.sin | sp.cos | sp.sinh | sp.cosh | sp.NumberSymbol)


def _derivatives(expression: sp.Expr) -> tuple[tuple[sp.Expr, ...], tuple[tuple[sp.Symbol, sp.Expr], ...]]:
    """The stable derivatives; cubic and higher polynomials inside functions stay as named inner derivatives."""
    stable = rewrite(expression)
    bodies: dict[sp.Expr, sp.Symbol] = {}
    for function in sorted(stable.atoms(sp.Function), key=str):
        if function.args and function.args[0].is_polynomial(z) and sp.degree(function.args[0], z) > 2:
            core = sp.expand(function.args[0].as_independent(z, as_Add=False)[1])
            bodies.setdefault(core, sp.Symbol(f"u{len(bodies)}"))
    applied = {body: sp.Function(name.name)(z) for body, name in bodies.items()}
    form = stable.subs(applied) if bodies else stable
    forms, used = [], {}
    for _ in range(ORDERS):
        shown = form
        for body, name in bodies.items():
            for k in range(ORDERS, -1, -1):
                slope = sp.diff(body, z, k)
                target = sp.Derivative(applied[body], (z, k)) if k else applied[body]
                symbol = sp.Symbol(f"{name.name}_{k}") if slope.has(z) else slope
                if shown.has(target):
                    shown = shown.xreplace({target: symbol})
                    if isinstance(symbol, sp.Symbol):
                        used[symbol] = slope
        forms.append(_tidy(shown))
        form = sp.diff(form, z)
    return tuple(forms), tuple(sorted(used.items(), key=str))


def _piece_lines(piece: Piece, variable: str, prefix: str) -> tuple[list[str], list[list[str]]]:
    """Shared assignments, and the lines that give `s` for each order, of one piece evaluated at `variable`."""
    lines = []
    names: dict[sp.Basic, str] = {}
    where = "z"
    if piece.clip is not None:
        lines.append(f"    {prefix}x = jnp.clip({variable}, {-piece.clip}, {piece.clip})")
    if piece.taylor is not None:
        lines.append(f"    {prefix}near = jnp.abs({variable}) < {piece.taylor}")
        lines.append(f"    {prefix}y = jnp.where({prefix}near, {piece.taylor}, {variable})")
        where = f"{prefix}y"
    else:
        where = variable
    inside = f"{prefix}x" if piece.clip is not None else where
    names[z] = inside
    printer = Printer(names)
    for symbol, slope in piece.inner:
        lines += printer.statement(f"{prefix}{symbol} = ", sp.horner(slope))
        printer.names[symbol] = f"{prefix}{symbol}"
    functions = {a for form in piece.forms for a in form.atoms(sp.Function) if a.has(z) or a.free_symbols}
    for atom in sorted(functions, key=lambda a: (sp.count_ops(a), str(a))):
        name = f"{prefix}f{len(printer.names) - len(piece.inner) - 1}"
        lines += printer.statement(f"{name} = ", atom)
        printer.names[atom] = name
    plain = Printer(printer.names | {z: where})
    blocks = []
    for order, form in enumerate(piece.forms):
        constant = not form.free_symbols
        head = f"{prefix}s = "
        if constant:
            block = [f"            {head}jnp.full_like(z, {number(form)})"]
        else:
            block = (plain if order == 0 else printer).statement(head, form, 12)
        if piece.taylor is not None:
            block.append(f"            {head}jnp.where({prefix}near, taylor({variable}, TAYLOR, order), {prefix}s)")
        blocks.append(block)
    return lines, blocks


@cache
def _taylor(raw: sp.Expr) -> tuple[sp.Expr, ...]:
    return tuple(taylor_coefficients(raw, z, sp.S.Zero, 32))


def _function_source(activation: Activation, pieces: list[Piece]) -> str:
    lines = ["def sigma(z: jax.Array, order: int = 0) -> jax.Array:"]
    lines.append('    """The order-th derivative of sigma at z, without delta functions."""')
    kinks = [number(k) for k in activation.kinks]
    every = []
    for i, piece in enumerate(pieces):
        prefix = f"p{i}_" if len(pieces) > 1 else ""
        variable = "z"
        if len(pieces) > 1:
            low = f"jnp.maximum(z, {kinks[i - 1]})" if i else "z"
            variable = low if i == len(kinks) else f"jnp.minimum({low}, {kinks[i]})"
            if any(form.free_symbols for form in piece.forms):
                lines.append(f"    {prefix}z = {variable}")
            variable = f"{prefix}z"
        shared, blocks = _piece_lines(piece, variable, prefix)
        lines += shared
        every.append((prefix, blocks))
    lines.append("    match order:")
    for order in range(ORDERS):
        lines.append(f"        case {order}:")
        same = len({piece.forms[order] for piece in pieces}) == 1 and not pieces[0].forms[order].free_symbols
        for _, blocks in every[-1:] if same else every:
            lines += blocks[order]
        result = f"{every[-1][0]}s"
        for i in range(len(kinks) - 1, -1, -1) if not same else ():
            result = f"jnp.where(z < {kinks[i]}, {every[i][0]}s, {result})"
        last = f"            {result} = "
        if lines[-1].startswith(last) and lines[-1].strip() != f"{result} = (":
            lines[-1] = f"            return {lines[-1].removeprefix(last)}"
        else:
            lines.append(f"            return {result}")
    lines.append("    return beyond(sigma, z, order)")
    text = "\n".join(lines) + "\n"
    guarded = [p for p in pieces if p.taylor is not None]
    return _taylor_source(guarded[0]) + text if guarded else text


def _taylor_source(piece: Piece) -> str:
    assert piece.taylor is not None
    small = [abs(float(c)) * piece.taylor**n for n, c in enumerate(_taylor(piece.raw))]
    last = max((n for n, size in enumerate(small) if size > 1e-20 * max(small)), default=0)
    rows = [f"    {number(c)}," for c in _taylor(piece.raw)[: last + ORDERS + 1]]
    return "\n".join(
        ["TAYLOR = (", *rows, ")", '"""Coefficients at z = 0, where the plain form cancels."""', "", "", ""]
    )


def _numpy_names() -> dict[str, object]:
    """The names that emitted source uses, with NumPy behind them."""

    def logistic(u: np.ndarray) -> np.ndarray:
        return np.where(u < 0, np.exp(np.minimum(u, 0)) / (1 + np.exp(np.minimum(u, 0))), 1 / (1 + np.exp(-np.abs(u))))

    def sech(u: np.ndarray) -> np.ndarray:
        return 2 * np.exp(-np.abs(u)) / (1 + np.exp(-2 * np.abs(u)))

    def lift(scalar: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda u: np.vectorize(scalar, otypes=[float])(u).astype(u.dtype)

    return {
        "jnp": np,
        "jax": type("jax", (), {"Array": np.ndarray}),
        "erf": lift(math.erf),
        "erfc": lift(math.erfc),
        "logistic": logistic,
        "softplus": lambda u: np.maximum(u, 0) + np.log1p(np.exp(-np.abs(u))),
        "sech": sech,
        "sech2": lambda u: 4 * np.exp(-2 * np.abs(u)) / (1 + np.exp(-2 * np.abs(u))) ** 2,
        "log_cosh": lift(
            lambda u: (
                math.log1p(2 * math.sinh(u / 2) ** 2)
                if abs(u) < 1
                else abs(u) + math.log1p(math.exp(-2 * abs(u))) - math.log(2)
            )
        ),
        "bell": lambda u: 1 / np.sqrt(1 + u * u),
        "root": lambda u: np.sqrt(1 + u * u),
        "taylor": lambda u, c, order: sum(
            (c[n] * math.perm(n, order) * u ** (n - order) for n in range(len(c) - 1, order - 1, -1)), np.zeros_like(u)
        ),
        "ramp": lambda u: u / np.sqrt(1 + u * u),
        "beyond": lambda sigma, u, order: np.full_like(u, np.nan),  # orders that are not written out: not asked here
    }


def _bounded(name: str) -> Callable[[mpmath.mpf], mpmath.mpf]:
    """An exponential whose argument stops at the largest floats: beyond them mpmath takes seconds a number."""
    function = getattr(mpmath, name)
    return lambda u: function(max(min(u, LARGEST_ARGUMENT), -LARGEST_ARGUMENT))


_BOUNDED = {name: _bounded(name) for name in ("exp", "sinh", "cosh", "tanh")}


def _value(function: Callable[[mpmath.mpf], mpmath.mpf], point: float) -> mpmath.mpf:
    """With more digits far out, where small differences are all that is left; infinite where even those are none."""
    for digits in (int(min(2 * abs(point), 200)), int(abs(point))):
        with contextlib.suppress(ZeroDivisionError), mpmath.workdps(60 + digits):
            return +function(mpmath.mpf(point))
    return mpmath.inf


@cache
def _exact(activation: Activation) -> np.ndarray:
    """sigma^(k) at POINTS, k = 0 to ORDERS, from the definition, as 50-digit numbers."""
    rows = []
    with mpmath.workdps(60):
        for order in range(ORDERS + 1):
            pieces = activation.derivative_pieces(order)
            functions = [sp.lambdify(z, piece, [_BOUNDED, "mpmath"]) for piece in pieces]
            row = []
            for point in POINTS:
                index = sum(1 for kink in activation.kinks if kink <= point)
                row.append(_value(functions[index], float(point)))
            rows.append(row)
    return np.array(rows, dtype=object)


def _errors(activation: Activation, text: str, dtype: type) -> np.ndarray:
    """Error of each derivative at each point in units of rounding, against |f| + |z f'|; inf where it is not finite.

    Far out a derivative may have fallen below the rounding of its own size near zero, where all Gaussians have weight:
    there it is measured against that size.
    """
    sigma = run_checked(text, _numpy_names(), "<generated sigma>")["sigma"]
    exact = _exact(activation)
    points: np.ndarray = POINTS.astype(dtype)
    eps = float(np.finfo(dtype).eps)
    floor, top = (1e-45, 1e300) if dtype is np.float64 else (1e-30, 1e37)
    out = np.zeros((ORDERS, len(points)))
    with np.errstate(all="ignore"):
        for order in range(ORDERS):
            values = sigma(points, order)  # type: ignore[operator]
            usual = max(abs(exact[order, i]) for i, p in enumerate(POINTS) if abs(p) <= NEAR)
            assert values.dtype == dtype, (values.dtype, order)
            for i, value in enumerate(values):
                want, slope = exact[order, i], exact[order + 1, i]
                if abs(want) > top:
                    continue
                size = abs(want) + abs(slope * mpmath.mpf(float(POINTS[i])))
                scale = float(max(size, usual) if abs(POINTS[i]) >= FAR else size) * eps + floor
                miss = abs(mpmath.mpf(float(value)) - want) if np.isfinite(value) else mpmath.inf
                out[order, i] = float(miss / scale)
    return out


def _clip_radius(activation: Activation, index: int) -> float | None:
    """A radius beyond which the derivatives of a piece no longer change, if there is one."""
    exact = _exact(activation)
    inside = [i for i, p in enumerate(POINTS) if sum(1 for k in activation.kinks if k <= p) == index]
    for radius in (20.0, 40.0, 100.0):
        far = [i for i in inside if abs(POINTS[i]) >= radius]
        steady = all(
            abs(exact[k, i] - exact[k, j]) < mpmath.mpf("1e-40")
            for k in range(1, ORDERS)
            for i in far
            for j in far
            if POINTS[i] * POINTS[j] > 0
        )
        if far and steady:
            return radius
    return None


def _taylor_radius(raw: sp.Expr) -> float:
    """An eighth of the radius of convergence at 0 (root test), at most 1/2."""
    growth = [abs(float(c)) ** (1 / n) for n, c in enumerate(_taylor(raw)) if n >= 8 and c != 0]
    return float(f"{min(0.5, 1 / (8 * max(growth, default=0.0) + 1e-300)):.2g}")


def _borders_zero(activation: Activation, index: int) -> bool:
    low = activation.kinks[index - 1] if index else -sp.oo
    high = activation.kinks[index] if index < len(activation.kinks) else sp.oo
    return bool(low <= 0) and bool(high >= 0)


@cache
def stable_sigma(activation: Activation) -> StableSigma:
    """The source of sigma(z, order), or a FormulaError that says where every form of it loses its digits."""
    best, where = _attempt(activation, activation.pieces)
    if best.error64 > GOOD:
        other, elsewhere = _attempt(activation, tuple(sp.simplify(piece) for piece in activation.pieces))
        if other.error64 < best.error64:
            best, where = other, elsewhere
    if best.error64 > BAD:
        raise FormulaError(
            f"The derivative {where[0]} of {activation.definition} loses its digits in floating point near z = "
            f"{where[1]:g}; write the formula in another form (tanh, sigmoid, softplus, erf are handled)."
        )
    return best


def _attempt(activation: Activation, raw: tuple[sp.Expr, ...]) -> tuple[StableSigma, tuple[int, float]]:
    """The source of one form, mended where it cancels near 0 or overflows far out, with its worst place."""
    pieces = [Piece(piece, *_derivatives(piece)) for piece in raw]
    text = _function_source(activation, pieces)
    worst64, worst32 = _errors(activation, text, np.float64), _errors(activation, text, np.float32)
    near, far = np.abs(POINTS) <= 0.1, np.abs(POINTS) >= 20
    if (worst64[:, near] > GOOD).any():
        pieces = [
            replace(p, taylor=_taylor_radius(p.raw)) if _borders_zero(activation, i) and p.raw.has(z) else p
            for i, p in enumerate(pieces)
        ]
    if not (np.isfinite(worst64[1:, far]).all() and np.isfinite(worst32[1:, far]).all()):
        pieces = [replace(p, clip=_clip_radius(activation, i)) for i, p in enumerate(pieces)]
    text = _function_source(activation, pieces)
    worst64, worst32 = _errors(activation, text, np.float64), _errors(activation, text, np.float32)
    order, i = np.unravel_index(np.argmax(worst64), worst64.shape)
    return StableSigma(text, float(worst64.max()), float(worst32.max())), (int(order), float(POINTS[i]))
