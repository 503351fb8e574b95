"""The largest |sigma^(k)| on the whole line, proved: interval arithmetic inside, the formula's own bounds far out.

Each analytic piece is cut into boxes. On a box of centre m the function lies in f(m) + f'(box) (box - m), of second
order in the box's width, and boxes that cannot hold the maximum are dropped. Beyond a start R the bounds of
`derive.activations.growth` take over, which hold for all z; where the maximum is far inside, both ends agree to 1e-12.
"""

from __future__ import annotations

import heapq
import math

import sympy as sp

from derive.activations.definition import Activation, activation
from derive.activations.growth import starts_from, tail
from derive.activations.intervals import Interval, add, enclosure, multiply, widen
from derive.errors import DeriveError
from derive.symbols import z

MAX_BOXES = 5_000
ACCURACY = 1e-12


def supremum(sigma: str | sp.Expr | Activation, order: int = 0) -> tuple[float, float]:
    """(lower, upper) with lower <= sup |sigma^(order)| <= upper; refused where no bound can be proved.

    >>> low, high = supremum("tanh", 2)
    >>> low <= 4 / 27**0.5 <= high and high - low < 1e-11
    True
    """
    function = activation(sigma)
    if function.deltas(order):
        raise DeriveError(f"{function.name} has a kink: no constant bounds its derivative of order {order}.")
    kinks = [float(k) for k in function.kinks]
    pieces, slopes = function.derivative_pieces(order), function.derivative_pieces(order + 1)
    if not any(pieces):
        return 0.0, 0.0
    written = [_factored(piece) for piece in pieces]
    best: tuple[float, float] | None = None
    for start in starts_from(max([abs(k) for k in kinks], default=0.0) + 1.0):
        far = [_tail(forms, side, start) for forms, side in ((written[0], -1), (written[-1], 1))]
        bounds = [bound for bound in far if bound is not None]
        if len(bounds) < 2:
            continue
        edges = [-start, *kinks, start]
        found = [_inside(f[-1], slope, a, b) for f, slope, a, b in zip(written, slopes, edges, edges[1:])]
        lower, upper = max(low for low, _ in found), max(*(high for _, high in found), *bounds)
        best = (lower, upper) if best is None or upper < best[1] else best
        if max(bounds) <= max(high for _, high in found):
            break
    if best is None:
        raise DeriveError(
            f"No bound on the derivative of order {order} of {function.name} can be proved: it may grow without bound."
        )
    return best


def _factored(piece: sp.Expr) -> tuple[sp.Expr, ...]:
    """A formula as it stands, and factored, where cancellations are often gone."""
    return (piece, sp.factor(piece)) if piece.has(z) else (piece,)


def _tail(forms: tuple[sp.Expr, ...], side: int, start: float) -> float | None:
    """A bound on the size of a function for side * z >= start, given in several forms; None where none is known."""
    if forms[0] == 0:
        return 0.0
    found = []
    for form in forms:
        bound = tail(form, side, start).above
        if bound is not None and bound.falls(start):
            found.append(math.exp(bound.at(start)) * (1 + 1e-13) if math.isfinite(bound.c) else 0.0)
    return min(found, default=None)


def _inside(f: sp.Expr, slope: sp.Expr, left: float, right: float) -> tuple[float, float]:
    """Bounds on the largest |f| between two places, to ACCURACY unless the boxes run out."""
    value, derivative = enclosure(f), enclosure(slope)

    def size(box: Interval) -> tuple[float, float]:
        middle = (box[0] + box[1]) / 2
        centre = value({z: widen(middle, middle)})
        plain = value({z: box})
        offset = widen(box[0] - middle, box[1] - middle)
        second = add(centre, multiply(derivative({z: box}), offset))
        low, high = max(plain[0], second[0]), min(plain[1], second[1])
        if not (math.isfinite(low) and math.isfinite(high)):
            low, high = plain
        at = 0.0 if centre[0] <= 0 <= centre[1] else min(abs(centre[0]), abs(centre[1]))
        return at, max(abs(low), abs(high))

    best, most = size((left, right))
    if not f.has(z):
        return best, most
    heap = [(-most, left, right)]
    done = 0.0  # boxes of a float's width
    for _ in range(MAX_BOXES):
        if not heap or -heap[0][0] <= max(best * (1 + ACCURACY), done):
            break
        _, a, b = heapq.heappop(heap)
        middle = (a + b) / 2
        for box in ((a, middle), (middle, b)):
            if not box[0] < (box[0] + box[1]) / 2 < box[1]:
                done = max(done, size(box)[1])
                continue
            at, most = size(box)
            best = max(best, at)
            if most > best:
                heapq.heappush(heap, (-most, *box))
    return best, max(best * (1 + ACCURACY), done, -heap[0][0] if heap else 0.0)
