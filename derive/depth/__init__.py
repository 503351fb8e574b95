"""Large-depth asymptotics: formal series in powers and logs of depth, the solver, exponents, coefficients, ratios."""

from derive.depth.exponent_table import ExponentTable, asymptotics, exponents
from derive.depth.fit import fit_constants
from derive.depth.learning_rates import LearningRates
from derive.depth.off_critical import OffCritical, off_criticality
from derive.depth.ratios import Ratio
from derive.depth.result import Asymptotics
from derive.steps import Step

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
