"""Source that we have made is read and checked before it runs: a short list of node types, names and imports.

Our printers write source from expressions that the whitelist parser has built, and texts only as literals. This is the
second lock: whatever a defect of a printer might let through, an import, an attribute or a name outside the lists below
is an error before anything is executed.

>>> run_checked("def double(x):\\n    return 2*x", {})["double"](4)
8
>>> run_checked("import os", {})
Traceback (most recent call last):
...
derive.safety.UnsafeSource: Generated source may not hold: import os
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Mapping


class UnsafeSource(RuntimeError):
    """Generated source that holds more than our printers write: a defect of ours, never run."""


_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Module, ast.Expr, ast.Assign, ast.AnnAssign, ast.Return, ast.FunctionDef, ast.arguments, ast.arg),
    *(ast.Name, ast.Load, ast.Store, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Subscript, ast.Slice),
    *(ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.Call, ast.keyword),
    *(ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Attribute, ast.Match, ast.match_case, ast.MatchValue),
    *(ast.Import, ast.ImportFrom, ast.alias),
)
_TYPES = ("int", "float", "str", "dict", "tuple", "list")
"""Built-in names that annotations of generated source use; every other built-in is out of reach."""
IMPORTS: dict[str, Collection[str]] = {
    "jax": ("Array",),
    "jnp": (
        *("abs", "arcsinh", "arctan", "clip", "cos", "cosh", "einsum", "exp", "expm1", "full_like", "log", "log1p"),
        *("maximum", "minimum", "sign", "sin", "sinh", "sqrt", "tanh", "where", "zeros_like", "ones_like"),
    ),
}
"""Modules that generated source may import, under the name it knows them by, and what it may take from them."""
_PLAIN = {("jax", None), ("jax.numpy", "jnp")}
_FROM = (
    *("numeric.brackets", "numeric.functionals.rules", "numeric.generated.layer"),
    *("numeric.special_functions", "numeric.subscripts"),
)


def _refuse(node: ast.AST) -> UnsafeSource:
    return UnsafeSource(f"Generated source may not hold: {ast.unparse(node)[:80]}")


def check_source(source: str, known: Collection[str] = (), imports: bool = False) -> ast.Module:
    """The tree of generated source, or UnsafeSource; `known` are names that its namespace will hold."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnsafeSource(f"Generated source cannot be read: {error}") from None
    defined = {*known, *_TYPES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.alias):
            defined.add(node.asname or node.name)
    for node in ast.walk(tree):
        _check_node(node, defined, imports)
    hidden = {name for name in defined if name.startswith("_") or name in dir(builtins)} - {"__all__", "abs", *_TYPES}
    if hidden - set(known):
        raise UnsafeSource(f"Generated source may not give these names: {', '.join(sorted(hidden))}")
    return tree


def _check_node(node: ast.AST, defined: Collection[str], imports: bool) -> None:
    if not isinstance(node, _NODES):
        raise _refuse(node) if isinstance(node, ast.stmt | ast.expr) else UnsafeSource(type(node).__name__)
    match node:
        case ast.Import():
            allowed = imports and all((alias.name, alias.asname) in _PLAIN for alias in node.names)
        case ast.ImportFrom():
            plain = all(alias.asname is None and alias.name != "*" for alias in node.names)
            allowed = imports and node.level == 0 and node.module in _FROM and plain
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Load()):
            allowed = node.attr in IMPORTS.get(name, ())
        case ast.Attribute():
            allowed = False
        case ast.Call(func=function):
            allowed = isinstance(function, ast.Name | ast.Attribute) and all(k.arg for k in node.keywords)
        case ast.Name(id=name):
            allowed = name in defined
        case ast.FunctionDef():
            allowed = not node.decorator_list
        case ast.Expr(value=value):
            allowed = isinstance(value, ast.Constant) and isinstance(value.value, str)
        case ast.Constant(value=value):
            allowed = value is None or isinstance(value, int | float | complex | str)
        case _:
            allowed = True
    if not allowed:
        raise _refuse(node)


def run_checked(source: str, names: Mapping[str, object], title: str = "<generated>") -> dict[str, object]:
    """The namespace after running checked source with `names` and without any built-in."""
    tree = check_source(source, known=names)
    namespace: dict[str, object] = {**names, "__builtins__": {name: getattr(builtins, name) for name in _TYPES}}
    exec(compile(tree, title, "exec"), namespace)
    return namespace
