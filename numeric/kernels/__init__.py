"""The kernel side of the theory: eigensystems and learnability, kernel regression, linearized training, studies."""

from numeric.kernels.dynamics import FrozenKernelTraining, cross_entropy, squared_loss
from numeric.kernels.eigensystem import Eigensystem, circle, data_set, hypercube, hypercube_eigenvalues
from numeric.kernels.parametrization import Hyperparameters, NTKParametrization
from numeric.kernels.regression import KernelRegression
from numeric.kernels.sampled import MeasuredLearnability, measure_learnability
from numeric.kernels.selfconsistent import LearnabilityPrediction, learnability
from numeric.kernels.sphere import SphereSpectrum, exact_eigenvalue, series_eigenvalues, sphere_eigenvalues
from numeric.kernels.transfer import competition, data_learnability, mode_learnabilities, transfer_matrix

__all__ = [
    "Eigensystem",
    "FrozenKernelTraining",
    "Hyperparameters",
    "KernelRegression",
    "LearnabilityPrediction",
    "MeasuredLearnability",
    "NTKParametrization",
    "SphereSpectrum",
    "circle",
    "competition",
    "cross_entropy",
    "data_learnability",
    "data_set",
    "exact_eigenvalue",
    "hypercube",
    "hypercube_eigenvalues",
    "learnability",
    "measure_learnability",
    "mode_learnabilities",
    "series_eigenvalues",
    "sphere_eigenvalues",
    "squared_loss",
    "transfer_matrix",
]
