"""Where the first order in 1/n is used beyond its range: one measure, one sentence, for flows, predictions and studies.

The expansion is one in 1/n (in L/n at large depth): its first order says nothing where it is not small against the
leading one, since the next order is then as large. Ratios are those of a recommendation, input by input.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

LARGE = 0.25
"""A first order above this share of the leading one: the second, its square, is then 6 % and more."""
TENTH = 0.1
"""The share to which the width that is named would bring it."""
RATIOS = {
    "V": ("V/(n K^2)", ("K", "K")),
    "G1": ("G1/(n K)", ("K",)),
    "D": ("D/(n K Theta)", ("K", "Theta")),
    "F": ("F/(n K Theta)", ("K", "Theta")),
    "H1": ("H1/(n Theta)", ("Theta",)),
    "A": ("A/(n Theta^2)", ("Theta", "Theta")),
    "B": ("B/(n Theta^2)", ("Theta", "Theta")),
}
"""What each tensor of one input is compared with. Training brings the others in, and predictions look at themselves."""


def enough(share: float, width: float) -> str:
    """The width that would do, in words."""
    return f"a width of about {float(np.ceil(width * share / TENTH * (1 - 1e-9))):.4g} would bring it to a tenth"


def first_order(what: str, share: float, width: float) -> tuple[str, ...]:
    """A warning where the order 1/n of `what` exceeds LARGE of the leading one; nothing where it does not."""
    if share <= LARGE:
        return ()
    return (
        f"Warning: at width {width:g} the order 1/n of {what} is {share:.2g} of the leading order, so that the next "
        f"orders, which are left out, are not small either; {enough(share, width)}.",
    )


def flow_ratios(tensors: Mapping[str, np.ndarray], width: float) -> dict[str, float]:
    """{ratio: its largest absolute value over the inputs whose leading tensors are not zero}, labels all the same."""
    found = {}
    size = len(tensors["K"])
    own = np.arange(size)
    for name, (ratio, leading) in RATIOS.items():
        if name not in tensors or any(other not in tensors for other in leading):
            continue
        tensor = np.asarray(tensors[name], dtype=float)
        scale = np.prod([np.diagonal(np.asarray(tensors[other], dtype=float)) for other in leading], axis=0)
        value = np.abs(tensor[(own,) * tensor.ndim]) / width
        found[ratio] = float(np.max(value[scale > 0] / scale[scale > 0], initial=0.0))
    return found


def flow_notes(tensors: Mapping[str, np.ndarray], width: float) -> tuple[str, ...]:
    """One warning, which names the largest ratio, where one is not small."""
    ratios = flow_ratios(tensors, width)
    if not ratios:
        return ()
    name, share = max(ratios.items(), key=lambda item: item[1])
    return first_order(f"the output's statistics ({name})", share, width)
