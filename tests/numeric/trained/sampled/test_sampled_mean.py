"""Sampled predictions against the exact tensors, in their own standard errors; runs that stop, resume and refuse."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from numeric import flow, predict
from numeric.errors import NumericError
from numeric.trained import GradientDescent, GradientFlow, Momentum, Schedule, StochasticDescent, TwoStep
from numeric.trained.sampled import estimate
from numeric.trained.sampled.draws import Draw, draw, host_draw
from numeric.trained.sampled.estimate import Sampler
from numeric.trained.sampled.kept import kept
from numeric.trained.sampled.two_labels import first_order_kernels

RATES = {"C_b": 0.1, "C_W": 1.2, "lambda_b": 0.3, "lambda_W": 1.0}
PARTS = ("NTK variance", "dNTK", "ddNTK-I", "ddNTK-II")


def setting(activation="tanh", depth=2, inputs=8, outputs=1, seed=1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(inputs + 2, 5))
    y = random.normal(size=(inputs, outputs))
    widths = [64, 96, 80][: depth - 1]
    full = flow(activation, X, depth, widths, **RATES)
    kernels = flow(activation, X, depth, widths, **RATES, tensors="Theta")
    return full, kernels, (y[:, 0] if outputs == 1 else y), list(range(inputs))


@pytest.fixture(scope="module")
def small():
    return setting()


def pulls(setting, algorithm, time=None, draws=20_000):
    """Differences to the exact parts in standard errors, and the largest standard error as a share of the part."""
    full, kernels, y, train = setting
    exact = predict(full, y, train, algorithm, time=time)
    p = predict(kernels, y, train, algorithm, time=time, method="sampled", relative_error=1e-9, seconds=1e-3, batch=500)
    stop = draws // 500
    sampler, (outcome,) = p.sampler(time if time is None else float(time)), p.outcomes
    for number in range(max(outcome.sums.batches) + 1, stop):
        outcome.sums.add(number, tuple(np.asarray(x) for x in sampler.launch(number)))
    np.testing.assert_allclose(p.parts["NTK"], exact.parts["NTK"], rtol=1e-10)
    np.testing.assert_allclose(p.parts["H1"], exact.parts["H1"], rtol=1e-7, atol=1e-9)
    own = [(p.parts[name] - exact.parts[name]) / p.standard_error[name] for name in PARTS]
    there = [name for name in PARTS if np.any(exact.parts[name])]  # two steps of one hidden layer: no second ddNTK
    precise = [np.max(p.standard_error[name]) / np.max(np.abs(exact.parts[name])) for name in there]
    return np.concatenate([x.ravel() for x in own]), max(precise)


@pytest.mark.parametrize(("algorithm", "time"), [(GradientDescent(0.2), None), (GradientFlow(), None)])
def test_each_part_of_the_mean(small, algorithm, time):
    found, precise = pulls(small, algorithm, time)
    assert precise < 0.25
    assert np.abs(found).max() < 4 and np.sqrt(np.mean(found**2)) < 1.8


@pytest.mark.slow
def test_fifty_and_more_components():
    """tanh and gelu, depth 2 to 4, one to three outputs, every algorithm, in time and at the end."""
    found = [
        pulls(setting("tanh", 3, 8, 2), GradientDescent(0.2))[0],
        pulls(setting("tanh", 2, 8, 1), GradientDescent(0.2), 15)[0],
        pulls(setting("gelu", 3, 8, 1), Momentum(0.05, 0.7), 20)[0],
        pulls(setting("gelu", 2, 20, 3), Momentum(0.05, 0.7))[0],
        pulls(setting("tanh", 2, 8, 1), TwoStep(), 2)[0],
        pulls(setting("tanh", 2, 8, 1), Schedule([0.3, 0.1, 0.2]), 9)[0],
        pulls(setting("tanh", 4, 8, 1), GradientFlow(), 4.0)[0],
    ]
    together = np.concatenate(found)
    assert len(together) >= 56
    assert np.abs(together).max() < 4.5
    assert 0.7 < np.sqrt(np.mean(together**2)) < 1.3


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "depth"), [("tanh", 4), ("gelu", 3)])
def test_first_order_kernels_on_two_labels(activation, depth):
    full, kernels, _, _ = setting(activation, depth)
    for name, value in first_order_kernels(kernels).items():
        exact = np.asarray(getattr(full, name))
        np.testing.assert_allclose(value, exact, atol=1e-10 * np.abs(exact).max())


@pytest.mark.slow
def test_controls_have_the_means_that_pair_averages_give(small):
    """Every control variate on 4000 drawn neurons, in standard errors of its mean; none of them is constant."""
    sampler = ask(small, dtype="float64").sampler(None)
    program = sampler.program
    drawn, _ = draw(program.theory, jax.random.key(5), 4000)
    values = np.asarray(program.controls.values(program.theory, drawn, program.ahead))
    error = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    assert (error > 0).all() and len(values) >= 5
    assert np.abs(values.mean(axis=1) / error).max() < 4


@pytest.mark.slow
@pytest.mark.parametrize("time", [None, 3])
def test_numpy_and_the_compiled_program_make_the_same_of_the_same_draws(time):
    """Two outputs: every part, its square and what controls are fitted to, from one set of neurons and vectors."""
    _, kernels, y, train = setting(depth=2, outputs=2)
    p = predict(kernels, y, train, GradientDescent(0.2), time=time, method="sampled", batch=20, dtype="float64")
    sampler = p.sampler(None if time is None else float(time))
    key, (weights, late) = jax.random.key(3), sampler._weights(0)
    compiled = estimate._batch(sampler.program, key, weights, late)
    made = {}
    program, packed, then = kept((sampler.program, weights, late), made)
    plain = {name: np.asarray(getattr(sampler.program.controls, name)) for name in ("means", "strength")}
    program = replace(program, controls=replace(program.controls, **plain))
    drawn, _ = draw(sampler.program.theory, key, 20)
    own = {name: kept(value, made) for name, value in vars(drawn).items() if name != "noise"}
    own["noise"] = lambda *place: kept(drawn.noise(*place), made)
    found = estimate._sums(program, Draw(**own), packed, then)
    for x, other in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(compiled), strict=True):
        np.testing.assert_allclose(x, other, rtol=1e-10, atol=1e-10 * np.abs(other).max())


def off(values, K):
    """How far the mean of v v^T over draws is from K, in standard errors at most; values are (draws, N)."""
    error = np.sqrt((np.outer(np.diagonal(K), np.diagonal(K)) + K**2) / len(values))
    return np.max(np.abs(values.T @ values / len(values) - K) / error)


def test_the_numbers_that_numpy_draws():
    """K of neurons and initial outputs, their independence, orders and signs, vectors by their place."""
    _, kernels, y, train = setting(depth=3, outputs=2)
    p = predict(kernels, y, train, GradientDescent(0.2), method="sampled", batch=20, dtype="float64")
    program, functions, count = p.sampler(None).program, kernels.activation.FUNCTIONS, 4000
    drawn, z = host_draw(kept(program.theory, {}), functions, (0, 7), count)
    for layer, source in zip((1, 2), drawn.sources):
        s = source[0].array[:, 0, 0]
        assert off(np.arctanh(s), np.asarray(kernels.layer(layer).K)) < 4.5
        np.testing.assert_allclose(source[1].array[:, 0, 0], 1 - s**2, atol=1e-14)
    K = p.kernel.K
    assert off(z.reshape(count, -1), np.kron(np.eye(2), K)) < 4.5
    noise = drawn.noise(1, 2, 3).array
    assert noise.shape == (count, 1, 2, 3) and off(noise.reshape(count, -1), np.eye(6)) < 4.5
    assert np.array_equal(drawn.noise(1, 2, 3).array, noise) and not np.array_equal(drawn.noise(1, 3, 3).array, noise)
    every = np.einsum("skoa,skob->sab", drawn.errors.array, drawn.errors.array)
    np.testing.assert_allclose(np.einsum("skoa,skob->sab", drawn.mixed.array, drawn.mixed.array), 2 * every, atol=1e-9)
    np.testing.assert_array_equal(z, host_draw(kept(program.theory, {}), functions, (0, 7), count)[1])


def ask(small, **options):
    _, kernels, y, train = small
    defaults = {"relative_error": 1e-9, "seconds": 1e-3, "batch": 500}
    return predict(kernels, y, train, GradientDescent(0.2), method="sampled", **(defaults | options))


def test_a_run_is_taken_up_where_it_was_left(small, tmp_path):
    file = tmp_path / "run.npz"
    first = ask(small, checkpoint=file)
    first.mean  # noqa: B018
    second = ask(small, checkpoint=file)
    assert second.samples > first.samples
    numbers = sorted(second.outcomes[0].sums.batches)
    assert numbers == list(range(len(numbers)))
    fresh = ask(small).sampler(None)
    for number in numbers:
        again = [np.asarray(x) for x in fresh.launch(number)]
        for x, stored in zip(again, second.outcomes[0].sums.batches[number]):
            np.testing.assert_array_equal(x, stored)
    with pytest.raises(NumericError, match="another problem"):
        ask(small, checkpoint=file, seed=1).mean  # noqa: B018
    file.write_bytes(b"nothing")
    with pytest.raises(NumericError, match="not a checkpoint"):
        ask(small, checkpoint=file).mean  # noqa: B018


def test_an_interrupted_run_keeps_what_there_is(small, monkeypatch):
    launch = Sampler.launch

    def interrupted(self, number, device=None):
        if number == 3:
            raise KeyboardInterrupt
        return launch(self, number, device)

    monkeypatch.setattr(Sampler, "launch", interrupted)
    p = ask(small, seconds=1e9)
    assert p.samples == 1500 and np.isfinite(p.mean).all() and "interrupted" in " ".join(p.notes)


@pytest.mark.slow
def test_single_precision_is_enough(small):
    """The same draws in both precisions: rounding is far below what a batch of draws leaves."""
    first, second = (ask(small, dtype=dtype).sampler(None).launch(0) for dtype in ("float32", "float64"))
    count = 500
    mean, other = (np.asarray(x[0]) / count for x in (first, second))
    deviation = np.sqrt(np.asarray(second[1]) / count - other**2)
    assert np.max(np.abs(mean - other) / deviation) < 1e-3 / np.sqrt(count)
    assert ask(small)._dtype == np.float32  # the condition number is some tens


def test_it_stops_at_the_error_asked_for(small):
    p = ask(small, relative_error=0.5, seconds=1e9)
    assert p.relative_error <= 0.5 and "the relative error was reached" in " ".join(p.notes)
    assert p.parts.keys() == {"NTK", "H1", *PARTS} and p.standard_error["NTK"].max() == 0


def test_what_cannot_be_sampled_is_refused_in_a_sentence(small):
    full, kernels, y, train = small
    X = np.random.default_rng(0).normal(size=(4, 3))
    twins = flow("tanh", X[[0, 0, 1, 2]], 2, 8, tensors="Theta")
    nan = np.where(X > 0, np.nan, X)
    for make, words in (
        (lambda: ask(small, relative_error=0), "above 0"),
        (lambda: ask(small, dtype="float16"), "float32 or float64"),
        (lambda: predict(kernels, y, train, method="fast"), "method is one of"),
        (lambda: predict(full, y, train, seconds=3), "add method='sampled'"),
        (lambda: predict(kernels, y, train, StochasticDescent(0.1, [train]), method="sampled"), "schedule of batches"),
        (lambda: predict(flow("tanh", X, 2), [1.0], [0], method="sampled"), "width"),
        (lambda: predict(flow("relu", X, 2, 8, tensors="Theta"), [1.0], [0], method="sampled").mean, "jumps"),
        (lambda: predict(flow("elu", X, 2, 8, tensors="Theta"), [1.0], [0], method="sampled"), "smooth activations"),
        (lambda: predict(flow("tanh", X, 2, 8, tensors="Theta"), [1.0] * 4, range(4), method="sampled"), "no test"),
        (lambda: predict(kernels, [np.nan] * 8, train, method="sampled"), "not finite"),
        (lambda: predict(kernels, [], [], method="sampled"), "train must name"),
        (lambda: predict(kernels, y, train, TwoStep(), time=1, method="sampled").variance, "at its end"),
        (
            lambda: predict(twins, [1.0, 1.0, 2.0], [0, 1, 2], method="sampled"),
            "inputs 0 and 1 are the same to the NTK;",
        ),
        (lambda: predict(twins, [1.0, 3.0, 2.0], [0, 1, 2], method="sampled"), "have different targets"),
        (lambda: predict(flow("tanh", nan, 2, 8, tensors="Theta"), [1.0], [0], method="sampled"), "holds NaN"),
    ):
        with pytest.raises(NumericError, match=words):
            make()


def test_a_hopeless_correction_is_refused_with_advice(small):
    """The correction is cubic in the targets, the prediction linear."""
    _, kernels, y, train = small
    p = predict(
        kernels, 100 * y, train, GradientDescent(0.2), method="sampled", batch=500, relative_error=1e-9, seconds=1e-3
    )
    assert p.correction_size > 10
    with pytest.raises(NumericError, match=r"says nothing; a (ridge|width) of about"):
        p.mean  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "outputs", "algorithm", "time"),
    [
        (2, 1, GradientDescent(0.2), None),
        (3, 2, GradientDescent(0.2), None),
        (2, 1, GradientDescent(0.2), 6),
        (2, 2, GradientFlow(), 1.5),
        (2, 1, TwoStep(), None),
        (3, 1, TwoStep(), 3),
    ],
)
def test_variances(depth, outputs, algorithm, time):
    """Against the exact tensors, at the end of training and before."""
    full, kernels, y, train = setting(depth=depth, outputs=outputs)
    p = predict(kernels, y, train, algorithm, time=time, method="sampled", relative_error=1e-9, seconds=1e-3, batch=500)
    sampler, (outcome,) = p.sampler(None if time is None else float(time)), p.outcomes
    for number in range(max(outcome.sums.batches) + 1, 40):
        outcome.sums.add(number, tuple(np.asarray(x) for x in sampler.launch(number)))
    covariance = predict(full, y, train, algorithm, time=time).covariance
    exact = np.diagonal(covariance) if outputs == 1 else np.einsum("iixx->xi", covariance)
    found = (p.variance - exact) / p.variance_error
    print(algorithm, time, found)
    assert np.abs(found).max() < 4
    infinite = np.diagonal(p.covariance_infinite).reshape(exact.shape[0], *[1] * (exact.ndim - 1))
    assert np.max(p.variance_error) < 0.5 * np.max(np.abs(exact - infinite))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "time"), [(GradientDescent(0.2), 4), (GradientFlow(), 0.8), (GradientFlow(), 3.0)]
)
def test_a_ridge_at_a_time(algorithm, time):
    """Means and variances against the exact tensors, before the penalty has stopped the training."""
    full, kernels, y, train = setting(depth=2, outputs=1)
    exact = predict(full, y, train, algorithm, time=time, ridge=0.3)
    p = predict(
        kernels, y, train, algorithm, time=time, ridge=0.3, method="sampled", relative_error=0.03, seconds=60, batch=500
    )
    found = [(p.mean - exact.mean) / p.standard_error["mean"]]
    found.append((p.variance - np.diagonal(exact.covariance)) / p.variance_error)
    print(algorithm, time, p.samples, found)
    assert np.abs(found).max() < 4 and p.relative_error < 0.1
    np.testing.assert_allclose(p.parts["H1"], exact.parts["H1"], rtol=1e-8, atol=1e-12)
