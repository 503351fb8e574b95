"""Activations: the whitelist parser, the built-in definitions, kinks and delta functions, exact Taylor data."""

from derive.activations.activation import Activation, Delta, activation
from derive.activations.builtin import BUILTIN

__all__ = ["BUILTIN", "Activation", "Delta", "activation"]
