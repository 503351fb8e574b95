"""How far off a flow's numbers are: some inputs again, by other routes, with finer rules and other rounding.

The recursions close on any subset of the inputs, so a flow of a few of them costs little and shows the errors of their
entries, carried through all layers. The few are those that are hardest to integrate, and random ones. Every rule of the
second evaluation differs from the first one's, also where both are as fine as their tolerance can ask, and every
tensor of every layer and every bracket is moved by some units in its last place: what rounding does to the result shows
as well. Where brackets nearly cancel (A of small inputs) that is all there is, so that brackets are moved up and down,
and both the largest and the smallest outcomes go on: rounding must not agree with itself by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets import (
    Plan,
    QuadruplePlan,
    make_quadruple_plan,
    quadruple_slots,
    second_route,
    sorted_quadruples,
)
from numeric.brackets.series.conditioning import POSITIONS
from numeric.errors import NumericError
from numeric.evaluation.bracket_tables import choose
from numeric.evaluation.compiled import Tick
from numeric.evaluation.inputs import HYPERPARAMETERS, Parameters
from numeric.evaluation.layer import Tensors, first_layer
from numeric.evaluation.layers import Run
from numeric.runtime import one_thread

INPUTS = 6
FINER, FINEST = 1e-2, 1e-14
SAFETY = 3.0  # on the largest difference that was seen, if all inputs were compared
SAMPLED = 10.0  # if only some were: the others' entries have been seen to be worse by 3.4
ROUNDING = 8.0  # units in the last place by which the second evaluation's tensors are moved at every layer
BRACKETS = 16.0  # units by which its brackets are: above what sums over a rule lose
LONG = 300  # layers from which the second evaluation of closed forms is one compiled loop, without that
LOOSE = 1e-9  # the second evaluation's tolerance is at least so small
SAMPLE = 20000  # quadruples among which the hardest one is sought


@one_thread()
def estimate(run: Run, X: jax.Array, output: Tensors, plans: Sequence[Plan]) -> dict[str, float]:
    """{tensor: error at the last layer relative to the tensor's largest entry}; infinite where it cannot be found.

    Three times the largest difference from a second evaluation of all inputs, if there are at most six, or ten times
    that of the six `hardest_inputs`, plus rounding, plus what nested quadrature still moved when it was refined. The
    second evaluation is in float64; its rules are made for a tolerance 100 times smaller, from its own kernels;
    conditioned series are conditioned on other pairs than the plan in use did, and smooth activations with closed forms
    go through the generic series. Piecewise linear ones, and sums of exponentials at large variances (exact there),
    know one route: there only its rule is finer. What a symmetric tensor lacks in symmetry is added.
    """
    parameters = Parameters(**{name: getattr(run.parameters, name).astype(jnp.float64) for name in HYPERPARAMETERS})
    inputs = X.astype(jnp.float64)
    quadruples = plans[-1].quadruples if plans and run.quads else None
    labels = hardest_inputs(np.asarray(inputs), np.asarray(output["K"], dtype=float), quadruples)
    functions = run.functions
    rounding = 2 * run.depth * float(np.finfo(X.dtype).eps)
    if quadruples is not None:
        first = first_layer(run.steps, ("K",), cast(Any, np.asarray(inputs)), run.numbers(1))["K"]
        rounding *= quadruples.rounding(max(float(first.max()), float(np.max(output["K"]))))
    if quadruples is None or not quadruples.only_route:
        functions = second_route(functions)
    avoid = quadruples.conditioned_on() if quadruples is not None else None
    if quadruples is not None and avoid is not None:
        avoid = avoid[quadruple_slots(labels[sorted_quadruples(len(labels))], quadruples.size)]
    again: list[Tensors] = []
    kernels = tuple(name for name in ("K", "Theta") if name in run.names)
    for names in dict.fromkeys((run.names, kernels)):  # kernels alone, where the rest has no second evaluation
        other = _Second(
            functions, run.steps, names, run.widths, parameters, max(min(run.tolerance * FINER, LOOSE), FINEST)
        )
        other.avoid = avoid
        with np.errstate(all="ignore"), suppress(NumericError):  # what cannot be integrated shows in its result
            again = other.both(jnp.asarray(np.asarray(inputs)[labels]))
            break
    errors = dict.fromkeys(run.names, float("inf"))
    safety = SAFETY if len(labels) == len(inputs) else SAMPLED
    for name in again[0] if again else ():
        full = np.asarray(output[name], dtype=float)
        own = full[np.ix_(*[labels] * full.ndim)]
        difference = max(np.abs(own - np.asarray(second[name])).max() for second in again)
        errors[name] = safety * float(difference) / max(float(np.abs(full).max()), 1e-300) + rounding
        if full.ndim == 2:
            errors[name] += float(np.abs(full - full.T).max()) / max(float(np.abs(full).max()), 1e-300)
        if quadruples is not None and quadruples.measured() and name not in kernels:
            errors[name] += float(quadruples.error)
    return errors


def _moved(x: Any, units: float, phase: float = 0.0) -> Any:
    """Every number moved by some units in its last place; equal numbers stay equal, so that duplicates stay such."""
    mantissa, exponent = np.frexp(np.asarray(x))
    return x * (1 + units * np.finfo(x.dtype).eps * np.sin(12345.678 * mantissa + exponent + phase))


class _Second(Run):
    """A run that conditions on other pairs than those to `avoid` (options of the sorted quadruples), with finer rules
    and rounding of its own.
    """

    avoid: np.ndarray | None = None
    finer = True

    def both(self, X: jax.Array) -> list[Tensors]:
        """The output layer's tensors with every entry moved up as far as rounding may, and down: one integration.

        With one of them only, an error of the first evaluation's own rounding in that direction would not show.
        """
        self.kept: dict[int, dict[str, Any]] = {}
        found, plans = self.concrete(X, {self.depth})
        if not self.kept:
            return [found[self.depth]]
        self.smallest = True
        return [found[self.depth], self.concrete(X, {self.depth}, plans=plans)[0][self.depth]]

    def brackets(self, layer: int) -> dict[str, Any] | None:
        return self.kept.setdefault(layer, {}) if self.quads else None

    roundings = tuple(partial(_moved, units=BRACKETS, phase=k * np.pi / 2) for k in range(4))  # each sign, each number

    def in_one_loop(self, X: jax.Array) -> tuple[dict[int, Tensors], tuple[Plan, ...]] | None:
        return super().in_one_loop(X) if self.depth > LONG else None

    def step(self, plan: Plan, layer: int, tensors: Tensors, tick: Tick = lambda part: None) -> Tensors:
        return {name: _moved(x, ROUNDING) for name, x in super().step(plan, layer, tensors, tick).items()}

    def plan(self, kernels: np.ndarray, layer: int) -> Plan:
        if not self.quads or self.avoid is None:
            plan = super().plan(kernels, layer)
            return replace(plan, pairs=plan.pairs.refined())
        plan = choose(self.functions, kernels, self.pairs, (), self.tolerance)
        patterns = self.quads
        try:
            four = make_quadruple_plan(self.functions, kernels, patterns, self.tolerance, avoid=self.avoid, finer=True)
        except NumericError:  # other pairs are no good here: finer rules on the same ones
            four = make_quadruple_plan(self.functions, kernels, patterns, self.tolerance, finer=True)
        return replace(plan, pairs=plan.pairs.refined(), quadruples=four)


def hardest_inputs(X: np.ndarray, K: np.ndarray, plan: QuadruplePlan | None, count: int = INPUTS) -> np.ndarray:
    """Sorted labels: the largest input, the most alike two, the most opposite two, those of the hardest series, others.

    Alike and opposite are judged at the input, where they are exact; the hardest series is the one with the largest
    conditional covariance given the pair that the plan conditions on.
    """
    size = len(X)
    gram = X @ X.T
    norm = np.sqrt(np.maximum(np.diagonal(gram), 1e-300))
    cosine = np.where(np.eye(size, dtype=bool), 0.0, gram / np.outer(norm, norm))
    order = [int(np.argmax(norm))]
    order += [int(i) for extreme in (np.argmax, np.argmin) for i in np.unravel_index(extreme(cosine), cosine.shape)]
    random = np.random.default_rng(0)
    options = plan.conditioned_on() if plan is not None and size > count else None
    if options is not None:
        order += _hardest_quadruple(K, options, random)
    order += [int(i) for i in random.permutation(size)]
    return np.array(sorted(list(dict.fromkeys(order))[:count]))


def _hardest_quadruple(K: np.ndarray, options: np.ndarray, random: np.random.Generator) -> list[int]:
    """The labels of the largest |kappa_cd| given (a, b), among a sample of quadruples."""
    quadruples = sorted_quadruples(len(K))
    rows = random.permutation(len(quadruples))[:SAMPLE]
    picked = np.take_along_axis(quadruples[rows], np.array(POSITIONS)[options[rows]], axis=1)
    a, b, c, d = picked.T
    variance = np.maximum(K[a, a], 1e-300)
    rest = K[b, b] - K[a, b] ** 2 / variance
    own = rest > 1e-12 * K[b, b]

    def residual(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return K[i, j] - K[a, i] * K[a, j] / variance

    second = np.where(own, residual(b, c) * residual(b, d) / np.where(own, rest, 1.0), 0.0)
    return [int(i) for i in picked[np.argmax(np.abs(residual(c, d) - second))]]
