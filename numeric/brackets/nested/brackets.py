"""Brackets of up to four labels by nested quadrature that knows where the factors are sharp: kinks, large variances.

With z = L x (Cholesky), the factor of label j is sharp at z_j = 0 only: a kink, or a feature of width one in standard
deviations of sqrt(K). Seen from an earlier level, where the later labels are integrated out, the sharp places are the
lines on which the mean of z_j (given that some of the others vanish) changes its sign, as wide as the conditional
standard deviation. Every level is cut at these places and graded towards them, x = p + alpha sinh(tau), with
Gauss-Legendre nodes in tau; the last label is tabulated as a function of its conditional mean. Nothing is expanded, so
every correlation, coincident, opposite and coplanar inputs included, and every variance is the same to it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import jax
import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of, sigma
from numeric.brackets.functions import Functions

Orders = tuple[int, ...]  # derivative orders of the factors at one label, sorted; -k stands for z sigma^(k)
Request = tuple[Orders, ...]  # one entry a distinct label, in the order of integration
RADIUS = 8.3
NOISE, FLOOR = (
    2e-15,
    1e-18,
)  # relative to the label's own variance: a residual below NOISE is rounding, and is put to FLOOR
SHARP, WIDEST, FAR = 1e-7, 1e3, 1e4  # a place narrower than SHARP is a kink; WIDEST means no grading at all
ENTRIES = 512  # of the last label's table
WINDOW = 11  # entries that interpolate


def factors(functions: Functions, kinds: list[Orders], z: Array) -> Array:
    """The products of sigma^(k)(z) over the orders k of one label, without delta functions: (kinds, ...)."""
    values = {k: sigma(functions, z, k) for k in sorted({abs(k) for kind in kinds for k in kind})}
    values |= {-k: z * values[k] for k in {-k for kind in kinds for k in kind if k < 0}}
    rows = []
    for kind in kinds:
        value = values[kind[0]]
        for k in kind[1:]:
            value = value * values[k]
        rows.append(value)
    return module_of(z).stack(rows)


def cholesky(C: Array) -> list[list[Array]]:
    """Lower triangle of a covariance (d, d) that may be singular: pivots do not fall below a tiny part of variances."""
    xp = module_of(C)
    size = C.shape[0]
    tiny = xp.maximum(1e-30 * xp.max(xp.diagonal(C)), xp.finfo(C.dtype).tiny)
    low: list[list[Array]] = []
    for j in range(size):
        row: list[Array] = []
        rest = C[j, j]
        for k in range(j):
            load = (C[j, k] - sum((row[m] * low[k][m] for m in range(k)), xp.zeros((), C.dtype))) / low[k][k]
            most = xp.sqrt(xp.maximum(rest, NOISE * C[j, j]))  # rounding must not break Cauchy's inequality
            row.append(xp.clip(load, -most, most))
            rest = rest - row[-1] ** 2
        rest = xp.where(rest > NOISE * C[j, j], rest, FLOOR * C[j, j])
        row.append(xp.sqrt(xp.maximum(rest, tiny)))
        low.append(row)
    return low


def _given(residual: Array, loading: Array, j: int, others: tuple[int, ...]) -> tuple[Array, Array]:
    """Loadings and standard deviation of z_j where the `others` vanish, one after the other.

    A label that hardly varies of its own vanishes together with its mean only: nothing to condition on.
    """
    xp = module_of(residual)
    diagonal = xp.diagonal(residual)
    for k in others:
        free = residual[k, k] > SHARP**2 * (loading[k] @ loading[k])
        column = xp.where(free, residual[:, k] / xp.where(free, residual[k, k], 1), 0)
        loading = loading - column[:, None] * loading[k][None, :]
        residual = residual - column[:, None] * residual[k][None, :]
    return loading[j], xp.sqrt(xp.maximum(residual[j, j], FLOOR * diagonal[j]))


def _sharp_lines(low: list[list[Array]], level: int, subsets: bool, scale: float) -> list[tuple[Array, Array]]:
    """(loadings on x_0 ... x_level, width) of the lines that later labels draw at this level.

    A smooth factor is nowhere sharper than its own `scale`, as if its argument were uncertain by so much.
    """
    xp = module_of(low[0][0])
    size = len(low)
    later = list(range(level + 1, size))
    zero = xp.zeros_like(low[0][0])
    matrix = xp.stack([xp.stack([low[j][k] if k <= j else zero for k in range(size)]) for j in later])
    loading, rest = matrix[:, : level + 1], matrix[:, level + 1 :]
    residual = rest @ rest.T + scale**2 * xp.eye(len(later), dtype=zero.dtype)
    lines = []
    for j in range(len(later)):
        others = [k for k in range(len(later)) if (k != j if subsets else k < j)]
        for count in range(len(others) + 1):
            lines += [_given(residual, loading, j, chosen) for chosen in combinations(others, count)]
    return lines


def _panels(edges: Array, widths: Array, rule: tuple[Array, Array], radius: float) -> tuple[Array, Array]:
    """Nodes and Gaussian weights, (..., panels x nodes), cut at the `edges` (..., m) and graded towards them."""
    xp = module_of(edges)
    widths = xp.where(widths < SHARP, WIDEST, xp.minimum(widths, WIDEST))
    distance = xp.abs(edges[..., :, None] - edges[..., None, :])
    widths = xp.min(widths[..., None, :] + distance, axis=-1)  # a neighbour may be sharper
    order = xp.argsort(edges, axis=-1)
    edges, widths = xp.take_along_axis(edges, order, -1), xp.take_along_axis(widths, order, -1)
    inside = xp.clip(edges, -radius, radius)
    widths = widths + xp.abs(edges - inside)
    end, wide = xp.full_like(edges[..., :1], radius), xp.full_like(edges[..., :1], WIDEST)
    left = xp.concatenate([-end, inside], axis=-1)
    right = xp.concatenate([inside, end], axis=-1)
    return _graded(left, right, xp.concatenate([wide, widths], -1), xp.concatenate([widths, wide], -1), rule)


def _graded(left: Array, right: Array, a: Array, b: Array, rule: tuple[Array, Array]) -> tuple[Array, Array]:
    xp = module_of(left)
    half = (right - left) / 2
    points, own = (xp.expand_dims(v, tuple(range(half.ndim))) for v in rule)
    nodes, weights = [], []
    for start, sign, alpha in ((left, 1.0, a), (right, -1.0, b)):
        tau = xp.arcsinh(half / alpha)[..., None]
        nodes.append(start[..., None] + sign * alpha[..., None] * xp.sinh(tau * points))
        weights.append(alpha[..., None] * tau * xp.cosh(tau * points) * own)
    x, w = xp.concatenate(nodes, axis=-1), xp.concatenate(weights, axis=-1)
    x, w = (v.reshape(*v.shape[:-2], -1) for v in (x, w))
    return x, w * xp.exp(-(x**2) / 2) / float(np.sqrt(2 * np.pi))


def _interpolation() -> np.ndarray:
    """From WINDOW equidistant values to the coefficients of their polynomial in u, the distance from the middle one."""
    u = np.arange(WINDOW) - WINDOW // 2
    return np.linalg.inv(np.vander(u, increasing=True).astype(float))


def _table(
    functions: Functions, kinds: list[Orders], low: list[list[Array]], scale: float, rule: tuple[Array, Array]
) -> Callable[[Array], Array]:
    """The last label's factors smoothed by its conditional deviation, as a function of the mean: (kinds, ...)."""
    xp = module_of(low[0][0])
    *means, delta = low[-1]
    grain = delta if functions.kinked else xp.sqrt(delta**2 + scale**2)
    reach = xp.maximum(RADIUS * xp.sqrt(sum((m * m for m in means), xp.zeros_like(delta))), 1e-9 * grain)
    top = xp.arcsinh(reach / grain)
    step = 2 * top / (ENTRIES - WINDOW)
    tau = step * (xp.arange(ENTRIES, dtype=delta.dtype) - (ENTRIES - 1) / 2)
    edge = -grain / delta * xp.sinh(tau)
    x, w = _panels(edge[:, None], xp.broadcast_to(scale / delta, (ENTRIES, 1)), rule, RADIUS)
    z = delta * (x - edge[:, None])
    values = (w[None] * factors(functions, kinds, z)).sum(axis=-1).T  # (entries, kinds)
    half = WINDOW // 2
    windows = xp.stack([values[i : ENTRIES - WINDOW + 1 + i] for i in range(WINDOW)], axis=1)
    local = xp.einsum("pi,tik->tkp", xp.asarray(_interpolation(), delta.dtype), windows)

    def smoothed(mean: Array) -> Array:
        place = xp.arcsinh(mean / grain) / step + (ENTRIES - 1) / 2 - half
        place = xp.clip(place, 0, ENTRIES - WINDOW)
        index = xp.round(place).astype(xp.int32)
        u = (place - index.astype(place.dtype))[..., None]
        rows = local[index]  # (..., kinds, WINDOW)
        total = rows[..., -1]
        for p in range(WINDOW - 2, -1, -1):
            total = total * u + rows[..., p]
        return xp.moveaxis(total, -1, 0)

    return smoothed


