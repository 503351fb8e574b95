r"""Source of the layer step: each tensor's recursion, as derived, in array form with subscripts.

A pair bracket <sigma^(j)_a sigma^(k)_b> prints as `s02["ab"]`, a four-point one as `m0112["dbca"]` (digits are
derivative orders), a tensor of the layer below as `V["aacd"]`: letters are the new tensor's axes in subscript order,
repeated ones diagonals. The terms are grouped by the tensors of the layer below, their coefficients factored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive import symbols
from derive.codegen.printer import WIDTH, Printer
from derive.errors import DeriveError
from derive.gaussian.bracket import Bracket
from derive.network import GRAM, MLP, TENSORS, Component, Layer, Recursion, initial, recursion
from derive.network.definition import xi

PARAMETERS = (symbols.C_b, symbols.C_W, symbols.lambda_b, symbols.lambda_W, symbols.r, xi)


@dataclass(frozen=True)
class Needs:
    """What a tensor's step uses: derivative orders of pair and four-point brackets, tensors of the layer below."""

    pairs: tuple[tuple[int, ...], ...]
    quads: tuple[tuple[int, ...], ...]
    tensors: tuple[str, ...]
    parameters: tuple[str, ...]


def closure(tensors: Sequence[str]) -> tuple[str, ...]:
    """The tensors and all that they depend on, in the order of evaluation.

    >>> closure(["F"])
    ('K', 'Theta', 'F')
    """
    unknown = [name for name in tensors if name not in TENSORS]
    if unknown:
        raise DeriveError(f"there is no tensor {unknown[0]!r}; choose among {' '.join(TENSORS)}")
    wanted, queue = {"K"}, list(tensors)
    while queue:
        name = queue.pop()
        if name not in wanted or name == "K":
            wanted.add(name)
            queue += [other for other in recursion(name).depends_on if other not in wanted]
    return tuple(name for name in TENSORS if name in wanted)


def _letters(rule: Recursion) -> dict[sp.Basic, str]:
    return {sp.sympify(label, strict=True): "abcd"[axis] for axis, label in enumerate(rule.labels)}


def _atom_names(rule: Recursion) -> dict[sp.Basic, str]:
    """Source text of every bracket and component of the recursion."""
    letters = _letters(rule)
    names: dict[sp.Basic, str] = {}
    for bracket in rule.expression.atoms(Bracket):
        atoms = sorted(bracket.args, key=lambda a: (a.order, letters[a.label]))
        digits = "".join(str(a.order) for a in atoms)
        names[bracket] = f'{"s" if len(atoms) == 2 else "m"}{digits}["{"".join(letters[a.label] for a in atoms)}"]'
    for component in rule.expression.atoms(Component):
        name = "gram" if component.name == GRAM else component.name
        names[component] = f'{name}["{"".join(letters[label] for label in component.labels)}"]'
    return names


def needs(rule: Recursion) -> Needs:
    """The patterns, tensors and parameters that a recursion's source mentions."""
    orders = {tuple(sorted(int(a.order) for a in b.args)) for b in rule.expression.atoms(Bracket)}
    tensors = {c.name for c in rule.expression.atoms(Component)}
    return Needs(
        tuple(sorted(o for o in orders if len(o) == 2)),
        tuple(sorted(o for o in orders if len(o) == 4)),
        tuple(name for name in TENSORS if name in tensors),
        tuple(p.name for p in PARAMETERS if rule.expression.has(p)),
    )


def _grouped(rule: Recursion) -> tuple[list[tuple[sp.Symbol, sp.Expr]], sp.Expr, dict[sp.Basic, str]]:
    """(shared sums, the whole, names): terms collected by the components that they hand up, coefficients factored."""
    names = _atom_names(rule)
    plain = {atom: sp.Symbol(f"q{i:03d}") for i, atom in enumerate(sorted(names, key=lambda a: names[a]))}
    text = {plain[atom]: names[atom] for atom in names}
    handed = sorted((plain[a] for a in names if isinstance(a, Component) and a.name not in ("Theta", GRAM)), key=str)
    groups: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(rule.expression.xreplace(plain))):
        key = sp.Mul(*(s for s in handed if term.has(s)))
        groups[key] = groups.get(key, sp.S.Zero) + term / key
    factored = {key: sp.factor(value) for key, value in groups.items()}
    sums: dict[sp.Expr, int] = {}
    for value in factored.values():
        for factor in sp.Mul.make_args(value):
            if isinstance(factor, sp.Add):
                sums[factor] = sums.get(factor, 0) + 1
    repeated = sorted(
        (f for f, count in sums.items() if count > 1),
        key=lambda f: sorted(text[s] for s in f.free_symbols if s in text),
    )
    shared = [(sp.Symbol(f"x{i}"), f) for i, f in enumerate(repeated)]
    back = {f: symbol for symbol, f in shared}
    whole = sp.Add(*(key * _replace_factors(value, back) for key, value in factored.items()))
    return shared, whole, text


