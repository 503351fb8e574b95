"""NTK, dNTK and ddNTKs of a given JAX function."""

from numeric.empirical.contractions import empirical_ddntk, empirical_dntk, empirical_ntk

__all__ = ["empirical_ddntk", "empirical_dntk", "empirical_ntk"]
