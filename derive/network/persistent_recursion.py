r"""The recursion of a functional as an object: for printing, in text and LaTeX, and as data.

>>> found = functional_recursion("V", RESIDUAL)
>>> print(found.left, "=", found.term_text()[0])
V[f, h] = r V[Pf, Ph]
>>> found.tensor_text
'V_1234 = V[z1 z2, z3 z4]'
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from derive import symbols
from derive.errors import DeriveError
from derive.layout import Block, Equation
from derive.network.component import component_latex
from derive.network.definition import IDENTITY, RESIDUAL, Layer
from derive.network.functional import SHAPES, Function, Functional, tensor_functions
from derive.network.persistence import NAMES, FunctionalTerm, functional_terms
from derive.network.term_latex import Namer, activation_latex, coefficient_latex, label_latex
from derive.network.terms import Label
from derive.network.trees import TENSORS
from derive.results import Result

__all__ = ["RESIDUAL", "FunctionalRecursion", "functional_recursion", "is_persistent"]


def is_persistent(layer: Layer) -> bool:
    """Whether a neuron's z' holds its own z."""
    return any(term.persistent for term in layer.terms)


@dataclass(frozen=True)
class FunctionalRecursion(Result):
    """One functional at layer l+1 in terms of functionals of layer l; the tensor is the functional at z's."""

    tensor: str
    labels: tuple[int, ...]
    """Of the trees."""
    terms: tuple[FunctionalTerm, ...]
    layer: Layer

    @property
    def depends_on(self) -> tuple[str, ...]:
        names = {t.functional.name for t in self.terms if t.functional} | {
            n for t in self.terms for n, _ in t.components
        }
        return tuple(name for name in TENSORS if name in names or name == "K")

    @property
    def symmetries(self) -> tuple[tuple[int, ...], ...]:
        """Permutations of the tensor's subscripts, as positions, that leave it as it is."""
        return TENSORS[self.tensor].symmetries

    def single_input(self) -> FunctionalRecursion:
        """All sample labels equal: the single input is label 0, and the sums have one term."""
        table: dict[Label, Label] = dict.fromkeys(self.labels, 0)
        for term in self.terms:
            table |= dict.fromkeys(term.summed, 0)
        return replace(self, labels=(0,) * len(self.labels), terms=tuple(_renamed(t, table) for t in self.terms))

    def equal_widths(self) -> FunctionalRecursion:
        """n_l = n_{l-1}."""
        return replace(self, terms=tuple(replace(t, coefficient=t.coefficient.subs(symbols.r, 1)) for t in self.terms))

    # text

    @property
    def left(self) -> str:
        return _functional_text(self._functional, outer=True)

    @property
    def tensor_text(self) -> str:
        """The tensor as the functional at definite functions."""
        tensor = TENSORS[self.tensor]
        own = Functional(self.tensor, SHAPES[self.tensor].vertices, tensor_functions(self.tensor))
        return f"{self.tensor}_{''.join(map(str, tensor.subscripts))} = {_functional_text(own)}"

    @property
    def _functional(self) -> Functional:
        shape = SHAPES[self.tensor]
        functions = tuple(Function(name, ()) for name, c in zip(NAMES, shape.carries) if c)
        return Functional(self.tensor, self.labels, functions)

    def term_text(self) -> list[str]:
        return [_term_text(t) for t in self.terms]

    def term_latex(self) -> list[str]:
        return [_term_latex(t, self._name) for t in self.terms]

    def _name(self, label: Label) -> str:
        return "" if label == 0 and set(self.labels) == {0} else label_latex(label)

    def blocks(self) -> tuple[Block, ...]:
        return (Equation(self.equation_latex()),)

    def equation_latex(self) -> str:
        """One line a term. A prime on a mean is for layer l+1; hats are explained by `notes`."""
        left = _functional_latex(self._functional, self._name, r"(\ell+1)", outer=True)
        lines = " \\\\\n&+ ".join(self.term_latex()) or "0"
        return f"{left} &= {lines}".replace("&+ -", "&- ")

    def line_latex(self) -> str:
        """The same as one line without alignment."""
        return self.equation_latex().replace(" &= ", " = ").replace(" \\\\\n&+ ", " + ").replace(" \\\\\n&- ", " - ")

    @property
    def notes(self) -> tuple[str, ...]:
        """What the signs mean."""
        found = [f"{self.tensor_text}; f and h are functions of one neuron's z, i and k two neurons"]
        found.append("(Pf)(z) is the mean of f at layer l+1 given the neuron's z at layer l; <...>' is over layer l+1")
        hats = dict.fromkeys(t.functional.name for t in self.terms if t.functional and t.functional.hat)
        for name in hats:
            found.append(f"hat: {_hat_text(name)}")
        return tuple(found)

    def to_json(self) -> dict[str, object]:
        texts = self.term_text()
        return {
            "tensor": self.tensor,
            "definition": str(self.layer),
            "labels": list(TENSORS[self.tensor].subscripts),
            "functional": self.left,
            "tensor_is": self.tensor_text,
            "latex": self.latex(),
            "expression": " + ".join(texts) or "0",
            "terms": [{"latex": x, "expression": y} for x, y in zip(self.term_latex(), texts)],
            "depends_on": list(self.depends_on),
            "symmetries": [[TENSORS[self.tensor].subscripts[k] for k in g] for g in self.symmetries],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return f"{self.left}' = " + (" + ".join(self.term_text()) or "0")


def _renamed(term: FunctionalTerm, table: dict[Label, Label]) -> FunctionalTerm:
    return FunctionalTerm(
        term.coefficient,
        tuple((name, tuple(table.get(x, x) for x in labels)) for name, labels in term.components),
        tuple(m.rename(table) for m in term.means),
        term.functional.rename(table) if term.functional else None,
    )


def functional_recursion(tensor: str, layer: Layer) -> FunctionalRecursion:
    """Derive the recursion of a tensor's functional for a layer whose neurons may persist."""
    if tensor not in SHAPES:
        raise DeriveError(f"there is no functional of {tensor!r}; choose one of {' '.join(SHAPES)}")
    return FunctionalRecursion(tensor, SHAPES[tensor].vertices, functional_terms(tensor, layer), layer)


def _function_text(function: Function) -> str:
    derivative = "".join(f"∂{g} " for g in function.derivatives)
    parts = [f"P{derivative and ' '}{derivative}{function.carried}"] if function.carried else []
    for label, order, name in function.atoms:
        parts.append(f"z{label}" if name == IDENTITY else f"s{label}{chr(39) * order}")
    return " ".join(parts) or "1"


def _functional_text(functional: Functional, outer: bool = False) -> str:
    """A functional; `outer`: of layer l+1, whose functions are themselves, not seen through P."""
    functions = ", ".join(f.carried if outer and f.carried else _function_text(f) for f in functional.functions)
    subscript = "".join(map(str, functional.labels))
    inner = f"[{functions}]" if functional.functions else ""
    return f"{functional.name}{'^' if functional.hat else ''}{inner}{'_' + subscript if subscript else ''}"


def _mean_text(mean: Function) -> str:
    if mean.carried and not mean.atoms:
        return f"<{_function_text(mean).removeprefix('P').strip()}>'"
    return f"<{_function_text(mean)}>"


def _term_text(term: FunctionalTerm) -> str:
    pieces = [] if term.coefficient == 1 else [str(term.coefficient)]
    if term.summed and 0 not in term.summed:
        pieces.append(f"Σ_{{{' '.join(map(str, term.summed))}}}")
    pieces += [_mean_text(m) for m in term.means]
    pieces += [f"{name}_{''.join(map(str, labels))}" for name, labels in term.components]
    if term.functional:
        pieces.append(_functional_text(term.functional))
    return " ".join(pieces)


def _hat_text(name: str) -> str:
    shape = SHAPES[name]
    labels = "".join(map(str, shape.vertices))
    thetas = " ".join(f"Theta_{u}{v}" for u, v in shape.ntk_pairs)
    subscript = f"_{labels}" if labels else ""
    own = f"<u v> {thetas}" if thetas else "<u v> - <u> <v>"
    return f"{name}^[u, v]{subscript} = r {name}[u, v]{subscript} + {own}"


def _function_latex(function: Function, name: Namer, seen: bool = True) -> str:
    derivative = " ".join(rf"\partial_{{{name(g)}}}" for g in function.derivatives)
    parts = []
    if function.carried:
        parts.append(rf"{'P ' if seen else ''}{derivative + ' ' if derivative else ''}{function.carried}")
    parts += [activation_latex(atom, name) for atom in function.atoms]
    return " ".join(parts) or "1"


def _functional_latex(functional: Functional, name: Namer, layer: str, outer: bool = False) -> str:
    symbol = component_latex(functional.name, ())
    symbol = rf"\widehat{{{symbol}}}" if functional.hat else symbol
    functions = ", ".join(_function_latex(f, name, seen=not outer) for f in functional.functions)
    labels = "".join(name(x) for x in functional.labels)
    text = f"{{{symbol}}}^{{{layer}}}" + (f"_{{{labels}}}" if labels else "")
    return text + (rf"\left[{functions}\right]" if functions else "")


def _term_latex(term: FunctionalTerm, name: Namer) -> str:
    pieces = [] if term.coefficient == 1 else [coefficient_latex(term.coefficient)]
    if term.summed and 0 not in term.summed:
        pieces.append(rf"\sum_{{{','.join(map(name, term.summed))}}}")
    for mean in term.means:
        kernel = r"(\ell+1)" if mean.carried and not mean.atoms else r"(\ell)"
        body = _function_latex(mean, name, seen=bool(mean.atoms))
        pieces.append(rf"\left\langle {body} \right\rangle_{{K^{{{kernel}}}}}")
    pieces += [component_latex(tensor, tuple(name(x) for x in labels), r"(\ell)") for tensor, labels in term.components]
    if term.functional:
        pieces.append(_functional_latex(term.functional, name, r"(\ell)"))
    return " ".join(pieces) or "1"
