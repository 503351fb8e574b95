"""The test loss to first order in 1/n: truncated consistently, and its printed form for a single training input."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from random_statistics import Tensors, random_flow

from numeric.trained import GradientDescent, GradientFlow, TwoStep, predict
from numeric.trained.generalization import FiniteTestLoss, TestLoss, finite_test_loss, test_loss
from numeric.trained.infinite import KernelPrediction
from numeric.trained.losses import MSE


def wide(flow, width):
    return Tensors(**(vars(flow) | {"widths": (1.0, float(width))}))


@pytest.mark.equation("infinity.168")
@pytest.mark.equation("infinity.169")
@pytest.mark.parametrize("algorithm", [GradientFlow(), GradientDescent(0.1), TwoStep()], ids=str)
@pytest.mark.parametrize("outputs", [1, 2])
def test_first_order_is_the_slope_of_the_loss(algorithm, outputs):
    """E[½ Σ (z - y)²] from the moments at two widths, extrapolated to the slope in 1/n at n = ∞."""
    f = random_flow(4, seed=9)
    rng = np.random.default_rng(4)
    y, truth = rng.normal(size=(2, outputs)), rng.normal(size=(2, outputs))
    found = finite_test_loss(predict(wide(f, 50.0), y, [3, 1], algorithm), truth)

    def loss(width):
        p = predict(wide(f, width), y, [3, 1], algorithm)
        spread = np.einsum("iiaa->", p.covariance)
        return (np.sum((p.mean - truth) ** 2) + spread) / 2

    n = 1e6
    slope = 2 * (loss(n) - loss(2 * n)) * n  # removes nothing but the next order, which is of size 1/n
    assert slope / 50 == pytest.approx(found.change, rel=1e-4)
    assert found.total == pytest.approx(loss(1e12) + slope / 50, rel=1e-4)
    full = predict(wide(f, 50.0), y, [3, 1], algorithm)
    squared = np.sum((full.mean - truth) ** 2) / 2
    assert squared != pytest.approx(found.bias, rel=1e-6)  # the square of the 1/n mean is of the next order
    assert found.bias == pytest.approx(found.infinite.bias + found.bias_change)
    assert found.variance == pytest.approx(np.einsum("iiaa->", full.covariance) / 2)  # linear in it: first order is all
    assert found.variance != pytest.approx(found.infinite.variance, rel=1e-3)


def test_losses_are_no_test_cases():
    """pytest takes what is called Test... or test_... for tests, in a user's own files too."""
    loss = test_loss(MSE(np.array([[1.0], [0.0]])), np.array([3.0, 0.5]), np.array([[0.2, 9.0], [9.0, 0.4]]))
    assert loss == TestLoss(bias=(2.0**2 + 0.5**2) / 2, variance=(0.2 + 0.4) / 2, exact=True)
    assert not TestLoss.__test__ and not test_loss.__test__


def test_standard_errors_of_sampled_losses():
    """The loss changes by (mean - target) × the mean's correction and half the variance's: weights of their errors."""
    asked = []
    p = SimpleNamespace(
        test=(1, 4),
        mean_infinite=np.array([[2.0, 1.0, 0.0], [0.5, -1.0, 3.0]]),
        mean=np.array([[2.1, 1.0, 0.0], [0.5, -1.0, 2.8]]),
        covariance_infinite=np.eye(2),
        variance_change=np.full((2, 3), 0.04),
        standard_error_of=lambda mean, variance: asked.append((mean, variance)) or 0.25,
    )
    truth = np.array([[1.0, 1.0, -2.0], [0.0, 0.5, 2.0]])
    loss = finite_test_loss(p, truth)
    assert loss.bias_change == pytest.approx(1.0 * 0.1 - 1.0 * 0.2) and loss.variance_change == pytest.approx(0.12)
    ((mean, variance),) = asked
    assert np.array_equal(mean, p.mean_infinite - truth) and np.array_equal(variance, np.full((2, 3), 0.5))
    assert loss.standard_error == 0.25
    exact = SimpleNamespace(**{name: value for name, value in vars(p).items() if name != "standard_error_of"})
    assert finite_test_loss(exact, truth) == FiniteTestLoss(loss.infinite, loss.bias_change, loss.variance_change, 0.0)
    assert FiniteTestLoss(loss.infinite, 0.1, 0.2).standard_error == 0.0


