"""The batched NTK of real models against explicit Jacobians, its products, the pseudo-NTK, and the theory's mean."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from numeric import flow
from numeric.empirical import empirical_ntk, network_tensors, ntk_vector_product, pseudo_ntk
from numeric.empirical.ntk import cheapest, sample_model
from numeric.empirical.structure import Structure
from numeric.ensemble.networks import Networks
from numeric.errors import NumericError
from numeric.trained.algorithms import GradientDescent
from numeric.trained.dynamics import TrainingDynamics


def mlp(params, x):
    for weight, bias in params[:-1]:
        x = jnp.tanh(x @ weight.T + bias[None])
    weight, bias = params[-1]
    return x @ weight.T + bias[None]


def conv(params, x):
    """Two convolutions over 8 x 8 images, a pooling layer, five outputs."""
    h = x.reshape(-1, 8, 8, 1)
    for kernel in params["kernels"]:
        h = jnp.tanh(
            jax.lax.conv_general_dilated(h, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        )
    return h.mean(axis=(1, 2)) @ params["out"]


def recurrent(params, x):
    """One matrix used at every step of a sequence, one output without an axis."""

    def step(h, token):
        return jnp.tanh(h @ params["W"] + token[:, None] * params["u"][None]), None

    h, _ = jax.lax.scan(step, jnp.zeros((len(x), 6)), x.T)
    return h @ params["v"]


def scaled(params, x):
    """Factors before the matrices, a matrix on the left, positions, a layer inside a jitted function, a norm."""
    h = jnp.tanh((0.5 * params["A"]) @ x.reshape(-1, 4, 2).swapaxes(1, 2).reshape(-1, 2, 4, 1) @ jnp.ones((1, 2)))
    h = jnp.einsum("nstu,tv->nsuv", h.reshape(-1, 2, 3, 2), params["B"] / 3.0)
    h = jax.jit(lambda h: jax.nn.gelu(h.reshape(-1, 20) @ params["C"].T))(h) * params["norm"][None]
    return -(h @ params["D"])


def models():
    key = iter(jax.random.split(jax.random.key(1), 40))
    normal = lambda *shape: jax.random.normal(next(key), shape)  # noqa: E731
    sizes = (4, 9, 7, 3)
    return {
        "mlp": (mlp, [(normal(b, a) / 2, normal(b)) for a, b in pairwise(sizes)], normal(7, 4)),
        "conv": (conv, {"kernels": [normal(3, 3, 1, 3), normal(3, 3, 3, 4) / 3], "out": normal(4, 5)}, normal(6, 64)),
        "scaled": (
            scaled,
            {"A": normal(3, 4), "B": normal(3, 5), "C": normal(6, 20) / 4, "norm": normal(6), "D": normal(6, 2)},
            normal(6, 8),
        ),
        "shared": (recurrent, {"W": normal(6, 6) / 3, "u": normal(6), "v": normal(6)}, normal(7, 5)),
    }


def random_rates(params):
    flat, unravel = ravel_pytree(params)
    return unravel(0.1 + jax.random.uniform(jax.random.key(9), flat.shape))


def explicit(apply, params, rates, X, X2):
    point, unravel = ravel_pytree(params)
    lam = ravel_pytree(rates)[0]
    J, J2 = (np.asarray(jax.jacfwd(lambda p, x=x: apply(unravel(p), x))(point)) for x in (X, X2))
    if J.ndim == 2:
        return J @ (np.asarray(lam)[:, None] * J2.T)
    return np.einsum("aip,p,bjp->ijab", J, np.asarray(lam), J2)


@pytest.mark.parametrize("method", ["structured", "jacobian", "products"])
@pytest.mark.parametrize("name", ["mlp", "conv", "shared", "scaled"])
def test_against_explicit_jacobians(name, method):
    """To 1e-12, in one piece and in blocks of a tiny memory budget, square and rectangular."""
    apply, params, X = models()[name]
    P = ravel_pytree(params)[0].size
    one_each = jax.tree.map(lambda r: r.ravel()[0], random_rates(params))
    for memory, rates in ((1e9, random_rates(params)), (8 * 2 * 3 * 5 * P, random_rates(params)), (1e9, one_each)):
        full = jax.tree.map(lambda r, p: jnp.broadcast_to(r, p.shape), rates, params)
        H = empirical_ntk(apply, params, X, rates, method=method, memory=memory)
        reference = explicit(apply, params, full, X, X)
        assert H.shape == reference.shape
        np.testing.assert_allclose(H, reference, rtol=0, atol=1e-12 * np.abs(reference).max())
        rectangle = empirical_ntk(apply, params, X[:5], rates, X2=X[4:], method=method, memory=memory)
        reference = explicit(apply, params, full, X[:5], X[4:])
        np.testing.assert_allclose(rectangle, reference, rtol=0, atol=1e-12 * np.abs(reference).max())


@pytest.mark.parametrize("name", ["mlp", "conv", "shared"])
def test_products_without_the_matrix(name):
    apply, params, X = models()[name]
    rates = random_rates(params)
    H = explicit(apply, params, rates, X, X[:3])
    vector = jax.random.normal(jax.random.key(4), apply(params, X[:3]).shape)
    product = ntk_vector_product(apply, params, X, vector, rates, X2=X[:3])
    expected = H @ vector if H.ndim == 2 else np.einsum("ijab,bj->ai", H, vector)
    np.testing.assert_allclose(product, expected, atol=1e-12 * np.abs(expected).max())


def test_the_cheapest_route():
    """Layers where there are layers; with one matrix used at every step its gradient, or products."""
    wide = Networks("tanh", (10, 64, 64, 30))
    params = wide.sample_one(jax.random.key(0))
    X = jnp.ones((20, 10)) * jnp.arange(20.0)[:, None]
    many = sample_model(lambda p, x: wide.output_one(p, x).T, params, X, None)
    assert len(many.by_layers["structured"].places) == 3
    assert cheapest(many, 20, 20) == "structured"
    apply, params, X = models()["conv"]
    conv_model = sample_model(apply, params, X, None)
    assert [place.positions for place in conv_model.by_layers["structured"].places] == [64, 64, 1]
    assert cheapest(conv_model, 20, 20) != "products"
    apply, params, X = models()["shared"]
    shared = sample_model(apply, params, X, None)
    assert {p.leaf for p in shared.by_layers["structured"].places} == {2}  # v alone: u and W are used at every step
    assert sample_model(apply, params, X, None) is shared  # nothing is compiled again


def test_jit():
    apply, params, X = models()["mlp"]
    compiled = jax.jit(lambda p: empirical_ntk(apply, p, X))(params)
    np.testing.assert_allclose(compiled, empirical_ntk(apply, params, X), rtol=1e-12)


def test_pseudo_ntk_is_the_mean_over_output_pairs_and_converges():
    """sum_ij H_ij / O exactly; relative distance to H = pNTK x identity falls as 1/sqrt(width)."""
    apply, params, X = models()["mlp"]
    rates = random_rates(params)
    H = explicit(apply, params, rates, X, X)
    np.testing.assert_allclose(
        pseudo_ntk(apply, params, X, rates), H.sum(axis=(0, 1)) / 3, atol=1e-12 * np.abs(H).max()
    )
    X = jax.random.normal(jax.random.key(3), (4, 5))
    widths, distance = np.array([16, 48, 144]), []
    for width in widths:
        nets = Networks("tanh", (5, int(width), 4), C_b=0.1, C_W=1.2)

        def relative(key, nets=nets):
            params = nets.sample_one(key)
            f = lambda p, x: nets.output_one(p, x).T  # noqa: E731
            H = empirical_ntk(f, params, X, nets.rates(), method="jacobian")
            rest = H - jnp.eye(4)[:, :, None, None] * pseudo_ntk(f, params, X, nets.rates())[None, None]
            return jnp.sum(rest**2) / jnp.sum(H**2)

        squares = np.asarray(jax.jit(jax.vmap(relative))(jax.random.split(jax.random.key(width), 8)))
        distance.append(np.sqrt(squares.mean()))
    slope = np.polyfit(np.log(widths), np.log(distance), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.12)


def test_ensemble_mean_is_theta_plus_h1():
    """n (mean NTK - Theta) = H1 + O(1/n) within three standard errors at two widths."""
    X = np.array([[1.0, -0.4, 0.7], [0.3, 0.9, -0.6]])
    settings = {"C_b": 0.1, "C_W": 1.0, "lambda_b": 0.4, "lambda_W": 0.8}
    activation = "z + z**2/4"  # its H1 is half of Theta, so that a few thousand networks see it
    theory = flow(activation, X, 3, 1, **settings, tensors=["H1"])
    Theta, H1 = np.asarray(theory.Theta), np.asarray(theory.H1)
    for n, count in ((12, 12000), (24, 12000)):
        nets = Networks(activation, (3, n, n, 1), **settings)

        def one(key, nets=nets):
            f = lambda p, x: nets.output_one(p, x)[0]  # noqa: E731
            return empirical_ntk(f, nets.sample_one(key), jnp.asarray(X), nets.rates(), method="jacobian")

        keys = jax.random.split(jax.random.key(n), count)
        samples = np.asarray(jax.jit(lambda k, one=one: jax.lax.map(one, k, batch_size=500))(keys))
        scaled = n * (samples.mean(axis=0) - Theta)
        error = n * samples.std(axis=0) / np.sqrt(count)
        assert np.all(np.abs(scaled - H1) < 3 * error)
        assert n > 12 or scaled[0, 0] > 4 * error[0, 0]  # the correction itself is seen at the smaller width


@pytest.mark.equation("infinity.141")
def test_the_end_of_training_of_one_particular_network():
    """Measured tensors in the closed form: what is left falls twice as fast as what linearization misses.

    z = z_0 + a (f - f_0) with learning rates over a^2 keeps H and divides dH by a: an exact dial for the strength of
    the differentials. Linearization misses 1/a; the closed form, which lacks dH^2, misses 1/a^2.
    """
    X = jnp.asarray(np.random.default_rng(2).normal(size=(3, 3)))
    y, train = np.array([[0.8], [-0.5]]), [0, 1]
    nets = Networks("tanh", (3, 10, 1), C_b=0.1, C_W=1.2, lambda_b=0.3)
    start = nets.sample_one(jax.random.key(4))
    missed, left = [], []
    for a in (8.0, 32.0):

        def apply(p, x, a=a):
            f0 = nets.output_one(start, x).T
            return f0 + a * (nets.output_one(p, x).T - f0)

        rates = [(weight / a**2, bias / a**2) for weight, bias in nets.rates()]
        network = network_tensors(apply, start, X, rates)
        H = network.H[0, 0]
        eta = 0.5 / np.linalg.eigvalsh(H[:2, :2])[-1]

        def step(p, _, apply=apply, rates=rates, eta=eta):
            gradient = jax.grad(lambda p: jnp.sum((apply(p, X[:2]) - y) ** 2) / 2)(p)
            return jax.tree.map(lambda w, g, lam: w - eta * lam * g, p, gradient, rates), None

        final, _ = jax.jit(lambda p, step=step: jax.lax.scan(step, p, None, length=3000))(start)
        end = np.asarray(apply(final, X)).T
        assert np.allclose(end[:, train], y.T, atol=1e-9)
        dynamics = TrainingDynamics(network, H, y, train, GradientDescent(eta))
        missed.append(abs(end - dynamics.free())[0, 2])
        left.append(abs(end - dynamics.output())[0, 2])
    assert missed[0] / missed[1] == pytest.approx(4, rel=0.3)
    assert left[0] / left[1] == pytest.approx(16, rel=0.3)
    assert left[1] < 0.1 * missed[1]


def test_refusals():
    apply, params, X = models()["mlp"]
    with pytest.raises(NumericError, match="depends on the other inputs"):
        empirical_ntk(lambda p, x: apply(p, x) - apply(p, x).mean(axis=0, keepdims=True), params, X)
    with pytest.raises(NumericError, match="jacobian"):
        empirical_ntk(apply, params, X, method="magic")
    with pytest.raises(NumericError, match="shape of the outputs"):
        ntk_vector_product(apply, params, X, jnp.ones(3))
    with pytest.raises(NumericError, match="sums over outputs"):
        pseudo_ntk(models()["shared"][0], models()["shared"][1], models()["shared"][2])


def _dense(change):
    """A two-layer model whose first bias enters by `change(y, b)`; parameters W0, b0, W1."""
    params = [jax.random.normal(jax.random.key(k), shape) for k, shape in enumerate([(3, 4), (4,), (4, 2)])]
    return params, lambda p, X: jnp.tanh(change(X @ p[0] / 2, p[1])) @ p[2]


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (lambda y, b: y + 3 * b[None], 6.0),
        (lambda y, b: b.reshape(1, 4) + y, 2.0),
        (lambda y, b: y + b[None, ::-1], None),
        (lambda y, b: y + b[None] + y**2, None),
        (lambda y, b: (y + b[None]) * jnp.sum(b), None),
        (lambda y, b: y * b[None], None),
        (lambda y, b: (lambda row: (y + row) * jnp.sum(row))(b[None]), None),
        (lambda y, b: 0.0 * y + b[None], None),
    ],
)
def test_biases_share_the_product_of_their_layer(change, factor):
    """The gradient of a bias is the layer's signal: found where it is so, and the NTK is that of the Jacobian."""
    params, model = _dense(change)
    X = jax.random.normal(jax.random.key(9), (3, 3))
    found = Structure(lambda p, x: model(p, x[None])[0], params, X[0]).biases()
    assert list(found.values()) == ([] if factor is None else [(1, factor)])
    rates = [0.7, 0.2, 1.3]
    structured, plain = (empirical_ntk(model, params, X, rates=rates, method=m) for m in ("structured", "jacobian"))
    np.testing.assert_allclose(structured, plain, rtol=1e-12, atol=1e-13)
