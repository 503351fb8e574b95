"""Derived recursions against tensors sampled from real finite-width networks (tests/data/sampled, made by make.py).

Two hidden layers of unequal widths, unequal hyperparameters, an activation neither odd nor even. The sampled values
have standard errors; the extrapolation in the width leaves about 1/96 of a tensor besides (see make.py).
"""

from dataclasses import replace

import numpy as np
import pytest
from sampled_networks import Neuron, activations, apply_recursion, flow, load, parameters
from seed_equations import OneLayer, printed_R, printed_S, seed_R, seed_S

from derive.network import INPUT_SKIP, MLP, TENSORS, TWO_MATRICES, recursion
from derive.symbols import r

SETUPS = {"mlp": MLP, "two-matrices": TWO_MATRICES, "input-skip": INPUT_SKIP}
REST = 1 / 96


@pytest.fixture(scope="module", params=list(SETUPS))
def case(request):
    record = load(request.param)
    return record, SETUPS[request.param], flow(record, SETUPS[request.param])


def deviation(record, name, theory):
    """In units of what chance and the extrapolation allow: 1 is four standard errors plus the extrapolation's rest."""
    sampled = record["tensors"][name]
    value, error = np.array(sampled["value"]), np.array(sampled["standard_error"])
    rest = REST * np.abs(theory).max() * (name not in ("K", "Theta"))
    return np.abs(value - theory) / (4 * error + rest)


@pytest.mark.parametrize("name", list(TENSORS))
def test_sampled_networks(case, name):
    record, _, layers = case
    theory = layers[-1][name]
    error = np.array(record["tensors"][name]["standard_error"])
    assert error.max() < 0.05 * np.abs(theory).max(), "the reference is too noisy to decide"
    assert deviation(record, name, theory).max() < 1


@pytest.mark.parametrize("name", list(TENSORS))
def test_the_reference_would_show_a_wrong_factor(case, name):
    """Twice the tensor, or its part from the layer below left out or doubled, is seen."""
    record, layer, layers = case
    theory = layers[-1][name]
    assert deviation(record, name, 2 * theory).max() > 1
    derived = recursion(name, layer)
    own = replace(derived, terms=tuple(t for t in derived.terms if not t.coefficient.has(r)))
    x = np.array(record["inputs"])
    neuron = Neuron(layers[1]["K"], activations(record))
    part = apply_recursion(own, layers[1], neuron, x @ x.T / x.shape[1], parameters(record, 2))
    if len(own.terms) < len(derived.terms):
        for wrong in (part, 2 * theory - part):
            assert deviation(record, name, wrong).max() > 1


@pytest.mark.parametrize(
    ("name", "right", "printed"),
    [
        pytest.param("R", seed_R, printed_R, marks=pytest.mark.equation("infinity.177")),
        pytest.param("S", seed_S, printed_S, marks=pytest.mark.equation("infinity.179")),
    ],
)
def test_real_networks_exclude_the_print(name, right, printed):
    record = load("mlp")
    below = flow(record, MLP)[1]
    numbers = parameters(record, 2)
    layer = OneLayer(below, Neuron(below["K"], activations(record)), numbers["C_W"], numbers["lambda_W"], numbers["r"])
    assert deviation(record, name, layer.tabulate(right)).max() < 1
    assert deviation(record, name, layer.tabulate(printed)).max() > 1
