"""One evaluation of the flow: the first layer, plans chosen as kernels become known, a compiled step for each layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from numeric.brackets import Functions, Kernels, Plan, better_alone, needs_no_plan, plan_pairs_of
from numeric.errors import NonFiniteFlow, NumericError
from numeric.evaluation.bracket_tables import choose
from numeric.evaluation.close_inputs import CLOSE, CLOSE_KERNELS, ClosePairs, gaps, is_standard, pair_flows, put_in
from numeric.evaluation.compiled import Table, Tick, layer_step
from numeric.evaluation.host import host_step, on_host
from numeric.evaluation.inputs import Parameters
from numeric.evaluation.kernel_tiles import Network, Side, kernel_tiles
from numeric.evaluation.layer import Tensors, advance, first_layer, host_values, layer_values, needed
from numeric.evaluation.single_inputs import Start, diagonals
from numeric.progress import progress_bar
from numeric.subscripts import Steps, Values

PAIRS = 1e-13  # of pair brackets that are closed forms
KERNEL_TOLERANCE = 1e-10  # of the kernels that a shared plan is chosen from


class Run:
    """What stays the same from layer to layer; `finer` asks for finer rules where those do not follow a tolerance."""

    finer = False
    roundings: Sequence[Callable[[Any], Any]] = ()  # of brackets: a second evaluation moves them
    smallest = False  # which of the moved outcomes is taken: the largest or the smallest

    def __init__(
        self,
        functions: Functions,
        steps: Steps,
        names: tuple[str, ...],
        widths: tuple[int, ...],
        parameters: Parameters,
        tolerance: float,
        mesh: Mesh | None = None,
        rows: int | None = None,
        threads: int = 1,
    ) -> None:
        """`rows` of the four-point tensors are computed at a time; None takes all at once. `threads` share a layer's
        four-point brackets.
        """
        self.functions, self.steps, self.names, self.mesh = functions, steps, names, mesh
        self.widths, self.parameters, self.tolerance = widths, parameters, tolerance
        self.depth, self.rows, self.threads = len(widths), rows, threads
        self.pairs, self.quads = needed(steps, names)

    def values(self, layer: int) -> Values:
        return layer_values(self.parameters, self.widths, layer)

    def numbers(self, layer: int) -> Any:
        """The same as numbers of NumPy, for steps on the host."""
        return host_values(self.parameters, self.widths, layer)

    def pure(self, X: jax.Array, plans: Sequence[Plan], keep: set[int]) -> dict[int, Tensors]:
        """The evaluation inside jit, grad and vmap: no value is looked at."""
        tensors = first_layer(self.steps, self.names, X, self.values(1))
        kept = {1: tensors} if 1 in keep else {}
        for layer in range(2, self.depth + 1):
            tensors = advance(self.functions, self.steps, self.names, plans[layer - 2], self.values(layer), tensors)
            if layer in keep:
                kept[layer] = tensors
        return kept

    def concrete(
        self, X: jax.Array, keep: set[int], progress: bool | None = False, plans: Sequence[Plan] | None = None
    ) -> tuple[dict[int, Tensors], tuple[Plan, ...]]:
        """The evaluation with numbers: plans are chosen from them unless given, and every layer is checked."""
        with progress_bar(self.depth - 1, progress, "layers") as tick:
            last = self.in_one_loop(X) if plans is None and keep == {self.depth} else None
            if last is not None:
                tick(self.depth - 1)
                return last
            tensors = self.first(X)
            self.check(tensors, 1)
            if plans is None and self.quads:
                plans = self.layer_plans(tensors["K"])
            used, kernels = [], []
            kept = {1: tensors} if 1 in keep else {}
            for layer in range(2, self.depth + 1):
                kernels.append(np.asarray(tensors["K"], dtype=float))
                plan = plans[layer - 2] if plans is not None else self.plan(np.asarray(tensors["K"]), layer)
                tensors = self.step(plan, layer, tensors, tick)
                self.check(tensors, layer)
                used.append(plan)
                if layer in keep:
                    kept[layer] = tensors
        return self.with_close_inputs(X, kept, kernels), tuple(used)

    def first(self, X: jax.Array) -> Tensors:
        """The first layer; of a few inputs, and of pairs alone, on the host: no program to compile."""
        if self.mesh is None and (on_host(X) or not self.quads):
            with np.errstate(all="ignore"):  # the check says what overflows
                return first_layer(self.steps, self.names, cast(Any, np.asarray(X)), self.numbers(1))
        return first_layer(self.steps, self.names, X, self.values(1))

    def with_close_inputs(
        self, X: jax.Array, kept: dict[int, Tensors], kernels: Sequence[np.ndarray]
    ) -> dict[int, Tensors]:
        """The tensors with the entries of nearly parallel inputs of kinked activations as their own flow has them."""
        kept = {layer: {name: jnp.asarray(x) for name, x in tensors.items()} for layer, tensors in kept.items()}
        if not self.functions.kinked or len(X) < 2 or not kernels or not is_standard(self.steps):
            return kept
        gap = np.min([gaps(K) for K in kernels], axis=0)
        inputs = np.asarray(X, dtype=float)
        candidates = np.argwhere(np.triu(gap < (CLOSE if self.quads else CLOSE_KERNELS), 1))
        close = ClosePairs(self.functions, inputs, np.asarray(self.parameters.C_b), candidates)
        if not len(close):
            return kept
        values = [self.values(layer) for layer in range(1, max(kept) + 1)]
        found = pair_flows(self.functions, self.names, inputs, values, close, kept, self.finer)
        return {layer: put_in(tensors, found[layer - 1], close) for layer, tensors in kept.items()}

    def in_one_loop(self, X: jax.Array) -> tuple[dict[int, Tensors], tuple[Plan, ...]] | None:
        """The last layer straight from the inputs, if closed forms do and all numbers stay in their range."""
        limit = needs_no_plan(self.functions)
        if self.quads or self.mesh is not None or self.depth < 3 or not limit:
            return None
        start = Start.of(np.asarray(X), self.numbers(1))
        own = start.single(self.steps, ("K",))["K"][:, 0]
        if not own.max() < np.inf:
            return None
        plan = Plan(plan_pairs_of(self.functions, Kernels.alone(own), 1, PAIRS), None)
        values = [self.numbers(layer) for layer in range(2, self.depth + 1)]
        table = Table(self.steps)
        variances, largest = diagonals(self.functions, table, self.names, plan, values, start)
        bound = _bound(variances.dtype)
        if not largest["K"] < limit or not all(x < bound for x in largest.values()):
            return None
        network = Network(self.functions, table, self.names, plan, start.values, values)
        tensors, gap = kernel_tiles(network, Side(start.X, start.names, variances))
        last = {self.depth: tensors}
        if gap < CLOSE_KERNELS:
            last = self.with_close_inputs(X, last, [np.asarray(x["K"], float) for x in (self.first(X), tensors)])
        return last, (plan,) * (self.depth - 1)

    def step(self, plan: Plan, layer: int, tensors: Tensors, tick: Tick = lambda part: None) -> Tensors:
        """One compiled layer step, on one device or on the mesh."""
        if self.mesh is None and on_host(tensors["K"], not self.quads):
            tick(1.0)
            numbers = self.numbers(layer)
            own = (self.roundings, self.brackets(layer), self.smallest)
            return host_step(self.functions, self.steps, self.names, plan, numbers, tensors, *own)
        rows = tensors["K"].shape[0] if self.rows is None else self.rows
        table, values = Table(self.steps), self.values(layer)
        return layer_step(
            self.functions, table, self.names, plan, values, tensors, rows, self.mesh, tick, self.roundings,
            self.brackets(layer), self.smallest, self.threads,
        )  # fmt: skip

    def brackets(self, layer: int) -> dict[str, Any] | None:
        """Where the brackets of a layer are kept for a second pass; nowhere."""
        return None

    def plan(self, kernels: np.ndarray, layer: int) -> Plan:
        """A plan for one kernel, or for a stack of them that ends at the layer below this one."""
        try:
            return choose(self.functions, kernels, self.pairs, self.quads, self.tolerance)
        except NumericError as error:
            if kernels.ndim == 3:  # the hardest one is that of the largest variance
                layer = 2 + int(np.argmax(np.diagonal(kernels, axis1=1, axis2=2).max(axis=1)))
            raise type(error)(f"At layer {layer}: {error}") from None

    def kernels(self, K: jax.Array) -> np.ndarray:
        """K of the layers 1 to depth - 1, (depth - 1, N, N), from that of the first."""
        kernel: Tensors = {"K": K}
        tolerance = min(self.tolerance, KERNEL_TOLERANCE)
        lean = Run(self.functions, self.steps, ("K",), self.widths, self.parameters, tolerance)
        kernels = [np.asarray(K)]
        for layer in range(2, self.depth):
            kernel = lean.step(lean.plan(kernels[-1], layer), layer, kernel)
            self.check(kernel, layer)
            kernels.append(np.asarray(kernel["K"]))
        return np.stack(kernels)

    def layer_plans(self, K: jax.Array) -> list[Plan]:
        """A plan for each layer, all of one shape, so that one compiled step serves all; smaller kernels save nodes."""
        kernels = self.kernels(K)
        if better_alone(self.functions, np.asarray(kernels, dtype=float), self.quads, self.tolerance):
            return [self.plan(kernel, layer) for layer, kernel in enumerate(kernels, 2)]
        shared = self.plan(kernels, self.depth)
        four, plans = shared.quadruples, []
        for kernel in kernels:
            variance = float(np.diagonal(kernel).max())
            own = four if four is None or kernel.dtype != np.float64 else four.at(self.functions, self.quads, variance)
            plans.append(shared if own is four else replace(shared, quadruples=own))
        return plans

    def check(self, tensors: Tensors, layer: int) -> None:
        """Nothing but finite numbers goes on to the next layer."""
        for name, finite in _finite(tensors).items():
            if not finite:
                advice = (
                    "off criticality the flow grows exponentially with depth; change C_W or C_b, or stop at depth "
                    f"{layer - 1}"
                    if layer > 2
                    else "scale the inputs or the hyperparameters down"
                )
                raise NonFiniteFlow(f"{name} overflows at layer {layer} of {self.depth}: {advice}.")


def _finite(tensors: Tensors) -> dict[str, bool]:
    if all(isinstance(x, np.ndarray) for x in tensors.values()):
        bounds = {name: _bound(x.dtype) for name, x in tensors.items()}
        with np.errstate(invalid="ignore"):  # NaN is in no range
            return {name: bool(-bounds[name] < x.min() and x.max() < bounds[name]) for name, x in tensors.items()}
    return {name: bool(finite) for name, finite in _finite_compiled(tensors).items()}


@jax.jit
def _finite_compiled(tensors: Tensors) -> dict[str, jax.Array]:
    return {name: (jnp.abs(x) < _bound(x.dtype)).all() for name, x in tensors.items()}


def _bound(dtype: jnp.dtype) -> float:
    """The fourth root of the largest number: brackets multiply four of them."""
    return float(np.finfo(dtype).max) ** 0.25
