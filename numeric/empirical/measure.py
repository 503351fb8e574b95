"""All that the finite-width solution (infinity.141) needs of one particular network, measured on that network.

`numeric.trained.dynamics.TrainingDynamics(network_tensors(...), ...)` then predicts where its training ends.
"""

from __future__ import annotations

from functools import lru_cache

import jax
import numpy as np

from numeric.empirical.differentials import empirical_ddntk, empirical_dntk
from numeric.empirical.model import Apply, Params
from numeric.empirical.ntk import empirical_ntk
from numeric.trained.dynamics import NetworkTensors


def network_tensors(apply: Apply, params: Params, X: jax.Array, rates: Params | None = None) -> NetworkTensors:
    """z, H, dH, ddI and ddII of a model `apply(params, X)` on the inputs X, components first, in float64.

    `rates` is the diagonal of the learning-rate tensor (default: ones). The ddNTKs hold (inputs x outputs)^4 numbers.
    """

    with_outputs = _with_outputs(apply)
    ddI, ddII = empirical_ddntk(with_outputs, params, X, rates)
    return NetworkTensors(
        z=np.asarray(with_outputs(params, X)).T,
        H=np.asarray(empirical_ntk(with_outputs, params, X, rates)),
        dH=np.asarray(empirical_dntk(with_outputs, params, X, rates)),
        ddI=np.asarray(ddI),
        ddII=np.asarray(ddII),
    )


@lru_cache(maxsize=64)
def _with_outputs(apply: Apply) -> Apply:
    """The model with an output axis; one function object a model, so that it compiles once."""

    def with_outputs(p: Params, x: jax.Array) -> jax.Array:
        z = apply(p, x)
        return z[:, None] if z.ndim == 1 else z

    return with_outputs
