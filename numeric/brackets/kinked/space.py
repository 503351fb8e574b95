r"""Four-point brackets of activations with a kink where no pair of inputs suits: three inputs by nodes of their space.

Inputs in two or three dimensions (one or two and a bias), nearly parallel or coplanar ones leave too little to what is
not in a plane for a series. Here a, b and c are integrated as they are, in spherical coordinates

    z_a = |a| r cos(phi) cos(t),   z_b = |b| r cos(phi) cos(t - angle),   z_c = r (m_c(t) cos(phi) + s sin(phi)),

and so is the mean m_d(t) cos(phi) + q sin(phi) of the fourth, which is averaged over what deviation tau is left to it
(`moments.Averages`), or is a function of the others. Kinks of a and b are meridians; those of c and d cross a meridian
once each and each other at one t. Angles t are cut at all of these, and where means of c and d vanish, heights phi at
both kinks: every cell holds an analytic function. Nodes are graded towards edges where something changes fast there.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of, sigma
from numeric.brackets.functions import Functions
from numeric.brackets.kinked.conditioned import Split, split_four
from numeric.brackets.kinked.moments import Averages, Kind, Table, enough_terms, line, products
from numeric.brackets.kinked.plane import PLAIN, RADIAL, cached_legendre, graded
from numeric.brackets.nested.deltas import Component
from numeric.errors import NumericError

FINEST = 1e-7  # grain relative to an interval, at the smallest
SOFT = 0.5  # deviation over mean, from which no line is seen where the mean vanishes
COARSE = 0.3  # grain relative to half an interval, from which nothing is graded
SHARE = 0.01  # of the tolerance: what a variance that is left out may change, relatively
CHUNK = 2**16  # nodes at a time on the host
PANEL_NODES = 16  # of the rule for averages
LEAST = 1e-13  # of a label's own variance: below is rounding


class SpaceRule(NamedTuple):
    """Angles and heights on an interval, radii."""

    angles: int
    heights: int
    radii: int


class SpaceSetting(NamedTuple):
    """With what a quadruple is evaluated.

    sigma changes on the length `scale`; relative variances `left_out` are none; averages are made to `precision`.
    """

    rule: SpaceRule
    reach: float
    scale: float
    left_out: float
    precision: float


class Geometry(NamedTuple):
    """Of inputs a, b, c, d: deviations of a and b and the angle between them; means of c and d as components in their
    plane (2,); what is left to c, what d has in common with it, and what is left to d.
    """

    a: Array
    b: Array
    angle: Array
    c: Array
    d: Array
    s: Array
    q: Array
    tau: Array


def geometry(C: Array, left_out: float) -> Geometry:
    """From the covariance (4, 4); variances below `left_out` of a label's own are none."""
    xp = module_of(C)
    a, b, size = xp.sqrt(C[0, 0]), xp.sqrt(C[1, 1]), xp.sqrt(C[0, 0] * C[1, 1])
    sine = xp.sqrt(xp.maximum((size - C[0, 1]) * (size + C[0, 1]), 0))
    first = C[0, 2:] / a
    second = (C[1, 2:] * C[0, 0] - C[0, 1] * C[0, 2:]) / (a * xp.maximum(sine, 1e-15 * size))
    rest = C[2, 2] - first[0] ** 2 - second[0] ** 2
    s = xp.sqrt(xp.where(rest > left_out * C[2, 2], rest, 0))
    q = xp.where(s > 0, (C[2, 3] - first[0] * first[1] - second[0] * second[1]) / xp.where(s > 0, s, 1), 0)
    rest = C[3, 3] - first[1] ** 2 - second[1] ** 2 - q**2
    tau = xp.sqrt(xp.where(rest > left_out * C[3, 3], rest, 0))
    c, d = (xp.stack([first[i], second[i]]) for i in (0, 1))
    return Geometry(a, b, xp.arctan2(sine, C[0, 1]), c, d, s, q, tau)


class Grains(NamedTuple):
    """The smallest lengths, relative to the whole, on which anything changes along a ray and heights, and angles."""

    ray: Array
    angle: Array


