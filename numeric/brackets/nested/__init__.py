"""Nested quadrature that knows where the factors are sharp: every covariance and variance, in its own time."""

from __future__ import annotations

from numeric.brackets.nested.calculus import Nested, affordable, plan_all
from numeric.brackets.nested.plan import NestedBucket, fill_nested, plan_nested

__all__ = ["Nested", "NestedBucket", "affordable", "fill_nested", "plan_all", "plan_nested"]
