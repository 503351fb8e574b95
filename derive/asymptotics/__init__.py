"""Formal series in powers and logs of depth, and the solver for exponents and coefficients."""