def grains(own: Geometry, scale: float) -> Grains:
    """Along a ray sigma changes, and what is averaged over; with the angle also the places of kinks of c and d."""
    xp = module_of(own.a)
    spread = xp.sqrt(own.q**2 + own.tau**2)
    length = [xp.sqrt((x**2).sum()) for x in (own.c, own.d)]
    whole = xp.sqrt(length[1] ** 2 + spread**2)
    largest = xp.maximum(xp.maximum(own.a, own.b), xp.maximum(xp.sqrt(length[0] ** 2 + own.s**2), whole))

    def ratio(part: Array, of: Array) -> Array:
        return xp.where(part > 0, part / xp.maximum(of, 1e-300), 1.0)

    ray = xp.minimum(scale / xp.maximum(largest, scale), ratio(own.tau, whole))
    return Grains(ray, xp.minimum(ray, xp.minimum(ratio(own.s, length[0]), ratio(spread, length[1]))))


def _interval(start: Array, end: Array, count: int, grain: Array) -> tuple[Array, Array]:
    """Nodes and weights on intervals, (..., count or one more): graded towards both ends, from the middle on, where the
    grain is small; where it is not, on the host, a rule for the whole interval.
    """
    xp = module_of(start)
    half = (end - start) / 2
    fine = xp.clip(grain / xp.maximum(half, 1e-300), FINEST, PLAIN)
    if xp is np and np.min(fine) > COARSE:
        x, w = (np.expand_dims(v, tuple(range(half.ndim))) for v in cached_legendre(count))
        return start[..., None] + 2 * half[..., None] * x, 2 * half[..., None] * w
    near, weight = graded((count + 1) // 2, fine)
    near, weight = half[..., None] * near, half[..., None] * weight
    return (
        xp.concatenate([start[..., None] + near, end[..., None] - near], axis=-1),
        xp.concatenate([weight, weight], axis=-1),
    )


def _edges(own: Geometry) -> Array:
    """Angles of the lines, from pi/2 to 3 pi/2; on the host only those near which anything changes fast."""
    xp = module_of(own.a)
    crossing = own.q * own.c - own.s * own.d
    lines = [own.c, own.d, crossing]
    if xp is np:
        spread = np.sqrt(own.q**2 + own.tau**2)
        soft = [left > SOFT * np.linalg.norm(mean) for left, mean in ((own.s, own.c), (spread, own.d))]
        lines = [x for x, skip in zip(lines, (*soft, not np.any(crossing))) if not skip]
    first = np.pi / 2
    inner = [first + xp.mod(x, np.pi) for x in (own.angle, *(xp.arctan2(x[1], x[0]) for x in lines))]
    ends = [xp.full_like(own.angle, x) for x in (first, first + np.pi)]
    edges = xp.sort(xp.stack([*ends, *inner]))
    return edges[np.append(True, np.diff(edges) > 0)] if xp is np else edges


class SpaceNodes(NamedTuple):
    """Weights (Q,), the preactivations of a, b, c (Q,) and the mean of the fourth."""

    w: Array
    a: Array
    b: Array
    c: Array
    d: Array


def nodes(own: Geometry, setting: SpaceSetting, half: bool) -> SpaceNodes:
    """Angles times heights times radii; `half` of the angles where parity allows."""
    xp, rule, fine = module_of(own.a), setting.rule, grains(own, setting.scale)
    edges = _edges(own)
    t, wt = _interval(edges[:-1], edges[1:], rule.angles, fine.angle)
    t, wt = t.ravel(), wt.ravel()
    if not half:
        t, wt = xp.concatenate([t, t + np.pi]), xp.concatenate([wt, wt])
    cos, sin = xp.cos(t), xp.sin(t)
    sign = xp.where(own.q < 0, -1.0, 1.0)
    means = [x[0] * cos + x[1] * sin for x in (own.c, own.d)]
    kinks = [-xp.arctan2(means[0], xp.abs(own.s)), -xp.arctan2(sign * means[1], xp.abs(own.q))]
    end = xp.full_like(t, np.pi / 2)
    cuts = xp.stack([-end, xp.minimum(*kinks), xp.maximum(*kinks), end], axis=-1)
    phi, wphi = _interval(cuts[:, :-1], cuts[:, 1:], rule.heights, fine.ray)
    phi, wphi = phi.reshape(t.shape[0], -1), (wphi * xp.cos(phi)).reshape(t.shape[0], -1)
    power = 2
    if xp is np and not own.s > 0:  # all in one plane
        phi, wphi, power = xp.zeros((t.shape[0], 1)), xp.ones((t.shape[0], 1)), 1
    near, weight = graded(rule.radii, xp.clip(RADIAL * fine.ray / setting.reach, FINEST, PLAIN))
    r = setting.reach * near
    wr = weight * r**power * xp.exp(-(r**2) / 2)
    w = ((wt[:, None] * wphi).ravel()[:, None] * wr).ravel()
    plane = xp.cos(phi)
    directions = (
        own.a * cos[:, None] * plane,
        own.b * xp.cos(t - own.angle)[:, None] * plane,
        xp.sqrt(means[0] ** 2 + own.s**2)[:, None] * xp.sin(phi - kinks[0][:, None]),
        sign * xp.sqrt(means[1] ** 2 + own.q**2)[:, None] * xp.sin(phi - kinks[1][:, None]),
    )
    return SpaceNodes(w / w.sum(), *((u.ravel()[:, None] * r).ravel() for u in directions))


def space(functions: Functions, components: tuple[Component, ...], setting: SpaceSetting, C: Array) -> Array:
    """(components,) for orders at (a, b, c, d), whose covariance is C (4, 4)."""
    split, own = split_four(components), geometry(C, setting.left_out)
    node, chunk = nodes(own, setting, functions.parity != 0), CHUNK if isinstance(C, np.ndarray) else None
    fourth = _averages(functions, sorted({k for _, k in split.columns}), setting, own, node.d)
    size = node.w.shape[0]
    parts = [slice(start, start + chunk) for start in range(0, size, chunk)] if chunk else [slice(None)]
    total = sum(_product(functions, split, SpaceNodes(*(z[part] for z in node)), fourth) for part in parts)
    return cast(Array, total)[split.row[0], split.column[0]]


def _product(functions: Functions, split: Split, node: SpaceNodes, fourth: Averages | None) -> Array:
    """The sum over nodes, (rows, columns)."""
    xp = module_of(node.w)
    outer = [node.w * value for value in products(split.a, _values(functions, {k for (k,) in split.a}, node.a))]
    second = products(split.b, _values(functions, {k for (k,) in split.b}, node.b))
    rows = xp.stack([outer[i] * second[j] for i, j in split.rows])
    third, orders = _values(functions, {k for k, _ in split.columns}, node.c), sorted({k for _, k in split.columns})
    last = _values(functions, set(orders), node.d) if fourth is None else dict(zip(orders, fourth.at(node.d[None])[0]))
    columns = xp.stack([third[k] * last[l] for k, l in split.columns])
    return rows @ columns.T


def _values(functions: Functions, orders: set[int], z: Array) -> dict[int, Array]:
    """{k: sigma^(k)}, z sigma^(k) at -k."""
    found = {k: sigma(functions, z, k) for k in {abs(k) for k in orders}}
    return found | {k: z * found[-k] for k in orders if k < 0}


def _averages(
    functions: Functions, orders: list[int], setting: SpaceSetting, own: Geometry, means: Array
) -> Averages | None:
    """Over what is left to the fourth input; None: nothing. Programs are compiled for a deviation that is not zero."""
    xp = module_of(means)
    if xp is np and not own.tau > 0:
        return None
    least = xp.sqrt(setting.left_out * (own.q**2 + (own.d**2).sum()))
    tau = xp.maximum(own.tau, least).reshape(1)
    far = float(np.abs(means).max() / tau[0]) if xp is np else setting.reach / setting.left_out**0.5
    table = table_of(far, setting.precision)
    kinds: tuple[Kind, ...] = tuple((k,) for k in orders)
    return Averages(table, kinds, tau, _values(functions, set(orders), line(table, tau)))


def table_of(far: float, precision: float) -> Table:
    """Averages up to `far` conditional deviations, on a ladder of them."""
    reach = 12.0 * 2.0 ** max(int(np.ceil(np.log2(far / 12.0))), 0)
    terms = enough_terms(1, reach, precision)
    if not terms:
        raise NumericError(f"No table of averages reaches {far:.1g} deviations to {precision:.0e}.")
    return Table(1, reach, terms, PANEL_NODES)
