"""Exponential behaviour off criticality, against the iterated recursions."""

import numpy as np
import pytest

from derive.activations import activation
from derive.depth import off_criticality
from derive.depth.critical_solution import network_equations
from derive.depth.iterate import Real, iterate
from derive.errors import DeriveError


def run(name, C_b, C_W, layers, start="1"):
    one = lambda layer: Real(1)  # noqa: E731
    return iterate(
        activation(name), network_equations(), {"K": start, "Theta": "1"}, {"C_b": C_b, "C_W": C_W}, (one, one), layers
    )


def test_ordered_phase_reaches_limits():
    """tanh, C_b = 0.1, C_W = 1.5: both susceptibilities below one, every tensor tends to a number."""
    found = off_criticality("tanh", "0.1", "1.5")
    state = run("tanh", "0.1", "1.5", [700])[700]
    assert 0 < found.chi_parallel < 1 and 0 < found.chi_perp < 1
    for tensor, behaviour in found.tensors.items():
        assert behaviour.limit is not None, tensor
        assert abs(float(state[tensor]) / float(behaviour.limit) - 1) < 1e-11, tensor


@pytest.mark.parametrize(("C_W", "layers", "small"), [("1.5", (700, 701), 1e-10), ("0.5", (24, 25), 1e-3)])
def test_rates(C_W, layers, small):
    """The factor from layer to layer of each tensor is factor * (1 + 1/l)^power, up to terms that are smaller."""
    found = off_criticality("tanh", 0, C_W)
    states = run("tanh", "0", C_W, layers)
    low, high = layers
    for tensor, behaviour in found.tensors.items():
        ratio = float(states[high][tensor] / states[low][tensor])
        expected = float(behaviour.factor) * (1 + 1 / low) ** behaviour.power
        tolerance = small if behaviour.power == 0 else 200 / low**2 * behaviour.power
        assert abs(ratio / expected - 1) < tolerance, tensor
        if behaviour.limit is not None:
            assert np.isclose(float(states[high][tensor]), float(behaviour.limit), rtol=10 * small)


def test_powers_of_depth_beside_the_exponential():
    """tanh, C_W = 1/2: V, D, H1, A are polynomials in l of degree 1, 2, 1, 3 times chi^(k l), as differences show."""
    found = off_criticality("tanh", 0, "1/2").tensors
    degrees = {"V": 1, "D": 2, "H1": 1, "A": 3}
    layers = range(15, 22)
    states = run("tanh", "0", "0.5", layers)
    for tensor, degree in degrees.items():
        assert found[tensor].power == degree
        scaled = [states[n][tensor] / Real(str(found[tensor].factor)) ** n for n in layers]
        at_degree, beyond = (np.diff(scaled, n=k)[-1] for k in (degree, degree + 1))
        assert abs(beyond) < 2e-2 * abs(at_degree), tensor


def test_refusals():
    with pytest.raises(DeriveError, match="near criticality"):
        off_criticality("tanh", 0, 1)
    with pytest.raises(DeriveError, match="without bound"):
        off_criticality("relu", 0, 3)
    with pytest.raises(DeriveError, match="C_W"):
        off_criticality("tanh", 0, -1)
