"""The multi-input flow: K, Theta and every finite-width tensor through the layers, for one activation and any inputs.

float64 by default. The kernel is run through the layers first; a quadrature plan is then chosen on the host from the
concrete kernels, and the layer step, compiled once, does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from numeric.activation import load, select
from numeric.brackets import Functions, Plan
from numeric.core import Tensors, advance, first_layer, layer_values, needed
from numeric.engine import choose, missing_tensors
from numeric.errors import MissingTensor, NonFiniteFlow, NumericError
from numeric.inputs import (
    HYPERPARAMETERS,
    Parameters,
    is_traced,
    read_depth,
    read_dtype,
    read_inputs,
    read_parameters,
    read_widths,
)
from numeric.results import Flow
from numeric.sharding import everywhere, local, make_mesh, split
from numeric.steps import Steps, Values

TOLERANCE = {jnp.float64: 1e-10, jnp.float32: 1e-5}
MEMORY = 8e9


def flow(
    activation: Any,
    X: Any,
    depth: int,
    width: int | Sequence[int] = 1,
    C_b: Any = 0.0,
    C_W: Any = 1.0,
    lambda_b: Any = 1.0,
    lambda_W: Any = 1.0,
    *,
    tensors: Sequence[str] | str | None = None,
    layers: str | Sequence[int] = "all",
    tolerance: float | None = None,
    dtype: Any = "float64",
    memory: float = MEMORY,
    plan: tuple[Plan, ...] | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: bool = False,
) -> Flow:
    """Evaluate the theory of a network on the inputs X, shape (N, n_0).

    `depth` is L, the number of weight layers; `width` one number or the L - 1 hidden widths; each hyperparameter a
    number or one value a layer. `activation` is a name, a formula in z or a module written by `derive generate`.
    `tensors` asks for some of K Theta V G1 D F H1 A B P Q R S T U (and what they depend on; all that exist by default),
    `layers` for the layers to keep ("all", "last", or numbers). `tolerance` is the accuracy of four-point brackets
    relative to the largest entry (pairs are more accurate), `memory` a budget in bytes; `devices`, e.g. jax.devices(),
    spreads the work over them, and over processes under jax.distributed; `progress` shows a bar.

    Under jax.jit, jax.grad and jax.vmap pass `plan=f.plan` of a flow f at nearby values: nothing is then looked at, and
    the result is a pure function of X and the hyperparameters.

    >>> f = flow("tanh", [[1.0, 0.0], [0.6, 0.8]], depth=2, width=10, tensors="Theta")
    >>> [round(float(x), 6) for x in f.K[0]]
    [0.273676, 0.160238]
    """
    module = load(activation)
    functions, steps = module.FUNCTIONS, module.STEPS
    kind = read_dtype(dtype)
    inputs = read_inputs(X, kind)
    depth = read_depth(depth)
    widths = read_widths(width, depth, inputs.shape[1])
    parameters = read_parameters(depth, kind, C_b=C_b, C_W=C_W, lambda_b=lambda_b, lambda_W=lambda_W)
    names, missing = _choose_tensors(functions, steps, tensors)
    keep = _layers_to_keep(layers, depth)
    mesh = make_mesh(devices) if devices is not None else None
    run = _Run(functions, steps, names, widths, parameters, _tolerance(tolerance, kind), mesh)
    if plan is None and is_traced(inputs, parameters):
        raise NumericError("Inside jit, grad or vmap pass plan=f.plan of a flow f computed outside at nearby values.")
    if plan is not None:
        kept = run.with_plan(inputs, plan, keep)
        return Flow(module, names, widths, parameters, kept, plan, missing)
    _check_memory(len(inputs), steps, names, len(keep), kind, memory)
    kept, plan = run.concrete(inputs, keep, progress)
    estimate = partial(_estimate, run, inputs, kept)
    return Flow(module, names, widths, parameters, kept, plan, missing, estimate)


class _Run:
    """One evaluation: what stays the same from layer to layer."""

    def __init__(
        self,
        functions: Functions,
        steps: Steps,
        names: tuple[str, ...],
        widths: tuple[int, ...],
        parameters: Parameters,
        tolerance: float,
        mesh: Mesh | None = None,
    ) -> None:
        self.functions, self.steps, self.names, self.mesh = functions, steps, names, mesh
        self.widths, self.parameters, self.tolerance = widths, parameters, tolerance
        self.depth = len(widths)
        self.pairs, self.quads = needed(steps, names)

    def values(self, layer: int) -> Values:
        return layer_values(self.parameters, self.widths, layer)

    def with_plan(self, X: jax.Array, plan: tuple[Plan, ...], keep: set[int]) -> dict[int, Tensors]:
        """The pure evaluation: no value is looked at."""
        tensors = first_layer(self.steps, self.names, X, self.values(1))
        kept = {1: tensors} if 1 in keep else {}
        for layer in range(2, self.depth + 1):
            tensors = advance(self.functions, self.steps, self.names, plan[layer - 2], self.values(layer), tensors)
            if layer in keep:
                kept[layer] = tensors
        return kept

    def concrete(self, X: jax.Array, keep: set[int], progress: bool) -> tuple[dict[int, Tensors], tuple[Plan, ...]]:
        """The evaluation with numbers: plans are chosen as the kernels become known, every layer is checked."""
        tensors = first_layer(self.steps, self.names, X, self.values(1))
        self.check(tensors, 1)
        plan = self.shared_plan(tensors) if self.quads else None
        plans = []
        kept = {1: tensors} if 1 in keep else {}
        with _progress(self.depth - 1, progress, "layers") as tick:
            for layer in range(2, self.depth + 1):
                own = plan if plan is not None else self.plan(np.asarray(tensors["K"]), layer)
                tensors = self.step(own, layer, tensors)
                self.check(tensors, layer)
                plans.append(own)
                if layer in keep:
                    kept[layer] = tensors
                tick()
        return kept, tuple(plans)

    def step(self, plan: Plan, layer: int, tensors: Tensors) -> Tensors:
        """One compiled layer step, on one device or on the mesh."""
        step = _compiled(self.functions, self.names, _Steps(self.steps), self.mesh)
        if self.mesh is None:
            return step(plan, self.values(layer), tensors)
        arguments = (split(plan, self.mesh.size), self.values(layer), tensors)
        return local(step(*everywhere(arguments, self.mesh)))

    def plan(self, kernels: np.ndarray, layer: int) -> Plan:
        try:
            return choose(self.functions, kernels, self.pairs, self.quads, self.tolerance)
        except NumericError as error:
            raise type(error)(f"At layer {layer}: {error}") from None

    def shared_plan(self, tensors: Tensors) -> Plan:
        """One plan that holds for every layer's kernel, so that one compiled step serves all layers."""
        kernel = {"K": tensors["K"]}
        lean = _Run(self.functions, self.steps, ("K",), self.widths, self.parameters, min(self.tolerance, 1e-10))
        kernels = [np.asarray(kernel["K"])]
        for layer in range(2, self.depth):
            kernel = lean.step(lean.plan(kernels[-1], layer), layer, kernel)
            self.check(kernel, layer)
            kernels.append(np.asarray(kernel["K"]))
        return self.plan(np.stack(kernels), self.depth)

    def check(self, tensors: Tensors, layer: int) -> None:
        """Nothing but finite numbers goes on to the next layer."""
        for name, finite in _all_finite(tensors).items():
            if not finite:
                raise NonFiniteFlow(
                    f"{name} overflows at layer {layer} of {self.depth}: off criticality the flow grows exponentially "
                    f"with depth; change C_W or C_b, or stop at depth {max(layer - 1, 1)}."
                )


