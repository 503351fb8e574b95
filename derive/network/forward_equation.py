"""Forward equations in the notation of PDLT."""

from __future__ import annotations

import sympy as sp

from derive.network.definition import IDENTITY, MLP, InputWeights, Layer, Skip, Weights
from derive.network.forward import Factor, ForwardTerm, forward_object
from derive.network.trees import OBJECT_LATEX, OBJECTS


def _activation_latex(factor: Factor) -> str:
    symbol = {"sigma": r"\sigma", "tau": r"\tau", IDENTITY: "z"}.get(factor.function, factor.function)
    power = r"\prime" * factor.order + r"(\ell)"
    return rf"{symbol}^{{{power}}}_{{j_{factor.neuron};\delta_{factor.label}}}"


def term_latex(term: ForwardTerm) -> str:
    """One term in the notation of PDLT."""
    pieces = []
    for c in term.contractions:
        u, v = c.vertices
        rate = sp.latex(c.term.rate) if not isinstance(c.term, Skip) else ""
        pieces.append(rf"\delta_{{i_{u} i_{v}}}")
        if isinstance(c.term, Weights):
            pieces.append(rf"\frac{{{rate}^{{(\ell+1)}}}}{{n_\ell}}")
        elif isinstance(c.term, InputWeights):
            pieces.append(rf"{rate}^{{(\ell+1)}} \frac{{x_{{\delta_{u}}} \cdot x_{{\delta_{v}}}}}{{n_0}}")
        else:
            pieces.append(rf"{rate}^{{(\ell+1)}}")
    pinned = {leg.vertex for leg in term.legs if isinstance(leg.term, Skip)}
    summed = [f"j_{j}" for j in term.neurons if j not in pinned]
    if summed:
        pieces.append(rf"\sum_{{{','.join(summed)}}}")
    for leg in term.legs:
        i, j = f"i_{leg.vertex}", f"j_{leg.vertex}"
        if isinstance(leg.term, Weights):
            pieces.append(rf"{leg.term.name}^{{(\ell+1)}}_{{{i} {j}}}")
        elif isinstance(leg.term, InputWeights):
            pieces.append(rf"\sum_{{{j}}} {leg.term.name}^{{(\ell+1)}}_{{{i} {j}}} x_{{{j};\delta_{leg.vertex}}}")
        elif isinstance(leg.term, Skip):
            pieces.append(sp.latex(leg.term.strength))
        else:
            pieces.append(rf"b^{{(\ell+1)}}_{{{i}}}")
    pieces += [_activation_latex(f) for f in term.factors]
    for tree in term.trees:
        neurons = "".join(f"j_{j}" for j, _ in tree.slots)
        samples = "".join(rf"\delta_{label}" for _, label in tree.slots)
        pieces.append(rf"{OBJECT_LATEX[tree.kind]}^{{(\ell)}}_{{{neurons};{samples}}}")
    text = " ".join(pieces)
    for vertex in pinned:
        text = text.replace(f"j_{vertex}", f"i_{vertex}")
    return text


def left_side(kind: str) -> str:
    """The object at layer l+1 with its indices."""
    vertices = OBJECTS[kind].vertices
    neurons = "".join(f"i_{v}" for v in vertices)
    samples = "".join(rf"\delta_{v}" for v in vertices)
    return rf"{OBJECT_LATEX[kind]}^{{(\ell+1)}}_{{{neurons};{samples}}}"


def forward_latex(kind: str, layer: Layer = MLP) -> str:
    """The whole equation, one line a term."""
    terms = forward_object(kind, layer)
    return f"{left_side(kind)} &= " + " \\\\\n&+ ".join(map(term_latex, terms))
