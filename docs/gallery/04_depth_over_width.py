"""Depth over width

n times the dimensionless ratios of all tensors grow in proportion to depth, PDLT (∞.21)-(∞.22): the expansion parameter
of the theory is L/n.
"""

import derive

derive.exponents("tanh").plot()
