r"""Width transfer: networks between the NTK (s = 0) and the maximal-update (s = 1) parametrization, trained for real.

Outputs are multiplied by n^(-s/2) and learning rates by n^s, n the hidden width: the NTK stays of order one, and its
relative change in training goes as L/n^(1-s). Every network is trained at several learning rates, and recorded are its
final loss, the relative change of its NTK on the training inputs, and how far the coordinates of the last hidden layer
and of the output move (rms). Networks come in pairs with opposite last layers, and the NTK's change |H - H_0|/|H_0| is
that of a pair's mean: the dNTK times the targets, odd in the last layer, drops out of it. "standard" is the usual
parametrization beside it: the same initialization, one learning rate for all parameters of all layers.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from io import StringIO
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from effective_theory.files import file_stem, write_file
from numeric.ensemble.networks import Networks, Params, flip_last_layer
from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.given import a_seed
from numeric.studies.resume import earlier_rows

STANDARD = "standard"
RESAMPLED = 500  # draws of networks, for the error of the best learning rate
Array = np.ndarray


@dataclass(frozen=True)
class ScaleStudy:
    """What is trained: `networks` networks of every width at learning rates 2^k eta_0, k in `powers`.

    Pair k of networks learns data set k modulo `data_sets`. eta_0 is 1/(largest eigenvalue of Theta) at infinite width,
    for each data set. For the standard parametrization it is the same number at the smallest width, spread over all
    parameters so that the NTK's trace agrees there, and then kept.
    """

    activation: str
    schemes: tuple[float | str, ...] = (0.0, 1.0, STANDARD)
    widths: tuple[int, ...] = (64, 128, 256, 512)
    depth: int = 3
    networks: int = 4
    steps: int = 40
    powers: tuple[int, ...] = (-3, -2, -1, 0, 1, 2)
    C_b: float = 0.0
    C_W: float = 1.0
    lambda_b: tuple[float, ...] = ()
    lambda_W: tuple[float, ...] = ()
    input_norm: float = 1.0
    dimension: int = 6
    train: int = 32
    target: float = 1.0
    seed: int = 0
    data_sets: int = 1

    def __post_init__(self) -> None:
        a_seed(self.seed)
        if (
            len(set(self.widths)) < 2
            or min(self.widths) < 2
            or self.networks < 2
            or self.networks % 2
            or self.steps < 1
        ):
            raise NumericError(
                "A scale study needs two widths from 2 on, pairs of networks (an even number) and a step."
            )
        if self.depth < 2 or not self.powers or self.train < 1 or not self.target > 0:
            raise NumericError(
                "A scale study needs depth 2 or more, a learning rate, inputs and targets that are not 0."
            )
        if not 1 <= self.data_sets <= self.networks // 2:
            raise NumericError("A scale study has at least one data set, and a pair of networks for each.")
        for scheme in self.schemes:
            if scheme != STANDARD and not (isinstance(scheme, float | int) and 0 <= scheme <= 1):
                raise NumericError(f"A parametrization is a number s from 0 to 1 or {STANDARD!r}, not {scheme!r}.")

    @property
    def rates(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        ones = (1.0 / self.depth,) * self.depth
        return self.lambda_b or ones, self.lambda_W or ones

    def data(self, which: int = 0) -> tuple[Array, Array]:
        """Inputs of the study's norm, and targets: a smooth function of the first two coordinates, rms `target`."""
        X = np.random.default_rng([self.seed, which] if which else self.seed).normal(size=(self.train, self.dimension))
        X *= np.sqrt(self.input_norm * self.dimension) / np.linalg.norm(X, axis=1, keepdims=True)
        y = np.sin(2 * X[:, 0] / np.sqrt(self.input_norm)) + X[:, 1] * X[:, 0] / self.input_norm
        return X, y * (self.target / np.sqrt(np.mean(y**2)))

    def step_size(self, which: int = 0) -> float:
        """eta_0 of a data set, from the infinite-width NTK of its inputs."""
        X, _ = self.data(which)
        bias, weight = self.rates
        f = flow(self.activation, X, self.depth, 1, self.C_b, self.C_W, bias, weight, tensors="Theta", layers="last")
        return 1 / float(np.linalg.eigvalsh(np.asarray(f.Theta))[-1])


