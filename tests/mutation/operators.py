"""Mutants of a module: every place where a small change of the source should be noticed by a test.

Operators: arithmetic (+ ↔ -, * ↔ /, // → /, ** → *, the factors of @ exchanged, += ↔ -=), signs (-x → x), comparisons
(negation; the boundary where a whole number is compared, as numbers that were computed are never equal), booleans
(and ↔ or, `not` removed, conditions negated, True ↔ False), numbers (n → n + 1, x → 2 x), einsum's result (two letters
exchanged), arguments (two positional ones exchanged, a keyword left out), the transpose left out, statements removed
(calls, assignments to parts and attributes, raise, continue, break), the returned value replaced by None.

Left out, by rule: docstrings and all wording (strings; everything inside `raise`, warnings and f-strings; `__repr__`,
`__str__` and `_repr_*_`), type hints, decorators, imports, `__all__`, `if TYPE_CHECKING`, overloads and abstract
methods; progress bars; of drawings the cosmetics (keywords like color, label, set_* calls); keywords that choose how
fast, not what (`optimize` of einsum, `dtype`); numbers below 1e-6 or above 1e6 (tolerances, guards and limits of size,
whose exact value is a choice).
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
WORDS = frozenset({"warn", "first_order", "print", "progress_bar", "tick", "advance", "say", "note"})
COSMETIC = frozenset(
    [
        *("color", "colors", "label", "labels", "linewidth", "lw", "alpha", "marker", "markersize", "cmap", "ls"),
        *("linestyle", "capsize", "fmt", "zorder", "fontsize", "optimize", "dtype", "ncol", "loc"),
    ]
)
DRAWING = ("set_", "axes_or_new", "legend", "grid", "tight_layout", "colorbar", "axhline", "axvline")
SYMMETRIC = frozenset(
    [
        *("isinstance", "getattr", "zip", "print", "maximum", "minimum", "max", "min", "allclose", "array_equal"),
        *("multiply", "hypot"),
    ]
)
"""Calls whose two arguments are not exchanged: the same either way, or a mistake of no interest."""
TEXT = ("__repr__", "__str__", "_repr_latex_", "_repr_html_", "_repr_markdown_")
SMALL, LARGE = 1e-6, 1e6


@dataclass(frozen=True)
class Mutant:
    """One change; `number` is its place in the order of `mutants(source)`, `key` names it as long as the text stays."""

    file: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    number: int
    key: str


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _left_out(node: ast.AST) -> bool:
    """Whether nothing inside is to be changed."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.If):
        return _name(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        return any(_name(t) == "__all__" for t in node.targets)
    if isinstance(node, ast.FunctionDef):
        return node.name in TEXT or any(_name(d) in ("overload", "abstractmethod") for d in node.decorator_list)
    if isinstance(node, ast.Call):
        name = _name(node.func)
        return name in WORDS or name.startswith(DRAWING) or name in ("TypeVar", "cast")
    return False


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        if isinstance(node, ast.Raise):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (isinstance(child, ast.keyword) and child.arg in COSMETIC):
                yield child


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _expressions(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(operator, what stands there instead) of an expression."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            yield "arithmetic", ast.BinOp(node.right, node.op, node.left)
        elif type(node.op) in ARITHMETIC and not _is_text(node.left):
            yield "arithmetic", ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        if not isinstance(node.operand, ast.Constant) or isinstance(node.op, ast.Not):
            yield "sign" if isinstance(node.op, ast.USub) else "boolean", node.operand
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for place, op in enumerate(node.ops):
            whole = _is_whole(sides[place]) or _is_whole(sides[place + 1])
            for other in COMPARISONS[type(op)][0 if whole else -1 :]:
                ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                yield "comparison", ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "boolean", ast.BoolOp(other_op, node.values)
    elif isinstance(node, ast.IfExp):
        yield "boolean", ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield "transpose", node.value


def _is_whole(node: ast.expr) -> bool:
    """Whether an expression is a whole number, to which another may well be equal."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    name = _name(node.func) if isinstance(node, ast.Call) else _name(node)
    return name in ("len", "ndim", "size", "int", "count") or (
        isinstance(node, ast.Subscript) and "shape" in _short(node)
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _constants(node: ast.Constant) -> Iterator[tuple[str, ast.expr]]:
    value = node.value
    if isinstance(value, bool):
        yield "boolean", ast.Constant(not value)
    elif isinstance(value, int) and abs(value) < LARGE:
        yield "number", ast.Constant(value + 1)
    elif isinstance(value, float) and (value == 0 or SMALL <= abs(value) < LARGE):
        yield "number", ast.Constant(2 * value if value else 1.0)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    name = _name(node.func)
    plain = not any(isinstance(a, ast.Starred) for a in node.args)
    if len(node.args) == 2 and plain and name not in SYMMETRIC and not _is_text(node.args[0]):
        yield "arguments", ast.Call(node.func, node.args[::-1], node.keywords)
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None and keyword.arg not in COSMETIC:
            yield "keyword", ast.Call(node.func, node.args, [*node.keywords[:place], *node.keywords[place + 1 :]])
    if name == "einsum" and node.args and isinstance(node.args[0], ast.Constant):
        text = node.args[0].value
        head, arrow, result = text.partition("->")
        if arrow and len(result) > 1 and "." not in result:
            turned = ast.Constant(head + arrow + result[:-2] + result[-1] + result[-2])
            yield "einsum", ast.Call(node.func, [turned, *node.args[1:]], node.keywords)


def _statements(node: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """(operator, what stands there instead) of a statement."""
    if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield "arithmetic", ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
    if isinstance(node, ast.If):
        yield "boolean", ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    if isinstance(node, ast.Raise | ast.Continue | ast.Break | ast.AugAssign):
        yield "removal", ast.Pass()
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await) and not _left_out(node.value):
        yield "removal", ast.Pass()
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Subscript | ast.Attribute) for t in node.targets):
        yield "removal", ast.Pass()
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "return", ast.Return(ast.Constant(None))


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """(function, node, what stands there instead), in the order of the text."""

    def walk(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST, ast.AST]]:
        if _left_out(node) or _is_docstring(node):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        if isinstance(node, ast.stmt):
            for operator, other in _statements(node):
                yield f"{function}\n{operator}", node, other
        if isinstance(node, ast.expr):
            for operator, other in _expressions(node):
                yield f"{function}\n{operator}", node, other
        for child in _children(node):
            yield from walk(child, function)

    yield from walk(tree, "")


def _short(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node)).splitlines()
    return text[0] if len(text) == 1 else text[0] + " …"


def mutants(source: str, file: str) -> list[Mutant]:
    """All mutants of a module's text."""
    found, seen = [], Counter[str]()
    for number, (where, node, other) in enumerate(_places(ast.parse(source))):
        function, operator = where.split("\n")
        if ast.dump(node) == ast.dump(other):
            continue
        before, after = _short(node), _short(other)
        name = "\n".join([file, function, operator, before, after])
        seen[name] += 1
        key = hashlib.sha256(f"{name}\n{seen[name]}".encode()).hexdigest()[:16]
        found.append(Mutant(file, function, getattr(node, "lineno", 0), operator, before, after, number, key))
    return found


def mutated(source: str, number: int) -> str:
    """The module's text with mutant `number` in it."""
    tree = ast.parse(source)
    _, node, other = list(_places(tree))[number]

    class Replace(ast.NodeTransformer):
        def visit(self, visited: ast.AST) -> ast.AST:
            return other if visited is node else self.generic_visit(visited)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(tree)))
