"""`derive kernel`: its numbers against refits, a Gaussian process written out, and the iterative way."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import derive
from derive.cli import group
from derive.errors import DeriveError
from numeric import flow
from numeric.evaluation import kernel_blocks
from numeric.studies.data_kernel import data_kernel, fit_data
from numeric.trained.kernel_regression import KernelRegression, ridge_path
from numeric.trained.look_ahead import expected_change

RNG = np.random.default_rng(11)
X = RNG.normal(size=(40, 3))
T = RNG.normal(size=(9, 3))


def truth(inputs):
    return np.stack([np.sin(inputs[:, 0]), inputs[:, 1] * inputs[:, 2]], axis=1)


Y = truth(X) + 0.1 * RNG.normal(size=(40, 2))


def write(path, inputs, targets=None):
    rows = inputs if targets is None else np.concatenate([inputs, targets], axis=1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", *(() if targets is None else ("u", "v"))])
        writer.writerows(rows.tolist())
    return str(path)


@pytest.fixture
def files(tmp_path):
    return (
        write(tmp_path / "data.csv", X, Y),
        write(tmp_path / "test.csv", T, truth(T)),
        write(tmp_path / "pool.csv", T),
    )


def test_numbers_of_the_command_are_refits(files, tmp_path):
    data, test, pool = files
    call = ["kernel", data, "--target", "u", "--target", "v", "--test", test, "--candidates", pool, "--activation"]
    call += ["erf", "--plot", str(tmp_path / "p.png"), "-o", str(tmp_path / "out.csv"), "--json"]
    done = CliRunner().invoke(group, call, catch_exceptions=False)
    found = json.loads(done.stdout)
    theta = np.asarray(flow("erf", np.concatenate([X, T]), 3, tensors="Theta", **_own(found)).Theta)
    K, ridge = theta[:40, :40], found["ridge"]
    predicted = theta[40:, :40] @ np.linalg.solve(K + ridge * np.eye(40), Y)
    assert np.allclose(found["prediction"], predicted, rtol=1e-8)
    assert found["test_mse"] == pytest.approx(np.mean((predicted - truth(T)) ** 2), rel=1e-6)
    left = []
    for i in range(40):
        rest = np.delete(np.arange(40), i)
        fit = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(39), Y[rest])
        left.append(Y[i] - fit)
    assert np.allclose(found["leave_one_out"], left, rtol=1e-6, atol=1e-9)
    assert found["loo_mse"] == pytest.approx(np.mean(np.square(left)))
    assert np.allclose(found["eigenvalues"], np.linalg.eigvalsh(K)[::-1] / 40, rtol=1e-6, atol=1e-12)
    assert sum(found["target_share"]) == pytest.approx(1)
    assert (tmp_path / "p.png").stat().st_size > 5000 and len((tmp_path / "out.csv").read_text().splitlines()) == 19
    # what a label removes of the predictions' variance, by a Gaussian process with one more point
    gains = []
    for c in range(9):
        with_c = [*range(40), 40 + c]
        before = theta[40:, :40] @ np.linalg.solve(K + ridge * np.eye(40), theta[:40, 40:])
        after = theta[40:][:, with_c] @ np.linalg.solve(
            theta[np.ix_(with_c, with_c)] + ridge * np.eye(41), theta[np.ix_(with_c, range(40, 49))]
        )
        gains.append(np.sqrt(np.mean(np.diag(after - before))))
    assert np.allclose(found["look_ahead"], gains, rtol=1e-6)


def _own(found):
    return {name: tuple(values) for name, values in found["parameters"].items()}


@pytest.fixture
def small_budgets(monkeypatch):
    """Forty inputs stand for forty thousand: what a block needs besides itself is not counted."""
    monkeypatch.setattr(kernel_blocks, "NUMBERS", 1)


def test_many_inputs_are_fitted_with_blocks(small_budgets):
    source = data_kernel("erf", X, 2, "K", 2)
    direct = fit_data(source, X, Y, T, ridge=0.01)
    free = fit_data(source, X, Y, T, ridge=0.01, memory=3e4)
    assert (direct.solver, free.solver) == ("factorization", "conjugate gradients")
    assert np.allclose(free.prediction, direct.prediction, atol=1e-6)
    assert free.train_mse == pytest.approx(direct.train_mse, rel=1e-5)
    assert abs(free.gcv - direct.gcv) < 4 * free.gcv_error
    assert free.eigenvalues[0] == pytest.approx(direct.eigenvalues[0], rel=1e-3)
    sketch = fit_data(source, X, Y, T, ridge=0.01, landmarks=30)
    gap = np.sqrt(np.mean((sketch.prediction - direct.prediction) ** 2))
    assert gap < 2 * np.sqrt(np.mean(sketch.prediction_error**2))


def test_the_pseudo_ntk_of_a_wide_network_is_near_theta():
    infinite = data_kernel("tanh", X, 2, "Theta", 2).kernel(T, X)
    gaps = []
    for width in (64, 1024):
        source = data_kernel("tanh", X, 2, "pseudo-NTK", 2, width)
        assert source.initial(T, T).shape == (9, 2)
        gaps.append(np.linalg.norm(source.kernel(T, X) - infinite) / np.linalg.norm(infinite))
    assert gaps[1] < 0.15 and gaps[1] < 0.6 * gaps[0]


def test_the_chosen_ridge_has_the_least_leave_one_out_error():
    K = data_kernel("erf", X, 2, "Theta", 2).kernel(X, X)
    path = ridge_path(K, Y)
    for by, risk in (("loo", "loo_mse"), ("gcv", "gcv")):
        best = path.best(by)
        risks = [getattr(KernelRegression(K, Y, factor * best), risk) for factor in (0.25, 1.0, 4.0)]
        assert risks[1] == min(risks)


def test_expected_change_over_classes_is_the_mean_over_labels():
    K = data_kernel("erf", np.concatenate([X, T]), 2, "Theta", 2).kernel(np.concatenate([X, T]), np.concatenate([X, T]))
    labels = np.eye(2)[(X[:, 0] > 0).astype(int)]
    fit = KernelRegression(K[:40, :40], labels, 0.1)
    given = (K[40:, :40], np.diag(K)[40:], K[40:, :40], K[40:, 40:])
    p = np.random.default_rng(0).dirichlet([1, 1], size=9)
    square = 0.0
    for c in range(2):
        k_new, k_self, k_test, k_test_new = given
        moved = fit.look_ahead(k_new, k_self, np.tile(np.eye(2)[c], (9, 1)), k_test, k_test_new)
        square = square + p[:, c] * np.mean(moved**2, axis=(1, 2))
    assert np.allclose(expected_change(fit, *given, probabilities=p), np.sqrt(square), rtol=1e-10)


def test_for_people_and_mistakes(files, small_budgets):
    data, test, pool = files
    both = ["--target", "u", "--target", "v"]
    done = CliRunner().invoke(group, ["kernel", data, *both, "--test", test, "--candidates", pool])
    assert done.exit_code == 0 and "leave-one-out error" in done.stdout and "what to label next" in done.stdout
    for arguments, words in (
        ({"target": "w"}, "no column"),
        ({"target": "u", "ridge": "best"}, "--ridge"),
        ({"target": "u", "ridge": -1}, "ridge"),
        ({"target": "u", "kernel": "pseudo-NTK"}, "width"),
        ({"target": "u", "landmarks": 5}, "--test"),
        ({"target": "u", "memory": 3e4}, "give a number"),
        ({"target": ("u", "v"), "ridge": 0.1, "memory": 3e4, "candidates": pool}, "inverse"),
        ({"target": ("u", "v", "a", "b", "c")}, "no input columns"),
    ):
        with pytest.raises(DeriveError, match=words):
            derive.kernel(data, **{"activation": "erf", **arguments})
