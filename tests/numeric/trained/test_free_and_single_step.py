"""Free training step by step, the helper sums a, b, c, and the single finely tuned step (infinity.80)."""

from __future__ import annotations

import numpy as np
import pytest
from printed_equations import inverting_tensors
from toy_network import STEP, ToyNetwork

from numeric.trained.algorithms import GradientDescent, TwoStep
from numeric.trained.dynamics import NetworkTensors, TrainingDynamics
from numeric.trained.signals import accumulate, error, times


@pytest.fixture(scope="module")
def toy() -> ToyNetwork:
    return ToyNetwork(seed=3)


@pytest.mark.equation("infinity.88")
@pytest.mark.equation("infinity.90")
@pytest.mark.equation("infinity.92")
@pytest.mark.equation("infinity.106")
@pytest.mark.equation("infinity.109")
@pytest.mark.equation("infinity.114")
@pytest.mark.equation("infinity.115")
@pytest.mark.equation("infinity.116")
@pytest.mark.parametrize("steps", [0, 1, 5, None])
def test_helper_sums(toy, steps):
    """a, b, c as sums over steps in sample space against X_I, X_II, X_III and against our signals in the modes."""
    H = toy.mean_ntk[np.ix_(toy.train, toy.train)]
    h, U = np.linalg.eigh(H)
    eta = 0.8 / h[-1]
    start = toy.z0[0, toy.train] - toy.y[:, 0]
    e, a, b, c = start, 0 * start, 0.0, 0.0
    for _ in range(400 if steps is None else steps):
        a = a + eta * e
        b = b + eta * np.multiply.outer(e, e)
        c = c + eta * np.multiply.outer(np.multiply.outer(e, e), e)
        e = e - eta * H @ e
    X2, X3 = inverting_tensors(H, eta)
    two = np.multiply.outer(start, start) - np.multiply.outer(e, e)
    three = np.multiply.outer(np.multiply.outer(start, start), start) - np.multiply.outer(np.multiply.outer(e, e), e)
    assert np.abs(a - np.linalg.solve(H, start - e)).max() < 1e-12
    assert np.abs(b - np.einsum("abcd,cd->ab", X2, two)).max() < 1e-12
    assert np.abs(c - np.einsum("abcdef,def->abc", X3, three)).max() < 1e-12
    algorithm = GradientDescent(eta)
    pair = accumulate(times(error(algorithm, h[:, None]), error(algorithm, h[None, :])), h[:, None])
    value = pair.limit() if steps is None else pair.at(steps)
    modes = U.T @ start
    assert np.abs(U @ (value * np.multiply.outer(modes, modes)) @ U.T - b).max() < 1e-12
    if steps is None:
        assert np.abs(e).max() < 1e-12


@pytest.mark.equation("infinity.85")
@pytest.mark.equation("infinity.86")
@pytest.mark.equation("infinity.91")
def test_free_solution_on_every_input(toy):
    """The kernel prediction with this network's own NTK, at the end of many free steps."""
    rng = np.random.default_rng(2)
    net = toy.tensors()
    noise = 0.05 * rng.normal(size=net.H.shape)
    H = net.H + noise + noise.transpose(1, 0, 3, 2)
    z, eta = net.z.copy(), 0.5 / np.linalg.eigvalsh(toy.mean_ntk)[-1]
    for _ in range(2000):
        z = z - eta * np.einsum("ijda,ja->id", H[..., toy.train], z[:, toy.train] - toy.y.T)
    own = NetworkTensors(net.z, H, net.dH, net.ddI, net.ddII)
    d = TrainingDynamics(own, toy.mean_ntk, toy.y, toy.train, GradientDescent(eta))
    assert np.abs(z - d.free()).max() < 1e-11


@pytest.mark.equation("10.27")
@pytest.mark.equation("10.32")
def test_parameters_after_one_newton_step(toy):
    """θ* = θ - λ ∇z H̃⁻¹ (z - y) puts a model that is linear in its parameters on its targets."""
    inverse = np.linalg.inv(toy.mean_ntk[np.ix_(toy.train, toy.train)])
    weights = (toy.z0[:, toy.train] - toy.y.T) @ inverse
    u = -np.einsum("ia,iap->p", weights, toy.J[:, toy.train])
    assert np.abs(toy.output(u, np.zeros(3), 0.0)[:, toy.train] - toy.y.T).max() < 1e-13


@pytest.mark.equation("infinity.65")
@pytest.mark.equation("infinity.73")
@pytest.mark.equation("infinity.75")
@pytest.mark.equation("infinity.78")
@pytest.mark.equation("infinity.80")
def test_one_finely_tuned_step_lands_where_two_steps_do(toy):
    """The infinite-width leap misses at first order in the differentials; the Newton tensor (80) does not."""
    net, t, e = toy.tensors(), toy.train, 1j * STEP
    inverse = np.linalg.inv(toy.mean_ntk[np.ix_(t, t)])
    leap = (net.z[:, t] - toy.y.T) @ inverse
    missed = np.einsum("ijkabc,jb,kc->ia", net.dH[..., t, :, :][..., t, :][..., t], leap, leap) / 2
    missed -= np.einsum("ijklabcd,jb,kc,ld->ia", _cut(net.ddI, t), leap, leap, leap, optimize=True) / 6
    still = np.zeros(3)
    first = toy.output(-np.einsum("ia,iap->p", leap, toy.J[:, t]), still, e)
    assert np.abs(first.real[:, t] - toy.y.T).max() < 1e-12
    assert np.abs(first.imag[:, t] / STEP - missed).max() < 1e-12
    assert np.abs(missed).max() > 0.01
    tuned = leap + e * missed @ inverse
    z = toy.output(-np.einsum("ia,iap->p", tuned, toy.J[:, t].astype(complex)), still, e)
    d = TrainingDynamics(net, toy.mean_ntk, toy.y, t, TwoStep())
    assert np.abs(z.imag / STEP - d.interacting()).max() < 1e-11
    assert np.abs(z.imag[:, t] / STEP).max() < 1e-11


def _cut(x, train):
    for axis in range(4, 8):
        x = np.take(x, train, axis=axis)
    return x
