r"""Source of the recursions of functionals, for layers whose neurons persist: a table that the runtime reads.

One entry a functional: the labels of its trees, its symmetries, the tensor that it gives, and its terms as derived.
The runtime (`numeric.functionals`) carries out the sums over labels and decides which functions are needed.
"""

from __future__ import annotations

from derive.codegen.layer import step_source
from derive.codegen.printer import WIDTH
from derive.network import RESIDUAL, TENSORS
from derive.network.functional import SHAPES, Function, Functional, tensor_functions
from derive.network.persistence import FunctionalTerm, functional_terms

KERNELS = tuple(name for name, tensor in TENSORS.items() if tensor.order == 0)
"""What evolves by itself: K and Theta."""


def _text(labels: tuple) -> str:
    return ", ".join(f'"{label}"' for label in labels)


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _function(function: Function) -> str:
    """`carried("f", "g1")` is P d_g1 f, `product(("g1", 0), ("3", 1))` is s_g1 s_3'."""
    atoms = _tuple([f'("{label}", {order})' for label, order, _ in function.atoms])[1:-1].rstrip(",")
    if not function.carried:
        return f"product({atoms})"
    names = _text((function.carried, *function.derivatives))
    return f"carried({names})" if not function.atoms else f"carried({names}, times=({atoms},))"


def _joined(labels: tuple) -> str:
    return f'"{"".join(map(str, labels))}"'


def _functional(functional: Functional) -> str:
    functions = _tuple([_function(f) for f in functional.functions])
    return f'{"hat" if functional.hat else "At"}("{functional.name}", {_joined(functional.labels)}, {functions})'


def _term(term: FunctionalTerm) -> list[str]:
    number, rest = term.coefficient.as_coeff_Mul()
    powers = {base.name: int(power) for base, power in rest.as_powers_dict().items() if base != 1}
    parts = [
        repr(float(number)),
        "{" + ", ".join(f'"{name}": {power}' for name, power in sorted(powers.items())) + "}",
        _tuple([_joined(labels) for _, labels in term.components]),
        _tuple([_function(m) for m in term.means]),
        _functional(term.functional) if term.functional else "None",
    ]
    line = f"            Term({', '.join(parts)}),"
    if len(line) <= WIDTH:
        return [line]
    return ["            Term(", *(f"                {part}," for part in parts), "            ),"]


def _rule(name: str) -> list[str]:
    shape, tensor = SHAPES[name], TENSORS[name]
    free = tuple(v for own, carries in zip(shape.neurons, shape.carries) if not carries for v in own)
    ntks = [_joined(pair) for pair in shape.ntk_pairs] if shape.only_ntks else []
    functions = [_joined(tuple(label for label, _, _ in f.atoms)) for f in tensor_functions(name)]
    symmetries = [_tuple([str(labels), str(places)]) for labels, places in shape.symmetries]
    lines = [f'    "{name}": Rule(']
    lines.append(f"        labels={_joined(shape.vertices)},")
    lines.append(f"        subscripts={_joined(tensor.subscripts)},")
    lines.append(f"        preactivations={_tuple(functions)},")
    lines.append(f"        free={_joined(free)},")
    lines.append(f"        ntks={_tuple(ntks)},")
    line = f"        symmetries={_tuple(symmetries)},"
    if len(line) > WIDTH:
        line = "\n".join(["        symmetries=(", *(f"            {s}," for s in symmetries), "        ),"])
    lines.append(line)
    lines.append("        terms=(")
    for term in functional_terms(name, RESIDUAL):
        lines += _term(term)
    return [*lines, "        ),", "    ),"]


def functionals_source() -> str:
    """The kernels' steps and the table of rules."""
    parts = [step_source(name, RESIDUAL) for name in KERNELS]
    lines = ["RULES = {"]
    for name in SHAPES:
        lines += _rule(name)
    return "\n\n".join([*parts, "\n".join([*lines, "}", '"""The functional of each tensor of order 1/n."""'])]) + "\n"
