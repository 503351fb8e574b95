"""The whitelist parser: a user's text becomes a SymPy expression in z without ever being evaluated as Python.

The text is cut into tokens (`syntax`), our spelling of them is read with Python's grammar (`ast.parse`, which runs
nothing), and only the node types and names listed here are translated. Decimals are kept as exact rationals. Limits on
length, nesting, exponents and the size of numbers keep every formula cheap to work with.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from derive.activations.builtin import BUILTIN, Definition
from derive.activations.names import found, meant
from derive.activations.syntax import tokens
from derive.errors import FormulaError
from derive.symbols import z

MAX_EXPONENT = 64
MAX_DEGREE = 64
MAX_BITS = 1000
MAX_MAGNITUDE = 1e30

FUNCTIONS: dict[str, tuple[int, Callable[..., sp.Expr]]] = {
    "exp": (1, sp.exp),
    "log": (1, sp.log),
    "ln": (1, sp.log),
    "sqrt": (1, sp.sqrt),
    "sin": (1, sp.sin),
    "cos": (1, sp.cos),
    "tanh": (1, sp.tanh),
    "sinh": (1, sp.sinh),
    "cosh": (1, sp.cosh),
    "sech": (1, lambda u: 1 / sp.cosh(u)),
    "erf": (1, sp.erf),
    "erfc": (1, lambda u: 1 - sp.erf(u)),
    "atan": (1, sp.atan),
    "arctan": (1, sp.atan),
    "asinh": (1, sp.asinh),
    "arcsinh": (1, sp.asinh),
    "abs": (1, sp.Abs),
    "Abs": (1, sp.Abs),
    "sign": (1, sp.sign),
    "relu": (1, lambda u: sp.Max(u, 0)),
    "max": (2, sp.Max),
    "Max": (2, sp.Max),
    "min": (2, sp.Min),
    "Min": (2, sp.Min),
    "sigmoid": (1, lambda u: 1 / (1 + sp.exp(-u))),
    "softplus": (1, lambda u: sp.log(1 + sp.exp(u))),
}
"""Every function a formula may call, with the number of its arguments; `where(condition, a, b)` besides."""

CONSTANTS = {"pi": sp.pi, "E": sp.E, "e": sp.E}

_COMPARISONS: dict[type, Callable[..., sp.Basic]] = {ast.Lt: sp.Lt, ast.LtE: sp.Le, ast.Gt: sp.Gt, ast.GtE: sp.Ge}
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(frozen=True)
class _Reader:
    """Translates one syntax tree; holds the text, so that decimals are read as they were typed."""

    text: str

    def read(self, node: ast.AST) -> sp.Expr:
        match node:
            case ast.Constant():
                return self._number(node)
            case ast.Name(id=name):
                return self._name(name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.read(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return _checked(self._binary(op, self.read(left), self.read(right)))
            case ast.Call():
                return _checked(self._call(node))
            case ast.Attribute():
                raise FormulaError(f"Attribute access (.{node.attr}) is not allowed in a formula.")
            case ast.Compare():
                raise FormulaError("A comparison is only allowed as the first argument of where(condition, a, b).")
            case _:
                raise FormulaError(
                    f"{type(node).__name__} is not allowed in a formula: use numbers, z, + - * / ** and functions."
                )

    def _number(self, node: ast.Constant) -> sp.Expr:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise FormulaError(f"{node.value!r} is not a real number.")
        if isinstance(node.value, int):
            return _checked(sp.Integer(node.value))
        if not math.isfinite(node.value) or (node.value and not 1e-100 < abs(node.value) < 1e100):
            raise FormulaError(f"The number {ast.get_source_segment(self.text, node)} is out of range.")
        return _checked(sp.Rational((ast.get_source_segment(self.text, node) or "").replace("_", "")))

    def _name(self, name: str) -> sp.Expr:
        if name == "z":
            return z
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in FUNCTIONS or found(name):
            raise FormulaError(f"The function {name} needs its argument: write {name}(z).")
        likely = meant(name, ["z", *CONSTANTS, *FUNCTIONS]) if len(name) > 1 else "the variable is called z; "
        raise FormulaError(f"Unknown name {name!r}: {likely}a formula may hold z, pi, E and {_known()}.")

    def _binary(self, op: ast.operator, left: sp.Expr, right: sp.Expr) -> sp.Expr:
        match op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                if right.is_zero:
                    raise FormulaError("The formula divides by zero.")
                return left / right
            case ast.Pow():
                return _power(left, right)
        raise FormulaError(f"The operator {type(op).__name__} is not allowed: use + - * / ** ^.")

    def _call(self, node: ast.Call) -> sp.Expr:
        if not isinstance(node.func, ast.Name):
            raise FormulaError("Only the listed functions can be called, by their names.")
        name = node.func.id
        if node.keywords:
            raise FormulaError(f"{name} takes no keyword arguments inside a formula.")
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise FormulaError("Starred arguments are not allowed in a formula.")
        if name == "where":
            return self._where(node)
        definition = found(name)
        if name not in FUNCTIONS and name.lower() in FUNCTIONS:
            name = name.lower()
        if name in FUNCTIONS:
            count, function = FUNCTIONS[name]
        elif definition is not None:
            count, function = 1, _applied(definition)
        else:
            likely = meant(name, [*FUNCTIONS, *BUILTIN])
            raise FormulaError(f"Unknown function {name!r}: {likely}a formula may call {_known()}.")
        if len(node.args) != count:
            raise FormulaError(f"{name} takes {count} argument{'s' * (count > 1)}, not {len(node.args)}.")
        return function(*(self.read(argument) for argument in node.args))

    def _where(self, node: ast.Call) -> sp.Expr:
        if len(node.args) != 3 or not isinstance(node.args[0], ast.Compare) or len(node.args[0].ops) != 1:
            raise FormulaError("where takes a comparison and two formulas: where(z > 0, z, 0).")
        test = node.args[0]
        relation = _COMPARISONS.get(type(test.ops[0]))
        if relation is None:
            raise FormulaError("where compares with <, <=, > or >=.")
        condition = relation(self.read(test.left), self.read(test.comparators[0]))
        return sp.Piecewise((self.read(node.args[1]), condition), (self.read(node.args[2]), True))


def _known() -> str:
    return ", ".join(sorted({*FUNCTIONS, "where"})) + " and the built-in activations"


def _applied(definition: Definition) -> Callable[[sp.Expr], sp.Expr]:
    """A built-in activation as a function, its parameters at their defaults."""
    return lambda u: definition.expression({})[1].xreplace({z: u})


def _power(base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
    if exponent.has(z):
        if base == sp.E:
            return sp.exp(exponent)
        if base.has(z) or not base.is_positive:
            raise FormulaError("A power with z in its exponent needs a positive number as its base.")
        return sp.exp(exponent * sp.log(base))
    if not exponent.is_Rational:
        raise FormulaError(f"The exponent {exponent} is not a rational number.")
    if abs(exponent) > MAX_EXPONENT or exponent.q > MAX_EXPONENT:
        raise FormulaError(f"The exponent {exponent} is too large: at most {MAX_EXPONENT}.")
    if base.is_zero and exponent <= 0:
        raise FormulaError("The formula divides by zero.")
    return base**exponent


def _checked(expression: sp.Expr) -> sp.Expr:
    """Refuse numbers and powers that would make later work unbounded, and whatever is not a finite real number."""
    if expression.has(sp.zoo, sp.nan, sp.oo, sp.I) or expression.has(sp.S.NegativeInfinity):
        raise FormulaError("The formula is not a finite real number everywhere.")
    for number in expression.atoms(sp.Rational):
        if number.p.bit_length() > MAX_BITS or number.q.bit_length() > MAX_BITS:
            raise FormulaError("The formula holds a number with too many digits.")
    if not expression.has(z):
        size = _magnitude(expression)
        if not size < MAX_MAGNITUDE:
            raise FormulaError(f"The constant {expression} is too large or not real.")
    elif degree(expression) > MAX_DEGREE:
        raise FormulaError(f"The formula's degree in z is above {MAX_DEGREE}.")
    return expression


_NODES: tuple[type, ...] = (
    *(sp.Add, sp.Mul, sp.Pow, sp.Rational, sp.Float, sp.core.numbers.Pi, sp.core.numbers.Exp1),
    *(sp.exp, sp.log, sp.sin, sp.cos, sp.tanh, sp.sinh, sp.cosh, sp.sech, sp.erf, sp.erfc, sp.atan, sp.asinh),
    *(sp.Abs, sp.sign, sp.Max, sp.Min, sp.Piecewise, sp.functions.elementary.piecewise.ExprCondPair, sp.And, sp.Or),
    *(sp.Lt, sp.Le, sp.Gt, sp.Ge, sp.logic.boolalg.BooleanTrue, sp.logic.boolalg.BooleanFalse),
)
"""What an expression handed over as a SymPy object may consist of, besides z: what the parser itself would build."""


def check_nodes(expression: sp.Expr) -> None:
    """Refuse an expression that holds anything the parser would not have built, by its exact type."""
    for count, node in enumerate(sp.preorder_traversal(expression)):
        if node != z and not isinstance(node, _NODES):
            raise FormulaError(f"An activation may not hold {type(node).__name__}: a formula may call {_known()}.")
        if count > 2000:
            raise FormulaError("The expression is too long.")
    _checked(expression)


def _magnitude(constant: sp.Expr) -> float:
    """|constant|, from 15 digits; all constants inside it are known to be moderate, so this is cheap."""
    try:
        value = complex(constant.evalf(15))
    except (TypeError, ValueError, OverflowError):
        return math.inf
    return abs(value) if value.imag == 0 else math.inf


def degree(expression: sp.Expr) -> int:
    """A bound on the polynomial degree hidden in an expression: what nested powers would multiply out to."""
    if expression == z:
        return 1
    if not expression.args:
        return 0
    if expression.is_Pow and expression.exp.is_Rational:
        return int(sp.ceiling(abs(expression.exp))) * degree(expression.base)
    inner = [degree(argument) for argument in expression.args if isinstance(argument, sp.Expr)]
    return sum(inner) if expression.is_Mul else max(inner, default=0)


def parse_tree(text: str) -> tuple[ast.expr, str]:
    """The syntax tree of a formula and the source it belongs to: our own spelling of its tokens."""
    source = " ".join(tokens(text))
    try:
        return ast.parse(source, mode="eval").body, source
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"The formula {_short(text)!r} cannot be read: check brackets and operators.") from None


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _read(text: str) -> sp.Expr:
    tree, source = parse_tree(text)
    try:
        return _Reader(source).read(tree)
    except FormulaError:
        raise
    except (RecursionError, ArithmeticError, MemoryError, ValueError, TypeError):  # what SymPy cannot build or compare
        raise FormulaError(f"The formula {_short(text)!r} is too complicated.") from None


def parse_formula(text: str) -> sp.Expr:
    """A SymPy expression in `derive.symbols.z` from a user's text.

    >>> parse_formula("z*(1 + erf(z/sqrt(2)))/2 + 0.1")
    z*(erf(sqrt(2)*z/2) + 1)/2 + 1/10
    >>> parse_formula("z.__class__")
    Traceback (most recent call last):
    ...
    derive.errors.FormulaError: The character '.' is not allowed in a formula: ...
    """
    expression = _read(text)
    if not expression.has(z):
        raise FormulaError(f"The formula {_short(text)!r} does not depend on z.")
    return expression


def parse_call(text: str) -> tuple[str, dict[str, sp.Expr]] | None:
    """`name`, `name(parameter=value, ...)` or `name(value, ...)` with exact values; None where the text is a formula.

    >>> parse_call("leaky_relu(slope=1/10)"), parse_call("leaky_relu(0.1)"), parse_call("tanh(z)")
    (('leaky_relu', {'slope': 1/10}), ('leaky_relu', {'slope': 1/10}), None)
    """
    words = tokens(text)
    name = words[0]
    if _WORD.fullmatch(name) is None or (len(words) > 1 and (words[1] != "(" or words[-1] != ")")):
        return None
    if len(words) == 1:
        return name, {}
    tree, source = parse_tree(text)
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        return None
    if not tree.keywords:
        return (name, _in_order(name, tree.args, source)) if not tree.args or _are_values(name, tree.args) else None
    parameters: dict[str, sp.Expr] = {}
    for keyword in tree.keywords:
        if keyword.arg is None or tree.args:
            raise FormulaError(f"Give the parameters of {name} as name=value.")
        value = _Reader(source).read(keyword.value)
        if value.has(z):
            raise FormulaError(f"The parameter {keyword.arg} of {name} must be a number, not a formula in z.")
        parameters[keyword.arg] = value
    return name, parameters


def _are_values(name: str, arguments: list[ast.expr]) -> bool:
    """Whether these are parameters, as in leaky_relu(0.1), and not what a function is applied to."""
    definition = found(name)
    if definition is None or name.lower() in FUNCTIONS:
        return False
    return not any(isinstance(node, ast.Name) and node.id == "z" for a in arguments for node in ast.walk(a))


def _in_order(name: str, arguments: list[ast.expr], source: str) -> dict[str, sp.Expr]:
    """Parameters given by their order."""
    definition = found(name)
    names = tuple(definition.parameters) if definition else ()
    if len(arguments) > len(names):
        listed = f" ({', '.join(names)})" if names else ""
        raise FormulaError(f"{name} has {len(names) or 'no'} parameter{'s' * (len(names) != 1)}{listed}.")
    return {key: _Reader(source).read(value) for key, value in zip(names, arguments)}


def parse_number(text: str) -> sp.Expr:
    """An exact real number from a user's text.

    >>> parse_number("0.1"), parse_number("2/3"), parse_number("sqrt(2)")
    (1/10, 2/3, sqrt(2))
    """
    expression = _read(text)
    if expression.has(z):
        raise FormulaError(f"{_short(text)!r} is not a number.")
    return expression
