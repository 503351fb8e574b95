"""The code that `derive recommend` prints, run as it stands: sampled K and Theta, and one step of training.

The real model's second moment and NTK (with the optimizer's own learning rates) are compared with the recommendation
within standard errors; one step of its optimizer with the NTK's prediction -eta Theta (z - y).
"""

import ast
import math

import numpy as np
import pytest
import sympy as sp

from derive.activations import BUILTIN
from derive.design.recommendation import recommend
from derive.design.snippets import sigma_code

CASES = [
    pytest.param("tanh", 0.0, None, marks=pytest.mark.slow),
    pytest.param("z*tanh(z)+where(z<0,z/2,z)", 1.0, None, marks=pytest.mark.slow),
    pytest.param("gelu", 0.0, 1, marks=pytest.mark.slow),
    ("gelu", 0.5, None),
    ("sin", 0.0, sp.Rational(3, 5)),
]
DEPTH, WIDTH, INPUTS, NETWORKS = 3, 96, 5, 200


def question(name, s, skip=None):
    """Depth 3, or 4 with a skip, so that there are two of them."""
    skip = None if skip is None else sp.sympify(skip)
    return recommend(name, DEPTH + (skip is not None), WIDTH, inputs=INPUTS, s=s, skip=skip)


def run(source):
    names = {"__name__": "snippet"}
    exec(compile(source, "<snippet>", "exec"), names)
    return names


def compare(found, outputs, kernels, changes, gaps, eta):
    """Sampled z^2, NTK and one-step changes against the recommendation; z is scaled by n^(-s/2)."""
    slack = 3 / WIDTH  # the next order in 1/n
    K = found.output_variance * found.output_multiplier**2
    moments = np.array(outputs) ** 2
    assert abs(moments.mean() / K - 1) < 4 * moments.std() / math.sqrt(len(moments)) / K + slack * found.depth
    kernels = np.array(kernels)
    assert abs(kernels.mean() - 1) < 4 * kernels.std() / math.sqrt(len(kernels)) + slack * found.depth
    assert kernels.std() / math.sqrt(len(kernels)) < 0.05
    # one step: -eta Theta (z - y) with each network's own NTK, up to the step's second order
    predicted = -eta * kernels * np.array(gaps)
    assert np.allclose(changes, predicted, rtol=0.03, atol=0.01 * np.abs(predicted).max())


@pytest.mark.parametrize(("name", "s", "skip"), CASES)
def test_torch(name, s, skip):
    import torch

    found = question(name, s, skip)
    names = run(found.code("torch"))
    torch.manual_seed(0)
    x = names["normalize"](torch.tensor([[1.0, -0.5, 0.3, 2.0, -1.0]]))
    assert float((x * x).mean()) == pytest.approx(found.input_norm, rel=1e-5)
    y, small = found.target_scale, 0.01
    rows = []
    for _ in range(150):
        network = names["Network"]()
        optimizer = names["make_optimizer"](network)
        network.zero_grad()
        z = network(x)[0, 0]
        z.backward()
        ntk = sum(g["lr"] * float((p.grad**2).sum()) for g in optimizer.param_groups for p in g["params"])
        for group in optimizer.param_groups:
            group["lr"] *= small
        optimizer.zero_grad()
        names["loss"](network, x, y).backward()
        optimizer.step()
        before, after = float(z.detach()), float(network(x).detach()[0, 0])
        rows.append((before, ntk / names["ETA"], after - before, before - y))
    compare(found, *zip(*rows), small * names["ETA"])


@pytest.mark.parametrize(("name", "s", "skip"), CASES)
def test_flax(name, s, skip):
    import jax
    import jax.numpy as jnp

    found = question(name, s, skip)
    names = run(found.code("flax"))
    network, y, small = names["network"], found.target_scale, 0.01
    raw = jnp.array([[1.0, -0.5, 0.3, 2.0, -1.0]])
    x = names["normalize"](raw)

    def one(key):
        params = network.init(key, x)
        output = lambda p: network.apply(p, x)[0, 0]  # noqa: E731
        z, gradient = jax.value_and_grad(output)(params)
        optimizer = names["make_optimizer"](params)
        state = optimizer.init(params)
        updates, _ = optimizer.update(gradient, state, params)  # -rate * gradient
        ntk = -sum(jnp.sum(g * u) for g, u in zip(jax.tree.leaves(gradient), jax.tree.leaves(updates)))
        loss = lambda p: small * names["loss"](p, x, y)  # noqa: E731
        updates, _ = optimizer.update(jax.grad(loss)(params), state, params)
        moved = jax.tree.map(lambda p, u: p + u, params, updates)
        return z, ntk / names["ETA"], output(moved) - z, z - y

    rows = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), NETWORKS))
    compare(found, *(np.asarray(r) for r in rows), small * names["ETA"])
    before = names["loss"](names["params"], x, y * jnp.ones((1, 1)))
    after, _ = names["step"](names["params"], names["state"], raw, jnp.ones((1, 1)))
    assert names["loss"](after, x, y * jnp.ones((1, 1))) < before


