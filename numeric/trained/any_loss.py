"""Any loss at finite width: first order in 1/n along the infinite-width trajectory, averaged over initial outputs.

For a loss that is not quadratic the error factor (10.4) is not linear in the outputs, so that there are no projectors:
the updates of z, H and dH are iterated (`numeric.trained.trajectory`), with the differentials as a small parameter
whose first derivative (second, for the NTK's fluctuation) is taken by JAX. Initial outputs are drawn, in pairs ±z, or
are the nodes of a Gauss-Hermite rule; a prediction from draws carries its standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from numeric.errors import NumericError
from numeric.evaluation.results import Flow
from numeric.evaluation.validity import first_order
from numeric.given import a_seed, finite, whole
from numeric.trained.algorithms import Algorithm, DivergentTraining
from numeric.trained.infinite import kernel_prediction
from numeric.trained.joint import JointStatistics
from numeric.trained.losses import CrossEntropy, Loss
from numeric.trained.trajectory import State, Trajectory

Values: TypeAlias = dict[str, np.ndarray]
Asked: TypeAlias = dict[str, jax.Array]
CHUNK = 128
"""How many initial outputs are followed at a time."""
NODES = 40_000
"""How many nodes a Gauss-Hermite rule may have."""
ENDED, LONGEST = 1e-7, 20_000
"""Training has ended when no error factor is larger than this; after so many steps it is given up."""
FINE = 0.05
"""Steps of the gradient flow's integration, in units of the fastest mode."""


@dataclass(frozen=True)
class LossPrediction:
    """The ensemble of networks trained on a loss, to first order in 1/n, on the test inputs in their order.

    `mean` and `mean_infinite` are (N_test, n_L); `errors` are standard errors of the averages over initial outputs,
    zero for a quadrature. For the cross-entropy, `probabilities` are the mean of softmax(z), and with the labels of the
    test inputs `test_loss` is the mean loss on them. `parts` and `part_errors` have the coefficients of 1/n by origin:
    the covariance of initial outputs (G1, V), the NTK's mean (H1, D, F) and variance (A, B), dNTK (P, Q), ddNTKs.
    """

    width: float
    test: tuple[int, ...]
    infinite: Values
    coefficients: Values
    parts: Mapping[str, Values]
    part_errors: Mapping[str, Values]
    infinite_errors: Values
    coefficient_errors: Values
    steps: float
    notes: tuple[str, ...]

    def _value(self, name: str) -> np.ndarray:
        if name not in self.infinite:
            raise NumericError(f"This prediction has no {name}: it has {', '.join(self.infinite)}.")
        return self.infinite[name] + self.coefficients[name] / self.width

    @property
    def mean_infinite(self) -> np.ndarray:
        return self.infinite["mean"]

    @property
    def mean(self) -> np.ndarray:
        return self._value("mean")

    @property
    def covariance(self) -> np.ndarray:
        """Cov[z_i;1, z_j;2] to first order, [i, j, 1, 2]."""
        center, shift = self.infinite["mean"], self.coefficients["mean"] / self.width
        product = np.einsum("ai,bj->ijab", center, center)
        cross = np.einsum("ai,bj->ijab", center, shift)
        return self._value("second moment") - product - cross - cross.transpose(1, 0, 3, 2)

    @property
    def probabilities(self) -> np.ndarray:
        return self._value("probabilities")

    @property
    def test_loss(self) -> float:
        return float(self._value("test loss"))

    @property
    def errors(self) -> Values:
        """Standard errors of the values at this width, by name."""
        return {
            name: np.hypot(self.infinite_errors[name], self.coefficient_errors[name] / self.width)
            for name in self.infinite
        }


