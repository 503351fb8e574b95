"""What `train_ensemble` does to a network, written out: every step, its partner, its linearization, its NTK."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric import flow
from numeric.ensemble import Networks, train_ensemble, trained_outputs
from numeric.ensemble.networks import flip_last_layer
from numeric.ensemble.training import _factors, linear_outputs, newton_tensors
from numeric.errors import NumericError
from numeric.trained import (
    DivergentTraining,
    GradientDescent,
    GradientFlow,
    Preconditioned,
    StochasticDescent,
    TwoStep,
)
from numeric.trained.penalized import Penalized

X = np.array([[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5]])
Y = np.array([[0.4, -0.2], [0.1, 0.7]])
TRAIN, ETA, STEPS, SEED = [2, 0], 0.2, 2, 5
NETS = Networks("tanh", (2, 3, 2), C_b=0.2, C_W=1.1, lambda_b=(0.3, 0.4), lambda_W=(1.0, 0.5))


@partial(jax.jit, static_argnums=1)
def moved(params, linear):
    """Outputs (2, 3) of one network after the steps, by jax.grad alone, and its parameters."""
    inputs = jnp.asarray(X)

    def outputs(p):
        if not linear:
            return NETS.output_one(p, inputs)
        gap = jax.tree.map(lambda a, b: a - b, p, params)
        start, slope = jax.jvp(lambda q: NETS.output_one(q, inputs), (params,), (gap,))
        return start + slope

    now = params
    for _ in range(STEPS):
        slopes = jax.grad(lambda p: jnp.sum((outputs(p)[:, jnp.array(TRAIN)] - Y.T) ** 2) / 2)(now)
        rates = [(1.0 / 2, 0.3), (0.5 / 3, 0.4)]  # weights learn with λ_W over the width before them
        now = [
            (w - ETA * rw * dw, b - ETA * rb * db)
            for (w, b), (dw, db), (rw, rb) in zip(now, slopes, rates, strict=True)
        ]
    return outputs(now), NETS.ntk_one(now, inputs)


@pytest.mark.slow
def test_pairs_their_linearizations_and_their_kernels():
    found = train_ensemble(
        NETS, X, Y, TRAIN, GradientDescent(ETA), pairs=2, steps=STEPS, seed=SEED, linear_pairs=2, batch=2,
        tolerance=None, ntk=True, progress=False,
    )  # fmt: skip
    assert found.trained.shape == (2, 2, 3) and found.linear.shape == (4, 2, 3)
    batches = [NETS.sample(jax.random.fold_in(jax.random.key(SEED), k), 2) for k in (0, 1)]
    worst = 0.0
    for k in range(2):
        one = jax.tree.map(lambda x, k=k: x[k], batches[0])
        both = [moved(p, False) for p in (one, flip_last_layer(one))]
        ends = [np.asarray(end) for end, _ in both]
        assert np.abs(found.trained[k] - np.mean(ends, axis=0)).max() < 1e-12
        products = np.mean([np.einsum("ia,jb->ijab", z, z) for z in ends], axis=0)
        assert np.abs(found.products[k] - products).max() < 1e-12
        start = np.asarray(jax.jit(NETS.ntk_one)(one, jnp.asarray(X)))
        change = np.mean([np.asarray(ntk) for _, ntk in both], axis=0) - start
        assert np.abs(found.ntks[k] - change).max() < 1e-12
        worst = max(worst, *(np.abs(z[:, TRAIN] - Y.T).max() for z in ends))
        for batch, place in ((batches[0], k), (batches[1], 2 + k)):
            own = jax.tree.map(lambda x, k=k: x[k], batch)
            linear = np.mean([np.asarray(moved(p, True)[0]) for p in (own, flip_last_layer(own))], axis=0)
            assert np.abs(found.linear[place] - linear).max() < 1e-12
    assert found.training_error == pytest.approx(worst, rel=1e-12)
    mean, error = found.interaction
    apart = found.trained - found.linear[:2]
    assert mean == pytest.approx(apart.mean(axis=0))
    assert error == pytest.approx(np.abs(apart[0] - apart[1]) / 2)  # of two: half their distance
    total, spread = found.mean
    assert total == pytest.approx(mean + found.linear.mean(axis=0))
    assert spread == pytest.approx(np.hypot(error, found.linear.std(axis=0, ddof=1) / 2))
    center = found.trained.mean(axis=0)
    covariance, _ = found.covariance
    assert covariance == pytest.approx(found.products.mean(axis=0) - np.einsum("ia,jb->ijab", center, center))
    assert found.ntk_change[0] == pytest.approx(found.ntks.mean(axis=0))


@pytest.mark.slow
def test_unless_told_otherwise_networks_reach_their_targets():
    with pytest.raises(DivergentTraining, match="misses its targets by"):
        train_ensemble(NETS, X, Y, TRAIN, GradientDescent(ETA), pairs=2, steps=STEPS, batch=2, progress=False)
    few = train_ensemble(
        NETS, X, Y, TRAIN, GradientDescent(ETA), pairs=2, steps=STEPS, batch=2, tolerance=None, progress=False
    )
    assert len(few.linear) == 2 and few.mean[0] == pytest.approx(few.trained.mean(axis=0))
    with pytest.raises(NumericError, match="ntk=True"):
        _ = few.ntk_change


@pytest.mark.slow
def test_more_linearized_networks_train_as_the_others_do():
    """After one leap with its own NTK every linearized network is on its targets; at the end so it is by any rule."""
    options = {"pairs": 2, "linear_pairs": 4, "batch": 2, "seed": SEED, "progress": False}
    leap = train_ensemble(NETS, X, Y, TRAIN, TwoStep(), steps=1, tolerance=None, **options)
    assert leap.linear.shape == (6, 2, 3) and np.abs(leap.linear[..., TRAIN] - Y.T).max() < 1e-9
    assert np.abs(leap.trained[..., TRAIN] - Y.T).max() > 1e-3 and leap.ntks is None
    for rule, steps in ((GradientDescent(ETA), 1), (TwoStep(), 1)):
        end = train_ensemble(NETS, X, Y, TRAIN, rule, steps=steps, tolerance=1e9, **options)
        assert np.abs(end.linear - leap.linear).max() < 1e-9
    assert np.abs(end.trained - leap.trained).max() < 1e-12


@pytest.mark.slow
def test_a_ridge_by_hand():
    """Descent with the penalty (ρ/2) (θ - θ_0)²/λ, its gradient by jax.grad; the theory's object trains the same."""
    rule, ridge = Penalized(GradientDescent(ETA), 0.7), 0.7
    params = NETS.sample(jax.random.key(1), 1)
    one = jax.tree.map(lambda x: x[0], params)
    rates = [(1.0 / 2, 0.3), (0.5 / 3, 0.4)]

    def loss(p):
        gap = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), p, one)
        penalty = sum(own / rate for pair, pairs in zip(gap, rates, strict=True) for own, rate in zip(pair, pairs))
        return jnp.sum((NETS.output_one(p, jnp.asarray(X))[:, jnp.array(TRAIN)] - Y.T) ** 2) / 2 + ridge / 2 * penalty

    now, slope = one, jax.jit(jax.grad(loss))
    for _ in range(4):
        slopes = slope(now)
        now = [
            (w - ETA * rw * dw, b - ETA * rb * db)
            for (w, b), (dw, db), (rw, rb) in zip(now, slopes, rates, strict=True)
        ]
    found = trained_outputs(NETS, params, jnp.asarray(X), jnp.asarray(Y), tuple(TRAIN), rule, 4)
    assert np.abs(np.asarray(found)[0] - NETS.output_one(now, jnp.asarray(X))).max() < 1e-12
    plain = trained_outputs(NETS, params, jnp.asarray(X), jnp.asarray(Y), tuple(TRAIN), GradientDescent(ETA), 4)
    assert np.abs(np.asarray(found) - np.asarray(plain)).max() > 1e-2


