"""One real step of gradient descent: how the NTK and the dNTK of a network change, against the printed expansions."""

import jax
import jax.numpy as jnp
import pytest
from test_empirical_contractions import MODELS, X, draw, objects


@pytest.fixture(scope="module")
def step():
    """A network's tensors now, and a function that gives them after a step of size eta along an error."""
    apply, shapes = MODELS["mlp"]
    params, rates = draw(shapes, 7)
    e = jax.random.normal(jax.random.key(11), (2, 2))  # [neuron, sample]
    pull = jax.vjp(lambda p: apply(p, X), params)[1](e.T)[0]

    def after(eta):
        return objects(apply, jax.tree.map(lambda p, lam, g: p - eta * lam * g, params, rates, pull), rates)

    return e, objects(apply, params, rates), after


@pytest.mark.equation("infinity.6")
@pytest.mark.equation("infinity.8")
def test_the_ntk_changes_by_the_dntk_and_both_ddntks(step):
    """The last sum holds the second ddNTK; the print has the first one again."""
    e, (ntk, dntk, first, second), after = step
    dH = jnp.einsum("ijkabc,kc->ijab", dntk, e)
    one = jnp.einsum("ijklabcd,kc,ld->ijab", first, e, e)
    two = jnp.einsum("ijklabcd,kc,ld->ijab", second, e, e)
    assert jnp.abs(two - two.transpose(1, 0, 3, 2)).max() < 1e-12 * jnp.abs(two).max()

    def remainder(eta, last):
        series = -eta * (dH + dH.transpose(1, 0, 3, 2)) + eta**2 / 2 * (one + one.transpose(1, 0, 3, 2)) + eta**2 * last
        return jnp.abs(after(eta)[0] - ntk - series).max()

    assert float(remainder(2e-3, two) / remainder(1e-3, two)) == pytest.approx(8, rel=0.05)  # what is left is O(eta^3)
    assert float(remainder(2e-3, one) / remainder(1e-3, one)) == pytest.approx(4, rel=0.05)


@pytest.mark.equation("infinity.9")
def test_the_dntk_changes_by_the_ddntks(step):
    """In the last term both pairs (i_1, delta_1) and (i_2, delta_2) are swapped; the print swaps the samples alone."""
    e, (_, dntk, first, second), after = step
    one = jnp.einsum("ijklabcd,ld->ijkabc", first, e)
    two = jnp.einsum("ijklabcd,ld->ijkabc", second, e)

    def remainder(eta, swapped):
        return jnp.abs(after(eta)[1] - dntk + eta * (one + two + swapped)).max()

    right, printed = two.transpose(0, 2, 1, 3, 5, 4), two.transpose(0, 1, 2, 3, 5, 4)
    assert float(remainder(2e-3, right) / remainder(1e-3, right)) == pytest.approx(4, rel=0.05)
    assert float(remainder(2e-3, printed) / remainder(1e-3, printed)) == pytest.approx(2, rel=0.05)
