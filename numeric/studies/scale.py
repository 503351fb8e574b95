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
from numeric.ensemble.networks import Networks, Params
from numeric.errors import NumericError
from numeric.evaluation.flow import flow
from numeric.studies.resume import earlier_rows

STANDARD = "standard"
Array = np.ndarray


@dataclass(frozen=True)
class ScaleStudy:
    """What is trained: `networks` networks of every width at learning rates 2^k eta_0, k in `powers`.

    eta_0 is 1/(largest eigenvalue of Theta) at infinite width. For the standard parametrization it is the same number
    at the smallest width, spread over all parameters so that the NTK's trace agrees there, and then kept.
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
    train: int = 8
    target: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
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
        for scheme in self.schemes:
            if scheme != STANDARD and not (isinstance(scheme, float | int) and 0 <= scheme <= 1):
                raise NumericError(f"A parametrization is a number s from 0 to 1 or {STANDARD!r}, not {scheme!r}.")

    @property
    def rates(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        ones = (1.0 / self.depth,) * self.depth
        return self.lambda_b or ones, self.lambda_W or ones

    def data(self) -> tuple[Array, Array]:
        """Inputs of the study's norm, and targets: a smooth function of the first two coordinates, rms `target`."""
        X = np.random.default_rng(self.seed).normal(size=(self.train, self.dimension))
        X *= np.sqrt(self.input_norm * self.dimension) / np.linalg.norm(X, axis=1, keepdims=True)
        y = np.sin(2 * X[:, 0] / np.sqrt(self.input_norm)) + X[:, 1] * X[:, 0] / self.input_norm
        return X, y * (self.target / np.sqrt(np.mean(y**2)))

    def step_size(self) -> float:
        """eta_0, from the infinite-width NTK of the training inputs."""
        X, _ = self.data()
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
    eta = study.step_size()
    for scheme in study.schemes:
        for width in study.widths:
            if (str(scheme), width) not in (done or set()):
                yield _train(study, scheme, width, eta)


