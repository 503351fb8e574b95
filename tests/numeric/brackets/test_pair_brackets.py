"""Pair brackets against 30-digit references, and under jit, vmap, grad and float32."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from bracket_twin import awkward_inputs, functions, twin

from numeric.brackets import Rectangle, make_pair_plan, pair_brackets
from numeric.errors import NumericError

ROWS = json.loads((Path(__file__).parents[2] / "data" / "brackets" / "pairs.json").read_text())


@pytest.mark.parametrize(
    "name, variances",
    [("gelu", (1e-10, 1.0, 20.0, 1000.0)), ("tanh", (1e-10, 900.0))]
    + [pytest.param(n, None, marks=pytest.mark.slow) for n in sorted({row[0] for row in ROWS})],
)
def test_pairs_to_twelve_digits(name, variances):
    """Variances from 1e-10 to 1e3, inputs at an angle of 1e-8 and opposite inputs among them."""
    f = functions(name)
    rows = [row for row in ROWS if row[0] == name and (variances is None or row[1] in variances)]
    orders = sorted({(row[4], row[5]) for row in rows} | {(k, k) for k in range(6)})
    for a, c, b in sorted({tuple(row[1:4]) for row in rows}):
        K = np.array([[a, c], [c, b]])
        out = pair_brackets(f, jnp.asarray(K), orders, make_pair_plan(f, K, 5))
        for _, _, _, _, j, k, text in (row for row in rows if tuple(row[1:4]) == (a, c, b)):
            # relative to the entry, unless it cancels to less than 1e-4 of its Cauchy-Schwarz bound
            bound = np.sqrt(float(out[j, j][0, 0] * out[k, k][1, 1]))
            scale = max(abs(float(text)), 1e-4 * bound)
            assert abs(float(out[j, k][0, 1]) - float(text)) <= 1e-12 * scale, (a, c, b, j, k)


def test_closed_forms_of_one_large_input():
    """gelu at K = 1000, where the terms of the closed form cancel: one input against the nearly coincident pair."""
    f = functions("gelu")
    exact = {tuple(r[4:6]): float(r[6]) for r in ROWS if r[0] == "gelu" and r[1] == r[3] == 1000.0}
    K = np.array([[1000.0]])
    out = pair_brackets(f, jnp.asarray(K), [(0, 0), (0, 2), (2, 2)], make_pair_plan(f, K, 2))
    for order, value in out.items():  # the angle of 1e-8 changes them by 1e-12 at most
        assert float(value[0, 0]) == pytest.approx(exact[order], rel=3e-12)


def test_larger_kernels_go_tile_by_tile():
    f = functions("tanh")
    x = np.random.default_rng(0).normal(size=(150, 5))
    K = x @ x.T / 5
    out = pair_brackets(f, jnp.asarray(K), [(0, 0), (0, 2)], make_pair_plan(f, K, 2))
    for a, b in ((3, 140), (149, 2), (130, 131)):
        for pattern in ((0, 0), (0, 2)):
            assert float(out[pattern][a, b]) == pytest.approx(twin(f, K, [a, b], [pattern])[0], rel=1e-10, abs=1e-13)
    np.testing.assert_array_equal(out[0, 0], out[0, 0].T)


@pytest.mark.parametrize("name", ["tanh", "gelu", "relu"])
def test_derivatives_with_respect_to_the_kernel(name):
    f = functions(name)
    K = np.array([[1.0, 0.3, 0.0], [0.3, 0.8, 0.0], [0.0, 0.0, 0.0]])
    plan = make_pair_plan(f, K, 3)
    direction = np.array([[0.3, 0.2, 0.1], [0.2, -0.4, 0.05], [0.1, 0.05, 0.2]])
    inner = direction * (np.arange(3) < 2) * (np.arange(3) < 2)[:, None]  # a kink forbids leaving zero variance

    def value(K):
        return jnp.stack(list(pair_brackets(f, K, [(0, 0), (1, 1)], plan).values()))

    move = inner if name == "relu" else direction
    _, tangent = jax.jvp(jax.jit(value), (jnp.asarray(K),), (jnp.asarray(move),))
    h = 1e-5
    if name == "relu":
        expected = (value(jnp.asarray(K + h * move)) - value(jnp.asarray(K - h * move))) / (2 * h)
    else:  # one-sided, second order, since a variance leaves zero
        first, second = value(jnp.asarray(K + h * move)), value(jnp.asarray(K + 2 * h * move))
        expected = (4 * first - second - 3 * value(jnp.asarray(K))) / (2 * h)
    np.testing.assert_allclose(tangent, expected, atol=2e-8)


def test_vmap_and_float32():
    f = functions("tanh")
    K = np.stack([awkward_inputs(1.0), awkward_inputs(0.5)])
    plan = make_pair_plan(f, K, 1)
    batch = jax.vmap(lambda k: pair_brackets(f, k, [(0, 0)], plan)[0, 0])(jnp.asarray(K))
    for one, kernel in zip(batch, K):
        np.testing.assert_allclose(one, pair_brackets(f, jnp.asarray(kernel), [(0, 0)], plan)[0, 0], rtol=1e-13)
    single = pair_brackets(f, jnp.asarray(K[0], jnp.float32), [(0, 0)], jax.tree_util.tree_map(jnp.float32, plan))[0, 0]
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, batch[0], atol=2e-6)


GAIN, ALPHA = mpmath.mpf("1.0507009873554804934193349852946"), mpmath.mpf("1.6732632423543772848170429916717")
KINKED = {  # sigma and its derivatives for positive and for negative z
    "elu": ([lambda z: z, lambda z: 1, lambda z: 0], [mpmath.expm1, mpmath.exp, mpmath.exp]),
    "selu": (
        [lambda z: GAIN * z, lambda z: GAIN],
        [lambda z: GAIN * ALPHA * mpmath.expm1(z), lambda z: GAIN * ALPHA * mpmath.exp(z)],
    ),
    "softsign": ([lambda z: z / (1 + z), lambda z: (1 + z) ** -2], [lambda z: z / (1 - z), lambda z: (1 - z) ** -2]),
}


@pytest.mark.parametrize("name", KINKED)
def test_kinked_pairs_where_two_inputs_are_one_or_opposite(name):
    """One input: a one-dimensional integral, split at the kink, in arbitrary precision."""
    f, sides = functions(name), KINKED[name]
    K = np.array([[2.0, -2.0], [-2.0, 2.0]])
    orders = [(0, 0), (1, 1), (0, 2)][: len(sides[0])]
    out = pair_brackets(f, jnp.asarray(K), orders, make_pair_plan(f, K, 2))
    root = mpmath.sqrt(2)

    def sigma(order, z):
        return sides[z < 0][order](z)

    for j, k in orders:
        for column, flip in ((0, 1), (1, -1)):
            exact = mpmath.quad(
                lambda x: mpmath.npdf(x) * sigma(j, root * x) * sigma(k, flip * root * x),  # noqa: B023
                [-12, -4, -2, -1, -0.4, 0, 0.4, 1, 2, 4, 12],
            )
            assert float(out[j, k][0, column]) == pytest.approx(float(exact), rel=1e-12), (j, k, flip)


@pytest.mark.parametrize("xp", [np, jnp], ids=["host", "compiled"])
def test_sums_of_exponentials_at_large_variances(xp):
    """<exp exp> = exp((K_aa + K_bb) / 2 + K_ab), <sin sin> = exp(-(K_aa + K_bb) / 2) sinh(K_ab), <cos cos> with cosh:
    two inputs against three."""
    K = np.array([[5.0, 1.0, -2.0], [1.0, 6.0, 0.5], [-2.0, 0.5, 4.5]])
    half = np.add.outer(np.diag(K), np.diag(K)) / 2
    expected = {"exp": {(0, 0): np.exp(half + K), (0, 1): np.exp(half + K)}}
    expected["sin"] = {(0, 0): np.exp(-half) * np.sinh(K), (1, 1): np.exp(-half) * np.cosh(K)}
    for name, by_order in expected.items():
        f, own = functions(name), xp.asarray(np.diag(K))
        plan = make_pair_plan(f, K, 2)
        pairs = Rectangle(own[:2], own, xp.asarray(K[:2]), xp.eye(3, dtype=bool)[:2])
        found = plan.rectangle(f, tuple(by_order), pairs, False)
        for order, matrix in by_order.items():
            np.testing.assert_allclose(found[order], matrix[:2], rtol=1e-12)
        square = pair_brackets(f, jnp.asarray(K), by_order, plan)
        assert all(np.allclose(square[order], matrix, rtol=1e-12, atol=0) for order, matrix in by_order.items())


def test_relu_is_the_arc_cosine_kernel():
    f = functions("relu")
    K = np.array([[1.0, 0.6], [0.6, 4.0]])
    out = pair_brackets(f, jnp.asarray(K), [(0, 0), (1, 1), (0, 2)], make_pair_plan(f, K, 2))
    angle = np.arccos(0.3)
    assert float(out[0, 0][0, 1]) == pytest.approx((np.sin(angle) + (np.pi - angle) * 0.3) * 2 / (2 * np.pi), rel=1e-14)
    assert float(out[1, 1][0, 1]) == pytest.approx((np.pi - angle) / (2 * np.pi), rel=1e-14)
    np.testing.assert_array_equal(np.diag(out[1, 1]), 0.5)
    np.testing.assert_array_equal(np.diag(out[0, 2]), 0.0)


@pytest.mark.parametrize(
    "K, words",
    [
        ([[np.nan]], "NaN"),
        ([[1.0, 0.2], [0.3, 1.0]], "symmetric"),
        ([[-1.0]], "negative variance"),
        ([[1.0, 2.0], [2.0, 1.0]], "covariance larger"),
        ([1.0], "shape"),
    ],
)
def test_bad_kernels_get_a_sentence(K, words):
    with pytest.raises(NumericError, match=words):
        make_pair_plan(functions("tanh"), np.array(K))


def test_delta_functions_beyond_the_recursions_are_refused():
    f = functions("selu")
    K = np.eye(2)
    with pytest.raises(NumericError, match="delta function"):
        pair_brackets(f, jnp.asarray(K), [(0, 3)], make_pair_plan(f, K, 3))


DELTAS = {  # by derive.gaussian.evaluation at K_aa = 1, K_ab = 0.4, K_bb = 2
    "elu": {
        (0, 2): 0.01196073895838531,
        (0, 4): 0.012951985492229846,
        (1, 3): -0.060114862385093795,
        (2, 2): 0.06066262933814899,
        (1, 5): 0.06486729156844427,
        (2, 4): -0.023124981084047997,
        (3, 3): 0.01502296696086354,
    },
    "selu": {
        (0, 2): -0.04795328932910294,
        (0, 4): 0.05075601550295951,
        (1, 3): -0.12236485534487221,
        (2, 2): 0.04353433403713853,
        (1, 5): 0.12961367485470282,
        (2, 4): -0.017398763948405276,
        (3, 3): 0.03396355719112532,
    },
}


@pytest.mark.parametrize("name", ["elu", pytest.param("selu", marks=pytest.mark.slow)])
def test_delta_functions_of_a_kink(name):
    """What G1 and H1 need, against derive's brackets at two inputs, stored here to 15 digits."""
    f = functions(name)
    K = np.array([[1.0, 0.4], [0.4, 2.0]])
    orders = list(DELTAS[name])
    out = pair_brackets(f, jnp.asarray(K), orders, make_pair_plan(f, K, 5))
    for order, exact in DELTAS[name].items():
        assert float(out[order][0, 1]) == pytest.approx(exact, rel=1e-12), order


def test_coincident_inputs_of_a_kinked_activation():
    """The combinations that the recursions use are derivatives of one-input brackets with respect to K."""
    f = functions("selu")
    K = np.array([[1.3]])
    out = pair_brackets(f, jnp.asarray(K), [(1, 3), (2, 2), (0, 4)], make_pair_plan(f, K, 5))
    value = {order: float(x[0, 0]) for order, x in out.items()}

    def square(order, variance):
        root = mpmath.sqrt(variance)
        sides = KINKED["selu"]
        return sum(
            mpmath.quad(lambda x: mpmath.npdf(x) * side[order](s * root * x) ** 2, [0, 1, 3, 12])  # noqa: B023
            for s, side in zip((1, -1), sides)
        )

    slope = mpmath.diff(lambda v: square(1, v), 1.3)
    bend = mpmath.diff(lambda v: square(0, v), 1.3, 2)
    assert value[1, 3] + value[2, 2] == pytest.approx(float(slope), rel=1e-8)
    assert 2 * value[0, 4] + 8 * value[1, 3] + 6 * value[2, 2] == pytest.approx(4 * float(bend), rel=1e-8)
