"""A recommendation in words: a sentence for each number, which says where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from derive.design.recommendation import Recommendation

__all__ = ["notes"]


def notes(
    found: Recommendation, start: tuple[str, ...], error: float, missing: Mapping[str, str], targets: float | None
) -> tuple[str, ...]:
    """All sentences. `start` are those of the initialization, `error` is the brackets' relative error."""
    name, value = found.largest
    L = found.depth
    told = [
        *start,
        f"lambda_b, lambda_W: every layer's biases, and every layer's weights, contribute 1/(2L) = {1 / (2 * L):.4g} "
        "to the output's NTK, which is then 1: the equivalence principle solved with the exact recursion of Theta at "
        "this depth.",
        f"weight_std = sqrt(C_W/n_(l-1)) with hidden width {found.built_width}"
        + (" (the recommended one)" if found.given_width is None else "")
        + f" and n_0 = {found.inputs}; the learning rate of a weight is eta lambda_W/n_(l-1), of a bias eta lambda_b.",
        f"eta_max = {found.eta_max:.4g}: gradient descent on sum (z - y)^2/2 diverges above 2/Theta, for one input; "
        "for a data set it is 2 over the largest eigenvalue of Theta (--data).",
    ]
    if found.corrections:
        source = (
            f"the recursions of one input (brackets to {max(error, 1e-16):.0e})"
            if found.skip is None
            else "the functionals that close for residual layers, one input"
        )
        told.append(
            f"corrections: n times each dimensionless ratio of the tensors at the output, from {source}; the largest "
            f"is {name} = {value:.4g}/n."
        )
        regime = " in the NTK parametrization (s = 0)" if found.s else ""
        told.append(f"width = {found.width}: no ratio exceeds 10 %{regime}.")
    if targets is None:
        told.append(
            f"Targets: multiply targets of mean square 1 by {found.target_scale:.4g} = sqrt(K^(L)), the scale of the "
            "outputs, PDLT (∞.26); the ratios with y^2 assume it."
        )
    else:
        told.append(
            f"Targets: their mean square {targets:.4g} per output is compared with K^(L) = {found.output_variance:.4g};"
            " rescaling them to it, PDLT (∞.26), makes the ratios with y^2 smaller or as small as they can be."
        )
    if found.aspect_ratio is not None:
        best = L / found.aspect_ratio
        told.append(
            f"aspect_ratio L/n = {found.aspect_ratio:.4g} (n = {best:.0f}) maximizes the mutual information of parts "
            f"of {found.outputs} output(s): 4/((20 + 3 n_L) nu) with nu = V/K^2/L = "
            f"{found.corrections['V/(n K^2)'] / L:.4g} at this depth."
        )
    if found.given_width is not None and found.corrections:
        size = abs(value) / found.given_width
        verdict = "wide enough" if found.given_width >= found.width else "not wide enough for first order in 1/n"
        told.append(f"At width {found.given_width} the largest ratio is {size:.2%}: {verdict}.")
    if found.s:
        told.append(
            f"s = {found.s:g}: outputs are multiplied by n^(-s/2) = {found.output_multiplier:.4g} and learning rates "
            f"by n^s at n = {found.built_width}; Theta stays, its change in training grows from L/n to L/n^(1-s). The "
            "ratios with y^2 are those at this width and fall as n^(s-1) only: that is how features are learned."
        )
    for reason in sorted(set(missing.values())):
        names = [tensor for tensor, why in missing.items() if why == reason]
        told.append(f"{', '.join(names)}: no ratio. {reason[0].upper() + reason[1:]}")
    return tuple(told)
