"""`derive.scale_study`: do learning rates carry over from small to large width? Real networks, trained.

It needs numbers, so it imports `numeric` (and with it jax) when it is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from derive.design.recommendation import recommend
from derive.errors import DeriveError
from derive.layout import Block, Table, Text
from derive.lists import names, whole_numbers
from derive.results import TableResult
from derive.verbs.data import named

DATA_SETS = 4


@dataclass(frozen=True)
class ScaleEntry:
    """One parametrization and width; losses belong to the study's learning rates, None where training diverged.

    `optimum` is the best power to a fraction, by a parabola through the smallest losses.
    """

    parametrization: str
    width: int
    best_power: int | None
    optimum: float | None
    optimum_error: float | None
    losses: tuple[float | None, ...]
    ntk_change: float | None
    hidden_change: float | None
    output_change: float | None


@dataclass(frozen=True)
class ScaleResult(TableResult):
    """The best learning rate, 2^power eta_0, and the coordinates' movement against width."""

    activation: str
    depth: int
    powers: tuple[int, ...]
    entries: tuple[ScaleEntry, ...]
    files: Mapping[str, str]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        rows = [{**vars(entry), "losses": list(entry.losses)} for entry in self.entries]
        return {
            "activation": self.activation,
            "depth": self.depth,
            "powers": list(self.powers),
            "rows": rows,
            "files": dict(self.files),
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, object]]:
        """One row a parametrization, width and learning rate."""
        return [
            {"parametrization": e.parametrization, "width": e.width, "power": power, "loss": loss}
            for e in self.entries
            for power, loss in zip(self.powers, e.losses)
        ]

    def blocks(self) -> tuple[Block, ...]:
        header = ("parametrization", "width", "best rate", "loss there", "NTK moves", "hidden move", "outputs move")
        rows = []
        for e in self.entries:
            best = "–" if e.best_power is None else f"$2^{{{_with_error(e.optimum, e.optimum_error)}}}\\eta_0$"
            loss = "–" if e.best_power is None else _short(e.losses[self.powers.index(e.best_power)])
            moves = (_short(x) for x in (e.ntk_change, e.hidden_change, e.output_change))
            rows.append((e.parametrization, str(e.width), best, loss, *moves))
        return (Table(header, tuple(rows), f"{self.activation}, depth {self.depth}"), *map(Text, self.notes))


def _with_error(value: float | None, error: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if not error else f"{value:.2f} ± {error:.2f}"


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def scale_study(
    activation: str,
    widths: str | Iterable[int] = "64,128,256,512",
    depth: int = 3,
    s: str | Iterable[str] = "1,standard",
    networks: int = 8,
    steps: int = 30,
    powers: str | Iterable[int] = "-4,-3,-2,-1,0,1,2",
    seed: int = 0,
    output: str | Path = "scale-study",
    progress: Callable[[int, int, str], None] | None = None,
) -> ScaleResult:
    """Train networks of several widths at several learning rates: the best rate and a coordinate check against width.

    `s` lists parametrizations, numbers from 0 (NTK) to 1 (maximal update) and "standard"; learning rates are 2^k eta_0
    for k in `powers`, eta_0 = 1/(largest eigenvalue of Theta). Every two networks have a data set of their own, up to
    four. Finished widths are kept in the folder `output`; the same call goes on where it stopped. `progress` is called
    with what is done, how much there is, and the last one.
    """
    chosen = tuple(sorted(set(whole_numbers(widths, "--widths", 2))))
    grid = tuple(sorted(set(whole_numbers(powers, "--powers", -30))))
    schemes = tuple(_scheme(text) for text in (names(s) if isinstance(s, str) else tuple(map(str, s))))
    found = recommend(named(activation), depth)
    from numeric.studies.figures import scale_figure
    from numeric.studies.scale import ScaleRecord, ScaleStudy, run_scale, summarize_scale

    bias, weight = float(found.C_b), float(found.C_W)
    study = ScaleStudy(
        *(found.activation, schemes, chosen, depth, networks, steps, grid, bias, weight),
        *(found.lambda_b, found.lambda_W, found.input_norm),
        target=found.target_scale,
        seed=seed,
        data_sets=max(1, min(DATA_SETS, networks // 2)),
    )
    record = ScaleRecord(study, Path(output))
    total = len(schemes) * len(chosen)
    for rows in run_scale(study, record.done):
        record.add(rows)
        if progress is not None:
            progress(
                len({(r.scheme, r.width) for r in record.wanted}), total, f"{rows[0].scheme}, width {rows[0].width}"
            )
    summaries = summarize_scale(study, record.wanted)
    scale_figure(summaries, grid, f"{found.activation}, depth {depth}", record.figure)
    entries = tuple(
        ScaleEntry(
            x.scheme if x.scheme == "standard" else f"s = {float(x.scheme):g}",
            x.width,
            x.best_power,
            _finite(x.optimum),
            _finite(x.optimum_error),
            tuple(_finite(loss) for loss in x.losses),
            _finite(x.ntk_change),
            _finite(x.hidden_change),
            _finite(x.output_change),
        )
        for x in summaries
    )
    files = {"csv": str(record.csv), "settings": str(record.settings), "figure": str(record.figure)}
    return ScaleResult(found.activation, depth, grid, entries, files, _notes(entries, grid))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _scheme(text: str) -> float | str:
    if text.strip() == "standard":
        return "standard"
    try:
        return float(text)
    except ValueError:
        raise DeriveError(f"--s lists numbers from 0 to 1 and 'standard', not {text!r}.") from None


def _notes(entries: tuple[ScaleEntry, ...], powers: tuple[int, ...]) -> tuple[str, ...]:
    notes = []
    for name in dict.fromkeys(e.parametrization for e in entries):
        own = [e for e in entries if e.parametrization == name and e.best_power is not None]
        if own:
            best = [e.best_power for e in own if e.best_power is not None]
            last = ", ".join(f"{_with_error(e.optimum, e.optimum_error)} at {e.width}" for e in own)
            edge = " (at the edge of --powers: widen it)" if {powers[0], powers[-1]} & set(best) else ""
            notes.append(
                f"{name}: the best learning rate moves by a factor 2^{max(best) - min(best)} over these widths{edge}; "
                f"k = {last}."
            )
    notes.append("Movements are rms changes in training at the second smallest learning rate.")
    return tuple(notes)
