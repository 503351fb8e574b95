"""Two nearly parallel inputs of an activation with a kink at zero, in difference variables.

With z_a = p and z_b = beta p + m the small quantity is m, whose covariances with p and itself are known to full
relative accuracy, and the functions are sigma(z_a) and Delta = sigma(z_b) - beta sigma(z_a), evaluated without
cancellation.
Derivatives, delta functions included, fall on the Gaussian: <d_i d_j f> = <f He_ij(x)> in whitened variables, so that
every average is one finite sum over the nodes. The plane is cut by the signs of z_a and z_b as in `sectorrule`; angles
are measured from the kinks, so that the thin sectors between the kinks are resolved however thin they are.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.functions import Functions
from numeric.brackets.kinked.sectorrule import angular_rule, radial_rule
from numeric.brackets.linear import PiecewiseLinear

PARALLEL = 1e-24  # of the variance of m: what is left to the part that p does not explain, at least
SHORT = 0.3  # in units of the length on which sigma changes: differences up to here by a rule, beyond by subtraction
LEGENDRE = np.polynomial.legendre.leggauss(12)


class Rule(NamedTuple):
    """Angles on either side of a sector's middle, and radii."""

    angles: int
    radii: int


LINEAR, LINEAR_FINER = Rule(16, 2), Rule(20, 3)
CURVED, CURVED_FINER = Rule(28, 128), Rule(36, 160)


class Nodes(NamedTuple):
    """The plane of two inputs as a sum over n nodes."""

    x: Array  # (2, n) whitened variables
    w: Array  # (n,) weights, Gaussian included
    basis: Array  # (2, n) sigma(z_a) and Delta
    own: Array  # (2, n) sigma(z_a) and sigma(z_b)
    slope: Array  # (2, n) sigma'(z_a) and sigma'(z_b)
    whitening: Array  # (2, 2) rows x in terms of (p, m)


def _radii(functions: Functions, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(functions.calculus, PiecewiseLinear):
        return radial_rule(rule.radii)
    s, w = np.polynomial.laguerre.laggauss(rule.radii)  # homogeneous: polynomials in r^2 of the third degree at most
    if rule.radii == 2:  # to the last digit
        s, w = 2 + np.sqrt(2) * np.array([-1, 1]), (2 + np.sqrt(2) * np.array([1, -1])) / 4
    return np.sqrt(2 * s), w


def pair_nodes(functions: Functions, K: Array, beta: Array, rule: Rule) -> Nodes:
    """The nodes for the covariance K (2, 2) of (p, m); beta differs from one for piecewise linear activations only."""
    root = jnp.sqrt(K[0, 0])
    tilt = K[0, 1] / root
    spread = jnp.sqrt(jnp.maximum(K[1, 1] - tilt**2, jnp.maximum(PARALLEL * K[1, 1], 1e-290)))
    along = beta * root + tilt
    angle, other = jnp.arctan2(spread, along), jnp.hypot(along, spread)
    r, wr = (jnp.asarray(v, K.dtype) for v in _radii(functions, rule))
    grain = 1 / jnp.maximum(jnp.maximum(root, other), 1)
    if isinstance(functions.calculus, PiecewiseLinear):
        grain = jnp.full_like(grain, 10.0)
    near, weight = angular_rule(rule.angles, grain)  # on (0, 1), graded towards 0
    wide, thin = (np.pi - angle) / 2 * near, angle / 2 * near
    beyond, within = angle + wide, angle - thin
    # from the kink of z_b and from that of z_a, in the wide sector where both are positive; then in the thin one, where
    # z_a is negative: from the kink of z_a and from that of z_b
    cosine = jnp.stack([jnp.sin(beyond), jnp.sin(wide), -jnp.sin(thin), -jnp.sin(within)])
    sine = jnp.stack([-jnp.cos(beyond), jnp.cos(wide), jnp.cos(thin), jnp.cos(within)])
    z_b = jnp.stack([jnp.sin(wide), jnp.sin(beyond), jnp.sin(within), jnp.sin(thin)])
    half = jnp.stack([(np.pi - angle) / 2] * 2 + [angle / 2] * 2)
    wt = half[:, None] * weight[None, :]

    def spherical(direction: Array) -> Array:
        """(signs, 4 half sectors, angles, radii): a point and its mirror image."""
        point = direction[:, :, None] * r[None, None, :]
        return jnp.stack([point, -point])

    x = jnp.stack([spherical(cosine), spherical(sine)])
    a, b, m = root * x[0], other * spherical(z_b), tilt * x[0] + spread * x[1]
    w = jnp.broadcast_to(wt[:, :, None] * wr[None, None, :] / (2 * np.pi), a.shape)
    delta = _difference(functions, a, b, m, beta)
    s_a, s_b = functions.derivatives(a, 0), functions.derivatives(b, 0)
    slopes = functions.derivatives(a, 1), functions.derivatives(b, 1)
    zero, one = jnp.zeros_like(root), jnp.ones_like(root)
    whitening = jnp.stack([jnp.stack([one / root, zero]), jnp.stack([-tilt / (root * spread), one / spread])])
    flat = [v.reshape(2, -1) for v in (x, jnp.stack([s_a, delta]), jnp.stack([s_a, s_b]), jnp.stack(slopes))]
    return Nodes(flat[0], w.reshape(-1), flat[1], flat[2], flat[3], whitening)


def _difference(functions: Functions, a: Array, b: Array, m: Array, beta: Array) -> Array:
    """sigma(b) - beta sigma(a) with b = beta a + m: signs agree in the first two half sectors, not in the others."""
    if isinstance(functions.calculus, PiecewiseLinear):
        slope = [jnp.where(v > 0, *functions.calculus.slopes) for v in (a, b)]
        return jnp.concatenate([(slope[0] * m)[:, :2], (slope[1] * b - beta * slope[0] * a)[:, 2:]], axis=1)
    short = SHORT * min(functions.strip, 1.0)
    together = _increment(functions, a[:, :2], m[:, :2], b[:, :2], short)
    zero = jnp.zeros_like(a[:, 2:])
    apart = _increment(functions, zero, b[:, 2:], b[:, 2:], short) - _increment(
        functions, zero, a[:, 2:], a[:, 2:], short
    )
    return jnp.concatenate([together, apart], axis=1)


def _increment(functions: Functions, start: Array, step: Array, end: Array, short: float) -> Array:
    """sigma(end) - sigma(start), both on one side of the kink: the integral of the slope where the step is short."""
    points, weights = ((LEGENDRE[0] + 1) / 2).tolist(), (LEGENDRE[1] / 2).tolist()
    small = jnp.abs(step) < short
    inner = jnp.where(small, step, 0.0)
    side = jnp.where(end > 0, 1.0, -1.0) * 1e-300  # the slope on the side of the end, at the kink too
    mean = sum(w * functions.derivatives(start + t * inner + side, 1) for t, w in zip(points, weights))
    return jnp.where(small, step * mean, functions.derivatives(end, 0) - functions.derivatives(start + side, 0))
