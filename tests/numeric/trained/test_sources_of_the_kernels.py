"""Numbered equations of the review of Lee et al. and Simon et al., and prints that are wrong: both sides evaluated.

`review.33` is (33) of B. McKinzie's review; the lectures of Sutherland (2023) and the slides on Jacot et al. (2018)
have no numbers. Where a print is wrong, the test shows that it fails and that the right side holds (docs/errata).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import sympy as sp

from numeric import flow
from numeric.spectra.eigensystem import data_set
from numeric.trained.linear_models import fit_linear

jax_rng = jax.random.split(jax.random.key(8), 3)
WIDTH, SAMPLES = 6, 3
W0 = jax.random.normal(jax_rng[0], (2 * WIDTH + WIDTH,))
X = jax.random.normal(jax_rng[1], (SAMPLES, 2))
Y = np.array([1.0, -0.5, 0.3])


def network(w):
    return jnp.tanh(X @ w[: 2 * WIDTH].reshape(2, WIDTH)) @ w[2 * WIDTH :] / WIDTH**0.5


JACOBIAN = jax.jit(jax.jacrev(network))


def ntk(w):
    J = np.asarray(JACOBIAN(jnp.asarray(w)))
    return J @ J.T


@pytest.fixture(scope="module")
def trajectory():
    """Gradient flow of the network with learning rate 1 until t = 1, on a grid for Simpson's rule."""
    times = np.linspace(0, 1, 201)
    slope = jax.jit(lambda w: -JACOBIAN(w).T @ (network(w) - Y))
    done = scipy.integrate.solve_ivp(
        lambda t, w: np.asarray(slope(jnp.asarray(w))), (0, 1), np.asarray(W0), "DOP853", times, rtol=1e-11, atol=1e-12
    )
    w = done.y.T
    g = np.array([np.asarray(network(jnp.asarray(own))) - Y for own in w])
    return times, g, np.array([ntk(own) for own in w])


@pytest.mark.equation("review.16")
@pytest.mark.equation("review.17")
@pytest.mark.equation("review.111")
@pytest.mark.equation("review.112")
@pytest.mark.equation("review.113")
@pytest.mark.equation("review.114")
@pytest.mark.equation("review.115")
def test_the_gap_is_an_integral_over_the_ntks_change(trajectory):
    """(115) holds; (17) holds with g_lin in its second integral, not with the printed g."""
    times, g, H = trajectory
    linear = np.array([scipy.linalg.expm(-H[0] * t) @ g[0] for t in times])
    back = np.array([scipy.linalg.expm(H[0] * (s - 1)) @ (own - H[0]) for s, own in zip(times, H)])

    def integral(of):
        return scipy.integrate.simpson(np.einsum("sij,sj->si", back, of), x=times, axis=0)

    gap = linear[-1] - g[-1]
    assert np.abs(gap).max() > 1e-2
    assert np.allclose(gap, integral(g), atol=1e-8)
    split = -integral(linear - g)
    assert np.allclose(gap, split + integral(linear), atol=1e-8)
    assert np.abs(gap - (split + integral(g))).max() > 1e-3


@pytest.mark.equation("review.18")
@pytest.mark.equation("review.119")
@pytest.mark.equation("review.120")
def test_gronwalls_bound_holds_along_the_way(trajectory):
    times, g, H = trajectory
    linear = np.array([scipy.linalg.expm(-H[0] * t) @ g[0] for t in times])
    smallest = np.linalg.eigvalsh(H[0])[0]
    u = np.exp(smallest * times) * np.linalg.norm(linear - g, axis=1)
    change = np.array([np.linalg.norm(own - H[0], 2) for own in H])
    cumulative = scipy.integrate.cumulative_simpson
    alpha = cumulative(np.exp(smallest * times) * change * np.linalg.norm(linear, axis=1), x=times, initial=0)
    middle = alpha + cumulative(change * u, x=times, initial=0)
    assert (u <= middle + 1e-9).all() and (
        middle <= alpha * np.exp(cumulative(change, x=times, initial=0)) + 1e-9
    ).all()


