"""The flow of a network with skip connections: plans, numbers, error; what `numeric.flow(..., skip=...)` does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions, Plan, second_route
from numeric.errors import MissingTensor, NonFiniteFlow, NumericError
from numeric.evaluation.bracket_tables import divergence
from numeric.evaluation.error import hardest_inputs
from numeric.evaluation.inputs import HYPERPARAMETERS, Parameters
from numeric.functionals.instances import THREE_LEGS
from numeric.functionals.media import make_plans, media, values
from numeric.functionals.tables import evolve, needed
from numeric.generated.functionals import RULES
from numeric.progress import progress_bar

KERNELS = ("K", "Theta")
FINER, FINEST = 1e-2, 1e-13
SAFETY, SAMPLED = 3.0, 10.0
LARGEST = 3e8  # numbers in a table of functionals; some thirty to sixty exist at a time


def missing_functionals(functions: Functions) -> dict[str, str]:
    """{tensor: one sentence} for the tensors of residual layers that do not exist for this activation."""
    missing = {}
    for name in ("Theta", *RULES, *THREE_LEGS):
        if functions.kinks_at(0):
            missing[name] = (
                f"{name} is not available for {functions.name}, which jumps at zero: s' is a delta function."
            )
            continue
        if name == "Theta":
            continue
        need = needed((name,))
        for a, b in need.own:
            reason = divergence(functions, a + b)
            if reason:
                missing[name] = f"{name} does not exist for {functions.name}: it needs four activations with {reason}."
                break
        if name not in missing and any(functions.has_delta(k) for a, b in need.crossed for k in a + b):
            missing[name] = (
                f"{name} of a residual network is not available for {functions.name}: it needs delta functions at one "
                "layer beside activations of another."
            )
    return missing


def choose(functions: Functions, tensors: Sequence[str] | str | None) -> tuple[tuple[str, ...], dict[str, str]]:
    """K, Theta and the tensors asked for (what they depend on included), and why others do not exist."""
    missing = missing_functionals(functions)
    everything = (*KERNELS, *RULES, *THREE_LEGS)
    if tensors is None:
        known = {name: why for name, why in missing.items() if name not in THREE_LEGS}
        return tuple(name for name in (*KERNELS, *RULES) if name not in missing), known
    asked = [tensors] if isinstance(tensors, str) else list(tensors)
    for name in asked:
        if name not in everything:
            raise NumericError(f"There is no tensor {name!r}; choose among {' '.join(everything)}.")
        if name in missing:
            raise MissingTensor(missing[name])
    names = {"K", *asked}
    finite = tuple(name for name in (*RULES, *THREE_LEGS) if name in asked)
    if finite:
        names |= {key.name for key in needed(finite).keys}
        names |= {"Theta"} if names & set(RULES) - {"V", "G1"} else set()
    return tuple(name for name in everything if name in names and name not in missing), missing


class Residual:
    """What stays the same: the activation, the tensors, widths, hyperparameters, skips."""

    def __init__(
        self,
        functions: Functions,
        names: tuple[str, ...],
        widths: tuple[int, ...],
        parameters: Parameters,
        skip: jax.Array,
        tolerance: float,
    ) -> None:
        self.functions, self.names, self.widths, self.tolerance = functions, names, widths, tolerance
        self.parameters, self.skip = parameters, skip
        self.tensors = tuple(name for name in names if name in RULES or name in THREE_LEGS)
        self.own = values(parameters, skip, widths)
        self.need = needed(self.tensors)

    def plans(self, X: jax.Array) -> tuple[Plan, ...]:
        return make_plans(self.functions, self.need, X, self.own, self.tolerance)

    def check_size(self, size: int) -> None:
        """Tables hold L^2 N^4 numbers."""
        count = len(self.widths) ** 2 * size**4
        if self.tensors and count > LARGEST:
            raise NumericError(
                f"A residual network of depth {len(self.widths)} on {size} inputs needs tables of {count:.1e} numbers; "
                "use fewer inputs or layers."
            )

    def pure(self, X: jax.Array, plans: tuple[Plan, ...]) -> dict[int, dict[str, jax.Array]]:
        """Inside jit, grad and vmap: no value is looked at."""
        found = media(self.functions, self.need, (plans[0], plans[1]), X, self.own)
        return self.layers({"K": found.K, "Theta": found.Theta} | self.evolved(jnp, found))

    def concrete(
        self, X: jax.Array, plans: tuple[Plan, ...], progress: bool | None = False
    ) -> dict[int, dict[str, jax.Array]]:
        """With numbers; every layer is checked."""
        self.check_size(X.shape[0])
        with progress_bar(1, progress, "pairs of layers") as tick:
            found = media(self.functions, self.need, (plans[0], plans[1]), X, self.own, tick)
            arrays = {"K": found.K, "Theta": found.Theta} | self.evolved(np, found)
        layers = self.layers(arrays)
        for number, tensors in layers.items():
            for name, x in tensors.items():
                if not bool(jnp.isfinite(x).all()):
                    raise NonFiniteFlow(
                        f"{name} overflows at layer {number} of {len(layers)}: scale the branches (C_W) down."
                    )
        return layers

    def evolved(self, xp: Any, found: Any) -> dict[str, Any]:
        return evolve(xp, found, self.tensors) if self.tensors else {}

    def layers(self, arrays: dict[str, Any]) -> dict[int, dict[str, jax.Array]]:
        depth = len(self.widths)
        dtype = self.skip.dtype
        return {
            layer + 1: {name: jnp.asarray(arrays[name][layer], dtype) for name in self.names} for layer in range(depth)
        }


def estimate(run: Residual, X: jax.Array, output: dict[str, jax.Array]) -> dict[str, float]:
    """{tensor: error at the last layer relative to its largest entry}, from a second evaluation with finer rules.

    Closed forms go through the generic series there. Of more than four inputs the hardest four are compared.
    """
    labels = hardest_inputs(np.asarray(X, float), np.asarray(output["K"], float), None, count=4)
    parameters = Parameters(**{name: getattr(run.parameters, name).astype(jnp.float64) for name in HYPERPARAMETERS})
    other = Residual(
        second_route(run.functions),
        run.names,
        run.widths,
        parameters,
        run.skip.astype(jnp.float64),
        max(run.tolerance * FINER, FINEST),
    )
    errors = dict.fromkeys(run.names, float("inf"))
    inputs = X.astype(jnp.float64)[labels]
    depth = len(run.widths)
    with np.errstate(all="ignore"), suppress(NumericError):
        again = other.concrete(inputs, other.plans(inputs))[depth]
        rounding = 2 * depth * float(jnp.finfo(X.dtype).eps)
        safety = SAFETY if len(labels) == len(X) else SAMPLED
        for name in run.names:
            full = np.asarray(output[name], dtype=float)
            difference = np.abs(full[np.ix_(*[labels] * full.ndim)] - np.asarray(again[name])).max()
            errors[name] = safety * float(difference) / max(float(np.abs(full).max()), 1e-300) + rounding
    return errors
