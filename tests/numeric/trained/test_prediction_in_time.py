"""Means, covariances and NTKs in time against simulating the coupled updates over an ensemble of initializations.

The ensemble is a quadrature: initial outputs at Gauss-Hermite nodes (exact for the polynomials that occur), the dNTK
and the NTK's fluctuation at their means given these outputs, and the fluctuation's variance by second derivatives.
Nothing of the projectors, weights or moments of the product is used.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from random_statistics import joint, random_flow
from toy_network import coupled_updates

from numeric.errors import NumericError
from numeric.trained import GradientDescent, GradientFlow, Momentum, Schedule, StochasticDescent, TwoStep, predict
from numeric.trained.dynamics import NetworkTensors

TRAIN, SIZE = [2, 0], 3
Y = np.array([[0.7], [-1.1]])


def value(p, name):
    """One of a prediction's numbers; at width 1 the covariance's correction may exceed the covariance."""
    return p.plain(name) if name == "covariance" else getattr(p, name)


class Simulated:
    """One output, three inputs; every method is per network of the quadrature."""

    def __init__(self, eta: float, steps: int, masks=None):
        self.masks = np.ones((1, len(TRAIN))) if masks is None else np.asarray(masks, dtype=float)
        self.flow = random_flow(SIZE, seed=11)
        self.eta, self.steps = eta, steps
        self.E = {name: x[0, 0, 0, 0] for name, x in joint(self.flow, 1).items()}
        root = np.linalg.cholesky(self.flow.K)
        x, w = np.polynomial.hermite_e.hermegauss(3)
        self.nodes = [
            (root @ np.array(point), float(np.prod(weights) / np.sum(w) ** SIZE))
            for point, weights in zip(product(x, repeat=SIZE), product(w, repeat=SIZE))
        ]
        self.Ki = np.linalg.inv(self.flow.K)

    def seen(self, step):
        return self.masks[step % len(self.masks)]

    def free(self, z, H):
        for k in range(self.steps):
            z = z - self.eta * H[:, TRAIN] @ (self.seen(k) * (z[TRAIN] - Y[:, 0]))
        return z

    def moved(self, z):
        """(zeroth order, first order) of the outputs, and the first order of the NTK's change."""
        f, s = self.flow, self.Ki @ z
        dH = np.einsum("abcd,d->abc", self.E["dHz"], s)
        net = NetworkTensors(
            z[None], f.Theta[None, None], dH[None, None, None], self.E["ddI"][None, None, None, None],
            self.E["ddII"][None, None, None, None],
        )  # fmt: skip
        (zeroth, first), (_, ntk), _ = coupled_updates(net, Y, TRAIN, self.eta, self.steps, self.masks)
        kick = np.einsum("abcd,ab->cd", self.E["zzH"], np.outer(s, s) - self.Ki) / 2
        step = 1e-60
        shifted = self.free(z.astype(complex), f.Theta + 1j * step * (f.H1 + kick)).imag / step
        return zeroth[0], first[0] + shifted + self.second(z), ntk[0, 0]

    def second(self, z):
        """½ Σ C ∂²z/∂H∂H: the mean of the second order in the NTK's fluctuation."""
        total = np.zeros(SIZE)
        for a, b in product(range(SIZE), repeat=2):
            unit = np.zeros((SIZE, SIZE))
            unit[a, b] = 1.0
            base = unit.copy()
            zeroth, first, second = z, np.zeros(SIZE), np.zeros((SIZE, SIZE, SIZE))
            for k in range(self.steps):
                errors = zeroth[TRAIN] - Y[:, 0]
                kicked = np.zeros((SIZE, SIZE, SIZE))
                for seen, sample in zip(self.seen(k), TRAIN):
                    kicked[np.arange(SIZE), sample, np.arange(SIZE)] += seen * first[sample]
                theta = self.flow.Theta[:, TRAIN] * self.seen(k)
                unit[:, TRAIN] = base[:, TRAIN] * self.seen(k)
                second = second - self.eta * (np.einsum("cdt,xt->cdx", second[..., TRAIN], theta) + kicked)
                first = first - self.eta * (theta @ first[TRAIN] + unit[:, TRAIN] @ errors)
                zeroth = zeroth - self.eta * theta @ errors
            total += np.einsum("cdx,cd->x", second, self.E["HH"][a, b])
        return total

    def linear(self, z):
        """∂z/∂H_ab [a, b, input]."""
        found = np.zeros((SIZE, SIZE, SIZE))
        for a, b in product(range(SIZE), repeat=2):
            H = self.flow.Theta.astype(complex)
            H[a, b] += 1e-60j
            found[a, b] = self.free(z.astype(complex), H).imag / 1e-60
        return found

    def averages(self):
        """The order 1/n of the mean, of the NTK's change and of the covariance, on all inputs."""
        mean, ntk, second = np.zeros(SIZE), np.zeros((SIZE, SIZE)), np.zeros((SIZE, SIZE))
        for z, weight in self.nodes:
            zeroth, first, change = self.moved(z)
            mean += weight * first
            ntk += weight * change
            linear = self.linear(z)
            second += weight * (np.outer(zeroth, first) + np.outer(first, zeroth))
            second += weight * np.einsum("abx,abcd,cdy->xy", linear, self.E["HH"], linear)
        zero = self.free(np.zeros(SIZE), self.flow.Theta)
        move = np.array([self.free(unit, self.flow.Theta) - zero for unit in np.eye(SIZE)]).T
        own = move @ self.flow.G1 @ move.T
        return mean, ntk, second + own - np.outer(zero, mean) - np.outer(mean, zero)


