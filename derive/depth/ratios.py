"""Dimensionless ratios: what says whether a finite-width effect grows as l/n. PDLT (infinity.21)-(infinity.22).

[z]^2 = [K], [NTK] = [Theta]; a correlator of z's, NTKs and their differentials has the dimension that (infinity.19)
gives it: dNTK = NTK^2/z, ddNTK = NTK^3/z^2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.depth.result import Asymptotics, exact_entry
from derive.errors import DeriveError
from derive.notation import WIDTH, TensorSymbol, Y
from derive.steps import Formula, Notation, Words, formula
from derive.symbols import L

CONTENT = {
    "V": {"z": 4},
    "G1": {"z": 2},
    "D": {"z": 2, "NTK": 1},
    "F": {"z": 2, "NTK": 1},
    "H1": {"NTK": 1},
    "A": {"NTK": 2},
    "B": {"NTK": 2},
    "P": {"dNTK": 1, "z": 1},
    "Q": {"dNTK": 1, "z": 1},
    "R": {"ddNTK": 1},
    "S": {"ddNTK": 1},
    "T": {"ddNTK": 1},
    "U": {"ddNTK": 1},
}
"""What each tensor is a correlator of."""

DIMENSION = {"z": (1, 0), "NTK": (0, 1), "dNTK": (-1, 2), "ddNTK": (-2, 3)}
"""Powers of [z] and [NTK], from (infinity.19)."""


def kernel_powers(tensor: str) -> tuple[int, int]:
    """(k, t) such that tensor / (n K^k Theta^t) is dimensionless.

    >>> kernel_powers("V"), kernel_powers("R")
    ((2, 0), (-1, 3))
    """
    z = sum(count * DIMENSION[item][0] for item, count in CONTENT[tensor].items())
    ntk = sum(count * DIMENSION[item][1] for item, count in CONTENT[tensor].items())
    if z % 2:
        raise DeriveError(f"{tensor} has an odd power of z and no dimensionless ratio")
    return z // 2, ntk


def ratio_name(tensor: str) -> str:
    """How the ratio is written.

    >>> ratio_name("V"), ratio_name("A"), ratio_name("R")
    ('V/(n K^2)', 'A/(n Theta^2)', 'R K/(n Theta^3)')
    """
    k, t = kernel_powers(tensor)
    top = tensor + (" K" if k == -1 else "")
    bottom = ["n", *_power("K", k if k > 0 else 0), *_power("Theta", t)]
    return f"{top}/({' '.join(bottom)})"


def _power(name: str, power: int) -> list[str]:
    return [] if power == 0 else [name if power == 1 else f"{name}^{power}"]


def _ratio(tensor: str, kernel: sp.Expr) -> sp.Expr:
    k, t = kernel_powers(tensor)
    return TensorSymbol(tensor) * kernel**-k * TensorSymbol("Theta") ** -t / WIDTH


def ratio_with_targets(tensor: str) -> Words:
    r"""A ratio at the output, where the targets' y^2 adds to K in the numerator; a name with its TeX.

    >>> ratio_with_targets("R"), ratio_with_targets("V")
    ('R (K + y^2)/(n Theta^3)', 'V/(n K^2)')
    >>> ratio_with_targets("R").parts[0].latex()
    '\\frac{R \\left(y^{2} + K\\right)}{n \\Theta^{3}}'
    """
    above = kernel_powers(tensor)[0] < 0
    kernel = TensorSymbol("K") + Y**2 if above else TensorSymbol("K")
    plain = ratio_name(tensor).replace(f"{tensor} K/", f"{tensor} (K + y^2)/")
    return Words(Notation(plain, formula(_ratio(tensor, kernel)).latex()))


@dataclass(frozen=True)
class Ratio:
    """n times the ratio behaves as coefficient * l^(-exponent) * log(l)^log_power."""

    tensor: str
    exponent: sp.Expr | None
    log_power: int
    coefficient: sp.Expr
    digits: int | None = None
    ball: tuple[str, str] | None = None
    """An interval that is proved to hold the coefficient for all learning rates that are not negative."""

    @property
    def name(self) -> str:
        return ratio_name(self.tensor)

    @property
    def formula(self) -> Formula:
        r"""The ratio itself.

        >>> Ratio("R", None, 0, sp.S.One).formula.latex()
        '\\frac{K R}{n \\Theta^{3}}'
        """
        return formula(_ratio(self.tensor, TensorSymbol("K")))

    @property
    def grows_as_depth_over_width(self) -> bool:
        """Whether this is an l/n effect."""
        return self.exponent is not None and sp.simplify(self.exponent + 1) == 0 and self.log_power == 0

    def to_json(self) -> dict[str, Any]:
        return {
            "ratio": self.name,
            "exponent": exact_entry(self.exponent, self.digits),
            "log_power": self.log_power,
            "coefficient": exact_entry(self.coefficient, self.digits, self.ball and {"1": self.ball}),
        }


def ratios(tensors: Mapping[str, Asymptotics]) -> dict[str, Ratio]:
    """The ratio of each tensor that exists."""
    kernel, theta = tensors["K"], tensors["Theta"]
    found: dict[str, Ratio] = {}
    if kernel.exponent is None or theta.exponent is None:
        return found
    for name in CONTENT:
        tensor = tensors.get(name)
        if tensor is None or tensor.coefficient is None:
            continue
        k, t = kernel_powers(name)
        if tensor.exponent is None:
            found[name] = Ratio(name, None, 0, sp.S.Zero, tensor.digits)
            continue
        exponent = tensor.exponent - k * kernel.exponent - t * theta.exponent
        logs = tensor.log_power - k * kernel.log_power - t * theta.log_power
        assert kernel.coefficient is not None and theta.coefficient is not None
        below = kernel.coefficient ** max(k, 0) * theta.coefficient**t
        coefficient = quotient(tensor.coefficient * kernel.coefficient ** max(-k, 0), below)
        found[name] = Ratio(name, _whole(sp.expand(exponent)), logs, coefficient, tensor.digits)
    return found


def _whole(exponent: sp.Expr) -> sp.Expr:
    """An irrational p_perp cancels in most ratios; what is left of its digits is rounding."""
    nearest = sp.Integer(round(float(exponent))) if exponent.is_Float else exponent
    return nearest if exponent.is_Float and abs(exponent - nearest) < 1e-15 else exponent


def tidy(coefficient: sp.Expr) -> sp.Expr:
    """Factored; with floating-point numbers only common powers are taken out."""
    if not coefficient.has(sp.Float):
        return sp.factor(coefficient)
    rest, depth = _without_depth(coefficient)
    return rest * depth


def quotient(above: sp.Expr, below: sp.Expr) -> sp.Expr:
    """The quotient of two coefficients; floating-point polynomials that are proportional give their ratio."""
    if not (above.has(sp.Float) or below.has(sp.Float)):
        roots = [r for r in (above * below).atoms(sp.Pow) if r.base.is_Rational and r.exp == sp.S.Half]
        return (
            sp.factor(above / below, extension=roots) if roots and not above.has(L, sp.pi) else sp.factor(above / below)
        )
    (above, top), (below, bottom) = _without_content(above), _without_content(below)
    factor = top / bottom
    first, second = (sp.expand(e).as_coefficients_dict() for e in (above, below))
    if set(first) == set(second):
        values = [first[m] / second[m] for m in second]
        if all(abs(v - values[0]) < 1e-12 * abs(values[0]) for v in values):
            return values[0] * factor
    return (sp.expand(above / below) if below.is_number else above / below) * factor


def _without_content(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The expression and the powers of symbols that all its terms share.

    >>> x, y = sp.symbols("x y")
    >>> _without_content(0.5 * x**2 * y + 0.25 * x**2)
    (0.5*y + 0.25, x**2)
    """
    terms = sp.Add.make_args(sp.expand(expression))
    shared = sp.S.One
    for symbol in sorted(expression.free_symbols, key=str):
        powers = {sp.sympify(term.as_powers_dict()[symbol], strict=True) for term in terms}
        if all(power.is_number for power in powers):
            shared *= symbol ** min(powers)
    return sp.expand(expression / shared), shared


def _without_depth(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The expression and the power of L that all its terms share."""
    terms = sp.Add.make_args(sp.expand(expression))
    powers = {term.as_independent(L)[1] for term in terms}
    if len(powers) > 1:
        return expression, sp.S.One
    depth = powers.pop()
    return sp.expand(expression / depth), depth
