"""The multi-input flow: K, Theta and every finite-width tensor through the layers, for one activation and any inputs.

float64 by default. The kernel is run through the layers first; a quadrature plan is then chosen on the host from the
concrete kernels, and the layer step, compiled once, does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.activations import Definition, load, select
from numeric.brackets import Functions, Pattern, Plan, arrangements
from numeric.errors import MissingTensor, NumericError
from numeric.evaluation.bracket_tables import missing_tensors
from numeric.evaluation.defaults import equivalent_rates, initialization, read_rates
from numeric.evaluation.devices import make_mesh
from numeric.evaluation.error import estimate
from numeric.evaluation.inputs import (
    Inputs,
    Parameters,
    Values,
    is_traced,
    read_depth,
    read_dtype,
    read_inputs,
    read_memory,
    read_parameters,
    read_skip,
    read_widths,
)
from numeric.evaluation.layer import needed
from numeric.evaluation.layers import Run
from numeric.evaluation.memory import needs, rows_within, threads_within
from numeric.evaluation.results import Flow
from numeric.functionals import evaluation as residual
from numeric.runtime import check_process, cores, one_thread
from numeric.subscripts import Steps

TOLERANCE = {jnp.float64: 1e-10, jnp.float32: 1e-5}
RESIDUAL_TOLERANCE = 1e-9  # of the many brackets between two layers
MEMORY = 8e9
INFINITE = ("K", "Theta")
"""The tensors that exist at infinite width."""
WIDTH_NEEDED = "{} is a 1/n quantity: give the width of the hidden layers, flow(..., width=...)."


@one_thread()
def flow(
    activation: Definition,
    X: Inputs,
    depth: int,
    width: int | Sequence[int] | None = None,
    C_b: Values | str | None = None,
    C_W: Values | str | None = None,
    lambda_b: Values | str | None = None,
    lambda_W: Values | str | None = None,
    *,
    skip: Values | None = None,
    tensors: Sequence[str] | str | None = None,
    layers: str | Sequence[int] = "all",
    tolerance: float | None = None,
    dtype: str | type = "float64",
    memory: float = MEMORY,
    plan: tuple[Plan, ...] | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: bool | None = None,
) -> Flow:
    """Evaluate the theory of a network on the inputs X, shape (N, n_0).

    `depth` is L, the number of weight layers; `width` one number or the L - 1 hidden widths, needed as soon as a 1/n
    quantity is asked for (without it there are K and Theta). Each hyperparameter is a number or one value a layer.
    C_b and C_W may be "critical", which is their default where neither is given (with C_W alone C_b is 0). Learning
    rates that are not given, or are "equivalence", follow the equivalence principle exactly at this depth: every layer
    contributes the same to the output's NTK, whose diagonal has the mean 1.
    `activation` is a name, a formula in z or a module written by `derive generate`.
    `tensors` asks for some of K Theta V G1 D F H1 A B P Q R S T U (and what they depend on; all that exist by default),
    `layers` for the layers to keep ("all", "last", or numbers). `tolerance` is the accuracy of four-point brackets
    relative to the largest entry (pairs are more accurate); `f.error` estimates what was reached. `memory` is a budget
    in bytes: tensors that do not fit in one go are computed block by block, and what cannot fit is refused (see
    `numeric.evaluation.memory` for what is counted). `devices` (jax.devices()) spreads the brackets over them, and over
    processes under jax.distributed. `progress` shows a bar, by default on terminals when a run takes long.

    `skip` makes it a residual network, z' = skip z + b + W sigma(z) between hidden layers of equal width: one number,
    or one for each such step. The tensors at hidden layers are then those with a skip; the output layer is plain. The
    cost grows as depth squared (see `numeric.functionals`).

    Under jax.jit, jax.grad and jax.vmap pass `plan=f.plan` of a flow f at nearby values: nothing is then looked at, and
    the result is a pure function of X and the hyperparameters. Outside of them a plan saves the time of making one; how
    well it suits these inputs, `f.error` tells.

    >>> f = flow("tanh", [[1.0, 0.0], [0.6, 0.8]], depth=2, width=10, tensors="Theta")
    >>> [round(float(x), 6) for x in f.K[0]]
    [0.273676, 0.160238]
    """
    kind = read_dtype(dtype)
    check_process(wide=kind is jnp.float64)
    module = load(activation)
    functions, steps = module.FUNCTIONS, module.STEPS
    inputs = read_inputs(X, kind)
    depth = read_depth(depth)
    widths = read_widths(1 if width is None else width, depth, inputs.shape[1])
    infinite = width is None and depth > 1
    shown: tuple[int | None, ...] = (widths[0], *([None] * (depth - 1))) if infinite else widths
    skips = read_skip(skip, depth, widths, kind)
    if skips is not None:
        if devices is not None:
            raise NumericError("A residual network is evaluated on one device: leave devices out.")
        chosen, reasons = residual.choose(functions, tensors)
        if infinite:
            chosen, reasons = _infinite_only(chosen, reasons, tensors)
        parameters = _residual_parameters(depth, kind, chosen, C_b=C_b, C_W=C_W, lambda_b=lambda_b, lambda_W=lambda_W)
        wanted = max(_tolerance(tolerance, kind), RESIDUAL_TOLERANCE if tolerance is None else 0.0)
        with_skips = residual.Residual(functions, chosen, widths, parameters, skips, wanted)
        keeping = _layers_to_keep(layers, depth)
        return _with_skips(module, with_skips, shown, inputs, keeping, plan, progress, reasons)
    names, missing = _choose_tensors(functions, steps, tensors, infinite)
    variances = initialization(functions.name, C_b, C_W)
    rates = {"lambda_b": lambda_b, "lambda_W": lambda_W}
    given = read_rates(rates)
    arrays = read_parameters(depth, kind, {**variances, **given})
    keep = _layers_to_keep(layers, depth)
    mesh = make_mesh(devices) if devices is not None else None
    need = needs(
        len(inputs),
        [steps[name].rank for name in names],
        len(arrangements(needed(steps, names)[1])),
        keep,
        depth,
        jnp.dtype(kind).itemsize,
        sum(device.process_index == jax.process_index() for device in devices) if devices is not None else 1,
    )
    traced = is_traced(inputs, arrays)
    rows = len(inputs) if traced else rows_within(need, read_memory(memory))
    threads = 1 if traced else threads_within(need, read_memory(memory), cores())
    if traced and plan is None:
        raise NumericError("Inside jit, grad or vmap pass plan=f.plan of a flow f computed outside nearby.")
    if len(given) < 2:
        own = (functions, steps, inputs, arrays["C_b"], arrays["C_W"], widths, plan if traced else None)
        zero = jnp.zeros_like(arrays["C_b"])  # what K alone does not see
        found = equivalent_rates(*own) if "Theta" in names else (zero, zero)
        arrays = dict(zip(rates, found)) | arrays
    parameters = Parameters(**arrays)
    run = Run(functions, steps, names, widths, parameters, _tolerance(tolerance, kind), mesh, rows, threads)
    if plan is not None:
        plan = _given_plan(plan, depth, len(inputs), run.quads)
    if traced:
        assert plan is not None
        return Flow(module, names, shown, parameters, run.pure(inputs, plan, keep), plan, missing)
    kept, plan = run.concrete(inputs, keep, progress, plan)
    measure = partial(estimate, run, inputs, kept[depth], plan)
    return Flow(module, names, shown, parameters, kept, plan, missing, measure)


def _infinite_only(
    names: tuple[str, ...], missing: dict[str, str], tensors: Sequence[str] | str | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Without a width only K and Theta, and a sentence for what else was asked for."""
    finite = {name: WIDTH_NEEDED.format(name) for name in names if name not in INFINITE}
    if tensors is not None and finite:
        raise MissingTensor(next(iter(finite.values())))
    return tuple(name for name in names if name in INFINITE), finite | missing


