"""Two nearby inputs: the delta-expansion, finite angles, robustness and variance, interpolation."""

from derive.nearby.angle import finite_angle, psi_series
from derive.nearby.behaviour import Behaviour
from derive.nearby.deviation import Deviation
from derive.nearby.expansion import DeltaRecursion, delta_recursions, first_layer
from derive.nearby.flow import deviation_asymptotics
from derive.nearby.interpolation import Starpolation, interpolation_mean, starpolation
from derive.nearby.one_input import Generalization, generalization, one_training_input

__all__ = [
    "Behaviour",
    "DeltaRecursion",
    "Deviation",
    "Generalization",
    "Starpolation",
    "delta_recursions",
    "deviation_asymptotics",
    "finite_angle",
    "first_layer",
    "generalization",
    "interpolation_mean",
    "one_training_input",
    "psi_series",
    "starpolation",
]
