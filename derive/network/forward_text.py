"""Forward equations for a terminal: the same terms as in LaTeX, in plain Unicode.

>>> from derive.network.forward import forward_object
>>> for term in forward_object("H"):
...     print(term_text(term))
Σ_{j1 j2} W_{i1 j1} W_{i2 j2} σ'(j1;1) σ'(j2;2) H(j1 j2;12)
δ_{i1 i2} lambda_b
δ_{i1 i2} lambda_W/n Σ_{j1} σ(j1;1) σ(j1;2)
"""

from __future__ import annotations

from derive.network.definition import IDENTITY, InputWeights, Skip, Weights
from derive.network.forward import ForwardTerm
from derive.network.trees import OBJECTS

_FUNCTIONS = {"sigma": "σ", "tau": "τ", IDENTITY: "z"}


def term_text(term: ForwardTerm) -> str:
    """One term; j1 is the inner neuron of vertex 1, (j1;2) that neuron's value on sample 2."""
    pinned = {leg.vertex for leg in term.legs if isinstance(leg.term, Skip)}

    def neuron(j: int) -> str:
        return f"i{j}" if j in pinned else f"j{j}"

    pieces = []
    for c in term.contractions:
        u, v = c.vertices
        size = {Weights: "/n", InputWeights: f" x({u})·x({v})/n_0"}.get(type(c.term), "")
        pieces.append(f"δ_{{i{u} i{v}}} {'' if isinstance(c.term, Skip) else c.term.rate}{size}")
    summed = [f"j{j}" for j in term.neurons if j not in pinned]
    if summed:
        pieces.append(f"Σ_{{{' '.join(summed)}}}")
    for leg in term.legs:
        i = leg.vertex
        if isinstance(leg.term, Weights):
            pieces.append(f"{leg.term.name}_{{i{i} j{i}}}")
        elif isinstance(leg.term, InputWeights):
            pieces.append(f"Σ_j {leg.term.name}_{{i{i} j}} x(j;{i})")
        else:
            pieces.append(str(leg.term.strength) if isinstance(leg.term, Skip) else f"{leg.term.name}_{{i{i}}}")
    for f in term.factors:
        primes = "'" * f.order
        pieces.append(f"{_FUNCTIONS.get(f.function, f.function)}{primes}({neuron(f.neuron)};{f.label})")
    for tree in term.trees:
        neurons = " ".join(neuron(j) for j, _ in tree.slots)
        pieces.append(f"{tree.kind}({neurons};{''.join(str(label) for _, label in tree.slots)})")
    return " ".join(pieces)


def left_text(kind: str) -> str:
    """The object at layer l+1 with its indices."""
    vertices = OBJECTS[kind].vertices
    return f"{kind}'({' '.join(f'i{v}' for v in vertices)};{''.join(map(str, vertices))})"