@pytest.mark.slow
@pytest.mark.equation("infinity.71")
def test_newton_tensors_are_inverses_and_functions_of_the_kernel():
    """Two steps invert each network's own NTK, outputs mixed; a preconditioner is one function of the limit's NTK."""
    params = NETS.sample(jax.random.key(1), 2)
    assert newton_tensors(NETS, params, jnp.asarray(X), (2, 0), GradientDescent(0.1)) is None
    own = np.asarray(newton_tensors(NETS, params, jnp.asarray(X), (2, 0), TwoStep()))
    ntk = np.asarray(NETS.ntk(params, jnp.asarray(X)))[:, :, :, [2, 0]][..., [2, 0]]
    for k in range(2):
        block = np.array([[ntk[k, i, j, a, b] for j in range(2) for b in range(2)] for i in range(2) for a in range(2)])
        assert np.abs(own[k] @ block - np.eye(4)).max() < 1e-10
    theta = np.asarray(flow("tanh", X[[2, 0]], 2, None, 0.2, 1.1, (0.3, 0.4), (1.0, 0.5), tensors=["K", "Theta"]).Theta)
    shared = np.asarray(newton_tensors(NETS, params, jnp.asarray(X), (2, 0), Preconditioned(0.1, lambda h: 1 + h**2)))
    assert shared.shape == (1, 4, 4)
    assert np.abs(shared[0] - np.kron(np.eye(2), np.eye(2) + theta @ theta)).max() < 1e-9
    end = np.asarray(trained_outputs(NETS, params, jnp.asarray(X), jnp.asarray(Y), (2, 0), TwoStep(), 1))
    z = np.asarray(NETS.outputs(params, jnp.asarray(X)))
    linear = linear_outputs(NETS, params, jnp.asarray(X), jnp.asarray(Y), (2, 0), TwoStep(), 1, jnp.asarray(own))[0]
    assert np.abs(np.asarray(linear)[:, :, [2, 0]] - Y.T).max() < 1e-10  # the leap lands where the linearization does
    assert np.abs(end - z).max() > 0.1
    seen = _factors(jnp.ones((1, 2, 2)), None, StochasticDescent(0.1, [[0], [1]]), jnp.asarray(3))
    assert np.asarray(seen)[0].tolist() == [[0.0, 1.0], [0.0, 1.0]]  # step 3 sees the second batch
    with pytest.raises(NumericError, match="train in steps"):
        trained_outputs(NETS, params, jnp.asarray(X), jnp.asarray(Y), (2, 0), GradientFlow(), 1)
