"""jit, grad and vmap through the flow, against finite differences of an independent 30-digit evaluation and itself."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from numeric import NumericError, flow

X = jnp.asarray([[0.9, -0.4, 0.3], [0.2, 0.7, -0.6]])
NETWORK = {"depth": 3, "width": [4, 6], "C_b": 0.1, "lambda_b": 0.3, "lambda_W": 0.9}


def erf_kernels(C_W, x, digits=40):
    """K and Theta of an erf network by its closed forms, Williams 1997, in mpmath: no code shared with the flow."""
    with mpmath.workdps(digits):
        C_b, lambda_b, lambda_W = mpmath.mpf("0.1"), mpmath.mpf("0.3"), mpmath.mpf("0.9")
        x = [[mpmath.mpf(v) for v in row] for row in x]
        gram = [[mpmath.fdot(a, b) / len(a) for b in x] for a in x]
        K = [[C_b + C_W * g for g in row] for row in gram]
        Theta = [[lambda_b + lambda_W * g for g in row] for row in gram]
        for _ in range(2):
            root = [[mpmath.sqrt((1 + 2 * K[a][a]) * (1 + 2 * K[b][b])) for b in (0, 1)] for a in (0, 1)]
            ss = [[2 / mpmath.pi * mpmath.asin(2 * K[a][b] / root[a][b]) for b in (0, 1)] for a in (0, 1)]
            dd = [[4 / mpmath.pi / mpmath.sqrt(root[a][b] ** 2 - 4 * K[a][b] ** 2) for b in (0, 1)] for a in (0, 1)]
            Theta = [[lambda_b + lambda_W * ss[a][b] + C_W * dd[a][b] * Theta[a][b] for b in (0, 1)] for a in (0, 1)]
            K = [[C_b + C_W * ss[a][b] for b in (0, 1)] for a in (0, 1)]
        return K, Theta


@pytest.fixture(scope="module")
def kernels():
    f = flow("erf", X, C_W=1.3, tensors="Theta", **NETWORK)

    def outputs(C_W, x):
        g = flow("erf", x, C_W=C_W, tensors="Theta", plan=f.plan, **NETWORK)
        return jnp.stack([g.K, g.Theta])

    return jax.jit(outputs)


def test_kernels_equal_williams_closed_form(kernels):
    K, Theta = erf_kernels(mpmath.mpf("1.3"), np.asarray(X).tolist())
    want = np.array([K, Theta], dtype=float)
    np.testing.assert_allclose(kernels(1.3, X), want, rtol=1e-13)


def test_derivatives_with_respect_to_hyperparameters_and_inputs(kernels):
    """Against central differences of the closed forms with 40 digits and a step of 1e-10: good to 1e-19."""
    by_C_W, by_x = jax.jacfwd(kernels, argnums=(0, 1))(1.3, X)
    backward = jax.jacrev(kernels, argnums=1)(1.3, X)
    np.testing.assert_allclose(by_x, backward, rtol=1e-12, atol=1e-14)
    with mpmath.workdps(40):
        h = mpmath.mpf("1e-10")
        start = np.asarray(X).tolist()
        up, down = (erf_kernels(mpmath.mpf(1.3) + s * h, start) for s in (1, -1))
        for i in range(2):
            want = [[float((up[i][a][b] - down[i][a][b]) / (2 * h)) for b in (0, 1)] for a in (0, 1)]
            np.testing.assert_allclose(by_C_W[i], want, rtol=1e-11)
        for a, k in ((0, 1), (1, 2)):
            moved = []
            for s in (1, -1):
                x = [[mpmath.mpf(v) for v in row] for row in start]
                x[a][k] += s * h
                moved.append(erf_kernels(mpmath.mpf(1.3), x))
            for i in range(2):
                want = [[float((moved[0][i][p][q] - moved[1][i][p][q]) / (2 * h)) for q in (0, 1)] for p in (0, 1)]
                np.testing.assert_allclose(by_x[i, :, :, a, k], want, rtol=1e-11, atol=1e-14)


def test_vmap_over_hyperparameters(kernels):
    values = jnp.asarray([0.8, 1.1, 1.3])
    np.testing.assert_allclose(
        jax.vmap(kernels, in_axes=(0, None))(values, X), jnp.stack([kernels(v, X) for v in values]), rtol=1e-13
    )


@pytest.mark.parametrize(
    ("activation", "tensor"),
    [
        ("sin", "B"),
        pytest.param("gelu", "F", marks=pytest.mark.slow),
        pytest.param("tanh", "F", marks=pytest.mark.slow),
    ],
)
def test_derivatives_of_finite_width_tensors(activation, tensor):
    """d/dC_W and d/dx through two layers, also at coincident inputs, against Richardson differences."""
    x = jnp.concatenate([X, X[:1]])
    f = flow(activation, x, C_W=1.3, tensors=tensor, **NETWORK)

    @jax.jit
    def entries(C_W, shift):
        g = flow(activation, x.at[1, 2].add(shift), C_W=C_W, tensors=tensor, plan=f.plan, **NETWORK).layer(3)[tensor]
        return jnp.stack([g[0, 1, 0, 1], g[0, 1, 2, 1], g[1, 0, 1, 2], g.sum()])

    exact = jax.jit(jax.jacfwd(entries, argnums=(0, 1)))(1.3, 0.0)

    def difference(move):
        h = 2e-3
        d = [(entries(*move(k * h)) - entries(*move(-k * h))) / (2 * k * h) for k in (1, 2, 4)]
        first = [(4 * d[0] - d[1]) / 3, (4 * d[1] - d[2]) / 3]
        return (16 * first[0] - first[1]) / 15

    np.testing.assert_allclose(exact[0], difference(lambda t: (1.3 + t, 0.0)), rtol=1e-8)
    np.testing.assert_allclose(exact[1], difference(lambda t: (1.3, t)), rtol=1e-7, atol=1e-9)


def test_a_flow_is_a_pytree_and_needs_a_plan_inside_transformations():
    f = flow("erf", X, C_W=1.3, tensors="Theta", **NETWORK)
    doubled = jax.tree_util.tree_map(lambda leaf: leaf, f)
    assert doubled.widths == f.widths and doubled.names == f.names
    np.testing.assert_array_equal(doubled.Theta, f.Theta)
    with pytest.raises(NumericError, match=r"pass plan=f\.plan"):
        jax.jit(lambda c: flow("erf", X, C_W=c, tensors="Theta", **NETWORK).K)(1.3)
    inside = jax.jit(lambda c: flow("erf", X, C_W=c, tensors="Theta", plan=f.plan, **NETWORK))(1.3)
    np.testing.assert_allclose(inside.Theta, f.Theta, rtol=1e-14)
    with pytest.raises(NumericError, match="has no error estimate"):
        _ = inside.error
