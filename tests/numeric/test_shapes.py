"""Shapes in types: what is declared is what comes out, and the check at run time is on."""

from __future__ import annotations

from typing import get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError, jaxtyped

from numeric import GradientDescent, empirical_ntk, flow, predict
from numeric.evaluation.results import Layer, Tensors

X = [[1.0, 0.3], [-0.4, 1.0], [0.7, -0.8]]


def test_every_tensor_of_a_flow_has_its_declared_shape():
    hints = get_type_hints(Tensors)
    f = flow("sin", X, depth=3, width=[7, 9])
    assert set(hints) == set(f.names)

    @jaxtyped(typechecker=None)  # one N for all of them
    def agree(found):
        return [name for name, hint in hints.items() if not isinstance(getattr(found, name), hint)]

    assert agree(f) == agree(f.layer(2)) == []
    # and the declaration is able to say no
    wrong = Layer(1, {**f.layer(2), "V": jnp.ones((3, 3, 3, 2))}, {})
    assert agree(wrong) == ["V"]


def test_results_are_looked_at_while_tests_run():
    with pytest.raises(TypeCheckError):
        Layer(1, {"K": jnp.ones((2, 2), dtype=int)}, {})["K"]
    with pytest.raises(TypeCheckError):
        empirical_ntk(lambda w, x: (x @ w).astype(int), jnp.ones(2), 3.0)


@pytest.mark.parametrize("y", [[1.0, -1.0], [[1.0, 0.0], [0.5, -1.0]]])
@pytest.mark.parametrize("time", [None, 3, [1, 2, 5]])
def test_predictions_pass_the_check(y, time):
    f = flow("sin", X, depth=2, width=512)
    p = predict(f, y, train=[0, 1], algorithm=GradientDescent(eta=0.1), time=time)
    lead = () if time is None or np.ndim(time) == 0 else (3,)
    outputs = np.shape(y)[1:]
    assert p.mean.shape == (*lead, 1, *outputs)
    assert p.covariance.shape == (*lead, *outputs, *outputs, 1, 1)
    assert p.covariance_infinite.shape == (*lead, 1, 1)


def test_empirical_kernels_pass_the_check():
    w = jax.random.normal(jax.random.key(0), (2, 4))
    inputs = jnp.asarray(X)
    assert empirical_ntk(lambda w, x: jnp.tanh(x @ w), w, inputs, X2=inputs[:2]).shape == (4, 4, 3, 2)
    assert empirical_ntk(lambda w, x: jnp.tanh(x @ w).sum(1), w, inputs, X2=inputs[:2]).shape == (3, 2)
