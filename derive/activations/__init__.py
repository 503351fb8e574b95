"""Activations: the whitelist parser, the built-in definitions, kinks and delta functions, exact Taylor data."""

from derive.activations.activation import Activation, Delta, activation
from derive.activations.builtin import BUILTIN
from derive.activations.parser import parse_number

__all__ = ["BUILTIN", "Activation", "Delta", "activation", "parse_number"]
