"""Contractions of real networks against explicit Jacobians, Hessians and third derivatives, which only tests form."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from numeric.empirical import empirical_ddntk, empirical_dntk, empirical_ntk
from numeric.empirical.ntk import sample_model
from numeric.errors import NumericError

X = jnp.array([[0.3, -1.2], [1.1, 0.4]])


def mlp(params, x):
    hidden = jnp.tanh(x @ params["W"].T + params["b"][None])
    return jnp.sin(hidden @ params["V"].T + hidden[:, :1])


def biased(params, x):
    """Columns are inputs, every layer has a bias, one of them and its layer are multiplied by numbers."""
    hidden = jnp.tanh(2.0 * (params["W"] @ x.T) + 0.7 * params["b"][:, None])
    return (params["V"] @ hidden + params["c"][:, None]).T


def shared(params, x):
    """One matrix used twice, and a scalar output."""
    return jnp.tanh(jnp.tanh(x @ params["W"]) @ params["W"]) @ params["v"]


def convolution(params, x):
    wide = jnp.concatenate([x, x**2], axis=1)
    kernel = params["k"]
    rows = jnp.stack([wide[:, s : s + 3] @ kernel for s in range(2)], axis=1)
    return jnp.tanh(rows) @ params["out"]


def filters(params, x):
    image = jnp.concatenate([x, x**2], axis=1).reshape(len(x), 1, 2, 2)
    seen = jax.lax.conv_general_dilated(image, params["k"], (1, 1), "SAME")
    return jnp.tanh(seen).reshape(len(x), -1) @ params["out"]


def draw(shapes, seed):
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    params = {name: jax.random.normal(k, s) for k, (name, s) in zip(keys, shapes.items())}
    rates = {name: 0.1 + jax.random.uniform(jax.random.fold_in(k, 1), s) for k, (name, s) in zip(keys, shapes.items())}
    return params, rates


MODELS = {
    "mlp": (mlp, {"W": (3, 2), "b": (3,), "V": (2, 3)}),
    "biased": (biased, {"W": (3, 2), "b": (3,), "V": (2, 3), "c": (2,)}),
    "shared": (shared, {"W": (2, 2), "v": (2,)}),
    "convolution": (convolution, {"k": (3,), "out": (2, 2)}),
}


@partial(jax.jit, static_argnums=0)
def objects(apply, params, rates):
    """All four, in one compilation."""
    first, second = empirical_ddntk(apply, params, X, rates)
    return empirical_ntk(apply, params, X, rates), empirical_dntk(apply, params, X, rates), first, second


def explicit(apply, params, rates, x):
    """The definitions, with every derivative tensor formed."""
    point, unravel = ravel_pytree(params)
    lam = np.diag(ravel_pytree(rates)[0])

    def f(p):
        return apply(unravel(p), x)

    derivatives = jax.jit(lambda p: (jax.jacfwd(f)(p), jax.hessian(f)(p), jax.jacfwd(jax.hessian(f))(p)))
    J, H2, D3 = map(np.asarray, derivatives(point))
    v = J @ lam
    if J.ndim == 2:
        ntk = np.einsum("ap,bp->ab", J, v)
        dntk = np.einsum("apq,bp,cq->abc", H2, v, v)
        first = np.einsum("apqr,bp,cq,dr->abcd", D3, v, v, v)
        second = np.einsum("apx,cp,xy,bqy,dq->abcd", H2, v, lam, H2, v)
    else:  # J is [sample, neuron, parameter]; results have neurons i.. first, samples a.. after them
        ntk = np.einsum("aip,bjp->ijab", J, v)
        dntk = np.einsum("aipq,bjp,ckq->ijkabc", H2, v, v)
        first = np.einsum("aipqr,bjp,ckq,dlr->ijklabcd", D3, v, v, v)
        second = np.einsum("aipx,ckp,xy,bjqy,dlq->ijklabcd", H2, v, lam, H2, v, optimize=True)
    return ntk, dntk, first, second


@pytest.mark.parametrize("name", list(MODELS))
def test_contractions_against_explicit_derivatives(name):
    apply, shapes = MODELS[name]
    params, rates = draw(shapes, 3)
    ntk, dntk, first, second = explicit(apply, params, rates, X)
    found = objects(apply, params, rates)
    for value, reference in zip(found, (ntk, dntk, first, second)):
        assert value.shape == reference.shape
        scale = np.abs(reference).max()
        assert scale > 1e-2
        np.testing.assert_allclose(value, reference, rtol=0, atol=1e-12 * max(scale, 1.0))


@pytest.mark.parametrize("name", ["mlp", "biased", "shared", "filters"])
def test_layers_with_one_rate_never_form_their_gradients(name):
    """Rates that are numbers: dense layers go by inputs and signals (`shared` has none), and nothing else changes."""
    apply, shapes = MODELS.get(name, (filters, {"k": (2, 1, 2, 2), "out": (8, 2)}))
    params, _ = draw(shapes, 3)
    rates = {key: 0.3 + 0.5 * k for k, key in enumerate(params)}
    full = {key: jnp.full(params[key].shape, rate) for key, rate in rates.items()}
    found = jax.jit(lambda p: (empirical_dntk(apply, p, X, rates), *empirical_ddntk(apply, p, X, rates)))(params)
    route = sample_model(apply, params, X, rates).by_layers["structured"]
    assert len(route.places) == {"mlp": 2, "biased": 2, "shared": 1, "filters": 2}[name]
    assert len(route.biases) == {"mlp": 1, "biased": 2, "shared": 0, "filters": 0}[name]
    for value, reference in zip(found, explicit(apply, params, full, X)[1:]):
        np.testing.assert_allclose(value, reference, rtol=0, atol=1e-12 * max(np.abs(reference).max(), 1.0))


def test_default_rates_are_ones_and_scalars_broadcast():
    apply, shapes = MODELS["mlp"]
    params, _ = draw(shapes, 5)
    plain = empirical_ntk(apply, params, X)
    scaled = empirical_ntk(apply, params, X, dict.fromkeys(params, 2.0))
    np.testing.assert_allclose(scaled, 2 * plain, rtol=1e-14)


@pytest.mark.equation("infinity.4")
def test_a_step_of_gradient_descent_is_the_taylor_series_of_the_contractions():
    """z - z_0 = -eta H e + eta^2/2 dH e e - eta^3/6 ddI e e e + O(eta^4): seed 004, (infinity.4)."""
    apply, shapes = MODELS["mlp"]
    params, rates = draw(shapes, 7)
    e = jax.random.normal(jax.random.key(11), (2, 2))  # [neuron, sample]
    ntk, dntk, first, _ = objects(apply, params, rates)
    pull = jax.vjp(lambda p: apply(p, X), params)[1](e.T)[0]

    @jax.jit
    def remainder(eta):
        moved = jax.tree.map(lambda p, lam, g: p - eta * lam * g, params, rates, pull)
        change = (apply(moved, X) - apply(params, X)).T
        series = -eta * jnp.einsum("ijab,jb->ia", ntk, e)
        series += eta**2 / 2 * jnp.einsum("ijkabc,jb,kc->ia", dntk, e, e)
        series -= eta**3 / 6 * jnp.einsum("ijklabcd,jb,kc,ld->ia", first, e, e, e)
        return jnp.abs(change - series).max()

    assert float(remainder(2e-3) / remainder(1e-3)) == pytest.approx(16, rel=0.05)


def test_jit_and_vmap():
    apply, shapes = MODELS["shared"]
    params, _ = draw(shapes, 2)
    two = jax.tree.map(lambda p: jnp.stack([p, 2 * p]), params)
    many = jax.jit(jax.vmap(lambda p: empirical_dntk(apply, p, X)))(two)
    np.testing.assert_allclose(many[0], empirical_dntk(apply, params, X), rtol=1e-12)


def test_errors_are_sentences():
    apply, shapes = MODELS["shared"]
    params, _ = draw(shapes, 2)
    with pytest.raises(NumericError, match="same structure"):
        empirical_ntk(apply, params, X, {"W": 1.0})
    with pytest.raises(NumericError, match="does not broadcast"):
        empirical_ntk(apply, params, X, {"W": jnp.ones(5), "v": 1.0})
    with pytest.raises(NumericError, match="inputs, outputs"):
        empirical_ntk(lambda p, x: apply(p, x)[None, :, None], params, X)
