"""How far off a prediction's numbers are: the errors of the flow's tensors, carried through training.

Close training inputs make small eigenvalues h of the NTK, and the projectors hold powers of 1/h: what is an error of
1e-10 in a tensor can be one of order one in a prediction. Every tensor is moved at random within its own `f.error`, a
few times, and the prediction is made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from numeric.errors import NumericError
from numeric.evaluation.results import Flow
from numeric.trained.infinite import kernel_prediction

if TYPE_CHECKING:
    from numeric.trained.prediction import Prediction

DRAWS = 2
SAFETY = 3.0
FRAGILE = 1e3  # ratio of the NTK's eigenvalues from which tensors' errors are looked at before a prediction leaves
UNKNOWN = 1e-12  # the error of tensors that come without an estimate
INFINITE, FINITE = ("mean_infinite", "covariance_infinite"), ("mean", "covariance")


class UnreliablePrediction(NumericError):
    """A correction of order 1/n that the tensors' numerical errors exceed, or that makes a variance negative."""


def _errors(flow: Any) -> Mapping[str, float]:
    try:
        return flow.error
    except (AttributeError, NumericError):
        return {}


class _Moved(Flow):
    """Tensors of an output layer alone, under a flow's names."""

    def __init__(
        self, widths: tuple[int | None, ...], names: tuple[str, ...], tensors: Mapping[str, np.ndarray]
    ) -> None:
        self.widths, self.names = widths, names
        self.__dict__.update(tensors)


def _moved(flow: Any, names: tuple[str, ...], errors: Mapping[str, float], random: np.random.Generator) -> Any:
    tensors = {}
    for name in names:
        x = np.asarray(getattr(flow, name), dtype=float)
        size = min(errors.get(name, UNKNOWN), 1.0) * float(np.abs(x).max())
        noise = random.uniform(-1, 1, x.shape)
        tensors[name] = x + size * ((noise + noise.T) / 2 if x.ndim == 2 else noise)
    return _Moved(flow.widths, names, tensors)


def prediction_error(p: Prediction, asked: tuple[str, ...]) -> dict[str, float]:
    """{"mean": ..., ...}: the largest absolute error over the test inputs; infinite if moved kernels are singular."""
    names = tuple(getattr(p.flow, "names", ("K", "Theta")))
    errors = _errors(p.flow)
    random = np.random.default_rng(0)
    found = dict.fromkeys(asked, 0.0)
    base = {name: np.asarray(p.plain(name)) for name in asked}
    for _ in range(DRAWS):
        flow = _moved(p.flow, names, errors, random)
        try:
            kernel = kernel_prediction(flow.Theta, flow.K, p.kernel.y, p.kernel.train, p.rcond, p.kernel.ridge)
            other = replace(p, flow=flow, kernel=kernel)
            for name in asked:
                found[name] = max(found[name], float(np.abs(other.plain(name) - base[name]).max(initial=0.0)))
        except NumericError:
            return dict.fromkeys(asked, float("inf"))
    rounding = {name: 1e-15 * float(np.abs(value).max(initial=0.0)) for name, value in base.items()}
    return {name: SAFETY * found[name] + rounding[name] for name in asked}


def checked(p: Prediction, name: str, value: np.ndarray) -> np.ndarray:
    """The finite-width mean or covariance, or one sentence why it is not to be had."""
    h = p.kernel.modes.h
    if len(h) and float(np.max(h)) > FRAGILE * float(np.min(h)):
        error = prediction_error(p, (name,))[name]
        infinite = p.mean_infinite if name == "mean" else p.covariance_infinite
        if name == "covariance" and value.ndim > infinite.ndim:
            infinite = infinite[..., None, None, :, :] * np.eye(p.kernel.y.shape[1])[:, :, None, None]
        correction = float(np.abs(value - infinite).max(initial=0.0))
        if error > max(correction, 1e-9 * float(np.abs(value).max(initial=0.0))):
            raise UnreliablePrediction(
                f"The {name}'s correction of order 1/n is {correction:.2g}, its numerical error {error:.2g}: the "
                f"training NTK's eigenvalues go from {np.min(h):.2g} to {np.max(h):.2g}, since training inputs "
                "nearly coincide; leave one of them out, or leave small modes untrained with rcond (say 1e-4)."
            )
    if name == "covariance":
        variance = np.diagonal(value, axis1=-2, axis2=-1)
        if p.kernel.y.ndim > 1:  # of each output; two different ones may well be anticorrelated
            variance = np.diagonal(variance, axis1=-3, axis2=-2)
        if variance.size and float(variance.min()) < -1e-10 * float(np.abs(value).max()):
            raise UnreliablePrediction(
                f"A variance comes out as {variance.min():.3g}: at width {p.width:g} the correction of order 1/n is "
                "larger than the variance itself; take a larger width, or covariance_infinite."
            )
    return value