def _train(study: ScaleStudy, scheme: float | str, width: int, eta: float) -> list[ScaleRow]:
    standard = scheme == STANDARD
    train = _trainer(replace(study, schemes=(), powers=(0,), networks=2), standard, width)
    s = 0.0 if standard else float(scheme)
    multiplier = width ** (-s / 2)
    scale = _standard_scale(study) if standard else float(width) ** s
    places = [(power, k) for power in study.powers for k in range(study.networks // 2)]
    chunk = max(1, min(len(places), 2**21 // (width * width)))
    rows = []
    for first in range(0, len(places), chunk):
        batch = places[first : first + chunk]
        padded = batch + [batch[-1]] * (chunk - len(batch))
        rates = jnp.array([eta * scale * 2.0**power for power, _ in padded], dtype=jnp.float32)
        found = train(jnp.array([k for _, k in padded]), rates, jnp.float32(multiplier))
        numbers = [np.asarray(x, dtype=float) for x in found]
        for place, (power, k) in enumerate(batch):
            for member in range(2):
                values = [float(x[place][member]) if np.isfinite(x[place][member]) else np.inf for x in numbers]
                rows.append(ScaleRow(str(scheme), width, power, 2 * k + member, *values))
    return rows


@lru_cache(maxsize=4)
def _trainer(study: ScaleStudy, standard: bool, width: int) -> Callable[..., tuple[jax.Array, ...]]:
    """A compiled function from pairs' numbers, learning rates and the outputs' multiplier to rows' numbers."""
    X, y = (jnp.asarray(a, dtype=jnp.float32) for a in study.data())
    sizes = (study.dimension, *(width,) * (study.depth - 1), 1)
    bias, weight = study.rates
    nets = Networks(study.activation, sizes, study.C_b, study.C_W, bias, weight)
    rates = [(1.0, 1.0)] * study.depth if standard else nets.rates()
    root = jax.random.fold_in(jax.random.key(study.seed), width)

    def forward(params: Params, multiplier: jax.Array) -> tuple[jax.Array, jax.Array]:
        z = hidden = X.T
        for layer, (w, b) in enumerate(params):
            hidden = z
            z = w @ (z if layer == 0 else nets.sigma(z)) + b[:, None]
        return hidden, multiplier * z[0]

    def loss(params: Params, multiplier: jax.Array) -> jax.Array:
        return jnp.sum((forward(params, multiplier)[1] - y) ** 2) / 2

    def ntk(params: Params) -> jax.Array:
        """The NTK on the training inputs, up to a factor."""
        jacobian = jax.jacrev(lambda p: forward(p, jnp.float32(1.0))[1])(params)
        flat = [
            np.sqrt(r) * j.astype(float).reshape(len(X), -1)
            for own, pair in zip(jacobian, rates)
            for j, r in zip(own, pair)
        ]
        return jnp.stack([j @ j.T for j in flat]).sum(axis=0)

    def member(drawn: Params, sign: jax.Array, eta: jax.Array, multiplier: jax.Array) -> tuple[jax.Array, ...]:
        weights, biases = drawn[-1]
        start = [*drawn[:-1], (sign * weights, sign * biases)]

        def step(params: Params, _: None) -> tuple[Params, None]:
            gradient = jax.grad(loss)(params, multiplier)
            moved = [
                tuple(p - eta * np.float32(r) * g for p, g, r in zip(own, slope, pair))
                for own, slope, pair in zip(params, gradient, rates)
            ]
            return moved, None

        end, _ = jax.lax.scan(step, start, None, length=study.steps)
        before, after = forward(start, multiplier), forward(end, multiplier)
        moved = [jnp.sqrt(jnp.mean((b - a) ** 2)) for a, b in zip(before, after)]
        return loss(end, multiplier), loss(start, multiplier), ntk(start), ntk(end), moved[0], moved[1]

    def pair(index: jax.Array, eta: jax.Array, multiplier: jax.Array) -> tuple[jax.Array, ...]:
        drawn = nets.sample_one(jax.random.fold_in(root, index))
        single = jax.tree.map(lambda p: p.astype(jnp.float32), drawn)
        signs = jnp.array([1.0, -1.0], dtype=jnp.float32)
        end, start, first, last, hidden, output = jax.vmap(member, (None, 0, None, None))(
            single, signs, eta, multiplier
        )
        change = jnp.linalg.norm((last - first).sum(axis=0)) / jnp.linalg.norm(first.sum(axis=0))
        traces = jnp.trace(last, axis1=1, axis2=2) / jnp.trace(first, axis1=1, axis2=2) - 1
        return end, start, jnp.stack([change, change]), traces, hidden, output

    return jax.jit(jax.vmap(pair, (0, 0, None)))


@lru_cache(maxsize=8)
def _standard_scale(study: ScaleStudy) -> float:
    """What multiplies eta_0 for the standard parametrization: traces of both NTKs agree at the smallest width."""
    X, _ = study.data()
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
    """For one parametrization and width: the best learning rate, and how far things move at the reference rate."""

    scheme: str
    width: int
    best_power: int | None
    losses: tuple[float, ...]
    ntk_change: float
    ntk_error: float
    hidden_change: float
    output_change: float


def summarize_scale(study: ScaleStudy, rows: list[ScaleRow], reference: int | None = None) -> list[ScaleSummary]:
    """The mean loss at every learning rate, its minimum, and mean changes at 2^reference (the second smallest rate)."""
    powers = sorted(study.powers)
    chosen = reference if reference is not None else powers[min(1, len(powers) - 1)]
    found = []
    for scheme in map(str, study.schemes):
        for width in study.widths:
            own = [r for r in rows if r.scheme == scheme and r.width == width]
            losses = tuple(float(np.mean([r.loss for r in own if r.power == p])) for p in powers)
            best = powers[int(np.argmin(losses))] if np.isfinite(losses).any() else None
            at = [r for r in own if r.power == chosen]
            changes = np.array([r.ntk_change for r in sorted(at, key=lambda r: r.network)]).reshape(-1, 2).mean(axis=1)
            error = float(changes.std(ddof=1) / np.sqrt(len(changes))) if len(changes) > 1 else float("nan")
            moved = [float(np.mean([getattr(r, n) for r in at])) for n in ("hidden_change", "output_change")]
            found.append(ScaleSummary(scheme, width, best, losses, float(changes.mean()), error, moved[0], moved[1]))
    return found