def by_hand(f, y, eta):
    """n × (mean - infinite-width mean) of input 1 after training on input 0 alone, projectors as numbers: (∞.168)."""
    Theta, K = np.asarray(f.Theta), np.asarray(f.K)[0, 0]
    H = Theta[0, 0]
    u = 1 - eta * H
    X2, X3 = 1 / (2 * H - eta * H**2), eta / (1 - u**3) if eta else 1 / (3 * H)
    Z = {
        "A": u * X2 / H,
        "B": 1 / (2 * H**2),
        "IA": -(1 / H - 2 * X2 + X3) / (2 * H**2),
        "IB": -1 / (6 * H**3),
        "IIA": -(u**3) * X2 * X3 / H,
        "IIB": -u * X2 / H**2,
    }
    e3 = -(y**3 + 3 * y * K)

    def shift(x, P, Q, A, B, R, S, T, U, H1):
        """What moves input x before training answers, tensors as functions of their labels (0 train)."""
        o = 0
        total = H1[x, o] * y / H - (A[x, o, o, o] + 2 * B[x, o, o, o]) * y / H**2
        dA = P[o, x, o, o] + Q[o, x, o, o] + Q[o, o, x, o]
        dB = P[x, o, o, o] + 2 * Q[x, o, o, o]
        total -= 2 * y * (Z["A"] * dA + Z["B"] * dB)
        total += e3 * (Z["IA"] * (R[o, x, o, o] + R[o, o, o, x] + R[o, o, x, o]) + Z["IB"] * 3 * R[x, o, o, o])
        total += e3 * Z["IIA"] * (S[o, o, x, o] + T[o, x, o, o] + U[o, o, o, x])
        return total + e3 * Z["IIB"] * (S[x, o, o, o] + T[x, o, o, o] + U[x, o, o, o])

    tensors = [np.asarray(getattr(f, name)) for name in ("P", "Q", "A", "B", "R", "S", "T", "U", "H1")]
    return shift(1, *tensors) - Theta[1, 0] / H * shift(0, *tensors)


@pytest.mark.equation("infinity.170")
@pytest.mark.equation("infinity.171")
@pytest.mark.equation("infinity.172")
@pytest.mark.parametrize("algorithm", [GradientFlow(), GradientDescent(0.3), TwoStep()], ids=str)
def test_one_training_input_by_hand(algorithm):
    """One training and one test input, one output: the bias of order 1/n written out with projectors as numbers."""
    f = random_flow(2, seed=2)
    train, test, y = 0, 1, 1.3
    H = f.Theta[0, 0]
    expected = by_hand(f, y, {"GradientFlow()": 0.0, "TwoStep()": 1 / H}.get(str(algorithm), 0.3))
    p = predict(f, [y], [train], algorithm)
    assert p.mean[0] - p.mean_infinite[0] == pytest.approx(expected, rel=1e-10)
    assert isinstance(p.kernel, KernelPrediction)
    truth = 0.4
    loss = finite_test_loss(p, np.array([truth]))
    assert loss.bias_change == pytest.approx((f.Theta[test, train] / H * y - truth) * expected, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gelu", "swish"])
def test_nearby_inputs_of_half_stable_activations(name, tmp_path):
    """`derive depth-study` on a training and a nearby test input: n × bias and the coefficient of L/n, by hand."""
    import derive
    from derive.design.recommendation import plan
    from numeric import flow

    inputs = np.array([[1.0, 1.0], [np.cos(0.1) - np.sin(0.1), np.cos(0.1) + np.sin(0.1)]])  # of equal norm
    for file, (a, b) in zip(("data.csv", "test.csv"), inputs.tolist()):
        (tmp_path / file).write_text(f"a,b,y\n{a!r},{b!r},1.0\n")
    study = derive.depth_study(
        tmp_path / "data.csv", tmp_path / "test.csv", "y", [name], "2,4", width=100, algorithms="flow,descent"
    )
    rows = study.to_json()["studies"][0]["rows"]
    for row in rows:
        depth = row["depth"]
        own = plan(name, depth, "equivalence", 1.0, 1.0)[0]
        f = flow(name, inputs, depth, 1, own.C_b, own.C_W, own.lambda_b, own.lambda_W, tolerance=1e-10)
        H = float(f.Theta[0, 0])
        for algorithm, eta in (("flow", 0.0), ("descent", 1 / H)):
            found = row["times_n"][algorithm]
            expected = (float(f.Theta[1, 0]) / H - 1.0) * by_hand(f, 1.0, eta)
            assert found["bias"] == pytest.approx(expected, rel=1e-5, abs=1e-12), (depth, algorithm)
            assert found["coefficient_of_L_over_n"] == pytest.approx((found["bias"] + found["variance"]) / depth)
            assert found["sign"] == -1  # for these inputs networks do better than their infinite-width limit