class _Steps:
    """The generated table as a static argument of a compiled function: compared by the functions in it."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.key = tuple((name, step.advance) for name, step in steps.items())

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Steps) and self.key == other.key


@lru_cache(maxsize=256)
def _compiled(
    functions: Functions, names: tuple[str, ...], table: _Steps, mesh: Mesh | None
) -> Callable[[Plan, Values, Tensors], Tensors]:
    def layer_step(plan: Plan, values: Values, tensors: Tensors) -> Tensors:
        return advance(functions, table.steps, names, plan, values, tensors, mesh)

    return jax.jit(layer_step, out_shardings=NamedSharding(mesh, PartitionSpec()) if mesh is not None else None)


@jax.jit
def _finite(tensors: Tensors) -> dict[str, jax.Array]:
    """Whether all entries stay below the fourth root of the largest number: brackets multiply four of them."""
    return {name: (jnp.abs(x) < float(jnp.finfo(x.dtype).max) ** 0.25).all() for name, x in tensors.items()}


def _all_finite(tensors: Tensors) -> dict[str, bool]:
    return {name: bool(flag) for name, flag in _finite(tensors).items()}


def _choose_tensors(
    functions: Functions, steps: Steps, tensors: Sequence[str] | str | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The names to compute, and why others do not exist."""
    missing = missing_tensors(functions, steps)
    if tensors is None:
        return tuple(name for name in steps if name not in missing), missing
    names = select(steps, tensors)
    asked = [tensors] if isinstance(tensors, str) else list(tensors)
    for name in (*asked, *names):
        if name in missing:
            raise MissingTensor(missing[name])
    return names, missing


