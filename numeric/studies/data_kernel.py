"""Kernel regression on a data set with a network's kernel: fit, risks, spectrum, predictions, what to label next.

Small sets are factorized; above what the memory holds, conjugate gradients with blocks of the kernel do the same, with
generalized cross-validation by random traces and without the leave-one-out error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from numeric.empirical import pseudo_ntk
from numeric.ensemble.networks import Networks, Params
from numeric.errors import NumericError
from numeric.evaluation.rectangle import NetworkKernel
from numeric.given import a_seed, finite, whole
from numeric.trained.conjugate_gradients import nystrom
from numeric.trained.iterative_regression import IterativeRegression
from numeric.trained.kernel_regression import KernelRegression, ridge_path
from numeric.trained.look_ahead import expected_change
from numeric.trained.modes import modes_of
from numeric.trained.operators import MEMORY, BlockKernel, Kernel
from numeric.trained.sketched_regression import NystromRegression

Array = np.ndarray
KERNELS = ("Theta", "K", "pseudo-NTK")
MATRICES = 5
"""Matrices of the kernel's size that the direct way holds."""
TOP = 64
"""Eigenvalues that the iterative way finds."""


@dataclass(frozen=True)
class DataKernel:
    """A kernel as a function of two sets of inputs, with its initial function (zero at infinite width)."""

    kernel: Kernel
    initial: Kernel | None
    parameters: dict[str, Array]


@dataclass(frozen=True)
class DataFit:
    """What `derive kernel` reports; arrays over inputs, or None where they were not asked for or cannot be had."""

    solver: str
    ridge: float
    train_mse: float
    gcv: float
    gcv_error: float
    loo_mse: float | None
    leave_one_out: Array | None
    eigenvalues: Array
    target_share: Array
    effective_dimension: float | None
    condition: float
    prediction: Array | None
    prediction_error: Array | None
    look_ahead: Array | None
    iterations: int | None
    residual: float | None


def data_kernel(
    activation: str,
    X: Array,
    depth: int,
    kernel: str,
    outputs: int,
    width: int | None = None,
    C_b: float | None = None,
    C_W: float | None = None,
    lambda_b: float | None = None,
    lambda_W: float | None = None,
    seed: int = 0,
) -> DataKernel:
    """K or Theta at infinite width, or the pseudo-NTK of one sampled network of the given width."""
    if kernel not in KERNELS:
        raise NumericError(f"The kernel is one of {', '.join(KERNELS)}, not {kernel!r}.")
    tensor = "K" if kernel == "K" else "Theta"
    infinite = NetworkKernel(activation, X, depth, tensor, C_b=C_b, C_W=C_W, lambda_b=lambda_b, lambda_W=lambda_W)
    if kernel != "pseudo-NTK":
        return DataKernel(infinite, None, infinite.parameters)
    if width is None:
        raise NumericError("The pseudo-NTK is of a network of finite width: give its width.")
    hidden = (whole(width, "The width", least=1, most=10**5),) * (depth - 1)
    own = {name: tuple(map(float, value)) for name, value in infinite.parameters.items()}
    nets = Networks(activation, (X.shape[1], *hidden, outputs), **own)
    params = nets.sample_one(jax.random.key(a_seed(seed)))
    rates = nets.rates()

    def apply(p: Params, inputs: jax.Array) -> jax.Array:
        return nets.output_one(p, inputs).T

    def pseudo(X1: Array, X2: Array) -> Array:
        return np.asarray(pseudo_ntk(apply, params, jax.numpy.asarray(X1), rates, X2=jax.numpy.asarray(X2)))

    def initial(X1: Array, _: Array) -> Array:
        return np.asarray(apply(params, jax.numpy.asarray(X1)))

    return DataKernel(pseudo, initial, infinite.parameters)


