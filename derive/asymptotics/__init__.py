"""Large-depth asymptotics: formal series in powers and logs of depth, the solver, exponents, coefficients, ratios."""

from derive.asymptotics.api import ExponentTable, asymptotics, exponents
from derive.asymptotics.fit import fit_constants
from derive.asymptotics.learning_rates import LearningRates
from derive.asymptotics.off_critical import OffCritical, off_criticality
from derive.asymptotics.ratios import Ratio
from derive.asymptotics.result import Asymptotics, Step

__all__ = [
    "Asymptotics",
    "ExponentTable",
    "LearningRates",
    "OffCritical",
    "Ratio",
    "Step",
    "asymptotics",
    "exponents",
    "fit_constants",
    "off_criticality",
]