def _layers_to_keep(layers: str | Sequence[int], depth: int) -> set[int]:
    if layers == "all":
        return set(range(1, depth + 1))
    if layers == "last":
        return {depth}
    if isinstance(layers, str) or any(not isinstance(l, int | np.integer) or not 1 <= l <= depth for l in layers):
        raise NumericError(f'layers is "all", "last" or a list of numbers from 1 to {depth}.')
    return {int(l) for l in layers} | {depth}


def _tolerance(tolerance: float | None, kind: Any) -> float:
    if tolerance is None:
        return TOLERANCE[kind]
    if not 1e-15 <= float(tolerance) <= 0.1:
        raise NumericError(f"tolerance lies between 1e-15 and 0.1; {tolerance} does not.")
    return float(tolerance)


def _check_memory(size: int, steps: Steps, names: tuple[str, ...], kept: int, kind: Any, memory: float) -> None:
    """Refuse what cannot fit, before anything is computed."""
    entry = jnp.dtype(kind).itemsize
    ranks = [steps[name].rank for name in names]
    per_layer = sum(entry * size**rank for rank in ranks)
    working = 2 * per_layer + (6 * entry * size**4 if 4 in ranks else 12 * entry * size**2)
    total = working + max(kept - 1, 0) * per_layer
    if total > memory:
        hint = 'layers="last", ' if kept > 1 else ""
        raise NumericError(
            f"{size} inputs and these tensors need about {total / 1e9:.1f} GB, more than memory={memory / 1e9:.1f} GB; "
            f"use {hint}fewer inputs or tensors, or raise memory."
        )


def _estimate(run: _Run, X: jax.Array, kept: dict[int, Tensors]) -> dict[str, float]:
    """Compare with a finer, separately planned evaluation on a few inputs: the recursions close on any subset.

    The inputs are the one of largest and the one of smallest norm, and the two that are most alike, in reversed order,
    so that other pairs are conditioned on. Smooth activations with closed forms are compared with the generic engine.
    An estimate that cannot be made is infinite.
    """
    gram = np.asarray(X @ X.T, dtype=float)
    norm = np.sqrt(np.maximum(np.diagonal(gram), 1e-300))
    rho = np.abs(gram) / np.outer(norm, norm) - 2 * np.eye(len(norm))
    alike = np.unravel_index(np.argmax(rho), rho.shape)
    chosen = sorted({int(np.argmax(norm)), int(np.argmin(norm)), *(int(i) for i in alike)}, reverse=True)
    own = Parameters(**{name: getattr(run.parameters, name).astype(jnp.float64) for name in HYPERPARAMETERS})
    finer = max(run.tolerance * 1e-2, 1e-14)
    other = _Run(_by_quadrature(run.functions), run.steps, run.names, run.widths, own, finer)
    try:
        reference, _ = other.concrete(X[np.asarray(chosen)].astype(jnp.float64), {run.depth}, False)
    except NumericError:
        return {name: float("inf") for name in run.names}
    errors = {}
    for name in run.names:
        full = np.asarray(kept[run.depth][name], dtype=float)
        part = full[np.ix_(*[chosen] * full.ndim)]
        largest = max(float(np.max(np.abs(full))), 1e-300)
        errors[name] = float(np.max(np.abs(part - np.asarray(reference[run.depth][name])))) / largest
    rounding = float(jnp.finfo(X.dtype).eps) * 2 * run.depth
    return {name: 3 * error + rounding for name, error in errors.items()}


@lru_cache(maxsize=64)
def _by_quadrature(functions: Functions) -> Functions:
    """The same activation without its closed forms, where it has some."""
    if functions.family in ("gaussian-erf", "exponential", "polynomial"):
        return replace(functions, family="mehler")
    return functions


@contextmanager
def _progress(total: int, wanted: bool, what: str) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error, when asked for."""
    if not wanted or total < 1:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
