"""The plane of two inputs as a sum over nodes that knows both kinks, and the other inputs given a point of it.

In whitened coordinates the kinks are two lines through the origin, so that in polar ones they cut the angles into four
sectors, however thin. On each half of a sector Gauss-Legendre nodes are graded towards its edge, radii towards zero:
sigma itself changes on its own scale, an input that the pair nearly determines on that of its conditional deviation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.calculus import QuadrupleQuestion
from numeric.brackets.functions import Functions
from numeric.brackets.rules import legendre, reach

cached_legendre = lru_cache(maxsize=64)(legendre)

FARTHEST = 8.7  # standard deviations, at least: what is beyond is less than rounding
FLOOR = 1e-15  # of a label's own variance: what is left to it at least
FINEST, PLAIN = 1e-3, 10.0  # grains relative to an interval: the smallest, and one that is no grading
RADIAL = 3.0  # grain of radii in units of that of angles


class Rule(NamedTuple):
    """Angles on half a sector, radii, nodes a panel of the tables of moments."""

    angles: int
    radii: int
    nodes: int


class Plane(NamedTuple):
    """Two inputs: deviations, the angle whose cosine is their correlation, and grain of the nodes."""

    a: Array
    b: Array
    angle: Array
    grain: Array


class Others(NamedTuple):
    """M inputs given the pair: means are `loadings` (2, M) times the whitened coordinates; deviations, correlations."""

    loadings: Array
    s: Array
    r: Array


class Nodes(NamedTuple):
    """Whitened coordinates (2, Q), weights with the Gaussian (Q,), both preactivations (Q,)."""

    x: Array
    w: Array
    a: Array
    b: Array


def farthest(functions: Functions, question: QuadrupleQuestion) -> float:
    """Standard deviations that are integrated over."""
    return max(reach(functions, question.patterns, question.variance, 0.1 * question.tolerance), FARTHEST)


def others(K: Array, a: Array, b: Array, labels: Array) -> Others:
    """The labels, none of them a or b, given those."""
    xp = module_of(K)
    size = xp.sqrt(K[a, a] * K[b, b])
    sine = xp.sqrt(xp.maximum((size - K[a, b]) * (size + K[a, b]), 1e-30 * size**2))
    first = K[a][labels] / xp.sqrt(K[a, a])
    second = (K[b][labels] * K[a, a] - K[a, b] * K[a][labels]) / (xp.sqrt(K[a, a]) * sine)
    variance = xp.diagonal(K)[labels]
    s = xp.sqrt(xp.maximum(variance - first**2 - second**2, FLOOR * variance))
    kappa = K[labels][:, labels] - first[:, None] * first[None] - second[:, None] * second[None]
    return Others(xp.stack([first, second]), s, xp.clip(kappa / (s[:, None] * s[None]), -1, 1))


def plane(K: Array, a: Array, b: Array, scale: float, found: Others | None = None) -> Plane:
    """The plane of a and b for functions that change on a `scale`, and the other inputs that were `found`, if any."""
    xp = module_of(K)
    roots = xp.sqrt(K[a, a]), xp.sqrt(K[b, b])
    size = xp.sqrt(K[a, a] * K[b, b])
    sine = xp.sqrt(xp.maximum((size - K[a, b]) * (size + K[a, b]), 0))  # exactly zero for equal and opposite inputs
    grain = scale / xp.maximum(xp.maximum(*roots), scale)
    if found is not None:
        load = xp.sqrt(xp.maximum((found.loadings**2).sum(axis=0), 1e-300))
        grain = xp.minimum(grain, xp.min(found.s / load))
    return Plane(*roots, xp.arctan2(sine, K[a, b]), grain)


def graded(count: int, grain: Array) -> tuple[Array, Array]:
    """Nodes and weights on (0, 1), graded towards 0: (..., count) for grains (...)."""
    xp = module_of(grain)
    x, w = (xp.asarray(np.expand_dims(v, tuple(range(grain.ndim))), grain.dtype) for v in cached_legendre(count))
    tau = xp.arcsinh(1 / grain)[..., None]
    return xp.sinh(tau * x) / xp.sinh(tau), tau * xp.cosh(tau * x) / xp.sinh(tau) * w


def angles(own: Plane, rule: Rule, half: bool) -> tuple[Array, Array, Array]:
    """Angles (A,), weights (A,) and the signs (2, A) of both preactivations; `half` of them where parity allows."""
    xp = module_of(own.angle)
    width = xp.stack([np.pi - own.angle, own.angle])
    start = xp.stack([own.angle - np.pi / 2, xp.full_like(own.angle, np.pi / 2)])
    near, weight = graded(rule.angles, xp.clip(own.grain / xp.maximum(width / 2, 1e-300), FINEST, PLAIN))
    part = width[:, None] / 2
    t = xp.concatenate([part * near, 2 * part - part * near], axis=1) + start[:, None]
    w = xp.concatenate([part * weight, part * weight], axis=1)
    signs = xp.asarray(np.repeat(np.array([[1.0, -1.0], [1.0, 1.0]]), 2 * rule.angles, axis=1), t.dtype)
    if half:
        return t.ravel(), 2 * w.ravel(), signs
    t, w = (xp.concatenate([v, v + shift], axis=0).ravel() for v, shift in ((t, np.pi), (w, 0.0)))
    return t, w, xp.concatenate([signs, -signs], axis=1)


def radii(own: Plane, rule: Rule, reach: float) -> tuple[Array, Array]:
    """Radii and weights of r exp(-r^2/2) / (2 pi)."""
    xp = module_of(own.grain)
    near, weight = graded(rule.radii, xp.clip(RADIAL * own.grain / reach, FINEST, PLAIN))
    r = reach * near
    return r, reach * weight * r * xp.exp(-(r**2) / 2) / (2 * np.pi)


def nodes(own: Plane, rule: Rule, reach: float, half: bool) -> Nodes:
    """Angles times radii; `half` of the angles where parity allows."""
    xp = module_of(own.angle)
    (t, wt, signs), (r, wr) = angles(own, rule, half), (v[None] for v in radii(own, rule, reach))
    x = xp.stack([xp.cos(t)[:, None] * r, xp.sin(t)[:, None] * r]).reshape(2, -1)
    z = [
        (size * sign * xp.abs(xp.cos(direction)))[:, None] * r
        for size, sign, direction in ((own.a, signs[0], t), (own.b, signs[1], t - own.angle))
    ]
    w = (wt[:, None] * wr).ravel()
    return Nodes(
        x, w / w.sum(), z[0].ravel(), z[1].ravel()
    )  # constants exactly: where sigma' is nearly one, they cancel
