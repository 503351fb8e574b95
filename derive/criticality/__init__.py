"""Criticality: susceptibilities, fixed points, all critical initializations, universality class and stability."""

from derive.criticality.critical import criticality
from derive.criticality.points import Criticality, CriticalPoint
from derive.criticality.susceptibility import chi_parallel, chi_perp, closed_form, kernel_step

__all__ = ["CriticalPoint", "Criticality", "chi_parallel", "chi_perp", "closed_form", "criticality", "kernel_step"]
