"""Jobs of conditioned series: pairs to condition on that share node sets and series length, in arrays of one shape."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets.functions import Functions
from numeric.brackets.patterns import Pattern
from numeric.brackets.rules import converged_step, half_line, hermite_table, ladder
from numeric.brackets.series.chebyshev import choose_table
from numeric.brackets.series.lengths import SPREADS

LONG = 24
FINER = 0.8  # on every step of a second evaluation
HOST = 2**20  # numbers that a chunk of nodes makes on the host
SMALL = 256  # nodes in a chunk from which products run at speed
FEW_NODES = 128  # up to which a table of moments would not pay


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Bucket:
    """Conditioning pairs that share node sets and series length. J jobs of at most T quadruples each.

    With n = 0 there is no series: all labels are those of the pair.
    """

    pairs: jax.Array  # (J, 2)
    labels: jax.Array  # (J, M) the inputs that occur as c or d
    targets: jax.Array  # (J, T, 2) positions of c and d among the labels
    options: jax.Array  # (J, T) which of POSITIONS
    slots: jax.Array  # (J, T) index of the sorted quadruple; U for padding
    nodes: jax.Array  # (chunks, 3, Q)
    y: jax.Array
    y_step: jax.Array
    reach: jax.Array  # standard deviations that the nodes extend to
    grain: jax.Array  # of the table of moments, see `chebyshev`
    n: int = field(metadata={"static": True})
    single: bool = field(metadata={"static": True})
    upward: bool = field(metadata={"static": True})  # spreads are large enough to derive C^k from C^0 alone
    terms: int = field(metadata={"static": True})  # of the table of moments; zero: there is none
    easy: bool = field(metadata={"static": True})  # the poles of different factors stay apart


def plane_nodes(step: float, radius: float, half: bool, single: bool, chunk: int) -> np.ndarray:
    """Nodes of the (disk-pruned) rule for a whitened pair, (chunks, 3, chunk); half of them if parity allows.

    In the plane they are a triangular lattice: among all whose errors begin at the frequency 2 pi / step, whatever the
    direction, it has the fewest nodes, 13 % less than squares.
    """
    if single:
        line = half_line(step, radius)
        full = np.concatenate([-line[::-1], line])
        x = np.stack([line if half else full, np.zeros(line.size if half else full.size)])
        w = step / np.sqrt(2 * np.pi) * np.exp(-(x[0] ** 2) / 2)
    else:
        apart = 2 / np.sqrt(3) * step  # neighbours in a row; rows are a step apart, every other one is shifted
        count = int(np.ceil(radius / step)) + 1
        row, place = np.meshgrid(np.arange(-count, count + 1), np.arange(-count, count + 1), indexing="ij")
        x = np.stack([((place + 0.5 + 0.5 * (row % 2)) * apart).ravel(), (row * step).ravel()])
        ahead = (x[0] > 0) | ((x[0] == 0) & (x[1] > 0)) if half else True
        x = x[:, ((x**2).sum(axis=0) <= radius**2) & ahead]
        w = step * apart / (2 * np.pi) * np.exp(-(x**2).sum(axis=0) / 2)
    nodes = np.concatenate([x, (2 * w if half else w)[None]])
    count = -(-nodes.shape[1] // chunk)
    count = ladder(count) if count > 8 else count
    chunk = -(-nodes.shape[1] // (8 * count)) * 8
    nodes = np.pad(nodes, ((0, 0), (0, count * chunk - nodes.shape[1])))
    return nodes.reshape(3, count, chunk).transpose(1, 0, 2)


class Work(NamedTuple):
    """The quadruples of one bucket and what was decided for them; `within`: they hold no label but the pair's."""

    quadruples: np.ndarray
    option: np.ndarray
    picked: np.ndarray
    length: np.ndarray
    spread: np.ndarray
    members: np.ndarray
    single: bool
    within: bool


