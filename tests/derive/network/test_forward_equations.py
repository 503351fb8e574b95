"""Stochastic forward equations: term by term against the seed, and as numbers against automatic differentiation.

A term is written as a tuple (Kronecker deltas with learning rates, weights, activations, objects below); inner neurons
are named by their vertex. (infinity.174) and (infinity.175) are typed as they should read, see docs/errata.
"""

from functools import partial

import numpy as np
import pytest

from derive.errors import DeriveError
from derive.network import FROZEN_WEIGHTS, INPUT_SKIP, MLP, RESIDUAL, TWO_MATRICES, forward_latex, forward_object
from derive.network.trees import OBJECTS


def spelled(term):
    """A derived term as a set of words."""
    words = [f"{c.term.name}{min(c.vertices)}{max(c.vertices)}" for c in term.contractions]
    words += [f"{leg.term.name}{leg.vertex}" for leg in term.legs]
    words += [f"{f.function[0]}{f.order}:{f.neuron}{f.label}" for f in term.factors]
    for tree in term.trees:
        neurons, labels = zip(*tree.slots)
        if tree.kind == "H":
            neurons, labels = zip(*sorted(tree.slots, key=lambda s: s[1]))
        if tree.kind == "dH":  # the last two are interchangeable
            rest = sorted(tree.slots[1:], key=lambda s: s[1])
            neurons, labels = zip(tree.slots[0], *rest)
        words.append(f"{tree.kind}:{''.join(map(str, neurons))};{''.join(map(str, labels))}")
    return tuple(sorted(words))


def term(text):
    return tuple(sorted(text.split()))


# s1:02 is sigma'(z_{j_0; delta_2}); W02 a contraction with W of the vertices 0 and 2; W0 a factor W_{i_0 j_0}.
NTK = ["b12", "W12 s0:11 s0:12", "W1 W2 s1:11 s1:22 H:12;12"]
DNTK = [
    "W0 W1 W2 s2:00 s1:11 s1:22 H:01;01 H:02;02",
    "W0 W1 W2 s1:00 s1:11 s1:22 dH:012;012",
    "W01 W2 s1:00 s0:01 s1:22 H:02;02",
    "W02 W1 s1:00 s0:02 s1:11 H:01;01",
]
FIRST = [
    "W01 W2 W3 s0:01 s1:22 s1:33 s2:00 H:02;02 H:03;03",
    "W01 W2 W3 s0:01 s1:22 s1:33 s1:00 dH:023;023",
    "W02 W3 W1 s0:02 s1:33 s1:11 s2:00 H:03;03 H:01;01",
    "W02 W3 W1 s0:02 s1:33 s1:11 s1:00 dH:013;013",
    "W03 W1 W2 s0:03 s1:11 s1:22 s2:00 H:01;01 H:02;02",
    "W03 W1 W2 s0:03 s1:11 s1:22 s1:00 dH:012;012",
    "W0 W1 W2 W3 s1:11 s1:22 s1:33 s1:00 ddI:0123;0123",
    "W0 W1 W2 W3 s1:11 s1:22 s1:33 s2:00 dH:012;012 H:03;03",
    "W0 W1 W2 W3 s1:11 s1:22 s1:33 s2:00 dH:023;023 H:01;01",
    "W0 W1 W2 W3 s1:11 s1:22 s1:33 s2:00 dH:013;013 H:02;02",
    "W0 W1 W2 W3 s1:11 s1:22 s1:33 s3:00 H:01;01 H:02;02 H:03;03",
]
SECOND = [
    "W13 W24 s1:11 s1:22 s0:13 s0:24 H:12;12",
    "W12 W3 W4 s1:11 s1:12 s1:33 s1:44 H:13;13 H:14;24",
    "W13 W2 W4 s0:13 s1:44 s1:11 s2:22 H:12;12 H:24;24",
    "W13 W2 W4 s0:13 s1:44 s1:11 s1:22 dH:214;214",
    "W24 W1 W3 s0:24 s1:33 s1:22 s2:11 H:12;12 H:13;13",
    "W24 W1 W3 s0:24 s1:33 s1:22 s1:11 dH:123;123",
    "W1 W2 W3 W4 s1:33 s1:44 s1:11 s1:22 ddII:1234;1234",
    "W1 W2 W3 W4 s1:33 s1:44 s2:11 s1:22 H:13;13 dH:214;214",
    "W1 W2 W3 W4 s1:33 s1:44 s1:11 s2:22 H:24;24 dH:123;123",
    "W1 W2 W3 W4 s1:33 s1:44 s2:11 s2:22 H:12;12 H:13;13 H:24;24",
]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("H", NTK),
        pytest.param("dH", DNTK),
        pytest.param("ddI", FIRST, marks=pytest.mark.equation("infinity.174")),
        pytest.param("ddII", SECOND, marks=pytest.mark.equation("infinity.175")),
    ],
)
def test_forward_equation_term_by_term(kind, expected):
    derived = sorted(spelled(t) for t in forward_object(kind))
    assert derived == sorted(map(term, expected))


