"""The explorer as one HTML file without a server: answers for some activations stored, recursions as JavaScript.

The recursions are those that `derive.network` derives, printed by SymPy; their brackets are tables in log K, which the
page interpolates. A bracket is stored as K^m times a slowly varying function, m being its power at the lower end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import sympy as sp

from derive.activations import Activation
from derive.activations import activation as read
from derive.activations.builtin import ALIASES, BUILTIN
from derive.depth.critical_solution import first_layer, network_equations
from derive.depth.ratios import CONTENT, kernel_powers, ratio_name
from derive.depth.tensor_recursions import Admitted, admit
from derive.design.initialization import initialization
from derive.errors import DeriveError
from derive.explorer.answers import Question, answer
from derive.explorer.page import whole_page
from derive.gaussian import Bracket
from derive.gaussian.one_input import OneInputBrackets
from derive.network.component import Component
from derive.symbols import C_W, C_b, K, lambda_b, lambda_W

DEPTHS = (2, 4, 8, 16, 32, 64)
"""For which a recommendation is stored."""
TABLE = (1e-3, 1e3, 160)
"""Of K: from, to, how many."""
PARTS = ("activation", "criticality", "phase", "exponents")
Json = dict[str, Any]


def static_page(
    names: Iterable[str], reports: Callable[[str], str | None], progress: Callable[[str], None] = lambda name: None
) -> str:
    """One HTML file; `reports` gives the address of an activation's report as seen from it."""
    sources: list[str] = []
    stored: Json = {}
    for name in names:
        progress(name)
        sigma = read(name)
        stored[sigma.name] = _stored(sigma, sources)
    data = {
        "activations": stored,
        "aliases": {alias: name for alias, name in ALIASES.items() if name in stored},
        "ratios": {name: [ratio_name(name), *kernel_powers(name)] for name in CONTENT},
        "reports": {name: reports(name) for name in stored},
    }
    return whole_page(data, f"const RECURSIONS = [{', '.join(sources)}];")


def builtin_names() -> list[str]:
    return list(BUILTIN)


def _stored(sigma: Activation, sources: list[str]) -> Json:
    entry: Json = {part: _tried(part, Question(sigma.name)) for part in PARTS}
    entry["recommendation"] = {depth: _tried("recommendation", Question(sigma.name, depth)) for depth in DEPTHS}
    admitted = admit(network_equations(), sigma)
    source = _javascript(admitted)
    if source not in sources:
        sources.append(source)
    entry["table"] = {"recursion": sources.index(source), "missing": dict(admitted.missing), **_table(sigma, admitted)}
    try:
        start = initialization(sigma, DEPTHS[-1])
        entry["start"] = {"C_b": float(start.C_b), "C_W": float(start.C_W), "input_norm": start.input_norm}
    except DeriveError:  # no initialization is good at any depth: the page starts somewhere
        entry["start"] = {"C_b": 0.0, "C_W": 1.0, "input_norm": 1.0}
    return entry


def _tried(part: str, question: Question) -> Json:
    try:
        return {"data": answer(part, question)}
    except DeriveError as error:
        return {"error": str(error)}


def _brackets(admitted: Admitted) -> list[Bracket]:
    return sorted(admitted.brackets, key=str)


def _table(sigma: Activation, admitted: Admitted) -> Json:
    wanted = _brackets(admitted)
    evaluate = OneInputBrackets(sigma, wanted)
    kernels = np.geomspace(*TABLE)
    rows: list[list[float]] = []
    for kernel in kernels:
        try:
            own = [float(x) for x in evaluate(kernel)]
        except DeriveError:  # an activation that grows so fast that its expectations leave the range of numbers
            break
        if not all(map(math.isfinite, own)):
            break
        rows.append(own)
    values = np.array(rows).T
    columns = []
    for own in values:
        power = _power(own, kernels)
        columns.append({"power": power, "values": [float(f"{v:.7g}") for v in own / kernels[: len(own)] ** power]})
    step = math.log(kernels[1] / kernels[0])
    return {"start": math.log(TABLE[0]), "step": step, "count": len(rows), "brackets": columns}


def _power(values: np.ndarray, kernels: np.ndarray) -> float:
    """The power of K, in halves, that a bracket follows at the table's lower end."""
    if not (values[0] and values[1] and values[0] * values[1] > 0):
        return 0.0
    slope = math.log(values[1] / values[0]) / math.log(kernels[1] / kernels[0])
    return round(2 * slope) / 2


def _javascript(admitted: Admitted) -> str:
    """The recursions of one input as JavaScript functions of numbers and arrays."""
    names = list(admitted.equations)
    brackets = {b: sp.Symbol(f"b[{i}]") for i, b in enumerate(_brackets(admitted))}
    gram, kernel = sp.Symbol("gram"), sp.Symbol("kernel")
    equations = {name: e.expression for name, e in admitted.equations.items()}
    components = {c for e in equations.values() for c in e.atoms(Component)}
    state = {c: sp.Symbol(f"t[{names.index(c.name)}]") for c in components}
    theta = admitted.equations["Theta"]
    active = [equations["K"], theta.source.coeff(lambda_W), theta.multiplier]
    ahead = {**brackets, K: kernel, **{c: kernel for c in components if c.name == "K"}}
    first = [e.xreplace({c: gram for c in e.atoms(Component)}) for e in (first_layer()[n] for n in names)]
    later = [equations[n].xreplace({**brackets, **state, K: sp.Symbol(f"t[{names.index('K')}]")}) for n in names]
    rates = ", ".join(str(s) for s in (C_b, C_W, lambda_b, lambda_W))
    return (
        f"{{names: {json.dumps(names)}, "
        f"first: (gram, {rates}) => [{_code(first)}], "
        f"kernel: (kernel, {C_b}, {C_W}, b) => [{_code([e.xreplace(ahead) for e in active])}], "
        f"step: ({rates}, t, b) => [{_code(later)}]}}"
    )


def _code(expressions: list[sp.Expr]) -> str:
    return ", ".join(sp.jscode(e) for e in expressions)
