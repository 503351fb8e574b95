"""From what a user calls an activation to its generated module: committed, given, or generated in memory."""

from __future__ import annotations

import importlib
import re
import types
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from numeric.errors import NumericError
from numeric.subscripts import Steps

if TYPE_CHECKING:
    import sympy as sp

    from derive.activations import Activation

Definition: TypeAlias = "str | types.ModuleType | sp.Expr | Activation"
"""What may stand for an activation: a name, a formula in z, a SymPy expression, an activation, a generated module."""


@lru_cache(maxsize=64)
def _committed(name: str) -> types.ModuleType | None:
    if name in ("layer", "__init__") or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return None
    try:
        module = importlib.import_module(f"numeric.generated.{name}")
    except ModuleNotFoundError:
        return None
    return module if hasattr(module, "FUNCTIONS") else None


@lru_cache(maxsize=64)
def _generated(definition: str) -> types.ModuleType:
    """The module of a formula that has passed derive's whitelist parser, compiled in memory.

    Its source is kept on disk with derive's other answers, so that the next process need not import SymPy; wherever it
    comes from it is read and checked (`derive.safety`) before it runs.
    """
    from derive.cache import recall
    from derive.safety import UnsafeSource, check_source

    made = recall("generated module", definition, lambda: _written(definition))
    if made["committed"]:
        return importlib.import_module(f"numeric.generated.{made['committed']}")
    try:
        tree = check_source(made["source"], imports=True)
    except UnsafeSource:  # what was kept is not what we wrote
        tree = check_source(_written(definition)["source"], imports=True)
    module = types.ModuleType(f"numeric.generated.in_memory_{abs(hash(definition))}", made["definition"])
    exec(compile(tree, "<generated activation>", "exec"), module.__dict__)
    return module


def _written(definition: str) -> dict[str, str]:
    """The committed module's name, or the source that is generated for a formula."""
    from derive.activations import activation
    from derive.codegen import activation_module

    sigma = activation(definition)
    if _committed(sigma.name) is not None:
        return {"committed": sigma.name}
    return {"committed": "", "definition": sigma.definition, "source": activation_module(sigma, shared=True)}


def _name(activation: Any) -> str:
    """The canonical text of an activation object or a SymPy expression."""
    from derive.activations import activation as read

    return read(activation).name


def load(activation: Definition) -> types.ModuleType:
    """The generated module (FUNCTIONS and STEPS) of a name, a formula in z, a SymPy expression or a module itself."""
    if isinstance(activation, types.ModuleType) and hasattr(activation, "FUNCTIONS") and hasattr(activation, "STEPS"):
        return activation
    if isinstance(activation, str):
        return _committed(activation.strip()) or _generated(activation.strip())
    if hasattr(activation, "free_symbols") or hasattr(activation, "derivative_pieces"):
        return _generated(_name(activation))
    raise NumericError(
        f"An activation is a name, a formula in z, a SymPy expression or a generated module, "
        f"not {type(activation).__name__}."
    )


def select(steps: Steps, tensors: Any) -> tuple[str, ...]:
    """The requested tensors and all that they depend on, in the order of evaluation; None asks for all."""
    if tensors is None:
        return tuple(steps)
    if not isinstance(tensors, Iterable):
        raise NumericError(f"tensors is a name or a list of names among {' '.join(steps)}, not {tensors!r}.")
    wanted = {"K"}
    queue = [tensors] if isinstance(tensors, str) else list(tensors)
    while queue:
        name = queue.pop()
        if name not in steps:
            raise NumericError(f"There is no tensor {name!r} here; choose among {' '.join(steps)}.")
        wanted.add(name)
        queue += [other for other in steps[name].tensors if other not in wanted]
    return tuple(name for name in steps if name in wanted)
