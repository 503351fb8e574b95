"""Piecewise linear activations with their kink at zero: arc-cosine pair brackets, quadruples by sign expectations."""

from __future__ import annotations

from numeric.brackets.linear.calculus import PiecewiseLinear

__all__ = ["PiecewiseLinear"]
