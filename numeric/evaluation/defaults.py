"""What `flow` and the ensembles take where nothing is given: critical initialization, equivalent learning rates.

Learning rates follow the equivalence principle exactly at the given depth: every layer's biases, and every layer's
weights, contribute the same to the mean of the output NTK's diagonal, which is 1 (`derive.design.equivalence`). How
much a layer contributes is read off the generated layer step: Theta is linear in the rates and in the Theta below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import Functions, Plan, needs_no_plan
from numeric.errors import NumericError
from numeric.evaluation.bracket_tables import choose
from numeric.evaluation.compiled import Table
from numeric.evaluation.inputs import Parameters
from numeric.evaluation.inputs import Values as Given
from numeric.evaluation.layer import Tensors, advance, first_layer, layer_values, needed
from numeric.generated.equivalence import equal_shares
from numeric.subscripts import Steps, Values

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
    inputs = X[None] if plans is not None else jnp.sqrt(jnp.mean(X**2, axis=1))[:, None, None]
    table, limit = Table(steps), needs_no_plan(functions)
    K, (bias, weight) = _first(table, inputs, layer_values(parameters, widths, 1))
    biases, weights, multipliers = [bias], [weight], []
    for layer in range(2, depth + 1):
        if plans is not None:
            plan = plans[layer - 2]
        elif layer == 2 or not (limit and float(K.max()) < limit):
            if not bool(jnp.isfinite(K).all()):
                return zero, zero  # the flow itself will say at which layer
            plan = choose(functions, np.asarray(K), needed(steps, NAMES)[0], (), TOLERANCE)
        K, (bias, weight, multiplier) = _step(functions, table)(plan, layer_values(parameters, widths, layer), K)
        biases.append(bias)
        weights.append(weight)
        multipliers.append(multiplier)
    if plans is not None:
        lambda_b, lambda_W = SHARES(multipliers, biases, weights)
        return jnp.stack([jnp.asarray(x) for x in lambda_b]), jnp.stack([jnp.asarray(x) for x in lambda_W])
    host = [[np.asarray(x, dtype=float) for x in own] for own in (multipliers, biases, weights)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rates = [np.array(own, dtype=float) for own in SHARES(*host)]
    if not all(np.isfinite(own).all() for own in rates):
        raise NumericError(
            f"No learning rates make the {depth} layers of {functions.name} equivalent, since one contributes nothing "
            "to the NTK that a number could hold: give lambda_b and lambda_W."
        )
    return jnp.asarray(rates[0], C_b.dtype), jnp.asarray(rates[1], C_b.dtype)


Own = Callable[[float, float, float], Tensors]


def _unit_contributions(own: Own, count: int) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """K, and what a unit of lambda_b, of lambda_W and of the Theta below add to Theta's diagonal."""
    units = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))[:count]
    zero = own(0.0, 0.0, 0.0)
    diagonals = (jnp.diagonal(own(*unit)["Theta"] - zero["Theta"], axis1=1, axis2=2).ravel() for unit in units)
    return zero["K"], tuple(diagonals)


def _first(table: Table, inputs: jax.Array, values: Values) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    def own(bias: float, weight: float, theta: float) -> Tensors:
        rates = {"lambda_b": jnp.full_like(values["C_b"], bias), "lambda_W": jnp.full_like(values["C_b"], weight)}
        return jax.vmap(lambda x: first_layer(table.steps, NAMES, x, {**values, **rates}))(inputs)

    return _unit_contributions(own, 2)


Step = Callable[[Plan, Values, jax.Array], tuple[jax.Array, tuple[jax.Array, ...]]]


@lru_cache(maxsize=64)
def _step(functions: Functions, table: Table) -> Step:
    def step(plan: Plan, values: Values, K: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        def own(bias: float, weight: float, theta: float) -> Tensors:
            rates = {"lambda_b": jnp.full_like(values["C_b"], bias), "lambda_W": jnp.full_like(values["C_b"], weight)}

            def one(kernel: jax.Array) -> Tensors:
                below = {"K": kernel, "Theta": jnp.full_like(kernel, theta)}
                return advance(functions, table.steps, NAMES, plan, {**values, **rates}, below)

            return jax.vmap(one)(K)

        return _unit_contributions(own, 3)

    return jax.jit(step)