def _residual_parameters(depth: int, kind: Any, names: tuple[str, ...], **given: Values | str | None) -> Parameters:
    """The hyperparameters of a residual network, which has no defaults but for learning rates that nothing asks for."""
    values: dict[str, Values] = {}
    for name, value in given.items():
        if isinstance(value, str) or value is None:
            if name.startswith("lambda") and "Theta" not in names and value is None:
                value = 0.0
            else:
                raise NumericError(
                    f"A residual network has no default for {name}: give a number or one number a layer (critical C_b "
                    "and C_W: derive criticality ACTIVATION --layer residual --skip XI)."
                )
        values[name] = value
    return Parameters(**read_parameters(depth, kind, values))


def _with_skips(
    module: Any,
    run: residual.Residual,
    shown: tuple[int | None, ...],
    inputs: jax.Array,
    keep: set[int],
    plan: tuple[Plan, ...] | None,
    progress: bool | None,
    missing: dict[str, str],
) -> Flow:
    """The flow of a residual network."""
    if plan is not None and (len(plan) != 2 or any(not isinstance(own, Plan) for own in plan)):
        raise NumericError("plan is the `plan` of a residual flow that was computed before.")
    if is_traced(inputs, run.parameters, run.skip):
        if plan is None:
            raise NumericError("Inside jit, grad or vmap pass plan=f.plan of a flow f computed outside nearby.")
        layers = run.pure(inputs, plan)
        kept = {layer: layers[layer] for layer in keep}
        return Flow(module, run.names, shown, run.parameters, kept, plan, missing, skip=run.skip)
    plan = run.plans(inputs) if plan is None else plan
    layers = run.concrete(inputs, plan, progress)
    measure = partial(residual.estimate, run, inputs, layers[len(shown)])
    kept = {layer: layers[layer] for layer in keep}
    return Flow(module, run.names, shown, run.parameters, kept, plan, missing, measure, run.skip)