@pytest.mark.equation("infinity.91")
@pytest.mark.equation("infinity.124")
@pytest.mark.equation("infinity.160")
@pytest.mark.equation("infinity.166")
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_mean_covariance_and_ntk_after_steps(steps):
    eta = 0.6 / np.linalg.eigvalsh(random_flow(SIZE, seed=11).Theta)[-1]
    s = Simulated(eta, steps)
    mean, ntk, expected = s.averages()
    zero = s.free(np.zeros(SIZE), s.flow.Theta)
    p = predict(s.flow, Y[:, 0], TRAIN, GradientDescent(eta), time=steps)
    test = list(p.test)
    assert np.abs(p.mean - p.mean_infinite - mean[test]).max() < 1e-12 * max(1, np.abs(mean).max())
    assert np.abs(p.mean_infinite - zero[test]).max() < 1e-13
    assert np.abs(p.ntk_change - ntk).max() < 1e-12 * np.abs(ntk).max()
    found = p.finite.covariance()[0, 0]
    assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()
    assert np.abs(mean[test]).max() > 0.1 and np.abs(ntk).max() > 0.1


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_mean_and_ntk_with_batches(steps):
    """A schedule of batches against the same simulation; with full batches it is gradient descent."""
    eta = 0.6 / np.linalg.eigvalsh(random_flow(SIZE, seed=11).Theta)[-1]
    batches = [[0], [0, 1], [1]]
    s = Simulated(eta, steps, [[1, 0], [1, 1], [0, 1]])
    mean, ntk, expected = s.averages()
    p = predict(s.flow, Y[:, 0], TRAIN, StochasticDescent(eta, batches), time=steps)
    test = list(p.test)
    assert np.abs(p.mean_infinite - s.free(np.zeros(SIZE), s.flow.Theta)[test]).max() < 1e-13
    assert np.abs(p.mean - p.mean_infinite - mean[test]).max() < 1e-12 * max(1, np.abs(mean).max())
    assert np.abs(p.ntk_change - ntk).max() < 1e-12 * np.abs(ntk).max()
    assert np.abs(p.finite.covariance()[0, 0] - expected).max() < 1e-11 * np.abs(expected).max()
    for time in (steps, None):
        full = predict(s.flow, Y, TRAIN, StochasticDescent(eta, [[0, 1]]), time=time)
        descent = predict(s.flow, Y, TRAIN, GradientDescent(eta), time=time)
        for name, part in descent.parts.items():
            assert np.abs(full.parts[name] - part).max() < 1e-11 * max(1, np.abs(part).max()), (name, time)


