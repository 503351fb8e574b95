"""Finite-width predictions for a data set: contractions handed down to single neurons and sampled, in memory N².

Every tensor of the 1/n expansion is a product of two maps on pairs of labels (`numeric.generated.adjoint`), so that a
contraction with training errors costs a few products of a matrix and a vector for a drawn neuron.
"""

from numeric.trained.sampled.prediction import Options, SampledPrediction
from numeric.trained.sampled.setting import check_activation

__all__ = ["Options", "SampledPrediction", "check_activation"]