def predict_loss(
    flow: Flow,
    loss: Loss,
    train: Any,
    algorithm: Algorithm,
    *,
    time: float | None = None,
    test_loss: Loss | None = None,
    samples: int = 2000,
    nodes: int | None = None,
    seed: int = 0,
) -> LossPrediction:
    """Networks trained on `loss` (its targets are those of the inputs `train`), to order 1/n.

    `time` is a number of steps (a time of a flow); None is the end of training, which hard labels do not have.
    `samples` initial outputs are drawn; with `nodes`, a Gauss-Hermite rule of so many nodes in each direction is used
    instead, for few inputs and outputs. `test_loss` is the loss whose mean on the test inputs is asked for.

    >>> from numeric import GradientDescent, flow
    >>> from numeric.trained.losses import CrossEntropy, soft_labels
    >>> f = flow("tanh", [[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5]], depth=2, width=64)
    >>> loss = CrossEntropy(soft_labels([0, 1], 2, 0.1))
    >>> p = predict_loss(f, loss, [0, 1], GradientDescent(0.5), time=5, samples=200)
    >>> p.probabilities.shape, bool(p.errors["probabilities"].max() < 0.02)
    ((1, 2), True)
    """
    if algorithm.memory_size or algorithm.own_ntk:
        raise NumericError(f"For losses other than MSE an algorithm has no memory and one metric for all: {algorithm}.")
    outputs = _outputs(loss, train)
    theta = np.asarray(flow.Theta, dtype=float)
    kernel = kernel_prediction(theta, np.asarray(flow.K), np.zeros((len(train), outputs)), train)
    chosen, joint = np.array(kernel.train), JointStatistics(flow, outputs)
    test = tuple(k for k in range(len(theta)) if k not in set(kernel.train))
    if not test:
        raise NumericError("A prediction needs test inputs besides the training inputs.")
    newton = np.eye(len(chosen)) if not algorithm.preconditions else algorithm.newton(kernel.modes)
    starts = _nodes(joint, nodes) if nodes is not None else _draws(joint, whole(samples, "samples", 4), seed)
    until = _until(loss, theta, chosen, newton, algorithm, time, starts.z[:16])
    fine = max(4, int(np.ceil(until * float(kernel.modes.h[-1]) / FINE))) if algorithm.continuous else 0
    along = Trajectory(loss, chosen, newton, algorithm, until, fine)
    ask = _questions(np.array(test), isinstance(loss, CrossEntropy), test_loss)
    totals = _Averages(starts)
    first, second = (jnp.asarray(joint.cumulant(name)) for name in ("ddI", "ddII"))
    mean_ntk = jnp.asarray(np.einsum("ij,ab->ijab", np.eye(outputs), theta))
    directions, metrics = jnp.asarray(joint.ntk_directions), jnp.asarray(joint.metric_directions)
    kernel_z, G1 = jnp.asarray(joint.K), jnp.asarray(flow.G1)

    def follow(normal: jax.Array, z: jax.Array, dH: jax.Array, ntk: jax.Array) -> tuple[Asked, dict[str, Asked]]:
        """What is asked of one network at infinite width, and by how much each contribution of order 1/n changes it."""

        def with_metric(size: jax.Array, direction: jax.Array) -> Asked:
            return ask(along.frozen(normal @ jnp.linalg.cholesky(kernel_z + size * direction).T, mean_ntk))

        def with_ntk(size: jax.Array, direction: jax.Array) -> Asked:
            return ask(along.frozen(z, mean_ntk + size * direction))

        def with_differentials(size: jax.Array, which: jax.Array) -> Asked:
            b, c = (size * x for x in which)
            return ask(along.end(State(z, mean_ntk, b * dH), c * first, c * second).z)

        def slope(ends: Callable[[jax.Array, jax.Array], Asked], way: jax.Array, at: jax.Array) -> Asked:
            return jax.jvp(lambda size: ends(size, way), (at,), (jnp.ones(()),))[1]

        zero = jnp.zeros(())
        value, mean = jax.jvp(lambda size: with_ntk(size, ntk), (zero,), (jnp.ones(()),))
        others = jax.vmap(lambda unit: slope(with_differentials, unit, zero))(jnp.eye(2))

        def bent(ends: Callable[[jax.Array, jax.Array], Asked], ways: jax.Array) -> Asked:
            """½ Σ of the second derivatives along the ways."""

            def bend(way: jax.Array) -> Asked:
                return jax.jvp(lambda at: slope(ends, way, at), (zero,), (jnp.ones(()),))[1]

            return jax.tree.map(lambda x: x.sum(axis=0) / 2, jax.vmap(bend)(ways))

        parts = {
            "initial outputs": jax.tree.map(jnp.add, slope(with_metric, G1, zero), bent(with_metric, metrics)),
            "NTK mean": mean,
            "NTK variance": bent(with_ntk, directions),
        }
        slopes = {name: {part: x[name] for part, x in parts.items()} for name in value}
        for name, x in others.items():
            slopes[name] |= dict(zip(("dNTK", "ddNTKs"), x))
        return value, slopes

    run = jax.jit(jax.vmap(follow))
    for normal, z in starts.chunks():
        value, slopes = run(normal, z, joint.dntk_mean(z), joint.ntk_mean(z))
        for name, x in value.items():
            totals.add(name, "infinite", np.asarray(x))
            for part, change in slopes[name].items():
                totals.add(name, part, np.asarray(change))
    return totals.prediction(float(flow.width), test, until, _notes(algorithm, until, starts, loss))


