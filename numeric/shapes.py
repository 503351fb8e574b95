"""Shapes of the public arrays, as types (jaxtyping): what a reader sees in a signature, tests check at run time.

N counts inputs, M a second set of inputs, T test inputs, n outputs; a leading `*` stands for any number of axes.
"""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Float

Kernel = Float[jax.Array, "N N"]
"""A tensor with two sample axes: K, Theta, G1, H1."""
FourPoint = Float[jax.Array, "N N N N"]
"""A tensor with four sample axes, in the order of its subscripts: V, D, F, A, B, P, Q, R, S, T, U."""
Tensor = Float[jax.Array, "*samples"]
Means = Float[np.ndarray, "*times T"] | Float[np.ndarray, "*times T n"]
"""Means on the test inputs, in the shape of the targets."""
Covariance = Float[np.ndarray, "*times T T"]
OutputCovariance = Float[np.ndarray, "*times T T"] | Float[np.ndarray, "*times n n T T"]
TangentKernel = Float[jax.Array, "N M"] | Float[jax.Array, "n n N M"]
"""An empirical NTK: with neural axes first, or without them where the model has no output axis."""
Levels = Float[np.ndarray, " levels"]