def make_bucket(
    functions: Functions,
    work: Work,
    sizes: np.ndarray,
    step: float,
    smooth: float,
    tolerance: float,
    radius: float,
    upward: bool,
    orders: tuple[int, ...],
    variance: float,
    easy: bool,
    layers: bool,
) -> Bucket:
    """`layers`: other kernels follow that may need fewer nodes, so that chunks are small."""
    quadruples, members, single = work.quadruples, work.members, work.single
    size = int(quadruples.max()) + 1
    picked = work.picked[members]
    pairs, job = np.unique(picked[:, :2], axis=0, return_inverse=True)
    job = job.ravel()
    counts = np.bincount(job)
    J, T = len(pairs), int(counts.max())
    order = np.argsort(job, kind="stable")
    place = np.concatenate([np.arange(c) for c in counts])
    used = np.zeros((J, size), dtype=bool)
    used[job, picked[:, 2]] = used[job, picked[:, 3]] = True
    M = 2 if work.within else min(size, -(-int(used.sum(axis=1).max()) // 4) * 4)
    labels = pairs if work.within else np.argsort(~used, axis=1, kind="stable")[:, :M]
    position = np.zeros((J, size), dtype=np.int32)
    np.put_along_axis(position, labels, np.arange(M, dtype=np.int32)[None, :], axis=1)
    targets = np.zeros((J, T, 2), dtype=np.int32)
    options = np.zeros((J, T), dtype=np.int32)
    slots = np.full((J, T), len(quadruples), dtype=np.int32)
    rows, where = job[order], (job[order], place)
    targets[where] = np.stack([position[rows, picked[order, 2]], position[rows, picked[order, 3]]], axis=1)
    options[where] = work.option[members][order]
    slots[where] = members[order]
    jobs = tuple(jnp.asarray(x) for x in (pairs, labels, targets, options, slots))
    half, nothing = functions.parity != 0, jnp.zeros(())
    if work.within:
        plane = jnp.asarray(plane_nodes(step, radius, half, single, SMALL if layers else 1024))
        return Bucket(
            jobs[0], jobs[1], jobs[2], jobs[3], jobs[4], plane, jnp.zeros(1), nothing, nothing, nothing,
            0, single, False, 0, easy,
        )  # fmt: skip
    n = even_ladder(int(work.length[members].max()) + 1)
    widest = float(np.max(work.spread[picked[:, 0], picked[:, 1]][np.arange(len(picked))[:, None], picked[:, 2:]]))
    y, y_step = conditional_rule(sizes, n, widest, smooth, radius, tolerance)
    chunk = int(np.clip(2**20 // (M * y.size), 64, SMALL if layers else 1024))
    nodes = plane_nodes(step, radius, half, single, chunk)
    terms, grain, count = 0, 1.0, nodes.shape[0] * nodes.shape[2]
    if not upward and count > FEW_NODES:
        terms, grain = choose_table(functions, orders, n, variance, radius, y_step, 0.1 * tolerance)
        terms = terms if 2 * terms < count else 0
    return Bucket(
        jobs[0], jobs[1], jobs[2], jobs[3], jobs[4], jnp.asarray(nodes), jnp.asarray(y), jnp.asarray(y_step),
        jnp.asarray(radius), jnp.asarray(grain), n, single, upward, terms, easy,
    )  # fmt: skip


def even_ladder(terms: int) -> int:
    """An even number of terms, so that parity halves a table: every one of them up to LONG."""
    return max(terms + terms % 2, 8) if terms <= LONG else ladder(terms)


@lru_cache(maxsize=256)
def node_steps(
    functions: Functions, patterns: tuple[Pattern, ...], variance: float, tolerance: float, finer: bool
) -> tuple[float, float]:
    """Steps of the pair's nodes: where poles of all factors may coincide, and where they stay apart."""
    step = converged_step(functions, patterns, variance, tolerance)
    couples = sorted({pair for p in patterns for pair in combinations(p, 2)})
    apart = converged_step(functions, couples, variance, 0.3 * tolerance)
    factor = FINER if finer else 1.0  # steps go down by factors, so that two tolerances may well have the same
    return factor * step, factor * apart


def conditional_rule(
    sizes: np.ndarray, n: int, widest: float, smooth: float, radius: float, tolerance: float
) -> tuple[np.ndarray, float]:
    """Nodes and step of the rule for n moments of a label whose conditional spread is up to `widest` deviations.

    `sizes` are those of the moments (`term_sizes`), `smooth` is the step that the functions themselves take.
    """
    row = min(int(np.searchsorted(SPREADS, widest)), SPREADS.size - 1)
    y_step = min(smooth / max(widest, 1e-3), 0.9, 2 * np.pi / (np.sqrt(2 * np.log(1 / tolerance)) + np.sqrt(n)))
    if n > LONG:  # high orders count: their oscillations come on top of the function's own spectrum
        y_step = 2 * np.pi / (2 * np.pi / min(smooth / max(widest, 1e-3), 0.9) + np.sqrt(n))
    reach = np.arange(4.0, 40.0, 0.25)
    tails = (
        np.abs(hermite_table(reach, n))
        * np.exp(-(reach**2) / 2)
        * np.maximum(sizes[row, np.minimum(np.arange(n), sizes.shape[1] - 1)], 1e-300)[:, None]
    )
    far = reach[np.flatnonzero(tails.max(axis=0) > 0.1 * tolerance)]
    y = half_line(y_step, max(radius, far[-1] + 0.25 if far.size else 0.0))
    return np.concatenate([-y[::-1], y]), y_step


def rechunked(nodes: Any, most: int) -> Any:
    """The nodes that weigh anything, in equal chunks of at most so many: NumPy's arrays, longer chunks than XLA's."""
    flat = nodes.transpose(1, 0, 2).reshape(3, -1)
    flat = flat[:, flat[2] != 0]
    count = max(-(-flat.shape[1] // most), 1)
    chunk = -(-flat.shape[1] // count)
    padded = np.pad(flat, ((0, 0), (0, count * chunk - flat.shape[1])))
    return padded.reshape(3, count, chunk).transpose(1, 0, 2)


def thinner(functions: Functions, bucket: Bucket, step: float, radius: float) -> Bucket:
    """The bucket with the nodes of a larger step in its first chunks, and nothing in the others."""
    chunks, _, chunk = bucket.nodes.shape
    flat = plane_nodes(step, radius, functions.parity != 0, bucket.single, chunk).transpose(1, 0, 2).reshape(3, -1)
    flat = flat[:, flat[2] > 0]
    if chunks == 1 or flat.shape[1] > (chunks - 1) * chunk:
        return bucket
    nodes = np.pad(flat, ((0, 0), (0, chunks * chunk - flat.shape[1])))
    return replace(bucket, nodes=jnp.asarray(nodes.reshape(3, chunks, chunk).transpose(1, 0, 2)))
