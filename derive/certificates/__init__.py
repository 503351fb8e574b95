"""Certificates: intervals that are proved to contain a number, by ball arithmetic and bounds read off the formula."""

from derive.certificates.brackets import bracket_ball
from derive.certificates.coefficients import with_balls
from derive.certificates.critical_points import CertifiedPoint, Findings, certify_points
from derive.certificates.outward import Interval, decimals

__all__ = ["CertifiedPoint", "Findings", "Interval", "bracket_ball", "certify_points", "decimals", "with_balls"]
