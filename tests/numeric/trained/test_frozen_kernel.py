"""Training with a frozen kernel: closed forms against steps taken one by one, for every shape of kernel and labels."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.linalg import expm

from numeric.errors import NumericError
from numeric.trained import GradientDescent, GradientFlow
from numeric.trained.frozen_kernel import FrozenKernelTraining, cross_entropy, squared_loss
from numeric.trained.modes import SingularKernel
from numeric.trained.spectral_weights import descent_weights, flow_weights

RNG = np.random.default_rng(4)
N, O, TESTS, ETA, RIDGE = 4, 2, 3, 0.06, 0.3


def positive(size):
    x = RNG.normal(size=(size, size + 2))
    return x @ x.T / size + 0.3 * np.eye(size)


FULL = positive((N + TESTS) * O).reshape(N + TESTS, O, N + TESTS, O)
"""A kernel of several outputs over all points, [sample, output, sample, output]."""
MIXED = FULL.transpose(1, 3, 0, 2)
PLAIN = positive(N + TESTS)
Y, F0 = RNG.normal(size=(2, N, O))
START = RNG.normal(size=(TESTS, O))

CASES = {
    "one output": (PLAIN[:N, :N], Y[:, 0], F0[:, 0], PLAIN[N:, :N], START[:, 0]),
    "outputs alike": (PLAIN[:N, :N], Y, F0, PLAIN[N:, :N], START),
    "outputs mixed": (MIXED[:, :, :N, :N], Y, F0, MIXED[:, :, N:, :N], START),
}


def moved(kernel, alpha):
    """k alpha written out."""
    if kernel.ndim == 2:
        return kernel @ alpha
    return np.einsum("ijqn,nj->qi", kernel, alpha)


def descended(K, y, f0, ridge, steps, slope=lambda f, y: f - y):
    """Representer weights by taking the steps: alpha falls with the loss's slope and decays with the ridge."""
    alpha = np.zeros_like(y)
    for _ in range(steps):
        alpha = alpha - ETA * (slope(f0 + moved(K, alpha), y) + ridge * alpha)
    return alpha


@pytest.mark.parametrize("ridge", [0.0, RIDGE])
@pytest.mark.parametrize("name", CASES)
def test_descent_flow_and_the_end(name, ridge):
    K, y, f0, k, start = CASES[name]
    own = FrozenKernelTraining(K, y, f0, ridge)
    steps = own.descent_weights(np.array([0, 7, 3]), ETA)
    for t, alpha in zip((0, 7, 3), steps):
        assert np.abs(alpha - descended(K, y, f0, ridge, t)).max() < 1e-12
    flat = K if K.ndim == 4 else K[None, None] * np.eye(O if y.ndim == 2 else 1)[:, :, None, None]
    size = y.size
    H = flat.transpose(2, 0, 3, 1).reshape(size, size) + ridge * np.eye(size)
    error = (y - f0).reshape(-1)
    flowed = np.linalg.solve(H, error - expm(-1.3 * 0.5 * H) @ error).reshape(y.shape)
    assert np.abs(own.flow_weights(1.3, 0.5) - flowed).max() < 1e-12
    assert np.abs(own.flow_weights(np.array([0.0, 0.65]))[1] - flowed).max() < 1e-12
    end = np.linalg.solve(H, error).reshape(y.shape)
    assert np.abs(own.limit_weights() - end).max() < 1e-10
    assert own.critical_rate == pytest.approx(2 / np.linalg.eigvalsh(H)[-1])
    assert own.output_blind == (K.ndim == 2)
    assert np.abs(own.weights(GradientDescent(ETA), 7) - steps[1]).max() < 1e-12
    assert np.abs(own.weights(GradientFlow(), 0.65) - flowed).max() < 1e-12
    shown = own.predict(k, steps, start)
    assert shown.shape == (3, *start.shape)
    assert np.abs(shown[1] - (start + moved(k, steps[1]))).max() < 1e-12
    assert np.abs(own.predict(k, end) - moved(k, end)).max() < 1e-12


