"""Criticality: susceptibilities, fixed points, all critical initializations, universality class and stability."""

from derive.critical.critical import criticality
from derive.critical.fixed import FixedPoint, FixedPoints, fixed_points
from derive.critical.points import Criticality, CriticalPoint
from derive.critical.susceptibility import chi_parallel, chi_perp, closed_form, kernel_step

__all__ = [
    "CriticalPoint",
    "Criticality",
    "FixedPoint",
    "FixedPoints",
    "chi_parallel",
    "chi_perp",
    "closed_form",
    "criticality",
    "fixed_points",
    "kernel_step",
]
