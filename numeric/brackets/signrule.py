"""The rule for four-variate sign expectations (`orthant.sign4`), as fine as concrete kernels ask."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets.orthant import sign4
from numeric.brackets.patterns import sorted_quadruples
from numeric.brackets.rules import legendre, tanh_sinh

SAMPLE = 4096
LONGEST = 256
Rule = tuple[jax.Array, jax.Array]
_sign4 = jax.jit(sign4)


def sign_rule(K: np.ndarray, tolerance: float, noise: float = 0.0) -> tuple[Rule, jax.Array]:
    """Nodes and weights on (0, 1) for a stack of kernels, and the measured error; `noise` is added to variances."""
    quadruples = sorted_quadruples(K.shape[-1])
    distinct = quadruples[(np.diff(quadruples, axis=1) > 0).all(axis=1)] if noise == 0 else quadruples
    chosen = np.random.default_rng(0).permutation(len(distinct))[: SAMPLE // len(K)]
    if not chosen.size:
        rule = legendre(8)
        return (jnp.asarray(rule[0]), jnp.asarray(rule[1])), jnp.asarray(1e-15)
    labels = distinct[chosen]
    blocks = np.concatenate([kernel[labels[:, :, None], labels[:, None, :]] for kernel in K]) + noise * np.eye(4)
    blocks = np.concatenate([blocks, np.tile(np.eye(4), (SAMPLE - len(blocks), 1, 1))]).transpose(1, 2, 0)

    def value(rule: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        padded = [np.pad(x, (0, LONGEST - x.size)) for x in rule]
        return np.asarray(_sign4(jnp.asarray(blocks), jnp.asarray(padded[0]), jnp.asarray(padded[1])))

    goal = max(0.01 * tolerance, 1e-14)
    before, error = value(legendre(8)), 1.0
    for rule in [legendre(n) for n in (16, 24, 40, 64)] + [tanh_sinh(n) for n in (100, 150, 220)]:
        now = value(rule)
        error = float(np.max(np.abs(now - before)))
        if error <= goal:
            break
        before = now
    return (jnp.asarray(rule[0]), jnp.asarray(rule[1])), jnp.asarray(max(error, 1e-15))
