"""Width studies: a hand-checked network, resuming, fits; the stored study against the predicted powers."""

import csv
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric.ensemble.networks import Networks
from numeric.errors import NumericError
from numeric.studies.figures import study_figure
from numeric.studies.fit import power_law
from numeric.studies.linearization import Row, Study, run, summarize
from numeric.studies.record import Record

STORED = Path(__file__).parents[2] / "data" / "studies"
SMALL = {"widths": (4, 8), "networks": 3, "steps": 20, "depth": 2}


def test_one_network_by_hand():
    """The recorded numbers against a plain loop over the steps with Jacobians written out."""
    study = Study("tanh", **SMALL)
    others = {(n, k) for n in (4, 8) for k in range(3)} - {(8, 2)}
    ((row,),) = run(study, others, chunk=2)
    nets = Networks("tanh", (6, 8, 1), study.C_b, study.C_W, study.lambda_b, study.lambda_W)
    params = nets.sample_one(jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 8), 2))
    X, y = study.data()
    eta = study.learning_rate()
    jacobian = jax.jit(jax.jacrev(lambda p: nets.output_one(p, jnp.asarray(X))[0]))

    def gradients(p):
        return [
            np.sqrt(lam) * np.asarray(g).reshape(6, -1)
            for (W, b), lams in zip(jacobian(p), nets.rates())
            for g, lam in zip((W, b), lams)
        ]

    start, J0 = params, np.concatenate(gradients(params), axis=1)
    H0 = J0 @ J0.T
    f_lin = f = np.asarray(nets.output_one(params, jnp.asarray(X))[0])
    gap = 0.0
    for _ in range(study.steps):
        J = jacobian(params)
        error = f[:4] - y
        params = [
            tuple(w - eta * lam * np.tensordot(error, g[:4], 1) for w, g, lam in zip(pair, grads, lams))
            for pair, grads, lams in zip(params, J, nets.rates())
        ]
        f_lin = f_lin - eta * H0[:, :4] @ (f_lin[:4] - y)
        f = np.asarray(nets.output_one(params, jnp.asarray(X))[0])
        gap = max(gap, np.abs(f - f_lin).max())
    J = np.concatenate(gradients(params), axis=1)
    H = J @ J.T
    moved = sum(
        np.sum(np.asarray(w - w0) ** 2) / lam
        for pair, pair0, lams in zip(params, start, nets.rates())
        for w, w0, lam in zip(pair, pair0, lams)
    )
    assert row.f_gap == pytest.approx(gap, rel=1e-9)
    assert row.trace_change == pytest.approx(np.trace(H[:4, :4]) / np.trace(H0[:4, :4]) - 1, rel=1e-8)
    assert row.ntk_gap >= np.linalg.norm(H - H0) / np.linalg.norm(H0) * (1 - 1e-9)
    assert row.parameter_change >= np.sqrt(moved) * (1 - 1e-9)


