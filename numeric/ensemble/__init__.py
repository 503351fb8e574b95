"""Ensembles of real networks: sampled, trained, measured, with standard errors. The judge of the theory."""

from numeric.ensemble.extrapolation import Extrapolation, extrapolate
from numeric.ensemble.networks import Networks, flip_last_layer
from numeric.ensemble.tensors import TensorEstimate, estimate_tensors
from numeric.ensemble.training import EnsembleResult, linearized_outputs, train_ensemble, trained_outputs

__all__ = [
    "EnsembleResult",
    "Extrapolation",
    "Networks",
    "TensorEstimate",
    "estimate_tensors",
    "extrapolate",
    "flip_last_layer",
    "linearized_outputs",
    "train_ensemble",
    "trained_outputs",
]
