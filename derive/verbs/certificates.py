"""`derive.certify`: what is proved about the critical points of an activation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.certificates import Findings, Interval, certify_points
from derive.errors import DeriveError
from derive.layout import Block, Table, Text
from derive.notation import K_STAR
from derive.results import Result
from derive.steps import Verbatim, Words, listed, said
from derive.symbols import C_W, C_b, K

FEWEST, MOST = 5, 100


@dataclass(frozen=True)
class Certificate(Result):
    """Intervals that contain the critical points, and intervals of K that contain none."""

    activation: Activation
    digits: int
    findings: Findings

    @property
    def proved(self) -> bool:
        """Whether nothing was left open from K = 0 to the largest K."""
        return self.findings.proved

    @property
    def sentence(self) -> str:
        """What is proved, in one sentence: a report's "Proved" line."""
        none = " and ".join(f"{low[:14]} < K < {high[:14]}" for low, high in self.findings.none_between)
        points = len(self.findings.points)
        count = {0: "no critical point", 1: "one critical point"}.get(points, f"{points} critical points")
        return f"{count}, enclosed to {self.digits} digits; no other one for {none}" if none else count

    def to_json(self) -> dict[str, object]:
        return {
            "activation": self.activation.name,
            "proved": self.findings.proved,
            "points": [
                {
                    "K_star": list(point.K_star),
                    "C_W": list(point.C_W),
                    "C_b": list(point.C_b),
                    "class": point.universality_class,
                }
                for point in self.findings.points
            ],
            "none_between": [list(interval) for interval in self.findings.none_between],
            "reason": self.findings.reason,
        }

    def blocks(self) -> tuple[Block, ...]:
        rows = tuple(
            (_span(point.K_star), _span(point.C_W), _span(point.C_b), point.universality_class)
            for point in self.findings.points
        )
        none = listed((_span(interval) for interval in self.findings.none_between), "; ")
        blocks: list[Block] = [Table((*(said("{}", s) for s in (K_STAR, C_W, C_b)), "class"), rows)] if rows else []
        if none:
            blocks.append(Text(said("No critical point for {} strictly inside {}.", K, none)))
        return (*blocks, Text(self.findings.reason))


def _span(interval: Interval) -> Words:
    low, high = interval
    return Words(Verbatim(low)) if low == high else Words("[", Verbatim(low), ", ", Verbatim(high), "]")


def certify(activation: str | sp.Expr | Activation, digits: int = 30) -> Certificate:
    """Prove existence and local uniqueness of the critical points, and that there are no others up to K = 1000.

    >>> certify("relu").to_json()["points"][0]["C_W"]
    ['2', '2']
    """
    if isinstance(digits, bool) or not isinstance(digits, int) or not FEWEST <= digits <= MOST:
        raise DeriveError(f"A certificate has from {FEWEST} to {MOST} digits.")
    return _certify(make_activation(activation), digits)


@lru_cache(maxsize=64)
def _certify(activation: Activation, digits: int) -> Certificate:
    return Certificate(activation, digits, certify_points(activation, digits))