@pytest.mark.parametrize(("name", "s", "skip"), CASES)
def test_equinox(name, s, skip):
    import jax
    import jax.numpy as jnp

    found = question(name, s, skip)
    names = run(found.code("equinox"))
    y, small = found.target_scale, 0.01
    x = names["normalize"](jnp.array([[1.0, -0.5, 0.3, 2.0, -1.0]]))

    def one(key):
        network = names["Network"](key)
        z, gradient = jax.value_and_grad(lambda n: n(x)[0, 0])(network)
        optimizer = names["make_optimizer"](network)
        state = optimizer.init(network)
        updates, _ = optimizer.update(gradient, state, network)
        ntk = -sum(jnp.sum(g * u) for g, u in zip(jax.tree.leaves(gradient), jax.tree.leaves(updates)))
        slope = jax.grad(lambda n: small * names["loss"](n, x, y))(network)
        updates, _ = optimizer.update(slope, state, network)
        moved = jax.tree.map(lambda p, u: p + u, network, updates)
        return z, ntk / names["ETA"], moved(x)[0, 0] - z, z - y

    rows = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), NETWORKS))
    compare(found, *(np.asarray(r) for r in rows), small * names["ETA"])


@pytest.mark.parametrize("skip", [None, 1])
def test_keras(skip):
    """One network's own NTK, from its gradients and the optimizer's rates, and a step of `fit` with a small rate."""
    keras = pytest.importorskip("keras", reason="keras is in the extra `frameworks`, not in `test`")
    if keras.backend.backend() != "jax":
        pytest.skip("keras has another backend here; set KERAS_BACKEND=jax")
    import jax

    found = question("tanh", 0.0, skip)
    names = run(found.code("keras").replace(f"ETA = {found.eta_max / 2!r}", "ETA = 0.01"))
    network, optimizer = names["network"], names["optimizer"]
    x, y = names["normalize"](np.array([[1.0, -0.5, 0.3, 2.0, -1.0]])), np.array([[found.target_scale]])
    for layer, (C_b, C_W) in zip(network.dense, zip(found.C_b_layers, found.C_W_layers)):
        kernel = np.asarray(layer.kernel)
        assert abs(kernel.var() * kernel.shape[0] / C_W - 1) < 5 * math.sqrt(2 / kernel.size)
        assert np.asarray(layer.bias).var() == pytest.approx(C_b)
    values = [v.value for v in network.trainable_variables]
    slopes = jax.grad(lambda own: network.stateless_call(own, [], x)[0][0, 0])(values)
    ntk = sum(rate * float((g**2).sum()) for rate, g in zip(optimizer.own_rates, slopes)) / 0.01
    assert abs(ntk - 1) < 0.5  # one network of width 96
    z = float(network(x)[0, 0])
    network.fit(x, y, batch_size=1, epochs=1, verbose=0)
    assert float(network(x)[0, 0]) - z == pytest.approx(-0.01 * ntk * (z - y[0, 0]), rel=0.05)


@pytest.mark.parametrize("name", BUILTIN)
def test_sigma_is_the_activation(name):
    """The framework's own function, or the printed formula, at a few points, to single precision."""
    import jax
    import jax.numpy as jnp

    from derive.activations import activation

    own = activation(name)
    points = [-3.0, -0.7, 0.0, 0.4, 2.5]
    exact = [float(own(z)) for z in points]
    names = {"jax": jax, "jnp": jnp, "z": jnp.array(points)}
    found = eval(sigma_code(own.name, own.expression, "jnp"), names)
    assert np.allclose(found, exact, rtol=1e-5, atol=1e-6)
    import torch

    found = eval(sigma_code(own.name, own.expression, "torch"), {"torch": torch, "z": torch.tensor(points)})
    assert np.allclose(found.numpy(), exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("formula", ["max(z,-1)+abs(z)/3", "where(z<0,exp(z)-1,z)", "sqrt(1+z^2)-1+atan(z)+asinh(z)"])
@pytest.mark.parametrize("framework", ["torch", "flax", "keras"])
def test_formulas_are_whole_python(formula, framework):
    source = recommend(formula, 3).code(framework)
    ast.parse(source)
    assert max(map(len, source.splitlines())) < 200
