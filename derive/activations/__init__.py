"""Activations: the whitelist parser, the built-in definitions, kinks and delta functions, exact Taylor data.

The command `derive activations` bears this folder's name. So that neither hides the other, the folder can be called:
`derive.activations()` is the command's function, `derive.verbs.activations.activations`.
"""

import importlib
import sys
from types import ModuleType

from derive.activations.builtin import BUILTIN
from derive.activations.definition import Activation, Delta, activation
from derive.activations.parser import parse_number

__all__ = ["BUILTIN", "Activation", "Delta", "activation", "parse_number"]


class _Folder(ModuleType):
    def __call__(self) -> object:
        """The built-in activations with their universality class and recommended critical initialization."""
        return importlib.import_module("derive.verbs.activations").activations()


sys.modules[__name__].__class__ = _Folder
