"""What `flow` and the ensembles take where nothing is given: critical initialization, equivalent learning rates.

Learning rates follow the equivalence principle exactly at the given depth: every layer's biases, and every layer's
weights, contribute the same to the mean of the output NTK's diagonal, which is 1 (`derive.design.equivalence`). How
much a layer contributes is read off the generated layer step: Theta is linear in the rates and in the Theta below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions, Kernels, Order, Plan, needs_no_plan, pair_brackets, plan_pairs_of
from numeric.errors import NumericError
from numeric.evaluation.compiled import Table
from numeric.evaluation.host import at_single_inputs
from numeric.evaluation.inputs import Parameters
from numeric.evaluation.inputs import Values as Given
from numeric.evaluation.layer import first_kernel, host_values, layer_values, needed
from numeric.generated.equivalence import equal_shares
from numeric.subscripts import Steps, View, views

CRITICAL = "critical"
EQUIVALENCE = "equivalence"
NAMES = ("K", "Theta")
TOLERANCE = 1e-10
SHARES: Callable[..., tuple[list[float], list[float]]] = equal_shares
"""The rule, on NumPy or JAX arrays alike."""


def critical_value(activation: str, name: str) -> float:
    """C_b or C_W at the recommended critical point; derived once, then remembered on disk."""
    from derive.cache import recall

    found = recall("critical initialization", activation, lambda: _critical(activation))
    if "reason" in found:
        raise NumericError(f"{activation} has no critical initialization, give C_b and C_W: {found['reason']}")
    return float(found[name])


def initialization(activation: str, C_b: Given | str | None, C_W: Given | str | None) -> dict[str, Given]:
    """C_b and C_W as numbers: critical where neither is given, or where the word says so; C_W alone has no C_b."""
    if C_b is None:
        C_b = CRITICAL if C_W is None or isinstance(C_W, str) else 0.0
    if C_W is None:
        C_W = CRITICAL
    found: dict[str, Given] = {}
    for name, value in (("C_b", C_b), ("C_W", C_W)):
        if isinstance(value, str):
            if value != CRITICAL:
                raise NumericError(f'{name} must be a number, one number a layer, or "{CRITICAL}"; it is {value!r}.')
            value = critical_value(activation, name)
        found[name] = value
    return found


def read_rates(rates: Mapping[str, Given | str | None]) -> dict[str, Given]:
    """The learning rates that do not follow the equivalence principle."""
    given: dict[str, Given] = {}
    for name, value in rates.items():
        if isinstance(value, str):
            if value != EQUIVALENCE:
                raise NumericError(f'{name} must be a number, one number a layer, or "{EQUIVALENCE}"; it is {value!r}.')
        elif value is not None:
            given[name] = value
    return given


def _critical(activation: str) -> dict[str, float | str]:
    from derive.critical import criticality

    found = criticality(activation)
    if not found.points:
        return {"reason": str(found.reason)}
    return {"C_b": float(found.points[0].C_b), "C_W": float(found.points[0].C_W)}


def equivalent_rates(
    functions: Functions,
    steps: Steps,
    X: jax.Array,
    C_b: jax.Array,
    C_W: jax.Array,
    widths: tuple[int, ...],
    plans: Sequence[Plan] | None = None,
) -> tuple[jax.Array, jax.Array]:
    """(lambda_b, lambda_W), L values each, by the equivalence principle at this depth for these inputs.

    Each input goes through the layers by itself; with `plans` (inside jit, grad and vmap) they go together, and
    nothing is looked at.
    """
    depth, zero = len(widths), jnp.zeros_like(C_b)
    parameters = Parameters(C_b, C_W, zero, zero)
    if plans is not None:
        return _traced_rates(functions, Table(steps), X, parameters, widths, plans)
    wanted, highest = needed(steps, NAMES)[0], 1
    with np.errstate(all="ignore"):
        line: Any = np.mean(np.asarray(X) ** 2, axis=1)[:, None]
        K, (bias, weight) = _unit_contributions(partial(_first, steps, host_values(parameters, widths, 1), line), 2)
    biases, weights, multipliers, limit = [bias], [weight], [], needs_no_plan(functions)
    for layer in range(2, depth + 1):
        variances = K[:, 0]
        if layer == 2 or not (limit and float(K.max()) < limit):
            if not np.isfinite(K).all():
                return zero, zero  # the flow itself will say at which layer
            plan = plan_pairs_of(functions, Kernels.alone(variances), highest, max(TOLERANCE * 1e-4, 1e-13))
        found = at_single_inputs(functions, plan, wanted, variances)
        s = {order: View(cast(Any, array[:, None]), 2) for order, array in found.items()}
        own = partial(_next, steps, host_values(parameters, widths, layer), s, K)
        with np.errstate(all="ignore"):
            K, (bias, weight, multiplier) = _unit_contributions(own, 3)
        biases.append(bias)
        weights.append(weight)
        multipliers.append(multiplier)
    host = [[np.asarray(x, dtype=float) for x in own] for own in (multipliers, biases, weights)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rates = [np.array(own, dtype=float) for own in SHARES(*host)]
    if not all(np.isfinite(own).all() for own in rates):
        raise NumericError(
            f"No learning rates make the {depth} layers of {functions.name} equivalent, since one contributes nothing "
            "to the NTK that a number could hold: give lambda_b and lambda_W."
        )
    return jnp.asarray(rates[0], C_b.dtype), jnp.asarray(rates[1], C_b.dtype)


Own = Callable[[float, float, float], Any]


def _unit_contributions(own: Own, count: int) -> tuple[Any, tuple[Any, ...]]:
    """K, and what a unit of lambda_b, of lambda_W and of the Theta below add to Theta's diagonal."""
    units = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))[:count]
    zero = own(0.0, 0.0, 0.0)
    diagonals = []
    for unit in units:
        change = own(*unit)["Theta"] - zero["Theta"]
        diagonals.append(change[:, 0] if change.shape[1] == 1 else jnp.diagonal(change))
    return zero["K"], tuple(diagonals)


