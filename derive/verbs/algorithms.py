"""`derive.projectors`: the six algorithm projectors of a training algorithm, as a table and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import sympy as sp

from derive.errors import DeriveError
from derive.layout import Block, Equation, Text
from derive.results import TableResult, table_of
from derive.training import table
from derive.training.projectors import GradientDescent, GradientFlow, NewtonStep, Rule
from derive.verbs.data import decimals, make_algorithm

RULES: dict[str, Rule] = {
    "descent": GradientDescent(),
    "flow": GradientFlow(),
    "newton": NewtonStep(),
    "two-step": NewtonStep(),
}
"""Algorithms whose projectors have a closed form."""
MOST = 12
"""How many eigenvalues a table may have."""


@dataclass(frozen=True)
class ProjectorTable(TableResult):
    """Each projector for all tuples of training modes, in the order of its subscripts; the closed forms where known.

    `single` are h² or h³ times the projectors of one training input, functions of x = η h; `edge` their leading terms
    as η → 2/h (descent only).
    """

    algorithm: str
    eigenvalues: tuple[float, ...]
    time: float | None
    values: Mapping[str, list]
    single: Mapping[str, sp.Expr]
    edge: Mapping[str, sp.Expr]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "algorithm": self.algorithm,
            "eigenvalues": list(self.eigenvalues),
            "time": self.time,
            "projectors": dict(self.values),
            "single_input": {name: str(value) for name, value in self.single.items()},
            "edge_of_stability": {name: str(value) for name, value in self.edge.items()},
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, float | int | str | None]]:
        """One row a projector and tuple of modes."""
        import numpy as np

        found: list[dict[str, float | int | str | None]] = []
        for name, values in self.values.items():
            array = np.asarray(values)
            for index in np.ndindex(array.shape):
                modes: list[float | None] = [self.eigenvalues[k] for k in index] + [None] * (3 - len(index))
                found.append(
                    {"projector": name, **dict(zip(("h_a", "h_b", "h_c"), modes)), "value": float(array[index])}
                )
        return found

    def blocks(self) -> tuple[Block, ...]:
        closed = [Equation(rf"{name}\,h^{table.POWERS[name]} = {sp.latex(z)}") for name, z in self.single.items()]
        return (*closed, *table_of(self.rows()), *map(Text, self.notes))


def projectors(
    algorithm: str = "descent",
    eta: float | str | Iterable[float] | None = None,
    eigenvalues: str | Iterable[float] = "1",
    momentum: float = 0.9,
    kappa: str | None = None,
    time: float | None = None,
    plot: str | Path | None = None,
) -> ProjectorTable:
    """The projectors Z_A … Z_IIB of an algorithm over the given eigenvalues of the training NTK.

    They are what of the algorithm is left in the trained network at order 1/n: at the end of training, or after `time`.
    `plot` draws them against the eigenvalue into a PNG file.

    >>> found = projectors("flow", eigenvalues="2")
    >>> found.values["Z_A"], str(found.single["Z_IIB"])
    ([[0.125]], '-1/2')
    """
    h = decimals(eigenvalues, "--eigenvalues")
    if min(h) <= 0 or len(h) > MOST:
        raise DeriveError(f"--eigenvalues takes up to {MOST} positive numbers.")
    import numpy as np

    from numeric.trained.projectors import Projectors
    from numeric.trained.signals import check_time

    if algorithm == "stochastic":
        raise DeriveError("A schedule of batches mixes the modes: it has no projectors of them.")
    rule = make_algorithm(algorithm, eta, momentum, kappa=kappa)
    when = check_time(rule, time)
    if when is None:
        rule.check(np.array(h))
    found = Projectors(rule, np.array(h), when)
    values = {name: getattr(found, name).tolist() for name in table.POWERS}
    single = table.single_input(RULES[algorithm]) if algorithm in RULES and time is None else {}
    edge = table.edge_of_stability() if algorithm == "descent" and time is None else {}
    notes = ["Z_B and Z_IB are those of every algorithm that reaches its targets, at the end of training."]
    if plot is not None:
        from numeric.studies.figures import projector_figure

        projector_figure(rule, np.array(h), when, Path(plot))
    return ProjectorTable(algorithm, h, time, values, single, edge, tuple(notes))
