r"""The trained network as a list of contributions: which object, which slot is the input, weights and cumulants.

From the expansion over trees (`derive.training.trees`) and the network's cumulants (`derive.network.trees`) follow the
terms of one network's output, NTK and dNTK, their means over initializations at order 1/n, and what correlates the
output with itself. An error that stays Gaussian is contracted with targets and kernel, one that enters a cumulant is a
leg of it (`derive.training.moments`). The fluctuation of the NTK enters as a force on the outputs, like the
differentials, and once more as the response of the displacement to that force.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import sympy as sp

from derive.network.trees import parse
from derive.training.moments import ERROR, LEG
from derive.training.projectors import NAMES
from derive.training.trees import LEAF, Term, Tree, expansion

WEIGHTS: dict[Tree, str] = {LEAF: "p", (LEAF,): "q", (LEAF, LEAF): "r", ((LEAF,),): "s"}
"""Names of the trees' weights."""
PARTS = {"dH": "dNTK", "ddI": "ddNTK-I", "ddII": "ddNTK-II"}
TEST = "x"
"""The name of the first external input; the next ones are y and z."""


@dataclass(frozen=True)
class Contribution:
    """One cumulant in a mean or covariance: `external` slots stay, `internal` slots meet errors and legs (`kinds`).

    `weight` names the projector or tree weight, whose modes are the internal slots at `modes`.
    """

    part: str
    product: str
    external: tuple[int, ...]
    internal: tuple[int, ...]
    kinds: tuple[str, ...]
    weight: str
    modes: tuple[int, ...]


@cache
def output_terms() -> tuple[tuple[str, Term], ...]:
    """(projector's name, term) of the network's output at orders 2 and 3 in the training samples: (infinity.141)."""
    terms = {NAMES[t.tensor, t.subscripts.index(TEST)]: t for order in (2, 3) for t in expansion((TEST,), order)}
    return tuple((name, terms[name]) for name in NAMES.values())


def slots(term: Term) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The external and internal slots of a term's tensor: external ones as marked, internal ones by their letters."""
    outside = sorted(s for s in term.subscripts if s in "xyz")
    inside = sorted(s for s in term.subscripts if s not in "xyz")
    return tuple(term.subscripts.index(s) for s in outside), tuple(term.subscripts.index(s) for s in inside)


def leaves_only(term: Term) -> bool:
    """Whether the training samples are all attached to marked vertices: what one single step does."""
    return all(tree == LEAF for tree, _ in term.branches)


@cache
def first_contribution() -> Contribution:
    """The 1/n part of the NTK's mean in the mean output."""
    (first,) = expansion((TEST,), 1)
    external, internal = slots(first)
    return Contribution("H1", "H", external, internal, (ERROR,), "force", (0,))


@cache
def square_contribution() -> Contribution:
    """The NTK's fluctuation with itself in the covariance: the weight is a force on each internal slot's mode."""
    (first,) = expansion((TEST,), 1)
    outside, inside = slots(first)
    count = len(parse("H").vertices)
    both = (*outside, *(count + k for k in outside)), (*inside, *(count + k for k in inside))
    return Contribution("NTK variance", "H.H", *both, (ERROR, ERROR), "force", (0, 1))


@cache
def mean_contributions() -> tuple[Contribution, ...]:
    """The mean output at order 1/n, H1 aside: (infinity.162)-(infinity.165)."""
    (first,) = expansion((TEST,), 1)
    (outside, inside) = slots(first)
    count = len(parse("H").vertices)
    found = [
        Contribution(
            "NTK variance",
            "H.H",
            outside,
            (*inside, *(count + k for k in outside), *(count + k for k in inside)),
            (LEG, LEG, ERROR),
            "response",
            (0, 2),
        )
    ]
    for name, term in output_terms():
        external, internal = slots(term)
        modes = tuple(range(len(internal)))
        kinds = (ERROR,) * len(internal)
        product = term.tensor
        if len(term.subscripts) == 3:  # the dNTK is odd under a flip of the last layer: it takes one more z
            product, internal, kinds = f"{term.tensor}.z", (*internal, 3), (*kinds, LEG)
        found.append(Contribution(PARTS[term.tensor], product, external, internal, kinds, name, modes))
    return tuple(found)


@cache
def cross_contributions() -> tuple[Contribution, ...]:
    """What a z outside correlates with: the NTK's fluctuation (with one more z), the dNTK. External: z, the input."""
    (first,) = expansion((TEST,), 1)
    outside, inside = slots(first)
    found = [
        Contribution("NTK variance", "z.z.H", (0, 2 + outside[0]), (1, 2 + inside[0]), (LEG, ERROR), "force", (1,))
    ]
    for name, term in output_terms():
        if len(term.subscripts) == 3:
            external, internal = slots(term)
            found.append(
                Contribution(
                    PARTS[term.tensor], f"{term.tensor}.z", (3, *external), internal, (ERROR,) * 2, name, (0, 1)
                )
            )
    return tuple(found)


@cache
def ntk_terms() -> tuple[Term, ...]:
    """The change of the NTK H_xy at orders 1 and 2: (infinity.117)."""
    return tuple(term for order in (1, 2) for term in expansion(("x", "y"), order))


@cache
def ntk_contributions() -> tuple[tuple[sp.Rational, Contribution], ...]:
    """(coefficient, contribution) of the mean change of the NTK at order 1/n."""
    found = []
    for term in ntk_terms():
        external, internal = slots(term)
        kinds, product, modes = (ERROR,) * len(internal), term.tensor, tuple(range(len(internal)))
        if len(term.subscripts) == 3:
            product, internal, kinds = f"{term.tensor}.z", (*internal, 3), (*kinds, LEG)
        weight = "".join(WEIGHTS[tree] for tree, _ in term.branches)
        if weight == "q":  # the letters of the tree's vertices, root first, as slots
            letters = sorted(label for label in term.branches[0][1])
            modes = tuple(letters.index(label) for label in term.branches[0][1])
        found.append(
            (term.coefficient, Contribution(PARTS[term.tensor], product, external, internal, kinds, weight, modes))
        )
    return tuple(found)
