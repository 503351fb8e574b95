"""What the explorer's page shows, part by part, as JSON: each part is a function of the question.

A part is asked for by its name; `answer` is all that a worker does. Answers about the activation alone are kept in the
disk cache, those that sliders change are computed anew: the recursions of one input, milliseconds a layer.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from derive.activations import Activation
from derive.activations import activation as read
from derive.activations.builtin import BUILTIN
from derive.activations.sampled import HIGHEST, sampled
from derive.cache import recall
from derive.critical import criticality
from derive.critical.phase_diagram import PHASES, phase_diagram
from derive.depth import exponents
from derive.depth.ratios import CONTENT, kernel_powers, ratio_name
from derive.design.initialization import initialization
from derive.design.one_input import OneInput, one_input
from derive.design.recommendation import recommend
from derive.errors import DeriveError
from derive.explorer.mathml import mathml, tensor_mathml
from derive.given import not_negative
from derive.reports.tex import brief

DEEPEST = 1000
"""Layers that the page can ask for; the slider ends earlier."""
WIDEST = 10**9
Json = dict[str, Any]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Question:
    """What is typed and slid; without C_b and C_W it is about the recommended initialization."""

    activation: str
    depth: int = 16
    C_b: float | None = None
    C_W: float | None = None
    input_norm: float | None = None

    @staticmethod
    def of(given: Mapping[str, str]) -> Question:
        """From the texts of an address; DeriveError for what cannot be meant."""
        text = given.get("activation", "")
        if not text.strip():
            raise DeriveError("Type an activation: a name such as gelu, or a formula in z such as z*tanh(z).")
        depth = given.get("depth", "16")
        if not (depth.isascii() and depth.isdigit() and len(depth) < 8 and 1 <= int(depth) <= DEEPEST):
            raise DeriveError(f"The depth is a whole number from 1 to {DEEPEST}.")
        numbers = {name: _number(given[name], name) for name in ("C_b", "C_W", "input_norm") if given.get(name)}
        if ("C_b" in numbers) != ("C_W" in numbers):
            raise DeriveError("Give both C_b and C_W, or none.")
        return Question(text, int(depth), **numbers)


def _number(text: str, name: str) -> float:
    if len(text) > 60:
        raise DeriveError(f"{name} is a number, not a text of {len(text)} letters.")
    value = float(not_negative(text, name))
    if not value <= 1e6:
        raise DeriveError(f"{name} is a number up to a million.")
    return value


def answer(part: str, question: Question, progress: Progress = lambda step: None) -> Json:
    """One part of the answer; DeriveError where it cannot be had."""
    if part not in PARTS:
        raise DeriveError(f"The page has no part {part[:40]!r}.")
    progress("reading the formula")
    sigma = read(question.activation)
    told, compute = PARTS[part]
    progress(told)
    if part in ("depth", "report"):
        return compute(sigma, question, progress)
    key = {"activation": sigma.name, "depth": question.depth if part == "recommendation" else None}
    return recall(f"explorer: {part}", key, lambda: compute(sigma, question, progress))


def _activation(sigma: Activation, question: Question, progress: Progress) -> Json:
    points = np.linspace(-4, 4, 161)
    return {
        "name": sigma.name,
        "builtin": sigma.name in BUILTIN,
        "formula": mathml(sigma.expression),
        "z": _plain(points),
        "curves": [_plain(np.clip(sampled(sigma, order, points), -HIGHEST, HIGHEST)) for order in range(3)],
    }


def _criticality(sigma: Activation, question: Question, progress: Progress) -> Json:
    found = criticality(sigma)
    points = [
        {
            "K_star": None if p.K_star.free_symbols else float(p.K_star),
            "C_W": float(p.C_W),
            "C_b": float(p.C_b),
            "shown": [mathml(brief(x).sides[0], 6) for x in (p.K_star, p.C_W, p.C_b)],
            "stability": p.stability,
        }
        for p in found.points
    ]
    return {"class": found.universality_class, "reason": str(found.reason), "points": points}


def _phase(sigma: Activation, question: Question, progress: Progress) -> Json:
    found = phase_diagram(criticality(sigma), columns=120, rows=80)
    return {
        "names": list(PHASES),
        "right": found.right,
        "top": found.top,
        "rows": ["".join(map(str, row)) for row in found.phase.tolist()],
        "lines": {"chi_perp": _pairs(found.perpendicular), "chi_parallel": _pairs(found.parallel)},
        "points": [list(point) for point in found.points],
    }


def _pairs(line: np.ndarray) -> list[list[float] | None]:
    """The line's points; None where it has a gap."""
    return [None if math.isnan(w) else [_digits(w), _digits(b)] for w, b in line.T.tolist()]