@pytest.mark.equation("review.24")
@pytest.mark.equation("review.25")
@pytest.mark.equation("review.103")
@pytest.mark.equation("review.104")
def test_a_steps_change_of_the_gap_is_first_order_only():
    """(24) is no inequality and (25) no equality: both hold to first order in the step, not beyond."""
    J = np.asarray(JACOBIAN(W0))
    start = np.asarray(network(W0)) - Y
    direction = np.asarray(jax.random.normal(jax_rng[2], W0.shape))
    errors = []
    for size in (1e-1, 1e-2):
        now = W0 + 0.3 * direction
        step = -size * np.asarray(JACOBIAN(now)).T @ start
        moved = np.asarray(network(now + step)) - np.asarray(network(now))
        printed = (J - np.asarray(JACOBIAN(now))) @ step
        errors.append(np.linalg.norm((J @ step - moved) - printed))
    assert errors[0] > 1e-4 and errors[1] / errors[0] == pytest.approx(1e-2, rel=0.3)


@pytest.mark.equation("review.58")
@pytest.mark.equation("review.84")
@pytest.mark.equation("review.85")
@pytest.mark.equation("review.86")
@pytest.mark.equation("review.87")
@pytest.mark.equation("review.90")
@pytest.mark.equation("review.91")
@pytest.mark.equation("review.99")
def test_constants_of_the_convergence_proof():
    eta, h, K, R, n = sp.symbols("eta lambda K R n", positive=True)
    ratio = 1 - eta * h / 3
    geometric = eta * K * R / sp.sqrt(n) / (1 - ratio)  # (58): the sum of ratio^(j - 1)
    assert sp.simplify(geometric - 3 * K * R / (h * sp.sqrt(n))) == 0
    third = eta * K**2 * 2 * geometric
    right = (1 - eta * h) + eta * h / 3 + third
    claimed = 1 - sp.Rational(2, 3) * eta * h + 6 * eta * K**3 * R / (h * sp.sqrt(n))
    assert sp.simplify(right - claimed) == 0
    assert sp.simplify((1 - eta) * h + eta * h / 3 + third - claimed) != 0  # as printed
    width = (18 * K**3 * R / h**2) ** 2
    assert sp.simplify(claimed.subs(n, width) - (1 - eta * h / 3)) == 0
    assert sp.simplify(2 * K**2 * geometric - 6 * K**3 * R / (h * sp.sqrt(n))) == 0


@pytest.mark.equation("review.80")
def test_contraction_with_the_kernel():
    """|1 - eta Theta| = 1 - eta lambda_min below the critical rate, where (1 - eta) lambda_min of (84) is no bound."""
    H = ntk(W0)
    h = np.linalg.eigvalsh(H)
    eta = 1.9 / (h[0] + h[-1])
    norm = np.linalg.norm(np.eye(SAMPLES) - eta * H, 2)
    assert norm <= 1 - eta * h[0] + 1e-12
    assert norm > (1 - eta) * h[0]


@pytest.mark.equation("review.125")
@pytest.mark.equation("review.126")
@pytest.mark.equation("review.127")
@pytest.mark.equation("review.128")
def test_one_step_on_one_sample_has_a_factor_two():
    """With the loss (f - y)^2 of (122) a small step changes f(x') by -2 eta (f - y) k, not by the printed half."""
    eta = 1e-6
    own = jax.grad(lambda w: (network(w)[0] - Y[0]) ** 2)(W0)
    change = np.asarray(network(W0 - eta * own) - network(W0)) / eta
    half = -(float(network(W0)[0]) - Y[0]) * ntk(W0)[0]
    assert np.allclose(change, 2 * half, rtol=1e-3) and not np.allclose(change, half, rtol=0.3)


