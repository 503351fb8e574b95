"""A recommendation in words: a sentence for each number, which says where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from derive.steps import Verbatim, Words, said, typeset, words
from derive.symbols import lambda_b, lambda_W

if TYPE_CHECKING:
    from derive.design.recommendation import Recommendation

__all__ = ["OUTPUT_KERNEL", "notes"]

THETA = typeset(r"\Theta", "Theta")
OUTPUT_KERNEL = typeset("K^{(L)}", "K^(L)")
SQUARES = typeset("y^2")


def notes(
    found: Recommendation, start: tuple[Words, ...], error: float, missing: Mapping[str, str], targets: float | None
) -> tuple[Words, ...]:
    """All sentences. `start` are those of the initialization, `error` is the brackets' relative error."""
    told = [*start, *_rates(found)]
    if found.corrections:
        told += _corrections(found, error)
    told.append(_targets(found, targets))
    if found.aspect_ratio is not None:
        told.append(_aspect_ratio(found))
    if found.given_width is not None and found.corrections:
        size = abs(found.largest[1]) / found.given_width
        verdict = "wide enough" if found.given_width >= found.width else "not wide enough for first order in 1/n"
        told.append(words(f"At width {found.given_width} the largest ratio is {size:.2%}: {verdict}."))
    if found.s:
        told.append(
            said(
                "s = {}: outputs are multiplied by {} = {} and learning rates by {} at n = {}; {} stays, its change in "
                "training grows from L/n to {}. The ratios with {} are those at this width and fall as {} only: that "
                "is how features are learned.",
                f"{found.s:g}",
                typeset("n^{-s/2}", "n^(-s/2)"),
                f"{found.output_multiplier:.4g}",
                typeset("n^s"),
                str(found.built_width),
                THETA,
                typeset("L/n^{1-s}", "L/n^(1-s)"),
                SQUARES,
                typeset("n^{s-1}", "n^(s-1)"),
            )
        )
    for reason in sorted(set(missing.values())):
        names = [tensor for tensor, why in missing.items() if why == reason]
        told.append(words(f"{', '.join(names)}: no ratio. {reason[0].upper() + reason[1:]}"))
    return tuple(told)


def _rates(found: Recommendation) -> list[Words]:
    """Learning rates, standard deviations, the largest step."""
    below = typeset(r"n_{\ell-1}", "n_(l-1)")
    return [
        said(
            "{}, {}: every layer's biases, and every layer's weights, contribute {} = {} to the output's NTK, which is "
            "then 1: the equivalence principle solved with the exact recursion of {} at this depth.",
            lambda_b,
            lambda_W,
            typeset("1/(2L)"),
            f"{1 / (2 * found.depth):.4g}",
            THETA,
        ),
        said(
            "{} = {} with hidden width {}{} and {} = {}; the learning rate of a weight is {}/{}, of a bias {}.",
            Verbatim("weight_std"),
            typeset(r"\sqrt{C_W/n_{\ell-1}}", "sqrt(C_W/n_(l-1))"),
            str(found.built_width),
            " (the recommended one)" if found.given_width is None else "",
            typeset("n_0"),
            str(found.inputs),
            typeset(r"\eta \lambda_W", "eta lambda_W"),
            below,
            typeset(r"\eta \lambda_b", "eta lambda_b"),
        ),
        said(
            "{} = {}: gradient descent on {} diverges above {}, for one input; for a data set it is 2 over the largest "
            "eigenvalue of {} ({}).",
            typeset(r"\eta_{\max}", "eta_max"),
            f"{found.eta_max:.4g}",
            typeset(r"\sum (z - y)^2/2", "sum (z - y)^2/2"),
            typeset(r"2/\Theta", "2/Theta"),
            THETA,
            Verbatim("--data"),
        ),
    ]


def _corrections(found: Recommendation, error: float) -> list[Words]:
    source = (
        f"the recursions of one input (brackets to {max(error, 1e-16):.0e})"
        if found.skip is None
        else "the functionals that close for residual layers, one input"
    )
    name, value = found.largest
    regime = " in the NTK parametrization (s = 0)" if found.s else ""
    return [
        said(
            "corrections: n times each dimensionless ratio of the tensors at the output, from {}; the largest "
            "is {} = {}.",
            source,
            name,
            typeset(f"{value:.4g}/n"),
        ),
        words(f"width = {found.width}: no ratio exceeds 10 %{regime}."),
    ]


def _targets(found: Recommendation, targets: float | None) -> Words:
    if targets is None:
        return said(
            "Targets: multiply targets of mean square 1 by {} = {}, the scale of the outputs, PDLT (∞.26); the ratios "
            "with {} assume it.",
            f"{found.target_scale:.4g}",
            typeset(r"\sqrt{K^{(L)}}", "sqrt(K^(L))"),
            SQUARES,
        )
    return said(
        "Targets: their mean square {} per output is compared with {} = {}; rescaling them to it, PDLT (∞.26), makes "
        "the ratios with {} smaller or as small as they can be.",
        f"{targets:.4g}",
        OUTPUT_KERNEL,
        f"{found.output_variance:.4g}",
        SQUARES,
    )


def _aspect_ratio(found: Recommendation) -> Words:
    assert found.aspect_ratio is not None
    slope = found.corrections["V/(n K^2)"] / found.depth
    return said(
        "{} {} = {} (n = {}) maximizes the mutual information of parts of {} output(s): {} with {} = {} at this depth.",
        Verbatim("aspect_ratio"),
        typeset("L/n"),
        f"{found.aspect_ratio:.4g}",
        f"{found.depth / found.aspect_ratio:.0f}",
        str(found.outputs),
        typeset(r"4/((20 + 3 n_L) \nu)", "4/((20 + 3 n_L) nu)"),
        typeset(r"\nu = V/K^2/L", "nu = V/K^2/L"),
        f"{slope:.4g}",
    )