def _first(steps: Steps, values: Any, gram: Any, bias: float, weight: float, theta: float) -> Any:
    given = {**values, "lambda_b": bias + 0 * values["C_b"], "lambda_W": weight + 0 * values["C_b"]}
    return {name: first_kernel(steps, name, given, gram) for name in NAMES}


def _next(steps: Steps, values: Any, s: dict[Order, View], K: Any, bias: float, weight: float, theta: float) -> Any:
    given = {**values, "lambda_b": bias + 0 * values["C_b"], "lambda_W": weight + 0 * values["C_b"]}
    t = {"K": View(K, 2), "Theta": View(theta + 0 * K, 2)}
    return {name: steps[name].advance(given, s, {}, t) for name in NAMES}


def _traced_rates(
    functions: Functions,
    table: Table,
    X: jax.Array,
    parameters: Parameters,
    widths: tuple[int, ...],
    plans: Sequence[Plan],
) -> tuple[jax.Array, jax.Array]:
    """Inside jit, grad and vmap all inputs go together, and nothing is looked at."""
    wanted = needed(table.steps, NAMES)[0]
    gram = X @ X.T / X.shape[1]
    first = partial(_first, table.steps, layer_values(parameters, widths, 1), gram)
    K, (bias, weight) = _unit_contributions(first, 2)
    biases, weights, multipliers = [bias], [weight], []
    for layer, plan in enumerate(plans, start=2):
        found = pair_brackets(functions, K, wanted, plan.pairs)
        s = views(found, 2)
        own = partial(_next, table.steps, layer_values(parameters, widths, layer), s, K)
        K, (bias, weight, multiplier) = _unit_contributions(own, 3)
        biases.append(bias)
        weights.append(weight)
        multipliers.append(multiplier)
    lambda_b, lambda_W = SHARES(multipliers, biases, weights)
    return jnp.stack([jnp.asarray(x) for x in lambda_b]), jnp.stack([jnp.asarray(x) for x in lambda_W])
