"""Gaussian calculus of an activation: brackets, closed forms, series in K, numbers to any precision."""

from derive.gaussian.bracket import Bracket, Sigma, Z, expect, partial
from derive.gaussian.calculus import kernel_derivative, kernel_symbol, remove_insertions, single_input_normal_form
from derive.gaussian.closed_forms import exact
from derive.gaussian.evaluation import Evaluation, evaluate, value
from derive.gaussian.kernel_series import KernelSeries, series, taylor_symbol
from derive.gaussian.pattern import parse_bracket

__all__ = [
    "Bracket",
    "Evaluation",
    "KernelSeries",
    "Sigma",
    "Z",
    "evaluate",
    "exact",
    "expect",
    "kernel_derivative",
    "kernel_symbol",
    "parse_bracket",
    "partial",
    "remove_insertions",
    "series",
    "single_input_normal_form",
    "taylor_symbol",
    "value",
]