def fit_data(
    source: DataKernel,
    X: Array,
    y: Array,
    test: Array | None = None,
    candidates: Array | None = None,
    ridge: float | str = "loo",
    landmarks: int | None = None,
    seed: int = 0,
    memory: float = MEMORY,
    progress: bool | None = None,
) -> DataFit:
    """Fit y (N, outputs) on X; `ridge` is a number, "loo" or "gcv". With `landmarks` a sketch gives the predictions."""
    finite(memory, "The memory", above=0)
    blocks = BlockKernel(source.kernel, X, memory, progress)
    f0 = None if source.initial is None else source.initial(X, X)
    start = 0.0 if source.initial is None or test is None else source.initial(test, test)
    if MATRICES * 8 * len(X) ** 2 <= memory:
        found, fit = _direct(blocks, y, f0, ridge)
    else:
        found, fit = _iterative(blocks, y, f0, ridge, seed, memory, progress), None
    prediction, error = None, None
    if test is not None:
        if landmarks is not None:
            level = max(found.ridge, 1e-12 * float(found.eigenvalues[0]))
            sketch = NystromRegression(blocks, y, level, landmarks, f0, seed).predict(test, start)
            prediction, error = sketch.mean, sketch.error
        else:
            assert found.prediction is not None
            prediction = blocks.evaluate(test, found.prediction) + start
    scores = None
    if candidates is not None:
        if fit is None:
            raise NumericError(f"look-ahead needs the inverse of the kernel: raise memory above {40 * len(X) ** 2:.2g}")
        scores = _scores(blocks, fit, X, candidates, test)
    values = {name: getattr(found, name) for name in found.__dataclass_fields__}
    return DataFit(**{**values, "prediction": prediction, "prediction_error": error, "look_ahead": scores})


def _direct(blocks: BlockKernel, y: Array, f0: Array | None, ridge: float | str) -> tuple[DataFit, KernelRegression]:
    K = blocks.between(blocks.X, blocks.X)
    chosen = ridge_path(K, y, f0).best(ridge) if isinstance(ridge, str) else finite(ridge, "The ridge", least=0)
    fit = KernelRegression(K, y, chosen, f0)
    h, U = (lambda modes: (modes.h[::-1], modes.U[:, ::-1]))(modes_of(K, singular=True))
    power = np.sum((U.T @ fit.residual) ** 2, axis=1)
    total = float(power.sum())
    error = fit.residual - K @ fit.alpha
    return (
        DataFit(
            solver="factorization",
            ridge=chosen,
            train_mse=float(np.mean(error**2)),
            gcv=fit.gcv,
            gcv_error=0.0,
            loo_mse=fit.loo_mse,
            leave_one_out=fit.leave_one_out,
            eigenvalues=h / len(K),
            target_share=power / total if total > 0 else power,
            effective_dimension=float(np.sum(h / (h + chosen))) if chosen > 0 else float(len(K)),
            condition=float((h[0] + chosen) / (h[-1] + chosen)),
            prediction=fit.alpha,
            prediction_error=None,
            look_ahead=None,
            iterations=None,
            residual=None,
        ),
        fit,
    )


def _iterative(
    blocks: BlockKernel,
    y: Array,
    f0: Array | None,
    ridge: float | str,
    seed: int,
    memory: float,
    progress: bool | None,
) -> DataFit:
    if isinstance(ridge, str):
        raise NumericError(
            f"{len(y)} inputs are more than memory={memory:g} bytes factorizes, so the ridge cannot be chosen by "
            f"{ridge}: give a number, or memory above {8 * MATRICES * len(y) ** 2:.2g}"
        )
    fit = IterativeRegression(blocks, y, finite(ridge, "The ridge", least=0), f0, seed=seed, progress=progress)
    top = nystrom(blocks, min(2 * TOP, len(y) // 2), seed)
    power = np.sum((top.U.T @ fit.residual) ** 2, axis=1)
    gcv = fit.gcv()
    alpha = fit.alpha
    return DataFit(
        solver="conjugate gradients",
        ridge=float(ridge),
        train_mse=float(np.mean((ridge * alpha) ** 2)),
        gcv=gcv.value,
        gcv_error=gcv.error,
        loo_mse=None,
        leave_one_out=None,
        eigenvalues=top.h[:TOP] / len(y),
        target_share=power[:TOP] / float(np.sum(fit.residual**2)),
        effective_dimension=None,
        condition=float((top.h[0] + ridge) / ridge) if ridge > 0 else float("inf"),
        prediction=alpha,
        prediction_error=None,
        look_ahead=None,
        iterations=fit.solution.iterations,
        residual=float(fit.solution.residual.max()),
    )


def _scores(blocks: BlockKernel, fit: KernelRegression, X: Array, candidates: Array, test: Array | None) -> Array:
    """The expected change that each candidate's label makes on the test inputs (the candidates without any)."""
    seen = candidates if test is None else test
    own = np.concatenate([np.diagonal(blocks.between(rows, rows)) for rows in _parts(candidates)])
    return expected_change(
        fit, blocks.between(candidates, X), own, blocks.between(seen, X), blocks.between(seen, candidates)
    )


def _parts(X: Array, size: int = 64) -> Sequence[Array]:
    return [X[i : i + size] for i in range(0, len(X), size)]
