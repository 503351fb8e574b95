"""`derive.recursion` and `derive.forward`: the equations of a layer, derived from its definition."""

from __future__ import annotations

from dataclasses import dataclass

from derive import network
from derive.errors import DeriveError
from derive.layout import Block, Equation
from derive.network import (
    LAYERS,
    TENSORS,
    ForwardTerm,
    FunctionalRecursion,
    Layer,
    Recursion,
    forward_equation,
    forward_object,
    functional_recursion,
    is_persistent,
)
from derive.network.forward_equation import term_latex
from derive.network.forward_text import left_text, term_text
from derive.results import Result


@dataclass(frozen=True)
class ForwardEquation(Result):
    """The object of layer l+1 made of objects of layer l, before any average, term by term."""

    kind: str
    layer: Layer
    terms: tuple[ForwardTerm, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "object": self.kind,
            "definition": str(self.layer),
            "left": left_text(self.kind),
            "latex": self.latex(),
            "terms": [
                {
                    "latex": term_latex(t),
                    "text": term_text(t),
                    "contractions": [{"vertices": list(c.vertices), "parameter": c.term.name} for c in t.contractions],
                    "objects": [tree.kind for tree in t.trees],
                }
                for t in self.terms
            ],
        }

    def blocks(self) -> tuple[Block, ...]:
        return (Equation(forward_equation.forward_latex(self.kind, self.layer)),)


def definition(layer: str | Layer) -> Layer:
    """A layer by name, or as it is."""
    if isinstance(layer, Layer):
        return layer
    if layer not in LAYERS:
        raise DeriveError(f"There is no layer {layer!r}; choose one of {', '.join(LAYERS)}.")
    return LAYERS[layer]


def forward(object: str, layer: str | Layer = "mlp") -> ForwardEquation:
    """Derive how an object (z, H, dH, ddI or ddII) of layer l+1 is made of objects of layer l, before any average.

    >>> len(forward("H").terms)
    3
    """
    form = definition(layer)
    return ForwardEquation(object, form, tuple(forward_object(object, form)))


def recursion(
    tensor: str, single_input: bool = False, equal_widths: bool = False, layer: str | Layer = "mlp"
) -> Recursion | FunctionalRecursion:
    """Derive the recursion of a tensor: K Theta V G1 D F H1 A B P Q R S T U.

    Where neurons persist (a residual layer), that of the tensor's functional of one-neuron functions.

    >>> recursion("Theta", single_input=True).expression
    C_W*<s0' s0'>*Theta_00 + lambda_W*<s0 s0> + lambda_b
    """
    form = definition(layer)
    found: Recursion | FunctionalRecursion
    if is_persistent(form) and tensor in TENSORS and TENSORS[tensor].order:
        found = functional_recursion(tensor, form)
    else:
        found = network.recursion(tensor, form)
    if single_input:
        found = found.single_input()
    return found.equal_widths() if equal_widths else found