def _choose_tensors(
    functions: Functions, steps: Steps, tensors: Sequence[str] | str | None, infinite: bool
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The names to compute, and why others do not exist; at infinite width only those that are no 1/n quantities."""
    missing = missing_tensors(functions, steps)
    if infinite:
        finite = {name: WIDTH_NEEDED.format(name) for name in steps if name not in INFINITE}
        missing = finite | missing
    if tensors is None:
        return tuple(name for name in steps if name not in missing), missing
    names = select(steps, tensors)
    asked = [tensors] if isinstance(tensors, str) else list(tensors)
    for name in (*asked, *names):
        if name in missing:
            raise MissingTensor(missing[name])
    return names, missing


def fits(activation: str, inputs: int, depth: int, memory: float) -> bool:
    """Whether all tensors of so many inputs can be had within `memory` bytes."""
    steps: Steps = load(activation).STEPS
    ranks = [step.rank for step in steps.values()]
    components = len(arrangements(needed(steps, tuple(steps))[1]))
    return needs(inputs, ranks, components, set(range(1, depth + 1)), depth, 8, 1).total(1) <= memory


def _layers_to_keep(layers: str | Sequence[int], depth: int) -> set[int]:
    if layers == "all":
        return set(range(1, depth + 1))
    if layers == "last":
        return {depth}
    numbers = list(layers) if isinstance(layers, Iterable) and not isinstance(layers, str) else [0]
    if any(isinstance(l, bool) or not isinstance(l, int | np.integer) or not 1 <= l <= depth for l in numbers):
        raise NumericError(f'layers is "all", "last" or a list of numbers from 1 to {depth}.')
    return {int(l) for l in numbers} | {depth}


def _tolerance(tolerance: float | None, kind: Any) -> float:
    if tolerance is None:
        return TOLERANCE[kind]
    if not isinstance(tolerance, int | float | np.number) or not 1e-15 <= tolerance <= 0.1:
        raise NumericError(f"tolerance lies between 1e-15 and 0.1; {tolerance!r} does not.")
    return float(tolerance)


def _given_plan(plan: Any, depth: int, size: int, quads: tuple[Pattern, ...]) -> tuple[Plan, ...]:
    """A plan that the user hands in, checked: one for each step, made for as many inputs and as many factors."""
    if not isinstance(plan, Sequence) or any(not isinstance(own, Plan) for own in plan):
        raise NumericError("plan is the `plan` of a flow that was computed before.")
    if len(plan) != depth - 1:
        raise NumericError(f"The plan belongs to a flow of depth {len(plan) + 1}, not {depth}.")
    for own in plan:
        if quads and own.quadruples is None:
            raise NumericError("The plan belongs to a flow of K and Theta alone: ask that one for the same tensors.")
        if quads and own.quadruples.size != size:
            raise NumericError(f"The plan belongs to a flow of {own.quadruples.size} inputs, not {size}.")
    return tuple(plan)