@dataclass(frozen=True)
class ScaleRow:
    """One network trained at one learning rate, 2^power eta_0; infinite losses are those of diverged training."""

    scheme: str
    width: int
    power: int
    network: int
    loss: float
    start: float
    ntk_change: float
    trace_change: float
    hidden_change: float
    output_change: float


def run_scale(study: ScaleStudy, done: set[tuple[str, int]] | None = None) -> Iterator[list[ScaleRow]]:
    """Train what is not in `done`, (scheme, width) pairs, and yield the rows of one pair at a time."""
    etas = [study.step_size(which) for which in range(study.data_sets)]
    for scheme in study.schemes:
        for width in study.widths:
            if (str(scheme), width) not in (done or set()):
                yield _train(study, scheme, width, etas)


def _train(study: ScaleStudy, scheme: float | str, width: int, etas: list[float]) -> list[ScaleRow]:
    standard = scheme == STANDARD
    train = _trainer(replace(study, schemes=(), powers=(0,), networks=2, data_sets=1, seed=0), standard, width)
    s = 0.0 if standard else float(scheme)
    scales = [_standard_scale(study, d) if standard else float(width) ** s for d in range(study.data_sets)]
    places = [(power, k, k % study.data_sets) for power in study.powers for k in range(study.networks // 2)]
    rates = [etas[d] * scales[d] * 2.0**power for power, _, d in places]
    X, y = (np.stack(own) for own in zip(*(study.data(d) for d in range(study.data_sets))))
    found = train(
        jax.random.fold_in(jax.random.key(study.seed), width),
        *(jnp.array(own, dtype=jnp.float32) for own in (X, y)),
        *(jnp.array([place[column] for place in places]) for column in (1, 2)),
        jnp.array(rates, dtype=jnp.float32),
        jnp.float32(width ** (-s / 2)),
    )
    numbers = [np.where(np.isfinite(x), x, np.inf) for x in (np.asarray(x, dtype=float) for x in found)]
    return [
        ScaleRow(str(scheme), width, power, 2 * k + member, *(float(x[place][member]) for x in numbers))
        for place, (power, k, _) in enumerate(places)
        for member in range(2)
    ]


@lru_cache(maxsize=4)
def _trainer(study: ScaleStudy, standard: bool, width: int) -> Callable[..., tuple[jax.Array, ...]]:
    """A compiled function of the root key, data sets, each place's pair, data set and learning rate, and the outputs'
    multiplier: the numbers of rows, places first. Networks are trained one pair after another: large matrix products
    of one network are faster than a batch's."""
    sizes = (study.dimension, *(width,) * (study.depth - 1), 1)
    bias, weight = study.rates
    nets = Networks(study.activation, sizes, study.C_b, study.C_W, bias, weight)
    rates = [(1.0, 1.0)] * study.depth if standard else nets.rates()

    def forward(params: Params, X: jax.Array, moved: list[jax.Array] | None = None) -> tuple[list[jax.Array], ...]:
        """What enters each layer, and its preactivations, which may be `moved`; columns are inputs."""
        entering, preactivations = [X.T], []
        for layer, (w, b) in enumerate(params):
            z = w @ entering[-1] + b[:, None]
            preactivations.append(z if moved is None else z + moved[layer])
            entering.append(nets.sigma(preactivations[-1]))
        return entering, preactivations

    def loss(params: Params, X: jax.Array, y: jax.Array, multiplier: jax.Array) -> jax.Array:
        return jnp.sum((multiplier * forward(params, X)[1][-1][0] - y) ** 2) / 2

    def ntk(params: Params, X: jax.Array) -> jax.Array:
        """The NTK on the training inputs, up to a factor: slopes at each layer times what enters it."""
        entering, preactivations = forward(params, X)
        still = [jnp.zeros_like(z) for z in preactivations]
        slopes = jax.grad(lambda moved: jnp.sum(forward(params, X, moved)[1][-1]))(still)
        terms = [
            (d.T @ d) * (np.float32(rate_w) * (x.T @ x) + np.float32(rate_b))
            for d, x, (rate_w, rate_b) in zip(slopes, entering, rates)
        ]
        return jnp.stack(terms).sum(axis=0)

    def member(
        start: Params, X: jax.Array, y: jax.Array, eta: jax.Array, multiplier: jax.Array
    ) -> tuple[jax.Array, ...]:
        def step(params: Params, _: None) -> tuple[Params, None]:
            gradient = jax.grad(loss)(params, X, y, multiplier)
            moved = [
                tuple(p - eta * np.float32(r) * g for p, g, r in zip(own, slope, pair))
                for own, slope, pair in zip(params, gradient, rates)
            ]
            return moved, None

        end, _ = jax.lax.scan(step, start, None, length=study.steps)
        before, after = forward(start, X)[1], forward(end, X)[1]
        moved = [factor * jnp.sqrt(jnp.mean((after[l] - before[l]) ** 2)) for l, factor in ((-2, 1), (-1, multiplier))]
        losses = [loss(params, X, y, multiplier) for params in (end, start)]
        return *losses, ntk(start, X), ntk(end, X), *moved

    def pair(
        key: jax.Array, X: jax.Array, y: jax.Array, eta: jax.Array, multiplier: jax.Array
    ) -> tuple[jax.Array, ...]:
        drawn = jax.tree.map(lambda p: p.astype(jnp.float32), nets.sample_one(key))
        found = [member(start, X, y, eta, multiplier) for start in (drawn, flip_last_layer(drawn))]
        end, start, first, last, hidden, output = (jnp.stack(own) for own in zip(*found))
        change = jnp.linalg.norm((last - first).sum(axis=0)) / jnp.linalg.norm(first.sum(axis=0))
        traces = jnp.trace(last, axis1=1, axis2=2) / jnp.trace(first, axis1=1, axis2=2) - 1
        return end, start, jnp.stack([change, change]), traces, hidden, output

    @jax.jit
    def train(
        root: jax.Array,
        X: jax.Array,
        y: jax.Array,
        pairs: jax.Array,
        data: jax.Array,
        etas: jax.Array,
        multiplier: jax.Array,
    ) -> tuple[jax.Array, ...]:
        one = lambda own: pair(jax.random.fold_in(root, own[0]), X[own[1]], y[own[1]], own[2], multiplier)  # noqa: E731
        return jax.lax.map(one, (pairs, data, etas))

    return train


@lru_cache(maxsize=8)
def _standard_scale(study: ScaleStudy, which: int) -> float:
    """What multiplies eta_0 for the standard parametrization: traces of both NTKs agree at the smallest width."""
    X, _ = study.data(which)
    bias, weight = study.rates
    width = min(study.widths)
    fan_in = [study.dimension, *[width] * (study.depth - 1)]
    traces = []
    for b, w in ((bias, weight), ((1.0,) * study.depth, tuple(float(n) for n in fan_in))):
        settings = (study.activation, X, study.depth, 1, study.C_b, study.C_W, b, w)
        traces.append(float(np.trace(np.asarray(flow(*settings, tensors="Theta", layers="last").Theta))))
    return traces[0] / traces[1]


class ScaleRecord:
    """The rows of a study in `folder`; only widths and parametrizations may grow when it is resumed."""

    def __init__(self, study: ScaleStudy, folder: Path) -> None:
        stem = f"scale-study-{file_stem(study.activation)}"
        self.study = study
        self.csv, self.settings, self.figure = (folder / f"{stem}.{end}" for end in ("csv", "json", "png"))
        self.rows = self._load()

    @property
    def done(self) -> set[tuple[str, int]]:
        return {(row.scheme, row.width) for row in self.rows}

    @property
    def wanted(self) -> list[ScaleRow]:
        schemes = [str(s) for s in self.study.schemes]
        chosen = [r for r in self.rows if r.scheme in schemes and r.width in self.study.widths]
        return sorted(chosen, key=lambda r: (schemes.index(r.scheme), r.width, r.power, r.network))

    def add(self, rows: list[ScaleRow]) -> None:
        """Append rows and write both files anew, settings first."""
        self.rows = self.rows + rows
        out = StringIO()
        table = csv.writer(out, lineterminator="\n")
        names = [f.name for f in fields(ScaleRow)]
        table.writerow(names)
        table.writerows([getattr(row, name) for name in names] for row in self.rows)
        write_file(self.settings, json.dumps(self._fixed(), indent=2) + "\n")
        write_file(self.csv, out.getvalue())

    def _fixed(self) -> dict[str, object]:
        own = {k: v for k, v in asdict(self.study).items() if k not in ("widths", "schemes")}
        own["smallest"] = min(self.study.widths)  # what the standard parametrization refers to
        return json.loads(json.dumps(own))

    def _load(self) -> list[ScaleRow]:
        return earlier_rows(self.csv, self.settings, self.figure, self._fixed(), _row)


def _row(line: dict[str, str]) -> ScaleRow:
    width, power, network = (int(line[name]) for name in ("width", "power", "network"))
    rest = [float(line[n]) for n in ("loss", "start", "ntk_change", "trace_change", "hidden_change", "output_change")]
    return ScaleRow(line["scheme"], width, power, network, *rest)


@dataclass(frozen=True)
class ScaleSummary:
    """For one parametrization and width: the best learning rate, and how far things move at the reference rate.

    `best_power` has the smallest mean loss among the learning rates tried; `optimum` is that power to a fraction, with
    the standard error that drawing other networks and data sets would give it.
    """

    scheme: str
    width: int
    best_power: int | None
    optimum: float
    optimum_error: float
    losses: tuple[float, ...]
    ntk_change: float
    ntk_error: float
    hidden_change: float
    output_change: float


def summarize_scale(study: ScaleStudy, rows: list[ScaleRow], reference: int | None = None) -> list[ScaleSummary]:
    """The mean loss at every learning rate, its minimum, and mean changes at 2^reference (the second smallest rate).

    Widths and parametrizations without rows are left out.
    """
    powers = sorted(study.powers)
    chosen = reference if reference is not None else powers[min(1, len(powers) - 1)]
    found = []
    for scheme in map(str, study.schemes):
        for width in study.widths:
            own = sorted(
                (r for r in rows if r.scheme == scheme and r.width == width), key=lambda r: (r.power, r.network)
            )
            if not own:
                continue
            losses = np.array([r.loss for r in own]).reshape(len(powers), -1, 2).mean(axis=2)  # of pairs
            mean = losses.mean(axis=1)
            best = powers[int(np.argmin(mean))] if np.isfinite(mean).any() else None
            at = [r for r in own if r.power == chosen]
            changes = np.array([r.ntk_change for r in at]).reshape(-1, 2).mean(axis=1)
            error = float(changes.std(ddof=1) / np.sqrt(len(changes))) if len(changes) > 1 else float("nan")
            moved = [float(np.mean([getattr(r, n) for r in at])) for n in ("hidden_change", "output_change")]
            found.append(
                ScaleSummary(
                    scheme,
                    width,
                    best,
                    *optimal_power(np.array(powers, dtype=float), losses),
                    tuple(map(float, mean)),
                    float(changes.mean()),
                    error,
                    *moved,
                )
            )
    return found


def optimal_power(powers: Array, losses: Array) -> tuple[float, float]:
    """Where the mean loss is smallest, and the standard error, from losses (powers, samples).

    The minimum is that of a parabola in log loss against log rate through the lowest point and its neighbours (the
    lowest point itself at an edge, or next to a diverged rate); the error is the spread over resampled samples.

    >>> steps = np.arange(-3.0, 3.0)
    >>> optimal_power(steps, np.exp((steps[:, None] - 0.25) ** 2) * np.ones((1, 4)))
    (0.25, 0.0)
    """
    if not np.isfinite(losses.mean(axis=1)).any():
        return float("nan"), float("nan")
    count = losses.shape[1]
    drawn = np.random.default_rng(0).integers(0, count, size=(RESAMPLED, count))
    centre = _minimum(powers, losses.mean(axis=1))
    spread = [_minimum(powers, losses[:, picked].mean(axis=1)) for picked in drawn]
    return centre, float(np.std(spread))


def _minimum(powers: Array, mean: Array) -> float:
    place = int(np.argmin(mean))
    around = slice(place - 1, place + 2)
    if place in (0, len(powers) - 1) or not np.isfinite(mean[around]).all() or not mean[place] > 0:
        return float(powers[place])
    curvature, slope, _ = np.polyfit(powers[around] - powers[place], np.log(mean[around]), 2)
    if not curvature > 0:
        return float(powers[place])
    shift = -slope / (2 * curvature)
    return round(float(powers[place] + shift), 12)