def _outputs(loss: Loss, train: Any) -> int:
    targets = np.asarray(getattr(loss, "p", getattr(loss, "y", None)), dtype=float)
    if targets.ndim != 2 or len(targets) != len(train):
        raise NumericError(f"The loss has targets (N_train, n_L) for the {len(train)} training inputs.")
    if isinstance(loss, CrossEntropy) and (
        not np.isfinite(targets).all() or targets.min() < 0 or np.abs(targets.sum(axis=1) - 1).max() > 1e-9
    ):
        raise NumericError("The rows of a cross-entropy's targets are probabilities: not negative, with the sum 1.")
    return targets.shape[1]


def _questions(test: np.ndarray, classes: bool, test_loss: Loss | None) -> Callable[[jax.Array], Asked]:
    def ask(z: jax.Array) -> Asked:
        own = z[:, test]
        found = {"mean": own.T, "second moment": jnp.einsum("ia,jb->ijab", own, own)}
        if classes:
            found["probabilities"] = CrossEntropy.softmax(own.T)
        if test_loss is not None:
            found["test loss"] = test_loss.total(own.T)
        return found

    return ask


@dataclass(frozen=True)
class Starts:
    """Initial outputs z [row, i, a] with weights, and the normal numbers that they are made of.

    Draws come in pairs of opposite signs, one after the other.
    """

    z: np.ndarray
    normal: np.ndarray
    weights: np.ndarray
    drawn: bool

    def chunks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(self.z), CHUNK):
            yield self.normal[start : start + CHUNK], self.z[start : start + CHUNK]

    def mean(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean over rows and its standard error.

        Draws have the products of their normal numbers as control variates, whose means are known.
        """
        if not self.drawn:
            return np.tensordot(self.weights, x, axes=1), np.zeros(x.shape[1:])
        pairs = ((x[0::2] + x[1::2]) / 2).reshape(len(x) // 2, -1)
        count, design = len(pairs), self._controls
        coefficients, *_ = np.linalg.lstsq(design, pairs)
        left = pairs - design @ coefficients
        spread = np.sqrt(np.sum(left**2, axis=0) / (count - design.shape[1]))
        return coefficients[0].reshape(x.shape[1:]), (spread / np.sqrt(count)).reshape(x.shape[1:])

    @cached_property
    def _controls(self) -> np.ndarray:
        """A constant, and the quadratic Hermite polynomials as long as there are five times as many pairs."""
        normal = self.normal[0::2].reshape(len(self.z) // 2, -1)
        first, second = np.triu_indices(normal.shape[1])
        one = np.ones((len(normal), 1))
        if 5 * len(first) > len(normal):
            return one
        return np.concatenate([one, normal[:, first] * normal[:, second] - (first == second)], axis=1)


def _draws(joint: JointStatistics, samples: int, seed: int) -> Starts:
    pairs = samples // 2
    normal = np.random.default_rng(a_seed(seed)).normal(size=(pairs, joint.outputs, len(joint.K)))
    both = np.stack([normal, -normal], axis=1).reshape(2 * pairs, *normal.shape[1:])
    return Starts(both @ joint.root.T, both, np.full(2 * pairs, 1 / (2 * pairs)), True)


def _nodes(joint: JointStatistics, nodes: int) -> Starts:
    x, w = np.polynomial.hermite_e.hermegauss(whole(nodes, "nodes", 1, 20))
    dimension = joint.outputs * len(joint.K)
    if len(x) ** dimension > NODES:
        raise NumericError(
            f"A rule of {len(x)} nodes in {dimension} directions has {len(x) ** dimension:.3g} nodes, more than "
            f"{NODES}: draw initial outputs instead (leave `nodes` out)."
        )
    points = np.array(list(product(x, repeat=dimension))).reshape(-1, joint.outputs, len(joint.K))
    weights = np.prod(np.array(list(product(w / w.sum(), repeat=dimension))), axis=1)
    return Starts(points @ joint.root.T, points, weights, False)


def _until(
    loss: Loss,
    theta: np.ndarray,
    train: np.ndarray,
    newton: np.ndarray,
    algorithm: Algorithm,
    time: float | None,
    z: Any,
) -> float:
    """The time asked for, or half as much again as some of the networks need to end."""
    if time is not None:
        asked = finite(time, "A time of training", least=0)
        if not algorithm.continuous and asked != round(asked):
            raise NumericError(f"{algorithm} trains in steps: its time is a whole number of them.")
        return asked
    if isinstance(loss, CrossEntropy):
        loss.minimum(np.zeros_like(loss.p))
    masks, own, step = algorithm.masks(len(train)), np.array(z), 0
    metrics = newton[None] if masks is None else newton * masks[:, None]
    size = 0.5 / float(np.linalg.eigvalsh(theta[np.ix_(train, train)])[-1])
    while step < LONGEST:
        errors = np.stack([loss.error(x[:, train].T) for x in own])
        if np.abs(errors).max() < ENDED:
            return (step + step // 2) * (size if algorithm.continuous else 1)
        rate = size if algorithm.continuous else algorithm.rule(step).direct
        driven = metrics[step % len(metrics)] @ errors
        own = own - rate * np.einsum("xa,rai->rix", theta[:, train], driven)
        step += 1
    raise DivergentTraining(f"{algorithm} has not ended after {LONGEST} steps: give a time, or a larger learning rate.")


def diverges() -> DivergentTraining:
    return DivergentTraining("Training leaves the range of floating-point numbers: take a smaller rate.")


class _Averages:
    """Sums over initial outputs, part by part."""

    def __init__(self, starts: Starts):
        self.starts = starts
        self.values: dict[str, dict[str, list[np.ndarray]]] = {}

    def add(self, name: str, part: str, values: np.ndarray) -> None:
        if not np.isfinite(values).all():
            raise diverges()
        self.values.setdefault(name, {}).setdefault(part, []).append(values)

    def _mean(self, *parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):  # told here
            mean, error = self.starts.mean(np.sum(parts, axis=0))
        if not (np.isfinite(mean) & np.isfinite(error)).all():
            raise diverges()
        return mean, error

    def prediction(self, width: float, test: tuple[int, ...], steps: float, notes: tuple[str, ...]) -> LossPrediction:
        infinite: Values = {}
        infinite_errors: Values = {}
        coefficients: Values = {}
        coefficient_errors: Values = {}
        parts: dict[str, Values] = {}
        part_errors: dict[str, Values] = {}
        for name, kinds in self.values.items():
            arrays = {part: np.concatenate(chunks) for part, chunks in kinds.items()}
            infinite[name], infinite_errors[name] = self._mean(arrays.pop("infinite"))
            found = {part: self._mean(x) for part, x in arrays.items()}
            parts[name] = {part: mean for part, (mean, _) in found.items()}
            part_errors[name] = {part: error for part, (_, error) in found.items()}
            coefficients[name], coefficient_errors[name] = self._mean(*arrays.values())
        for name, leading in infinite.items():
            size = float(np.abs(leading).max())
            share = float(np.abs(coefficients[name]).max()) / width / size if size > 0 else 0.0
            notes += first_order(f"the {name.replace('_', ' ')}", share, width)
        return LossPrediction(
            width, test, infinite, coefficients, parts, part_errors, infinite_errors, coefficient_errors, steps, notes
        )


def _notes(algorithm: Algorithm, until: float, starts: Starts, loss: Loss) -> tuple[str, ...]:
    how = f"{len(starts.z)} initial outputs drawn in pairs" if starts.drawn else f"{len(starts.z)} quadrature nodes"
    unit = "time" if algorithm.continuous else "step"
    return (f"{type(loss).__name__} loss, trained with {algorithm} until {unit} {until:g}", how)
