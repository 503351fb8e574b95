"""From a flow of K and Theta to what draws need: pair averages of every hidden layer, factors of kernels, modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions, make_pair_plan
from numeric.errors import NumericError
from numeric.evaluation.host import square_pairs
from numeric.generated.adjoint import CONTRACTIONS, PAIRS
from numeric.trained.infinite import KernelPrediction
from numeric.trained.sampled.objects import HIGHEST, HiddenLayer, needed_orders, root
from numeric.trained.sampled.opened import every_opening, openings
from numeric.trained.sampled.theory import Still, Theory, objects_of


def source_orders() -> set[tuple[int, int]]:
    """The pair averages whose mean is known of a source: those that enter by their covariance, and controls."""
    reached = {kind for own in CONTRACTIONS.values() for kind in own.kinds}
    every = {source.orders for kind in reached for source in PAIRS[kind].sources}
    return {orders for orders in every if sum(orders) % 2 == 0}


def refuse(flow: Any) -> None:
    """One sentence for a network whose corrections cannot be sampled."""
    if flow.skip is not None:
        raise NumericError("Sampled predictions are for networks without skip connections.")
    check_activation(flow.activation.FUNCTIONS)
    if flow.depth < 2:
        raise NumericError("A network without hidden layers has no corrections in 1/n.")


def check_activation(functions: Functions) -> None:
    """Draws look at derivatives up to the third at points, where no delta function may stand."""
    lowest = functions.calculus.jumps()
    if lowest == 1:
        raise NumericError(f"The mean at order 1/n does not exist for {functions.name}, whose derivative jumps.")
    if lowest is not None:
        raise NumericError(
            f"Sampled predictions are for smooth activations, and a derivative of {functions.name} jumps: take few "
            "enough inputs for the tensors (method='exact'), or infinite width."
        )


def thin_factor(theta: np.ndarray) -> np.ndarray | None:
    """F with F Fᵀ = Θ of the first layer, which has at most as many columns as inputs have numbers, and one."""
    values, vectors = np.linalg.eigh(theta)
    kept = values > 1e-12 * values[-1]
    if 3 * np.count_nonzero(kept) > len(theta):
        return None
    return vectors[:, kept] * np.sqrt(values[kept])


def theory_of(flow: Any, kernel: KernelPrediction, dtype: Any = jnp.float64) -> Theory:
    """The theory on the inputs of a flow that keeps K and Theta of all layers."""
    refuse(flow)
    functions: Functions = flow.activation.FUNCTIONS
    orders = tuple(sorted(set(needed_orders()) | source_orders()))

    def cast(array: np.ndarray) -> Any:
        return np.asarray(array, dtype)

    layers = []
    for number in range(1, flow.depth):
        own = flow.layer(number)
        K = np.asarray(own.K, dtype=float)
        plan = make_pair_plan(functions, K, HIGHEST)
        averages = square_pairs(functions, plan, K, orders)
        parameters = {name: float(getattr(flow.parameters, name)[number]) for name in ("C_W", "lambda_W")}
        layers.append(HiddenLayer(K, np.asarray(own.Theta), averages, parameters))
    U = np.zeros((len(kernel.theta), len(kernel.modes.h)))
    U[list(kernel.train)] = kernel.modes.U
    y = kernel.y.reshape(len(kernel.train), -1).T @ kernel.modes.U
    factors = tuple(cast(root(layer.K)) for layer in layers)
    thin = thin_factor(layers[0].Theta)
    shares = tuple(flow.widths[-1] / flow.widths[number] for number in range(1, flow.depth))
    derivatives: Callable[[jax.Array, int], jax.Array] = functions.derivatives
    pieces, means = objects_of(layers, cast)
    for number, layer in enumerate(layers):
        layers[number] = jax.tree_util.tree_map(cast, layer)
    known: list = []
    opened = tuple({kind: openings(own[kind], known) for kind in sorted(every_opening(own))} for own in pieces)
    theory = Theory(
        derivatives,
        tuple(layers),
        factors,
        cast(root(kernel.K)),
        shares,
        cast(U),
        cast(y),
        kernel.modes.U.T @ kernel.K[np.ix_(kernel.train, kernel.train)] @ kernel.modes.U,
        pieces,
        opened,
        means,
        thin if thin is None else cast(thin),
    )
    return shared(jax.tree_util.tree_map(cast, theory))


def shared(theory: Theory) -> Theory:
    """On the device, equal arrays as one: half of the pieces and of what opens them are the same."""
    known: dict[tuple, list[tuple[np.ndarray, jax.Array]]] = {}

    def once(array: np.ndarray) -> jax.Array:
        alike = known.setdefault((array.shape, array.ravel()[:: max(array.size // 16, 1)].tobytes()), [])
        for other, found in alike:
            if np.array_equal(other, array):
                return found
        alike.append((array, jnp.asarray(array)))
        return alike[-1][1]

    return jax.tree_util.tree_map(once, theory)


def still_moments(theory: Theory, h: np.ndarray) -> Still:
    """Moments of errors at rest in modes of eigenvalues h."""
    U, y, kernel = (np.asarray(x, dtype=float) for x in (theory.U, theory.y, theory.kernel))
    over = U / h
    found = (over @ U.T, over @ kernel @ over.T, (y @ over.T).T @ (y @ over.T))
    return Still(*(jnp.asarray(x, theory.U.dtype) for x in found))
