"""The built-in activations, as data: a name, one SymPy definition, parameters with their defaults and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import sympy as sp

from derive.activations.syntax import canonical
from derive.errors import FormulaError
from derive.symbols import z

R = sp.Rational


def _number(value: sp.Expr) -> str | None:
    return None if value.is_real else "must be a real number"


def _exponent(value: sp.Expr) -> str | None:
    return None if value.is_Integer and 1 <= value <= 32 else "must be a whole number from 1 to 32"


def _positive(value: sp.Expr) -> str | None:
    return None if value.is_positive else "must be positive"


@dataclass(frozen=True)
class Parameter:
    """A parameter's default and what its value must satisfy (a sentence's end, or None)."""

    default: sp.Expr
    check: Callable[[sp.Expr], str | None] = _number


@dataclass(frozen=True)
class Definition:
    """One built-in: sigma(z; parameters)."""

    name: str
    formula: Callable[..., sp.Expr]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    def expression(self, values: Mapping[str, sp.Expr]) -> tuple[str, sp.Expr]:
        """The canonical name with the parameters that differ from their defaults, and sigma(z)."""
        for name, value in values.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise FormulaError(f"{self.name} has no parameter {name!r} (its parameters: {known}).")
            complaint = self.parameters[name].check(value)
            if complaint:
                raise FormulaError(f"The parameter {name} of {self.name} {complaint}.")
        full = {name: values.get(name, parameter.default) for name, parameter in self.parameters.items()}
        changed = [
            f"{name}={canonical(value)}" for name, value in full.items() if value != self.parameters[name].default
        ]
        title = f"{self.name}({', '.join(changed)})" if changed else self.name
        return title, self.formula(**full)


def _elu(alpha: sp.Expr, scale: sp.Expr = sp.S.One) -> sp.Expr:
    return sp.Piecewise((scale * alpha * (sp.exp(z) - 1), z < 0), (scale * z, True))


def _logistic(u: sp.Expr) -> sp.Expr:
    return 1 / (1 + sp.exp(-u))


DEFINITIONS = (
    Definition("linear", lambda: z, aliases=("identity",)),
    Definition("relu", lambda: sp.Max(z, 0)),
    Definition(
        "leaky_relu", lambda slope: sp.Piecewise((slope * z, z < 0), (z, True)), {"slope": Parameter(R(1, 100))}
    ),
    Definition("tanh", lambda: sp.tanh(z)),
    Definition("sin", lambda: sp.sin(z)),
    Definition("erf", lambda: sp.erf(z)),
    Definition("arctan", lambda: sp.atan(z), aliases=("atan",)),
    Definition("softsign", lambda: z / (1 + sp.Abs(z))),
    Definition("sigmoid", lambda offset: _logistic(z) + offset, {"offset": Parameter(R(0))}, ("logistic",)),
    Definition(
        "sigmoid_half",
        lambda shift: _logistic(z + shift) - _logistic(shift),
        {"shift": Parameter(R(0))},
        ("sigmoid-1/2", "shifted_sigmoid"),
    ),
    Definition("softplus", lambda: sp.log(1 + sp.exp(z))),
    Definition("gelu", lambda: z * (1 + sp.erf(z / sp.sqrt(2))) / 2),
    Definition("gelu_tanh", lambda: z * (1 + sp.tanh(sp.sqrt(2 / sp.pi) * (z + R("0.044715") * z**3))) / 2),
    Definition("swish", lambda beta: z * _logistic(beta * z), {"beta": Parameter(R(1), _positive)}, ("silu",)),
    Definition("mish", lambda: z * sp.tanh(sp.log(1 + sp.exp(z)))),
    Definition("elu", _elu, {"alpha": Parameter(R(1), _positive)}),
    Definition(
        "selu",
        _elu,
        {
            "alpha": Parameter(R("1.6732632423543772848170429916717"), _positive),
            "scale": Parameter(R("1.0507009873554804934193349852946"), _positive),
        },
    ),
    Definition("exp", lambda: sp.exp(z)),
    Definition("monomial", lambda k: z**k, {"k": Parameter(R(2), _exponent)}),
)

BUILTIN = {definition.name: definition for definition in DEFINITIONS}
ALIASES = {alias: definition.name for definition in DEFINITIONS for alias in definition.aliases}