def _depth(sigma: Activation, question: Question, progress: Progress) -> Json:
    bias, weight, norm = question.C_b, question.C_W, question.input_norm
    if bias is None or weight is None:
        start = initialization(sigma, question.depth, norm)
        bias, weight, norm = float(start.C_b), float(start.C_W), start.input_norm
    flow = one_input(sigma, question.depth, bias, weight, 1.0 if norm is None else norm)
    return {
        "C_b": bias,
        "C_W": weight,
        "input_norm": flow.input_norm,
        "K": _plain(flow.tensors["K"]),
        "Theta": _plain(flow.tensors["Theta"]),
        "G1": _plain(flow.tensors["G1"]) if "G1" in flow.tensors else None,
        "V": _plain(flow.tensors["V"]) if "V" in flow.tensors else None,
        "chi_perp": _plain(flow.multipliers),
        "ratios": {ratio_name(name): own for name, own in ratios(flow).items()},
        "missing": dict(flow.missing),
    }


def ratios(flow: OneInput) -> dict[str, list[float | None]]:
    """n times each dimensionless ratio at every layer."""
    found = {}
    kernel, theta = np.array(flow.tensors["K"]), np.array(flow.tensors["Theta"])
    for name in CONTENT:
        if name in flow.tensors:
            k, t = kernel_powers(name)
            with np.errstate(all="ignore"):
                found[name] = _plain(np.array(flow.tensors[name]) * kernel**-k / theta**t)
    return found


def _exponents(sigma: Activation, question: Question, progress: Progress) -> Json:
    table = exponents(sigma)
    shown = table.plateau if table.plateau is not None else table
    rows = [
        {
            "tensor": tensor_mathml(name),
            "name": name,
            "behaves": mathml(tensor.leading, 6) if tensor.exists else None,
            "reason": tensor.reason,
        }
        for name, tensor in shown.tensors.items()
    ]
    return {
        "plateau": table.plateau is not None,
        "p_perp": None if table.p_perp is None else mathml(table.p_perp, 6),
        "rows": rows,
        "notes": [str(note) for note in shown.notes],
    }


def _recommendation(sigma: Activation, question: Question, progress: Progress) -> Json:
    found = recommend(sigma, question.depth).to_json()
    kept = ("activation", "class", "depth", "C_b", "C_W", "input_norm", "lambda_b", "lambda_W", "bias_std", "eta_max")
    more = ("target_scale", "corrections", "largest", "width", "aspect_ratio", "critical", "notes")
    return {name: found[name] for name in (*kept, *more)}


def _report(sigma: Activation, question: Question, progress: Progress) -> Json:
    from derive.reports.build import build_reports

    with tempfile.TemporaryDirectory() as folder:
        (file,) = build_reports([sigma.name], Path(folder), ("html",), lambda name, step: progress(f"report: {step}"))
        return {"name": file.name, "html": file.read_text(encoding="utf-8")}


PARTS: Mapping[str, tuple[str, Callable[[Activation, Question, Progress], Json]]] = {
    "activation": ("drawing the activation", _activation),
    "depth": ("iterating the recursions through the layers", _depth),
    "criticality": ("looking for critical points", _criticality),
    "phase": ("drawing the phase diagram", _phase),
    "recommendation": ("recommending a network", _recommendation),
    "exponents": ("solving for large depth", _exponents),
    "report": ("writing the report", _report),
}
"""Every part with what is said while it is computed, in the order in which a page wants them."""


def _plain(values: Any) -> list[float | None]:
    """Numbers with the digits that a picture needs; what is not finite is None, since JSON has no NaN."""
    return [_digits(float(x)) if math.isfinite(float(x)) else None for x in values]


def _digits(value: float) -> float:
    return float(f"{value:.8g}")