def test_any_loss_step_by_step():
    K, _, f0, *_ = CASES["outputs mixed"]
    labels = np.eye(O)[[0, 1, 1, 0]]
    own = FrozenKernelTraining(K, labels, f0, RIDGE)

    def slope(f, y):
        return np.asarray(jax.nn.softmax(f, axis=-1)) - y

    path = own.loss_descent_path(5, cross_entropy, ETA)
    assert path.shape == (6, N, O)
    assert np.abs(path[5] - descended(K, labels, f0, RIDGE, 5, slope)).max() < 1e-12
    assert np.abs(own.loss_descent_weights(5, cross_entropy, ETA) - path[5]).max() == 0
    assert np.abs(own.loss_flow_weights(0.8, squared_loss, 0.5) - own.flow_weights(0.8, 0.5)).max() < 1e-9
    for problem in (CASES["one output"], CASES["outputs alike"]):
        plain = FrozenKernelTraining(*problem[:3], RIDGE)
        found = plain.loss_descent_weights(4, squared_loss, ETA)
        assert np.abs(found - plain.descent_weights(4, ETA)).max() < 1e-12
    with pytest.raises(NumericError, match="diverges at eta"):
        own.loss_descent_path(300, squared_loss, 1e4)


def test_refusals():
    K, y, f0, *_ = CASES["one output"]
    for wrong, words in (
        ((K[:2, :2], y, f0), "do not belong together"),
        ((K, y, f0[:2]), "do not belong together"),
        ((K, y * np.nan, f0), "y has entries"),
        ((K, y, f0, -0.1), "ridge"),
        ((np.triu(K) + K, y, f0), "symmetric"),
        ((MIXED[:, :, :N, :N] + np.triu(np.ones((N, N)), 1), Y, F0), "symmetric"),
    ):
        with pytest.raises(NumericError, match=words):
            FrozenKernelTraining(*wrong)
    own = FrozenKernelTraining(K, y, f0)
    with pytest.raises(NumericError, match="it needs eta <"):
        own.descent_weights(100_000, 5.0)
    with pytest.raises(SingularKernel, match="singular to rounding"):
        FrozenKernelTraining(np.ones((2, 2)), np.ones(2), np.zeros(2)).limit_weights()
    assert FrozenKernelTraining(np.zeros((2, 2)), np.ones(2), np.zeros(2)).critical_rate == np.inf
    for call in (
        lambda: own.loss_flow_weights(-1.0, squared_loss),
        lambda: own.loss_flow_weights(1.0, squared_loss, -1.0),
        lambda: own.loss_descent_weights(2, squared_loss, -1.0),
        lambda: own.loss_descent_weights(1.5, squared_loss, 0.1),
        lambda: own.flow_weights(-1.0),
        lambda: own.flow_weights(np.array([1.0, np.inf])),
        lambda: own.flow_weights(1.0, -1.0),
        lambda: own.descent_weights(-1, 0.1),
        lambda: own.descent_weights(1.0, 0.1),
        lambda: own.descent_weights(1, -0.1),
    ):
        with pytest.raises(NumericError):
            call()


def test_weights_keep_their_digits():
    """Where eta h t is tiny and where it is not, on both sides of the switch; a zero mode moves as eta t."""
    mpmath = pytest.importorskip("mpmath")
    h = np.array([0.0, 1e-9, 0.3, 4.9, 5.1, 15.0])
    for t in (0, 1, 6):
        found = descent_weights(h, t, 0.1)
        flowed = flow_weights(h, float(t), 0.1)
        for x, own, other in zip(h, found, flowed):
            with mpmath.workdps(40):
                exact = (1 - (1 - mpmath.mpf("0.1") * mpmath.mpf(x)) ** t) / mpmath.mpf(x) if x else mpmath.mpf(t) / 10
                smooth = (1 - mpmath.exp(-mpmath.mpf("0.1") * x * t)) / mpmath.mpf(x) if x else mpmath.mpf(t) / 10
            assert own == pytest.approx(float(exact), rel=1e-13, abs=1e-300)
            assert other == pytest.approx(float(smooth), rel=1e-13, abs=1e-300)
    assert not np.isfinite(descent_weights(np.array([1.0]), 5000, 5.0)).all()
