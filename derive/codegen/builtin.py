"""The committed modules: layer step, residual layers, rates, training theory, adjoints, one an activation."""

from derive.activations import BUILTIN
from derive.codegen.module import (
    activation_module,
    adjoint_module,
    functionals_module,
    layer_module,
    rule_module,
    terms_module,
    training_module,
)


def builtin_modules() -> dict[str, str]:
    """{module name: source} of everything under numeric/generated/."""
    shared = {
        "layer": layer_module(),
        "functionals": functionals_module(),
        "equivalence": rule_module(),
        "terms": terms_module(),
        "training": training_module(),
        "adjoint": adjoint_module(),
    }
    return shared | {name: activation_module(name, shared=True) for name in BUILTIN}
