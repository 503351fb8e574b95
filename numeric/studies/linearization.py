"""How a network's training leaves its linearization as the width grows (Lee et al. 2019, (review.2)-(review.4)).

For every width a number of networks is trained by gradient descent, and for each of them recorded: the supremum over
time of |f_t - f_lin|, of |theta_t - theta_0| (norm with the inverse learning rates) and of the NTK's relative change
|H_t - H_0|/|H_0|, and the signed relative change of the NTK's trace on the training inputs. Theorem 2.1 bounds them by
1/sqrt(n); what they do:

- smooth sigma: a step moves H by eta dH e, and dH is a sum of n terms of random sign and size n^(-3/2): both gaps
  fall as 1/n.
- sigma with a kink: preactivations move by 1/sqrt(n), so that sqrt(n) neurons of a layer cross the kink and change H
  by 1/n each. Their signs are random but for the ones that a training input itself switches off (a neuron that is off
  for an input is not moved by it, so that none is switched on): a fluctuation n^(-3/4) around a mean n^(-1/2), which
  the trace on the training inputs shows. This is the 1/sqrt(n) of PDLT, below (infinity.44).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numeric.activations import load
from numeric.brackets import PiecewiseLinear
from numeric.empirical import empirical_ntk
from numeric.ensemble.networks import Networks, Params
from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.given import a_seed, finite, whole
from numeric.studies.fit import PowerLaw, power_law
from numeric.trained.frozen_kernel import FrozenKernelTraining, squared_loss

Array = np.ndarray
QUANTITIES = ("f_gap", "ntk_gap", "parameter_change", "trace_change")
CHECKPOINTS = 5


def logistic_loss(f: jax.Array, y: jax.Array) -> jax.Array:
    """Cross-entropy of two classes with one logit f and labels y = 1 or -1: sum of log(1 + exp(-y f))."""
    return jnp.sum(jax.nn.softplus(-y * f))


LOSSES = {"mse": squared_loss, "cross-entropy": logistic_loss}


@dataclass(frozen=True)
class Study:
    """What is trained: `networks` networks of every width on `train` random inputs with labels +1 and -1.

    The loss is the squared one, or "cross-entropy": that of two classes with one logit, log(1 + exp(-y f)), for which
    f_lin follows its own recursion. `rate` is the learning rate in units of 1/(largest eigenvalue of Theta on the
    training inputs). The NTK is measured at five times, `steps`/5 apart.
    """

    activation: str
    widths: tuple[int, ...] = (32, 64, 128, 256)
    depth: int = 3
    networks: int = 96
    steps: int = 120
    rate: float = 0.4
    dimension: int = 6
    train: int = 4
    test: int = 2
    C_b: float = 0.1
    C_W: float = 1.0
    lambda_b: float = 1.0
    lambda_W: float = 1.0
    seed: int = 0
    loss: str = "mse"

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise NumericError(f"the loss is one of {', '.join(LOSSES)}, not {self.loss!r}")
        a_seed(self.seed)
        for name, most in (("depth", 1000), ("networks", 10**6), ("steps", 10**6), ("train", 1000), ("test", 1000)):
            whole(getattr(self, name), name, most=most)
        whole(max(self.widths, default=1), "A width", most=10**5)
        finite(self.rate, "The rate")
        for name in ("C_b", "C_W", "lambda_b", "lambda_W"):
            finite(getattr(self, name), name, least=0)
        if len(set(self.widths)) < 2 or min(self.widths) < 1 or self.networks < 2:
            raise NumericError("a study needs at least two different widths and two networks of each")
        if self.depth < 2 or self.train < 1 or not 0 < self.rate < 2:
            raise NumericError("a study needs depth 2 or more, a training input, and a rate between 0 and 2")
        if self.steps < CHECKPOINTS or self.steps % CHECKPOINTS:
            raise NumericError(
                f"the number of steps must be a multiple of {CHECKPOINTS}, the times the NTK is measured"
            )

    def data(self) -> tuple[Array, Array]:
        """Inputs of norm sqrt(n_0), the first `train` of them with labels."""
        X = np.random.default_rng(self.seed).normal(size=(self.train + self.test, self.dimension))
        X *= np.sqrt(self.dimension) / np.linalg.norm(X, axis=1, keepdims=True)
        return X, 1.0 - 2.0 * (np.arange(self.train) % 2)

    def learning_rate(self) -> float:
        """eta, from the infinite-width NTK."""
        X, _ = self.data()
        hyper: dict[str, Any] = {"C_b": self.C_b, "C_W": self.C_W, "lambda_b": self.lambda_b, "lambda_W": self.lambda_W}
        f = flow(self.activation, X[: self.train], self.depth, **hyper, tensors="Theta", layers="last", progress=False)
        return self.rate / float(np.linalg.eigvalsh(np.asarray(f.Theta))[-1])

    @property
    def has_kink(self) -> bool:
        """Whether the first derivative of sigma jumps."""
        functions = load(self.activation).FUNCTIONS
        calculus = functions.calculus
        equal = isinstance(calculus, PiecewiseLinear) and calculus.plus == calculus.minus
        return bool(functions.has_delta(2)) and not equal

    def expected(self) -> dict[str, tuple[float, float]]:
        """The range in which each power is expected, see above; the trace's power is only predicted with a kink."""
        if self.has_kink:
            between, trace = (-0.75, -0.5), (-0.5, -0.5)
        else:
            between, trace = (-1.0, -1.0), (-np.inf, -1.0)
        return {"f_gap": between, "ntk_gap": between, "parameter_change": (0.0, 0.0), "trace_change": trace}