def test_stop_and_resume(tmp_path):
    """A study stopped after its first chunk and resumed has the rows of one that ran through."""
    study = Study("tanh", **SMALL)
    whole = [row for rows in run(study, chunk=2) for row in rows]
    record = Record(study, tmp_path)
    for rows in run(study, chunk=2):
        record.add(rows)
        break
    again = Record(study, tmp_path)
    assert again.done == {(4, 0), (4, 1)}
    for rows in run(study, again.done, chunk=2):
        again.add(rows)
    resumed = Record(study, tmp_path).wanted
    assert [(r.width, r.network) for r in resumed] == [(r.width, r.network) for r in whole]
    for a, b in zip(resumed, whole):
        assert a.f_gap == pytest.approx(b.f_gap, rel=1e-9)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    with pytest.raises(NumericError, match="other settings"):
        Record(Study("tanh", **{**SMALL, "steps": 25}), tmp_path)
    study_figure(summarize(resumed), "tanh", tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("correction", [0.0, -6.0])
def test_power_law_and_its_error_bar(correction):
    """The error bar covers the truth as often as it says, for noise of known size, with and without a next order."""
    rng = np.random.default_rng(0)
    widths = np.array([32, 64, 128, 256])
    pulls = []
    for _ in range(400):
        truth = 3 * widths**-0.75 * np.exp(correction / widths)
        error = 0.05 * truth
        fit = power_law(widths, truth + error * rng.normal(size=4), error, next_order=bool(correction))
        pulls.append((fit.power + 0.75) / fit.power_error)
    assert np.mean(np.abs(pulls) < 1) > 0.6
    assert np.mean(np.abs(pulls) < 2) > 0.93
    with pytest.raises(NumericError, match="two widths"):
        power_law(widths, np.zeros(4), np.ones(4))


def load(name):
    with (STORED / f"ntk-study-{name}.csv").open(newline="") as file:
        return [
            Row(**{k: int(v) if k in ("width", "network") else float(v) for k, v in line.items()})
            for line in csv.DictReader(file)
        ]


@pytest.mark.equation("review.2")
@pytest.mark.equation("review.3")
@pytest.mark.equation("review.4")
@pytest.mark.equation("review.60")
@pytest.mark.equation("review.100")
def test_smooth_networks_leave_their_linearization_as_one_over_width():
    """Stored study of tanh (tests/data/studies/make.py): both gaps fall as 1/n, parameters move by O(1)."""
    s = summarize(load("tanh"), next_order=True)
    for name in ("f_gap", "ntk_gap"):
        fit = s[name].fit
        assert fit.agrees(-1.0, sigmas=2), (name, fit)
        assert fit.power + 2 * fit.power_error < -0.5, (name, fit)  # and it is not the bound of the theorem
    assert s["parameter_change"].fit.agrees(0.0, sigmas=2)


def test_relu_networks_do_not():
    """Stored study of relu: the NTK's mean update is 1/sqrt(n), as seed 004 says, and not 1/n; its typical size falls
    between n^(-3/4), the fluctuation of sqrt(n) neurons crossing the kink, and n^(-1/2)."""
    s = summarize(load("relu"))
    trace = s["trace_change"].fit
    assert trace.agrees(-0.5, sigmas=2, systematic=0.05), trace
    assert trace.power - 3 * trace.power_error > -1
    assert np.all(s["trace_change"].means < 0)
    for name in ("f_gap", "ntk_gap"):
        fit = s[name].fit
        assert -0.75 - 2 * fit.power_error - 0.05 < fit.power < -0.5 + 2 * fit.power_error, (name, fit)
        assert fit.power - 3 * fit.power_error > -1
    assert s["parameter_change"].fit.agrees(0.0, sigmas=2, systematic=0.1)


def test_refusals():
    with pytest.raises(NumericError, match="two different widths"):
        Study("tanh", widths=(8,))
    with pytest.raises(NumericError, match="rate between"):
        Study("tanh", rate=3.0)


def test_cross_entropy_against_a_plain_loop():
    """f and f_lin of one network on the logistic loss, step by step with Jacobians written out."""
    study = Study("tanh", loss="cross-entropy", **SMALL)
    others = {(n, k) for n in (4, 8) for k in range(3)} - {(8, 2)}
    ((row,),) = run(study, others, chunk=2)
    nets = Networks("tanh", (6, 8, 1), study.C_b, study.C_W, study.lambda_b, study.lambda_W)
    params = nets.sample_one(jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 8), 2))
    X, y = study.data()
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    rates = jax.flatten_util.ravel_pytree(
        [(jnp.full(W.shape, a), jnp.full(b.shape, c)) for (W, b), (a, c) in zip(params, nets.rates())]
    )[0]
    output = jax.jit(lambda w: nets.output_one(unravel(w), jnp.asarray(X))[0])
    jacobian = jax.jit(jax.jacrev(output))
    J, start, eta, n = np.asarray(jacobian(flat)), np.asarray(output(flat)), study.learning_rate(), study.train
    real, linear, worst = np.asarray(flat), np.asarray(flat), 0.0
    for _ in range(study.steps + 1):
        f, f_lin = np.asarray(output(jnp.asarray(real))), start + J @ (linear - np.asarray(flat))
        worst = max(worst, np.abs(f - f_lin).max())
        slope = lambda g: -y / (1 + np.exp(y * g[:n]))  # noqa: E731
        real = real - eta * np.asarray(rates) * (np.asarray(jacobian(jnp.asarray(real)))[:n].T @ slope(f))
        linear = linear - eta * np.asarray(rates) * (J[:n].T @ slope(f_lin))
    assert row.f_gap == pytest.approx(worst, rel=1e-8)
    with pytest.raises(NumericError, match="loss"):
        Study("tanh", loss="hinge", **SMALL)
