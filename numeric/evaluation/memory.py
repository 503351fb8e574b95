"""How much memory a flow needs, and how many rows of its tensors fit into a budget at a time.

Counted are tensors of all layers that are held, the unique quadruples with what their evaluation takes, the temporaries
of one block of rows (numbers an entry, measured from compiled programs and rounded up), and the programs themselves.
What Python and JAX take before anything is computed, and the compiler when it runs, comes on top: some 0.4 GB.
"""

from __future__ import annotations

from dataclasses import dataclass

from numeric.errors import NumericError

WHOLE = 6  # numbers per entry of a four-point tensor that a step in one go holds: brackets laid out, transposes
BLOCK = 10  # the same per entry of a block of rows
PLANNING = 700  # bytes per unique quadruple while a plan is made or the brackets are evaluated, beside the result
PROGRAMS = 2.5e8  # bytes of compiled programs, one chunk of nodes and what the allocator keeps, whatever the size


@dataclass(frozen=True)
class Needs:
    """What a flow holds, in bytes."""

    size: int  # inputs
    layer: float  # all tensors of one layer
    layers: int  # layers that exist at the same time at the worst moment
    quadruples: float  # the unique brackets
    evaluation: float  # what making them takes, on all devices of this process
    programs: float  # a constant
    row: float  # one row (a fixed) of a four-point tensor

    def total(self, rows: int) -> float:
        """The peak when `rows` rows are computed at a time."""
        temporaries = self.row * (WHOLE * self.size if rows >= self.size else BLOCK * rows)
        return self.held() + max(self.layer + temporaries, self.evaluation)

    def held(self) -> float:
        """What is there before the tensors of the next layer are."""
        return (self.layers - 1) * self.layer + self.quadruples + self.programs


def needs(size: int, ranks: list[int], components: int, kept: set[int], depth: int, entry: int, devices: int) -> Needs:
    """`ranks` of the tensors of a layer, `components` stored for a unique quadruple, `entry` bytes a number."""
    count = size * (size + 1) * (size + 2) * (size + 3) // 24 if components else 0
    layers = len(kept | {depth, depth - 1}) if depth > 1 else 1
    evaluation = devices * count * (PLANNING + entry * components)
    layer = float(sum(entry * size**rank for rank in ranks))
    row = float(entry * size**3) if 4 in ranks else 12.0 * entry * size
    return Needs(
        size, layer, layers, float(count * components * entry), float(evaluation), PROGRAMS if components else 0.0, row
    )


def rows_within(need: Needs, memory: float) -> int:
    """How many rows of the tensors to compute at a time: all if they fit, at least one, or one clear sentence."""
    if need.total(need.size) <= memory:
        return need.size
    if need.total(1) > memory:
        hint = 'layers="last", ' if need.layers > 2 else ""
        raise NumericError(
            f"{need.size} inputs and these tensors need about {_shown(need.total(1))} GB even row by row, more than "
            f"memory={_shown(memory)} GB; use {hint}fewer inputs or tensors, or raise memory."
        )
    free = memory - need.held() - need.layer
    return max(1, min(int(free / (BLOCK * need.row)), need.size - 1))


def threads_within(need: Needs, memory: float, most: int) -> int:
    """How many threads may fill a copy of the unique quadruples each: as many as `most` and the budget allow."""
    free = memory - need.held() - need.evaluation
    return max(1, min(most, 1 + int(free / max(need.quadruples, 1.0))))


def _shown(number: float) -> str:
    """Bytes in GB, two digits or whole numbers."""
    return f"{number / 1e9:.2g}" if number < 1e11 else f"{number / 1e9:.0f}"
