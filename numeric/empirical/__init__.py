"""NTK, dNTK and ddNTKs of a given JAX function, and what the theory says of that one network."""

from numeric.empirical.differentials import empirical_ddntk, empirical_dntk
from numeric.empirical.measure import network_tensors
from numeric.empirical.ntk import empirical_ntk, ntk_vector_product, pseudo_ntk

__all__ = [
    "empirical_ddntk",
    "empirical_dntk",
    "empirical_ntk",
    "network_tensors",
    "ntk_vector_product",
    "pseudo_ntk",
]
