"""The kernel side of the theory: eigensystems and learnability, kernel regression, linearized training, studies."""

from numeric.kernels.dynamics import FrozenKernelTraining, cross_entropy, squared_loss
from numeric.kernels.eigensystem import Eigensystem, circle, data_set, hypercube, hypercube_eigenvalues
from numeric.kernels.fit import PowerLaw, power_law
from numeric.kernels.linearized import Linearized, LinearizedTraining, linearize
from numeric.kernels.network import network_kernel
from numeric.kernels.parametrization import Hyperparameters, NTKParametrization
from numeric.kernels.regression import KernelRegression
from numeric.kernels.sampled import MeasuredLearnability, measure_learnability
from numeric.kernels.selfconsistent import LearnabilityPrediction, learnability
from numeric.kernels.shallow import linearization_bound, shallow_network, smoothness
from numeric.kernels.sphere import SphereSpectrum, exact_eigenvalue, series_eigenvalues, sphere_eigenvalues
from numeric.kernels.study import Study, summarize
from numeric.kernels.transfer import competition, data_learnability, mode_learnabilities, transfer_matrix

__all__ = [
    "Eigensystem",
    "FrozenKernelTraining",
    "Hyperparameters",
    "KernelRegression",
    "LearnabilityPrediction",
    "Linearized",
    "LinearizedTraining",
    "MeasuredLearnability",
    "NTKParametrization",
    "PowerLaw",
    "SphereSpectrum",
    "Study",
    "circle",
    "competition",
    "cross_entropy",
    "data_learnability",
    "data_set",
    "exact_eigenvalue",
    "hypercube",
    "hypercube_eigenvalues",
    "learnability",
    "linearization_bound",
    "linearize",
    "measure_learnability",
    "mode_learnabilities",
    "network_kernel",
    "power_law",
    "series_eigenvalues",
    "shallow_network",
    "smoothness",
    "sphere_eigenvalues",
    "squared_loss",
    "summarize",
    "transfer_matrix",
]