def nested_brackets(
    functions: Functions, requests: tuple[Request, ...], C: Array, rule: tuple[Array, Array], scale: float
) -> Array:
    """<product of the factors> for each request, (requests,), from the covariance (d, d) of the distinct labels.

    `rule` is a Gauss-Legendre rule on (0, 1) for one panel, `scale` the length on which sigma changes.
    """
    xp = module_of(C)
    low = cholesky(C)
    size = len(low)
    if size == 1:
        x, w = _panels(xp.zeros(1, C.dtype), (scale / low[0][0])[None], rule, RADIUS)
        return (w[None] * factors(functions, [r[0] for r in requests], low[0][0] * x)).sum(axis=-1)
    soft = 0.0 if functions.kinked else scale
    lines = {level: _sharp_lines(low, level, level == 0, soft) for level in range(size - 1)}
    own = [scale / low[i][i] for i in range(size)]
    wanted = [sorted({r[level:] for r in requests}) for level in range(size)]  # what each level hands to the one before
    smoothed = _table(functions, [r[0] for r in wanted[-1]], low, scale, rule)

    def tails(level: int, before: list[Array]) -> Array:
        """Expectations over the labels from this level on, x of the earlier ones given: (wanted[level], ...)."""
        shape = before[0].shape
        mean = sum((low[level][k] * before[k] for k in range(level)), xp.zeros(shape, C.dtype))
        if level == size - 1:
            return smoothed(mean)
        p = -mean / low[level][level]
        edges, widths = [p], [xp.broadcast_to(own[level], shape)]
        for loading, width in lines[level]:
            steep = xp.where(xp.abs(loading[level]) > 1e-300, loading[level], 1e-300)
            edges.append(-sum((loading[k] * before[k] for k in range(level)), xp.zeros(shape, C.dtype)) / steep)
            widths.append(xp.broadcast_to(width / xp.abs(steep), shape))
        x, w = _panels(xp.clip(xp.stack(edges, -1), -FAR, FAR), xp.stack(widths, -1), rule, RADIUS)
        return summed(level, [b[..., None] for b in before], x, w, low[level][level] * (x - p[..., None]))

    def summed(level: int, before: list[Array], x: Array, w: Array, z: Array) -> Array:
        kinds = sorted({r[0] for r in wanted[level]})
        left = w[None] * factors(functions, kinds, z)
        right = tails(level + 1, [*(xp.broadcast_to(b, x.shape) for b in before), x])
        which = [(kinds.index(r[0]), wanted[level + 1].index(r[1:])) for r in wanted[level]]
        return xp.stack([(left[i] * right[j]).sum(axis=-1) for i, j in which])

    every = xp.stack([own[0], *(w / xp.maximum(xp.abs(l[0]), 1e-300) for l, w in lines[0])])
    width = xp.min(xp.where(every < SHARP, WIDEST, every))
    x, w = _panels(xp.zeros(1, C.dtype), width[None], rule, RADIUS)
    if functions.parity:  # the sum of all orders is even: both signs of x_0 give the same
        x, w = x[: x.shape[0] // 2], 2 * w[: x.shape[0] // 2]
    if xp is np:
        total = summed(0, [], x, w, low[0][0] * x)
    else:  # slice by slice, so that a slice stays in the cache
        slices = jax.lax.map(lambda v: summed(0, [], v[0][None], v[1][None], low[0][0] * v[0][None]), (x, w))
        total = slices.sum(axis=0)
    return total[np.array([wanted[0].index(r) for r in requests])]
