r"""All zeros of <f>_K in a range of K, none missed: isolation of roots with a bound on the second derivative.

Gaussian averages are sums over one graded Gauss-Legendre grid in z, refined until f is resolved. In t = log K the
average is differentiated without differentiating f: d/dt <f> = <P1 f>, d^2/dt^2 <f> = <P2 f> with P1 = (x^2 - 1)/2,
P2 = (x^2 - 1)^2/4 - x^2/2, x = z/sqrt(K). On a cell [K0, K1] the density obeys phi_K <= sqrt(K1/K0) phi_K1, which
bounds |d^2/dt^2 <f>| there by sqrt(K1/K0) <max|P2| |f|>_K1. A cell is settled when value, slope and this bound prove
that it holds no zero or exactly one; otherwise it is halved. Double precision; the zeros are refined elsewhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import mpmath
import numpy as np
import sympy as sp

from derive.activations import Activation
from derive.activations.features import features
from derive.symbols import z

LOWEST, HIGHEST = 1e-8, 1e3
MAX_CELLS = 6000
SMALLEST_CELL = 1e-7
_ROUNDING = 1e-12

Array = np.ndarray
Function = Callable[[Array], Array]


def evaluator(expression: sp.Expr) -> Function:
    """A float64 function of an array of z: numpy, and mpmath at the points where numpy overflows."""
    erf = np.vectorize(math.erf, otypes=[float])
    fast = sp.lambdify(z, expression, modules=[{"erf": erf}, "numpy"])
    slow = sp.lambdify(z, expression, modules="mpmath")

    def evaluate(points: Array) -> Array:
        with np.errstate(all="ignore"):
            values = np.array(np.broadcast_to(np.asarray(fast(points), dtype=float), points.shape))
        for index in np.flatnonzero(~np.isfinite(values)):
            values[index] = _slowly(slow, float(points[index]))
        return values

    return evaluate


def _slowly(function: Callable[[mpmath.mpf], mpmath.mpf], point: float) -> float:
    """By mpmath, with digits enough that a difference such as log(1 + exp(-|z|)) does not vanish; infinite at worst."""
    for digits in (20, 40 + int(min(abs(point), 2000))):
        with mpmath.workdps(digits):
            try:
                return float(mpmath.mpf(function(mpmath.mpf(point))))
            except (ZeroDivisionError, ValueError):
                continue
            except (OverflowError, TypeError):
                break
    return math.inf


@dataclass
class Integrand:
    """f(z), piecewise analytic plus delta functions `spikes` [(place, weight)], folded onto z > 0: f(z) + f(-z)."""

    pieces: Sequence[sp.Expr]
    kinks: Sequence[sp.Expr]
    spikes: Sequence[tuple[float, float]] = ()
    lowest: float = LOWEST
    magnitudes: Sequence[sp.Expr] | None = None
    """What is added up to f, where that is larger than |f|: rounding errors are measured by it."""
    nodes: Array = field(init=False)
    weighted: Array = field(init=False)
    sizes: Array = field(init=False)
    reach: float = field(init=False)

    def __post_init__(self) -> None:
        borders = np.array([float(kink) for kink in self.kinks])
        f = _piecewise(self.pieces, borders)
        size = _piecewise(self.magnitudes, borders) if self.magnitudes else lambda points: np.abs(f(points))
        limit = 25 * math.sqrt(HIGHEST)
        cuts = np.abs([*borders, *(x for piece in self.pieces for x in _cuts(piece))])
        panels = _refined(f, size, _panels(cuts, math.sqrt(self.lowest) / 10, limit))
        nodes, weights = _nodes(panels)
        right, left = f(nodes), f(-nodes)
        sizes = size(nodes) + size(-nodes)
        self.reach = float(np.min(nodes[~(sizes < 1e280)], initial=limit))
        inside = nodes < self.reach
        self.nodes = nodes[inside]
        self.weighted, self.sizes = (weights * (right + left))[inside], (weights * sizes)[inside]

    @cached_property
    def identically_zero(self) -> bool:
        return not self.sizes.any() and not any(weight for _, weight in self.spikes)

    @cached_property
    def highest(self) -> float:
        """The largest K up to HIGHEST whose Gaussian average does not need f beyond the range of doubles."""
        kernel = HIGHEST
        edge = self.nodes > 0.95 * self.nodes.max()
        while kernel > 1e-3:
            terms = self.sizes * self._density(kernel)
            if terms[edge].sum() <= 1e-16 * terms.sum():
                break
            kernel /= 1.1
        return kernel

    def _density(self, kernel: float) -> Array:
        return np.exp(-(self.nodes**2) / (2 * kernel)) / math.sqrt(2 * math.pi * kernel)

    def value_and_slope(self, t: float) -> tuple[float, float, float]:
        """<f>, d<f>/dt and <|f|> at K = e^t."""
        kernel = math.exp(t)
        density = self._density(kernel)
        terms = self.weighted * density
        slope = terms @ ((self.nodes**2 / kernel - 1) / 2)
        total, size = terms.sum(), self.sizes @ density
        for place, weight in self.spikes:
            u = place**2 / kernel
            spike = weight * math.exp(-u / 2) / math.sqrt(2 * math.pi * kernel)
            total, slope, size = total + spike, slope + spike * (u - 1) / 2, size + abs(spike)
        return float(total), float(slope), float(size)

    def curvature_bound(self, low: float, high: float) -> float:
        """An upper bound of |d^2 <f>/dt^2| for t in [low, high]."""
        k0, k1 = math.exp(low), math.exp(high)
        bound = np.abs(self.weighted) * self._density(k1) @ _p2_bound(self.nodes**2 / k1, self.nodes**2 / k0)
        for place, weight in self.spikes:
            u0, u1 = place**2 / k1, place**2 / k0
            density = math.exp(-u0 / 2) / math.sqrt(2 * math.pi * k1)
            bound += abs(weight) * density * float(_p2_bound(np.array(u0), np.array(u1)))
        return float(bound) * math.sqrt(k1 / k0)


def _piecewise(pieces: Sequence[sp.Expr], borders: Array) -> Function:
    functions = [evaluator(piece) for piece in pieces]

    def f(points: Array) -> Array:
        which = np.searchsorted(borders, points, side="right")
        values = np.empty_like(points)
        for index, function in enumerate(functions):
            chosen = which == index
            if chosen.any():
                values[chosen] = function(points[chosen])
        return values

    return f


def _p2_bound(u0: Array, u1: Array) -> Array:
    """max |u^2/4 - u + 1/4| for u in [u0, u1]: at the ends, or 3/4 at u = 2."""
    ends = np.maximum(np.abs(u0**2 / 4 - u0 + 0.25), np.abs(u1**2 / 4 - u1 + 0.25))
    return np.where((u0 <= 2) & (u1 >= 2), np.maximum(ends, 0.75), ends)


_GAUSS = np.polynomial.legendre.leggauss(20)


def _nodes(panels: Array) -> tuple[Array, Array]:
    x, w = _GAUSS
    middle, half = panels.mean(axis=1)[:, None], np.diff(panels, axis=1) / 2
    return (middle + half * x).ravel(), (half * w).ravel()


def _cuts(piece: sp.Expr) -> list[float]:
    """Around each fast feature of a piece, panels of its own width."""
    return [place + side * 8 / rate for place, rate in features(piece) if rate > 4 for side in (-1, 0, 1)]


def _panels(borders: Array, smallest: float, limit: float) -> Array:
    """Panels graded geometrically towards 0 (so that the Gaussian of every K is resolved), cut at the kinks."""
    grades = smallest * 1.4 ** np.arange(math.ceil(math.log(limit / smallest) / math.log(1.4)))
    positive = [*(float(g) for g in grades if g < limit), limit]
    edges = sorted({0.0, *positive, *(b for b in borders if b < limit)})
    return np.array(list(itertools.pairwise(edges)))


def _refined(f: Function, size: Function, panels: Array) -> Array:
    """Halve panels until Gauss-Legendre on a panel agrees with the same on its halves, or only rounding is left."""
    done: list[Array] = []
    inner: list[tuple[Array, Array]] = []
    before = np.full(len(panels), np.inf)
    for _ in range(12):
        halves = np.stack([panels[:, 0], panels.mean(axis=1), panels[:, 1]], axis=1)
        left, right = halves[:, :2], halves[:, 1:]
        sums, sizes = zip(*(_panel_sums(f, size, part) for part in (panels, left, right)))
        with np.errstate(invalid="ignore"):
            error = np.abs(sums[0] - sums[1] - sums[2])
            wrong = (error > 1e-12 * sizes[0]) & (error > 1e-13 * _inner_size(panels, sizes[0], inner))
            wrong &= np.isfinite(sizes[0]) & (sizes[0] > 1e-250)
            wrong &= ~((error < 1e-6 * sizes[0]) & (error > before / 16))
        done.append(panels[~wrong])
        if not wrong.any():
            break
        panels, before = np.concatenate([left[wrong], right[wrong]]), np.tile(error[wrong], 2)
    else:
        done.append(panels)
    return np.concatenate(done)


def _inner_size(panels: Array, sizes: Array, earlier: list[tuple[Array, Array]]) -> Array:
    """The largest panel sum of |f| nearer to the origin: a Gaussian weighs that more, so errors are measured by it."""
    if not earlier:
        earlier.append((panels[:, 0], np.maximum.accumulate(np.nan_to_num(sizes, posinf=1e300))))
    distance, largest = earlier[0]
    return largest[np.searchsorted(distance, panels[:, 0], side="right") - 1]


def _panel_sums(f: Function, size: Function, panels: Array) -> tuple[Array, Array]:
    nodes, weights = _nodes(panels)
    folded = (weights * (f(nodes) + f(-nodes))).reshape(len(panels), -1)
    sizes = (weights * (size(nodes) + size(-nodes))).reshape(len(panels), -1)
    return folded.sum(axis=1), sizes.sum(axis=1)


@dataclass(frozen=True)
class Isolation:
    """Cells of K that hold exactly one zero each, cells that could not be settled, the signs at both ends."""

    brackets: tuple[tuple[float, float], ...]
    unsettled: tuple[tuple[float, float], ...]
    sign_low: int
    sign_high: int
    low: float
    high: float


def isolate(
    function: Callable[[float], tuple[float, float, float]],
    bound: Callable[[float, float], float],
    low: float = LOWEST,
    high: float = HIGHEST,
) -> Isolation:
    """All zeros in [low, high] of a function of t = log K, given value, slope, size and a bound on its curvature."""
    start, stop = math.log(low), math.log(high)
    if not start < stop:
        raise ValueError("The range of K to search is empty.")
    edges = np.linspace(start, stop, max(2, math.ceil((stop - start) / 0.2)))
    known = {float(t): function(float(t)) for t in edges}
    cells = list(zip(map(float, edges), map(float, edges[1:])))
    found, unsettled = [], []
    for _ in range(MAX_CELLS):
        if not cells:
            break
        a, b = cells.pop()
        (fa, da, sa), (fb, db, sb) = known[a], known[b]
        width, m = b - a, bound(a, b)
        noise = _ROUNDING * max(sa, sb)
        middle = (a + b) / 2
        # from either end, to the middle: |f| > |slope| w/2 + m (w/2)^2/2 leaves no room for a zero
        slack = m * width**2 / 8 + noise
        clear_a = min(abs(fa), math.copysign(1, fa) * (fa + da * width / 2)) > slack
        clear_b = min(abs(fb), math.copysign(1, fb) * (fb - db * width / 2)) > slack
        if clear_a and clear_b and (fa > 0) == (fb > 0):
            continue
        monotone = (da > 0) == (db > 0) and min(abs(da), abs(db)) > m * width + noise
        if monotone and min(abs(fa), abs(fb)) > noise:
            if (fa > 0) != (fb > 0):
                found.append((math.exp(a), math.exp(b)))
            continue
        if width < SMALLEST_CELL or max(sa, sb) < 1e-250:
            unsettled.append((math.exp(a), math.exp(b)))
            continue
        known[middle] = function(middle)
        cells += [(a, middle), (middle, b)]
    else:
        unsettled += [(math.exp(a), math.exp(b)) for a, b in cells]
    joined = _joined(unsettled)
    crossed = [(a, b) for a, b in joined if _opposite(known[_nearest(known, a)], known[_nearest(known, b)])]
    found += crossed
    unsettled = [cell for cell in joined if cell not in crossed]
    first, last = (int(np.sign(known[float(end)][0])) for end in (edges[0], edges[-1]))
    return Isolation(tuple(sorted(found)), tuple(unsettled), first, last, low, high)


def _nearest(known: dict[float, tuple[float, float, float]], kernel: float) -> float:
    return min(known, key=lambda t: abs(t - math.log(kernel)))


def _opposite(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """Whether the values at the two ends of a cell differ in sign by more than rounding: then it holds a zero."""
    return (a[0] > 0) != (b[0] > 0) and abs(a[0]) > _ROUNDING * a[2] and abs(b[0]) > _ROUNDING * b[2]


def _joined(cells: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    merged: list[tuple[float, float]] = []
    for low, high in sorted(cells):
        if merged and low <= merged[-1][1] * (1 + 1e-9):
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def condition_integrand(activation: Activation, lowest: float = LOWEST) -> Integrand:
    """sigma sigma'', with the delta functions that the kinks of sigma put into sigma''."""
    second = activation.derivative_pieces(2)
    pieces = [s * s2 for s, s2 in zip(activation.pieces, second)]
    spikes = [(float(d.at), float(d.coefficient * activation(d.at))) for d in activation.deltas(2)]
    return Integrand(pieces, activation.kinks, spikes, lowest)


def square_integrand(activation: Activation, linear: sp.Expr) -> Integrand:
    """sigma sigma - linear z^2: with linear = d<s s>/dK at 0 the leading behaviour at small K is taken out exactly."""
    pieces = [piece**2 - linear * z**2 for piece in activation.pieces]
    magnitudes = [piece**2 + linear * z**2 for piece in activation.pieces]
    return Integrand(pieces, activation.kinks, magnitudes=magnitudes)
