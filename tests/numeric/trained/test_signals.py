"""Signals by themselves: exponentials of stacks, products of any two signals, sums, times that are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from random_statistics import random_flow
from scipy.linalg import expm

from numeric import flow
from numeric.errors import NumericError
from numeric.trained import GradientDescent, GradientFlow, Momentum, predict
from numeric.trained.infinite import kernel_prediction
from numeric.trained.signals import Signal, Weight, check_time, error, exponentials, times

RNG = np.random.default_rng(12)


def random_signal(algorithm, size, modes=()) -> Signal:
    """A signal that starts anywhere and is read off anywhere."""
    n = RNG.normal(size=(*modes, size, size)) / 3
    return Signal(algorithm, RNG.normal(size=size), RNG.normal(size=size), lambda step: n)


def test_exponentials_of_stacks():
    """Against the library's function, at every size of the exponent, to a few roundings."""
    for x in (-1e-3, -0.4, -1.0, -2.0, -4.0, -7.9, 0.9):
        assert exponentials(np.array([[x]]))[0, 0] == pytest.approx(math.exp(x), rel=1e-14, abs=0)
    assert np.array_equal(exponentials(np.zeros((2, 3, 3))), np.broadcast_to(np.eye(3), (2, 3, 3)))
    stack = RNG.normal(size=(2, 3, 4, 4)) * np.array([0.1, 1.0, 6.0])[:, None, None]
    found = exponentials(stack)
    assert found.shape == stack.shape
    for place in np.ndindex(2, 3):
        exact = expm(stack[place])
        assert np.abs(found[place] - exact).max() < 1e-12 * np.abs(exact).max()


def test_times_that_are_too_long_for_floating_point():
    for matrix in (np.array([[np.inf]]), np.array([[np.nan]])):
        with pytest.raises(NumericError, match="A time of training is not finite"):
            exponentials(matrix)
    f = random_flow(3)
    f.Theta = 1e10 * f.Theta
    with np.errstate(over="ignore"), pytest.raises(NumericError, match="A time of training is not finite"):
        predict(f, [1.0, 2.0], [0, 1], GradientFlow(), time=1e300).mean_infinite  # noqa: B018


def test_a_network_without_a_mode_stays_where_it_is():
    """An NTK of zeros, all of whose modes are left untrained: nothing to exponentiate, and nothing moves."""
    K = np.array([[2.0, 0.3], [0.3, 1.0]])
    p = kernel_prediction(np.zeros((2, 2)), K, [5.0], [0], rcond=1e-10)
    for algorithm in (GradientFlow(), GradientDescent(0.1)):
        for time in (None, 3.0, np.array([0.0, 2.0])):
            assert np.abs(p.mean(algorithm, time)).max() == 0
            assert np.array_equal(p.covariance(algorithm, time), np.broadcast_to(K, (*np.shape(time), 2, 2)))


@pytest.mark.parametrize("method", ["exact", "sampled"])
def test_finite_width_without_a_mode_is_refused_in_a_sentence(method):
    f = flow("tanh", np.zeros((3, 2)), depth=3, width=32, C_b=0.0, C_W=1.0, lambda_b=0.0, lambda_W=1.0)
    for ask in (lambda p: p.mean, lambda p: p.covariance):
        with pytest.raises(NumericError, match="No mode of the training NTK is trained"):
            ask(predict(f, [1.0, 2.0], [0, 1], rcond=1e-6, method=method))


@pytest.mark.parametrize("algorithm", [GradientFlow(), GradientDescent(0.1)], ids=str)
def test_products_of_signals_are_products_of_their_values(algorithm):
    """Of different sizes and modes, starts and readouts; the order does not matter."""
    a, b = random_signal(algorithm, 2, (3, 1)), random_signal(algorithm, 3, (1, 4))
    when = np.array([3.0, 0.0, 1.0])
    both = a.at(when) * b.at(when)
    assert both.shape == (3, 3, 4) and np.abs(both[1]).max() > 0
    for joint in (times(a, b), times(b, a), Weight(1.0, (a, b)).signal()):
        assert len(joint.initial) == 6
        assert joint.at(when) == pytest.approx(both, rel=1e-10)
    for place in range(3):  # a signal is what its definition says
        n = a.generator(0)[place, 0]
        evolved = expm(-3 * n) if algorithm.continuous else np.linalg.matrix_power(np.eye(2) - n, 3)
        assert a.at(3)[place, 0] == pytest.approx(a.readout @ evolved @ a.initial, rel=1e-10)
    triple = Weight(-0.5, (a, b, a))
    assert triple.at(when) == pytest.approx(-0.5 * both * a.at(when), rel=1e-12)
    assert triple.signal().at(when) == pytest.approx(-0.5 * both * a.at(when), rel=1e-10)


def test_products_with_memory():
    """Two modes under momentum: the product of their errors, each iterated by hand."""
    eta, mu, h = 0.3, 0.6, np.array([0.7, 1.9])
    x, v = np.ones(2), np.zeros(2)
    algorithm = Momentum(eta, mu)
    pair = times(error(algorithm, h[0]), error(algorithm, h[1]))
    for step in range(6):
        assert float(pair.at(step)) == pytest.approx(x[0] * x[1], rel=1e-12)
        v = mu * v + x
        x = x - eta * h * v


def test_times_are_numbers_or_lists_of_them():
    descent, flow = GradientDescent(0.1), GradientFlow()
    assert check_time(flow, None) is None
    assert isinstance(check_time(descent, 3), float) and check_time(flow, [0.5, 0]).tolist() == [0.5, 0]
    for wrong in ([[1.0, 2.0]], [], -1.0, [1.0, -0.1], np.nan, np.inf):
        with pytest.raises(NumericError, match="not negative, or a list of such"):
            check_time(flow, wrong)
    for wrong in (1.5, [1.0, 2.5]):
        with pytest.raises(NumericError, match="whole number"):
            check_time(descent, wrong)
