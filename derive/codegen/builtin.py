"""The modules that are committed: the layer step, the learning rates' rule, and one for each built-in activation."""

from derive.activations import BUILTIN
from derive.codegen.module import activation_module, layer_module, rule_module


def builtin_modules() -> dict[str, str]:
    """{module name: source} of everything under numeric/generated/."""
    return {"layer": layer_module(), "equivalence": rule_module()} | {
        name: activation_module(name, shared=True) for name in BUILTIN
    }
