"""Kernels and moments of groups of parameters in a network of three layers whose activation is the exponential.

Its brackets are one number, ⟨e^{z_a} e^{z_b}⟩ = exp((K_aa + K_bb)/2 + K_ab), and a Gaussian under e^z is shifted by its
covariance with z: all moments of the tangents q_g in closed form.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from numeric.trained import regularization
from numeric.trained.regularization import ParameterGroups, regularization_tensor

X = np.array([[0.6, 0.2], [-0.3, 0.5], [0.1, -0.7]])
C_B, C_W = [0.1, 0.2, 0.15], [0.5, 0.3, 0.2]
L_B, L_W = [0.3, 0.2, 0.7], [1.1, 0.6, 0.4]
GRAM = X @ X.T / 2


def bracket(K):
    own = np.diag(K)
    return np.exp((own[:, None] + own[None]) / 2 + K)


def kernels():
    """K of layers 1 to 3."""
    found = [C_B[0] + C_W[0] * GRAM]
    for layer in (1, 2):
        found.append(C_B[layer] + C_W[layer] * bracket(found[-1]))
    return found


@pytest.fixture
def network(monkeypatch):
    K = kernels()
    monkeypatch.setattr(
        regularization, "layer_brackets", lambda flow, layer, orders: {o: bracket(K[layer - 1]) for o in orders}
    )
    own = SimpleNamespace(C_b=C_B, C_W=C_W, lambda_b=L_B, lambda_W=L_W)
    return SimpleNamespace(depth=3, parameters=own, K=K[-1], layer=lambda number: SimpleNamespace(K=K[number - 1]))


def ntk(L_b, L_W):
    """The NTK's recursion with these learning rates."""
    K = kernels()
    theta = L_b[0] + L_W[0] * GRAM
    for layer in (1, 2):
        S = bracket(K[layer - 1])
        theta = L_b[layer] + L_W[layer] * S + C_W[layer] * S * theta
    return theta


def joint():
    """E[q_g(a) z(b)] and E[q_g(a) q_h(b)] at the output, groups in the order b_1 b_2 b_3 W_1 W_2 W_3.

    With q' = W σ'(z) q: E[q_a e^{z_a + z_b}] = (E[q_a z_a] + E[q_a z_b]) ⟨e^{z_a} e^{z_b}⟩, and with one more q the
    same for each of them plus their own covariance.
    """
    K, size = kernels(), len(X)
    with_z, with_q = {}, {}
    for layer in range(3):
        S = bracket(K[layer - 1]) if layer else GRAM
        z, q = {}, {}
        shift = {g: np.diag(m)[:, None] + m for g, m in with_z.items()}  # of q_g(a) under e^{z_a + z_b}
        for g in with_z:
            z[g] = C_W[layer] * S * shift[g]
            for h in with_z:
                q[g, h] = C_W[layer] * S * (with_q[g, h] + shift[g] * shift[h].T)
        bias, weight = ("b", layer), ("W", layer)
        for g in with_z:
            q[g, bias] = q[bias, g] = np.zeros((size, size))
            q[g, weight], q[weight, g] = z[g], z[g].T  # the layer's weights are what both have in common
        z[bias], z[weight] = np.full((size, size), C_B[layer]), C_W[layer] * S
        q[bias, weight] = q[weight, bias] = np.zeros((size, size))
        q[bias, bias], q[weight, weight] = z[bias], z[weight]
        with_z, with_q = z, q
    order = [(kind, layer) for kind in "bW" for layer in range(3)]
    return np.array([with_z[g] for g in order]), np.array([[with_q[g, h] for h in order] for g in order])


def test_kernels_of_groups_make_the_ntk(network):
    groups = ParameterGroups(network)
    for g, kernel in enumerate(groups.kernels()):
        rates = np.eye(6)[g]
        assert kernel == pytest.approx(ntk(rates[:3], rates[3:]), rel=1e-13)
    assert np.einsum("g,gab->ab", groups.rates, groups.kernels()) == pytest.approx(ntk(L_B, L_W), rel=1e-13)


def test_moments_of_tangents(network):
    with_z, with_q = joint()
    found = ParameterGroups(network).joint
    assert found[:-1, :, -1] == pytest.approx(with_z, rel=1e-12)
    assert found[-1, :, :-1] == pytest.approx(with_z.transpose(2, 0, 1), rel=1e-12)
    assert found[:-1, :, :-1] == pytest.approx(with_q.transpose(0, 2, 1, 3), rel=1e-12)
    assert found[-1, :, -1] == pytest.approx(network.K)


def test_the_regularization_tensor(network):
    """R = Σ a λ q: its moment with z is not symmetric, the activation is not linear."""
    a_b, a_W = np.array([0.1, 0.3, 0.2]), np.array([0.4, 0.2, 0.5])
    weights = np.concatenate([a_b * L_B, a_W * L_W])
    with_z, with_q = joint()
    found = regularization_tensor(network, a_b, a_W)
    expected = sum(c * m for c, m in zip(weights, with_z))
    assert found.with_z == pytest.approx(expected, rel=1e-12) and np.abs(expected - expected.T).max() > 1e-3
    square = sum(c * d * m for c, row in zip(weights, with_q) for d, m in zip(weights, row))
    assert found.with_itself == pytest.approx(square, rel=1e-12)
