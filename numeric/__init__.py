"""Effective theory in numbers (JAX): the multi-input flow, predictions, ensembles. float64 throughout by default.

Importing this package switches JAX's 64-bit mode on and keeps compiled programs on disk (`numeric.runtime`).
"""

from numeric.runtime import configure

configure()
