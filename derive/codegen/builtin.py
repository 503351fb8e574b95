"""The modules that are committed: the shared layer step and one module for each built-in activation."""

from derive.activations import BUILTIN
from derive.codegen.module import activation_module, layer_module


def builtin_modules() -> dict[str, str]:
    """{module name: source} of everything under numeric/generated/."""
    return {"layer": layer_module()} | {name: activation_module(name, shared=True) for name in BUILTIN}