def test_definitions_change_the_forward_equation():
    frozen = {spelled(t) for t in forward_object("dH", FROZEN_WEIGHTS)}
    assert frozen == set(map(term, DNTK[:2]))
    skip = {spelled(t) for t in forward_object("H", INPUT_SKIP)}
    assert skip == set(map(term, NTK)) | {("Y12",)}
    residual = {spelled(t) for t in forward_object("H", RESIDUAL)}
    assert term("skip1 skip2 H:12;12") in residual
    assert len(residual) == len(NTK) + 3  # two mixed terms and the skip's own
    two = {spelled(t) for t in forward_object("H", TWO_MATRICES)}
    mixed = term("W1 X2 s1:11 t1:22 H:12;12")
    assert mixed in two
    assert term("X12 t0:11 t0:12") in two


def test_forward_equations_of_a_sampled_network():
    """Every term evaluated on one random network, against derivatives taken by JAX: exact up to rounding."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    from numeric.empirical import empirical_ddntk, empirical_dntk, empirical_ntk

    rng = np.random.default_rng(5)
    n0, n1, n2, inputs = 2, 3, 2, 2
    x = rng.normal(size=(inputs, n0))
    params = {"b1": rng.normal(size=n1), "W1": rng.normal(size=(n1, n0)), "A": rng.normal(size=(n1, n1))}
    rates = {"b1": 0.3, "W1": 0.7, "A": 0.5}
    hidden = lambda p, x: jnp.tanh(x @ p["W1"].T + p["b1"]) @ p["A"].T  # noqa: E731
    full = params | {"b2": rng.normal(size=n2), "W2": rng.normal(size=(n2, n1))}
    lam_b, lam_W = 0.4, 0.9
    full_rates = rates | {"b2": lam_b, "W2": lam_W / n1}
    output = lambda p, x: jnp.sin(hidden(p, x)) @ p["W2"].T + p["b2"]  # noqa: E731

    @partial(jax.jit, static_argnums=0)
    def objects(apply, params, rates):
        first, second = empirical_ddntk(apply, params, x, rates)
        ntk, dntk = empirical_ntk(apply, params, x, rates), empirical_dntk(apply, params, x, rates)
        return {"H": ntk, "dH": dntk, "ddI": first, "ddII": second}

    below, above = objects(hidden, params, rates), objects(output, full, full_rates)
    z = np.asarray(hidden(params, x))
    slopes = {0: np.sin(z), 1: np.cos(z), 2: -np.sin(z), 3: -np.cos(z)}
    assert all(np.abs(tensor).max() > 1e-2 for tensor in below.values())
    for kind, samples in {"H": (1, 0), "dH": (0, 1, 0), "ddI": (1, 1, 0, 0), "ddII": (0, 1, 1, 0)}.items():
        vertices = OBJECTS[kind].vertices
        place = dict(zip(vertices, samples))
        total = np.zeros((n2,) * len(vertices))
        for t in forward_object(kind, MLP):
            letters = {v: "ijkl"[k] for k, v in enumerate(vertices)}
            inner = {v: "abcd"[k] for k, v in enumerate(vertices)}
            operands, script, factor = [], [], 1.0
            for c in t.contractions:
                operands.append(np.eye(n2))
                script.append(letters[c.vertices[0]] + letters[c.vertices[1]])
                factor *= lam_b if c.term.name == "b" else lam_W / n1
            for leg in t.legs:
                operands.append(full["W2"])
                script.append(letters[leg.vertex] + inner[leg.vertex])
            for f in t.factors:
                operands.append(slopes[f.order][place[f.label]])
                script.append(inner[f.neuron])
            for tree in t.trees:
                index = tuple(place[label] for _, label in tree.slots)
                operands.append(np.asarray(below[tree.kind])[(..., *index)])
                script.append("".join(inner[j] for j, _ in tree.slots))
            outer = "".join(letters[v] for v in vertices)
            total += factor * np.einsum(",".join(script) + "->" + outer, *operands)
        expected = np.asarray(above[kind])[(..., *samples)]
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(total, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_latex_names_every_index():
    text = forward_latex("ddII")
    assert text.count(r"\\") == len(SECOND) - 1
    assert r"\widehat{\mathrm{dd_{II}}H}^{(\ell)}_{j_1j_2j_3j_4;\delta_1\delta_2\delta_3\delta_4}" in text
    assert r"\delta_{i_1 i_2} \frac{\lambda_{W}^{(\ell+1)}}{n_\ell}" in text


def test_unknown_object():
    with pytest.raises(DeriveError, match="no object 'dddH'"):
        forward_object("dddH")
