"""Half-stable activations: nearby inputs on the plateau, against the flow of real inputs at the depth of a network."""

import numpy as np
import pytest
from click.testing import CliRunner

import derive
from derive.cli import group
from derive.symbols import L, lambda_b, lambda_W
from numeric import flow

DEPTH = 6


def measured(name, rule, size):
    """Robustness, variance and curvature over delta^2 = `size`, from kernels of x_0 + d, x_0 - d and x_0 themselves."""
    point = derive.criticality(name).points[0]
    K, C_b, C_W = (float(x) for x in (point.K_star, point.C_b, point.C_W))
    norm, step = ((K - C_b) / C_W * 2) ** 0.5, (size / C_W * 2) ** 0.5  # n_0 = 2
    X = np.array([[norm, step], [norm, -step], [norm, 0.0]])
    share = DEPTH if rule == "equivalence" else 1
    f = flow(name, X, DEPTH, None, C_b, C_W, 0.7 / share, 1.3 / share, tensors=["K", "Theta"])
    K, Theta = np.asarray(f.K), np.asarray(f.Theta)
    ratio = Theta[1, 0] / Theta[0, 0]
    return {
        "robustness": (ratio - 1) / size,
        "variance": (K[1, 1] - 2 * ratio * K[1, 0] + ratio**2 * K[0, 0]) / size,
        "curvature": ((Theta[0, 0] + Theta[0, 1]) / 2 / Theta[2, 2] - 1) / size,
    }


@pytest.mark.parametrize("rule", ["equivalence", "constant"])
def test_plateau_is_what_real_depths_show(rule):
    coarse, fine = (measured("gelu", rule, size) for size in (2e-4, 1e-4))
    found = derive.generalization("gelu", rule).plateau.values | derive.starpolation("gelu", rule).plateau.values
    assert set(found) == set(fine)
    for name, expression in found.items():
        value = float(expression.subs({L: DEPTH, lambda_b: 0.7, lambda_W: 1.3}))
        extrapolated = 2 * fine[name] - coarse[name]
        assert value == pytest.approx(extrapolated, rel=1e-5), name


@pytest.mark.parametrize(
    "question", ["asymptotics gelu V", "generalization gelu", "starpolation gelu", "exponents gelu"]
)
def test_the_plateau_comes_before_the_limit(question):
    shown = CliRunner().invoke(group, question.split(), catch_exceptions=False).output.replace("\n", " ")
    verb, *arguments = question.split()
    written = getattr(derive, verb)(*arguments).latex()
    for text in (shown, written):
        first = text.lower().index("plateau")
        beyond = [text.find(word) for word in ("12.44168", "65.98", "64.98")]  # numbers of the limit
        assert all(place > first for place in beyond if place >= 0) and max(beyond) > 0


def test_others_have_no_plateau():
    assert derive.generalization("tanh").plateau is None and derive.asymptotics("tanh", "V").plateau is None