def _replace_factors(value: sp.Expr, back: dict[sp.Expr, sp.Symbol]) -> sp.Expr:
    return sp.Mul(*(back.get(factor, factor) for factor in sp.Mul.make_args(value)))


def _order(text: dict[sp.Basic, str]) -> Callable[[sp.Expr], Any]:
    """Scalars before arrays, arrays of few labels before arrays of many; sums: four-point brackets first."""

    def key(e: sp.Expr) -> tuple:
        if isinstance(e, sp.Add | sp.Mul):
            atoms = [text[s] for s in e.free_symbols if s in text]
            four = any(a.startswith("m") for a in atoms)
            return (
                2,
                not four if isinstance(e, sp.Mul) else 0,
                min((a for a in atoms if a[0].isupper()), default=""),
                sorted(atoms),
            )
        base = e.as_base_exp()[0]
        shown = text.get(base)
        if shown is None:
            return (0 if base in PARAMETERS else 1, 2, "", [str(base)])
        return (1, len(set(shown.split('"')[1])), "", [shown])

    return key


def step_source(tensor: str, layer: Layer = MLP) -> str:
    """The function `step_<tensor>(p, s, m, t)`."""
    rule = recursion(tensor, layer)
    need = needs(rule)
    shared, expression, text = _grouped(rule)
    subscript = "".join(_letters(rule)[sp.sympify(x, strict=True)] for x in rule.labels)
    lines = [f"def step_{tensor}(p: Values, s: Pairs, m: Quadruples, t: Views) -> jax.Array:"]
    lines.append(f'    """{tensor}_{"".join(map(str, rule.labels))} at layer l+1, axes {subscript}."""')
    lines += _unpack("p", need.parameters)
    lines += _unpack("s", need.pairs)
    lines += _unpack("m", need.quads)
    lines += _unpack("t", need.tensors)
    printer = Printer(text, _order(text))
    for symbol, value in shared:
        lines += printer.statement(f"{symbol} = ", value)
    lines += printer.statement("return ", expression)
    return "\n".join(lines) + "\n"


def _unpack(source: str, keys: Sequence[str | tuple[int, ...]]) -> list[str]:
    """Names for what is read: C_W from p["C_W"], s02 from s[0, 2]."""
    if not keys:
        return []
    names = [key if isinstance(key, str) else source + "".join(map(str, key)) for key in keys]
    places = [f'{source}["{key}"]' if isinstance(key, str) else f"{source}[{_listed(key)}]" for key in keys]
    line = f"    {', '.join(names)} = {', '.join(places)}"
    half = len(keys) // 2
    return [line] if len(line) <= WIDTH else [*_unpack(source, keys[:half]), *_unpack(source, keys[half:])]


def _listed(orders: Sequence[int]) -> str:
    return ", ".join(map(str, orders))


def _field(name: str, texts: Sequence[str]) -> list[str]:
    """A tuple as an argument of a table's entry."""
    line = f"        {name}=({', '.join(texts)}{',' if len(texts) == 1 else ''}),"
    if len(line) <= WIDTH:
        return [line]
    return [f"        {name}=(", *(f"            {text}," for text in texts), "        ),"]


def first_source(tensor: str) -> str:
    """The function `first_<tensor>(p, gram)` of the first layer; tensors that vanish there have none."""
    rule = initial(tensor)
    if rule.expression == 0:
        return ""
    used = tuple(p.name for p in PARAMETERS if rule.expression.has(p))
    lines = [f"def first_{tensor}(p: Values, gram: View) -> jax.Array:"]
    lines.append(f'    """{tensor}_{"".join(map(str, rule.labels))} at the first layer; gram is x_1.x_2 / n_0."""')
    lines += _unpack("p", used)
    lines += Printer(_atom_names(rule)).statement("return ", rule.expression)
    return "\n".join(lines) + "\n"


def table_source(tensors: Sequence[str]) -> str:
    """The table that the runtime reads: a tensor's rank, functions and needs, in the order of evaluation."""
    lines = ["STEPS = {"]
    for name in tensors:
        need = needs(recursion(name))
        first = f"first_{name}" if initial(name).expression != 0 else "None"
        lines += [f'    "{name}": Step(', f"        rank={len(recursion(name).labels)},"]
        lines += [f"        first={first},", f"        advance=step_{name},"]
        lines += _field("pairs", [f"({_listed(orders)})" for orders in need.pairs])
        lines += _field("quads", [f"({_listed(orders)})" for orders in need.quads])
        lines += _field("tensors", [f'"{other}"' for other in need.tensors])
        lines.append("    ),")
    return "\n".join([*lines, "}", '"""Tensors in the order of evaluation."""']) + "\n"


def layer_source(tensors: Sequence[str] | None = None) -> str:
    """All functions and the table for the requested tensors and what they depend on."""
    names = closure(tensors) if tensors is not None else tuple(TENSORS)
    parts = [first_source(name) for name in names] + [step_source(name) for name in names]
    return "\n\n".join(part for part in [*parts, table_source(names)] if part)