@pytest.mark.equation("review.129")
@pytest.mark.equation("review.142")
@pytest.mark.equation("review.153")
@pytest.mark.equation("review.154")
def test_products_of_modes_over_all_points_and_over_samples():
    """(153) is (1/n) phi_i . phi_j, which (154) prints without 1/n; (142) belongs to the learned function."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 2))
    space = data_set(np.exp(-0.5 * ((points[:, None] - points[None]) ** 2).sum(-1)))
    phi = space.eigenfunctions[:4]
    assert np.allclose(phi @ phi.T / 400, np.eye(4), atol=1e-10)
    train = rng.choice(400, 200, replace=False)
    assert np.abs(phi[:, train] @ phi[:, train].T / 200 - np.eye(4)).max() < 0.3
    assert np.abs(phi[:, train] @ phi[:, train].T - np.eye(4)).max() > 100
    f, few = np.sin(points[:, 0]), train[:20]
    K = space.kernel()
    learned = K[:, few] @ np.linalg.solve(K[np.ix_(few, few)], f[few])
    right = space.eigenvalues[0] * phi[0, few] @ np.linalg.solve(K[np.ix_(few, few)], f[few])  # (147)
    assert right == pytest.approx(phi[0] @ learned / 400, rel=1e-6)
    assert abs(right - phi[0] @ f / 400) > 1e-3


@pytest.mark.equation("review.48")
@pytest.mark.equation("review.51")
@pytest.mark.equation("review.52")
@pytest.mark.equation("review.53")
def test_one_hidden_layer_is_a_gaussian_process():
    """The kernel of the flow at depth 2 is sigma_b^2 + omega^2 E[h h'], by Gauss-Hermite quadrature."""
    inputs, C_b, C_W = np.array([[1.0, -0.4], [0.3, 0.8]]), 0.2, 1.7
    f = flow("tanh", inputs, depth=2, C_b=C_b, C_W=C_W, tensors="K")
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    covariance = C_b + C_W * inputs @ inputs.T / 2
    L = np.linalg.cholesky(covariance)
    a = L[0, 0] * nodes[:, None] + 0 * nodes[None]
    b = L[1, 0] * nodes[:, None] + L[1, 1] * nodes[None]
    moment = np.einsum("i,j,ij->", weights, weights, np.tanh(a) * np.tanh(b))
    assert float(f.K[0, 1]) == pytest.approx(C_b + C_W * moment, rel=1e-8)


@pytest.mark.equation("review.133")
@pytest.mark.equation("review.135")
@pytest.mark.equation("review.156")
@pytest.mark.equation("review.158")
@pytest.mark.equation("review.163")
@pytest.mark.equation("review.164")
def test_the_space_of_a_kernel():
    """Mercer, the reproducing property and the norm, on a data set."""
    points = np.random.default_rng(1).normal(size=(12, 2))
    space = data_set(np.exp(-2.0 * ((points[:, None] - points[None]) ** 2).sum(-1)))
    K = space.kernel()
    f = K @ np.random.default_rng(2).normal(size=12)
    a, sections = space.coefficients(f), space.eigenvalues[:, None] * space.eigenfunctions  # of k(., x)
    assert np.allclose(np.einsum("l,lx->x", a / space.eigenvalues, sections), f, atol=1e-10)
    norm = np.sum(a**2 / space.eigenvalues)
    assert norm == pytest.approx(f @ np.linalg.solve(K, f), rel=1e-8)
    assert f @ K @ f >= 0
    assert np.allclose(K @ space.eigenfunctions.T / 12, space.eigenvalues * space.eigenfunctions.T, atol=1e-12)


# ------------------------------------------------------------------- slides on Jacot et al. (2018)


def test_jacot_the_exponent_holds_the_training_kernel():
    """The third form exponentiates Theta(x, X), a row without exponential; the training kernel solves the ODE."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(4, 6))
    K, k = A @ A.T, rng.normal(size=6) @ A.T
    f0, y, start, t = rng.normal(size=4), rng.normal(size=4), 0.3, 0.7

    def slope(_, state):
        return np.concatenate([-K @ (state[:4] - y), [-k @ (state[:4] - y)]])

    end = scipy.integrate.solve_ivp(slope, (0, t), [*f0, start], "DOP853", rtol=1e-12, atol=1e-12).y[4, -1]
    right = k @ np.linalg.solve(K, (scipy.linalg.expm(-K * t) - np.eye(4)) @ (f0 - y)) + start
    assert end == pytest.approx(right, rel=1e-9)
    elementwise = (
        k @ np.linalg.solve(K, (np.exp(-k * t) - 1) * (f0 - y)) + start
    )  # the only reading of e^(-Theta(x,X)t)
    assert abs(end - elementwise) > 1e-2
    with pytest.raises(ValueError):
        scipy.linalg.expm(-k[None] * t)


def test_jacot_theorem_4_needs_the_square():
    """Errors of opposite sign: the sum under the printed root is negative, the norm that moves parameters is not."""
    g = np.asarray(network(W0)) - Y
    shifted = g - g.mean() - 0.1
    assert np.sum(shifted) < 0 < np.sqrt(np.sum(shifted**2))
    step = np.asarray(JACOBIAN(W0)).T @ shifted
    largest = np.sqrt(np.linalg.eigvalsh(ntk(W0))[-1])
    assert 0 < np.linalg.norm(step) <= largest * np.sqrt(np.sum(shifted**2)) * (1 + 1e-12)


def test_jacot_ranges_of_the_sums():
    """The first layer has d_1 rows and d_0 columns, the last-layer sum runs over d_l, not over d_(l+1) neurons."""
    d0, d1 = 5, 3
    x, other = np.random.default_rng(0).normal(size=(2, d0))
    grad = lambda v: jax.jacrev(lambda W: W @ jnp.asarray(v) / d0**0.5)(jnp.ones((d1, d0)))  # noqa: E731
    exact = np.einsum("kij,lij->kl", grad(x), grad(other))
    assert np.allclose(exact, np.eye(d1) * (x @ other) / d0)
    assert not np.isclose((x[:d1] @ other[:d1]) / d0, exact[0, 0])  # j up to d_1, as printed


# ------------------------------------------------------------------- Sutherland's lectures (2023)


def test_sutherland_ridge_starts_at_phi_w0():
    """w_0 + Phi^T (K + N lambda)^-1 (y - Phi w_0) is the minimum; Phi^T w_0 has another shape."""
    rng = np.random.default_rng(1)
    N, D, penalty = 4, 7, 0.2
    Phi, w0, y = rng.normal(size=(N, D)), rng.normal(size=D), rng.normal(size=N)
    w = w0 + Phi.T @ np.linalg.solve(Phi @ Phi.T + N * penalty * np.eye(N), y - Phi @ w0)
    gradient = 2 / N * Phi.T @ (Phi @ w - y) + 2 * penalty * (w - w0)
    assert np.abs(gradient).max() < 1e-12
    residual = fit_linear(Phi, y - Phi @ w0, a=N * penalty / 2).weights[0]
    assert np.allclose(w - w0, residual)
    with pytest.raises(ValueError):
        _ = y - Phi.T @ w0


def test_sutherland_remainder_of_the_expansion_at_s():
    """sigma(r) - sigma(s) - sigma'(s)(r - s) is the integral of sigma''(z)(r - z); with (s - z) it is that at r."""
    r, s = 1.3, -0.4

    def second(z):
        return -2 * np.tanh(z) / np.cosh(z) ** 2

    left = np.tanh(r) - np.tanh(s) - (r - s) / np.cosh(s) ** 2
    assert left == pytest.approx(scipy.integrate.quad(lambda z: second(z) * (r - z), s, r)[0], rel=1e-10)
    printed = scipy.integrate.quad(lambda z: second(z) * (s - z), r, s)[0]
    assert abs(abs(left) - abs(printed)) > 0.1
    assert printed == pytest.approx(np.tanh(s) - np.tanh(r) - (s - r) / np.cosh(r) ** 2, rel=1e-10)


def test_sutherland_displacement_of_the_parameters():
    """w_t - w_0 = -Phi^T (Phi Phi^T)^-1 (1 - exp(-eta t K/N)) (f_0 - y); Phi (Phi Phi^T)^-1 does not fit N and D."""
    rng = np.random.default_rng(3)
    N, D, time = 3, 6, 2.0
    Phi, f0, y = rng.normal(size=(N, D)), rng.normal(size=N), rng.normal(size=N)
    K = Phi @ Phi.T
    moved = -Phi.T @ np.linalg.solve(K, (np.eye(N) - scipy.linalg.expm(-time / N * K)) @ (f0 - y))
    done = scipy.integrate.solve_ivp(
        lambda t, w: -Phi.T @ (f0 + Phi @ w - y) / N, (0, time), np.zeros(D), "DOP853", rtol=1e-11, atol=1e-12
    )
    assert np.allclose(moved, done.y[:, -1], atol=1e-8)
    with pytest.raises(ValueError):
        _ = Phi @ np.linalg.inv(K)


def test_sutherland_linearization_is_linear_in_the_displacement():
    """f_lin needs (w - w_0) after the gradient, which the slide that defines it leaves out."""
    move = 1e-4 * np.asarray(jax.random.normal(jax_rng[2], W0.shape))
    J = np.asarray(JACOBIAN(W0))
    value = np.asarray(network(W0 + move))
    assert np.allclose(value, np.asarray(network(W0)) + J @ move, atol=1e-6)
    assert np.abs(value - (np.asarray(network(W0)) + J.sum(axis=1))).max() > 0.1