@dataclass(frozen=True)
class Row:
    """One trained network."""

    width: int
    network: int
    f_gap: float
    ntk_gap: float
    parameter_change: float
    trace_change: float


def run(study: Study, done: set[tuple[int, int]] | None = None, chunk: int = 8) -> Iterator[list[Row]]:
    """Train what is not in `done`, (width, network) pairs, and yield the rows of `chunk` networks at a time.

    A network depends on the study's seed, its width and its number only, so that a study can be stopped and resumed.
    """
    done = done or set()
    eta = study.learning_rate()
    for width in study.widths:
        missing = [k for k in range(study.networks) if (width, k) not in done]
        if not missing:
            continue
        train = _trainer(replace(study, widths=Study.widths, networks=Study.networks), width, eta)
        for start in range(0, len(missing), chunk):
            batch = missing[start : start + chunk]
            padded = batch + [batch[-1]] * (chunk - len(batch))  # one compiled program for all chunks
            trajectories = train(jnp.asarray(padded))
            yield [_row(study, width, eta, k, [np.asarray(x[i]) for x in trajectories]) for i, k in enumerate(batch)]


@lru_cache(maxsize=8)
def _trainer(study: Study, width: int, eta: float) -> Callable[[Any], tuple[Any, ...]]:
    """A compiled function from network numbers to (outputs in time, NTKs and parameter changes at checkpoints)."""
    sizes = (study.dimension, *(width,) * (study.depth - 1), 1)
    nets = Networks(study.activation, sizes, study.C_b, study.C_W, study.lambda_b, study.lambda_W)
    X, y = (jnp.asarray(a) for a in study.data())
    rates, loss = nets.rates(), LOSSES[study.loss]
    root = jax.random.fold_in(jax.random.key(study.seed), width)

    def apply(params: Params, inputs: jax.Array) -> jax.Array:
        return nets.output_one(params, inputs)[0]

    def step(params: Params, _: None) -> tuple[Params, jax.Array]:
        before = apply(params, X)
        gradient = jax.grad(lambda p: loss(apply(p, X[: study.train]), y))(params)
        moved = jax.tree.map(lambda w, g, lam: w - eta * lam * g, params, gradient, rates)
        return moved, before

    def distance(params: Params, start: Params) -> jax.Array:
        terms = jax.tree.map(lambda w, w0, lam: jnp.sum((w - w0) ** 2) / lam if lam else 0.0, params, start, rates)
        return jnp.sqrt(sum(jax.tree.leaves(terms)))

    def one(index: jax.Array) -> tuple[jax.Array, ...]:
        start = nets.sample_one(jax.random.fold_in(root, index))
        ntk = partial(empirical_ntk, apply, X=X, rates=rates, method="jacobian")

        def segment(params: Params, _: None) -> tuple[Params, tuple[jax.Array, ...]]:
            params, f = jax.lax.scan(step, params, None, length=study.steps // CHECKPOINTS)
            return params, (f, ntk(params), distance(params, start))

        params, (f, kernels, moves) = jax.lax.scan(segment, start, None, length=CHECKPOINTS)
        outputs = jnp.concatenate([f.reshape(-1, len(X)), apply(params, X)[None]])
        return outputs, jnp.concatenate([ntk(start)[None], kernels]), moves

    return jax.jit(jax.vmap(one))


def _row(study: Study, width: int, eta: float, network: int, trajectory: list[Array]) -> Row:
    f, H, moves = trajectory
    _, y = study.data()
    n = study.train
    linear = FrozenKernelTraining(H[0][:n, :n], y, f[0, :n])
    if study.loss == "mse":
        weights = linear.descent_weights(np.arange(len(f)), eta)
    else:
        weights = linear.loss_descent_path(len(f) - 1, LOSSES[study.loss], eta)
    f_lin = linear.predict(H[0][:, :n], weights, f[0])
    gap = float(np.abs(f - f_lin).max())
    drift = float(np.max(np.linalg.norm(H - H[0], axis=(1, 2))) / np.linalg.norm(H[0]))
    trace = float(np.trace(H[-1][:n, :n]) / np.trace(H[0][:n, :n]) - 1)
    row = Row(width, network, gap, drift, float(moves.max()), trace)
    if not all(np.isfinite([row.f_gap, row.ntk_gap, row.parameter_change, row.trace_change])):
        raise NumericError(f"network {network} of width {width} diverged: take a smaller rate than {study.rate:g}")
    return row


@dataclass(frozen=True)
class Summary:
    """Means over networks and standard errors for each width, and the fitted power."""

    widths: Array
    means: Array
    errors: Array
    fit: PowerLaw | None


def summarize(rows: list[Row], next_order: bool = False) -> dict[str, Summary]:
    """Every quantity's means and fit; no fit where fewer than two widths show a mean above twice its error.

    `next_order` fits a relative correction in 1/n to the two gaps, which smooth activations have (see `power_law`).
    """
    widths = np.array(sorted({row.width for row in rows}))
    answer = {}
    for name in QUANTITIES:
        samples = [np.array([getattr(row, name) for row in rows if row.width == n]) for n in widths]
        means = np.array([s.mean() for s in samples])
        errors = np.array([s.std(ddof=1) / np.sqrt(len(s)) if len(s) > 1 else np.inf for s in samples])
        try:
            fit = power_law(widths, means, errors, next_order and name in ("f_gap", "ntk_gap"))
        except NumericError:
            fit = None
        answer[name] = Summary(widths, means, errors, fit)
    return answer