def test_bad_batches_are_refused():
    f = random_flow(4)
    for batches, message in (([[0], [2]], "positions from 0 to 1"), ([[0]], "No batch holds"), ([], "at least one")):
        with pytest.raises(NumericError, match=message):
            predict(f, [1.0, 2.0], [0, 1], StochasticDescent(0.1, batches), time=1).mean  # noqa: B018


@pytest.mark.parametrize(
    "algorithm", [GradientFlow(), GradientDescent(0.2), Momentum(0.1, 0.5), Schedule([0.3, 0.1]), TwoStep()], ids=str
)
def test_late_times_are_the_end_of_training(algorithm):
    f, y = random_flow(4, seed=3), np.random.default_rng(0).normal(size=(2, 2))
    end = predict(f, y, [1, 3], algorithm)
    late = predict(f, y, [1, 3], algorithm, time=600 if not algorithm.continuous else 400.0)
    for name in ("mean", "mean_infinite", "covariance", "ntk_change"):
        expected = value(end, name)
        assert np.abs(value(late, name) - expected).max() < 1e-9 * np.abs(expected).max(), name
    start = predict(f, y, [1, 3], algorithm, time=0)
    assert np.abs(start.mean).max() == 0 and np.abs(start.ntk_change).max() == 0
    test = np.ix_(start.test, start.test)
    assert np.abs(value(start, "covariance")[0, 0] - f.K[test] - f.G1[test]).max() < 1e-13


def test_flow_is_the_limit_of_small_steps():
    f, y = random_flow(4, seed=5), np.random.default_rng(1).normal(size=(2, 1))
    exact = predict(f, y, [0, 2], GradientFlow(), time=0.9)
    values = {}
    for count in (100, 200, 400):
        p = predict(f, y, [0, 2], GradientDescent(0.9 / count), time=count)
        values[count] = {name: value(p, name) for name in ("mean", "covariance", "ntk_change")}
    for name in ("mean", "covariance", "ntk_change"):
        one, two, four = (values[count][name] for count in (100, 200, 400))
        twice = [2 * two - one, 2 * four - two]
        limit = (4 * twice[1] - twice[0]) / 3
        assert np.abs(limit - value(exact, name)).max() < 1e-5 * np.abs(limit).max(), name


def test_many_times_at_once():
    f, y = random_flow(4, seed=5), np.random.default_rng(1).normal(size=(2, 2))
    batches = StochasticDescent(0.1, [[0], [1, 0], [1]])
    for algorithm, times in (
        (GradientFlow(), [1.5, 0.0, 0.2]),
        (Schedule([0.2, 0.05]), [7, 1, 3]),
        (batches, [4, 0, 4]),
    ):
        p = predict(f, y, [0, 2], algorithm, time=times)
        for k, t in enumerate(times):
            one = predict(f, y, [0, 2], algorithm, time=t)
            for name in ("mean", "mean_infinite", "covariance", "covariance_infinite", "ntk_change"):
                assert np.abs(value(p, name)[k] - value(one, name)).max() < 1e-12, name
            assert all(np.abs(p.parts[part][k] - one.parts[part]).max() < 1e-12 for part in one.parts)


@pytest.mark.parametrize(
    ("algorithm", "time", "message"),
    [
        (GradientDescent(0.1), 1.5, "whole number"),
        (GradientFlow(), -1.0, "not negative"),
        (GradientFlow(), [0.0, np.nan], "not negative"),
        (GradientFlow(), [], "not negative"),
    ],
)
def test_bad_times_are_refused(algorithm, time, message):
    with pytest.raises(NumericError, match=message):
        predict(random_flow(4), [1.0, 2.0], [0, 1], algorithm, time=time)
