"""Recommendations at finite depth: against the flow of real numbers of inputs, known closed forms, and bad input."""

import json
import math

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner

import derive
from derive.activations import BUILTIN
from derive.cli import group
from derive.design.one_input import one_input
from derive.design.recommendation import plan, recommend, width_for
from derive.errors import DeriveError

NONE = ("exp", "monomial")


@pytest.mark.parametrize("name", BUILTIN)
def test_all_builtin_activations(name):
    if name in NONE:
        with pytest.raises(DeriveError, match="no critical initialization"):
            recommend(name, 16)
        return
    found = recommend(name, 16)
    answer = found.to_json()
    assert len(answer["lambda_b"]) == len(answer["lambda_W"]) == len(answer["weight_std"]) == 16
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert found.eta_max == pytest.approx(2, rel=1e-9)
    assert max(abs(x) for x in found.corrections.values()) / found.width <= 0.1 + 1e-12
    assert max(abs(x) for x in found.corrections.values()) / (found.width - 1) > 0.1
    settings = (name, 16, float(found.C_b), float(found.C_W), found.input_norm)
    halves = [
        one_input(*settings, lambda_b=b, lambda_W=w, tensors=False).tensors["Theta"][-1]
        for b, w in ((found.lambda_b, 0), (0, found.lambda_W))
    ]
    assert halves == pytest.approx([0.5, 0.5], rel=1e-9)


@pytest.mark.equation("infinity.45")
def test_relu_in_closed_form():
    """K and chi are constant: lambda = 1/(2L) over the share, V/(n K^2) = 5 (L - 1)/n."""
    found = recommend("relu", 8, width=100, outputs=3, input_norm=2.0)
    assert found.C_W == 2 and found.C_b == 0
    assert found.lambda_b == pytest.approx([1 / 16] * 8) and found.lambda_W == pytest.approx([1 / 32] * 8)
    assert found.corrections["V/(n K^2)"] == pytest.approx(35)
    assert found.width == 350
    assert found.aspect_ratio == pytest.approx(4 / (29 * 35 / 8))
    assert found.weight_std == pytest.approx([math.sqrt(2 / 100)] * 8)
    assert found.eta_max == pytest.approx(2)


@pytest.mark.equation("infinity.169")
@pytest.mark.equation("infinity.170")
def test_corrections_grow_to_the_large_depth_ones():
    """(∞.34)-(∞.37) of tanh: in units of L/n they come near as log(L)/L, with y^2 = K doubling the last four."""
    deep = plan("tanh", 500)[1]
    printed = {"V/(n K^2)": 2 / 3, "S (K + y^2)/(n Theta^3)": 2 / 24, "T (K + y^2)/(n Theta^3)": 2 / 32 / 4}
    for name, value in printed.items():  # equal shares: lambda_W/2 = lambda_b at large depth
        assert deep[name] / 500 == pytest.approx(value, rel=0.05), name


@pytest.mark.parametrize(("name", "missing"), [("gelu", 0), ("relu", 4)])
def test_targets(name, missing):
    """PDLT, footnote 26 of chapter ∞: K + y^2 takes the place of K where the ddNTKs meet the targets."""
    small, large = (recommend(name, 4, targets=y).corrections for y in (1e-12, 3.0))
    K = recommend(name, 4).output_variance
    changed = [key for key in small if key.startswith(("R ", "S ", "T ", "U "))]
    assert len(changed) == 4 - missing
    for key in small:
        factor = (K + 3) / K if key in changed else 1
        assert large[key] == pytest.approx(factor * small[key], rel=1e-9)
    assert recommend(name, 4).target_scale == pytest.approx(math.sqrt(K))


def test_half_stable_inputs_are_put_at_the_fixed_point():
    found = recommend("gelu", 8)
    point = derive.activation("gelu").criticality().points[0]
    assert float(found.C_b) + float(found.C_W) * found.input_norm == pytest.approx(float(point.K_star), rel=1e-12)
    assert np.allclose(found.kernel, float(point.K_star), rtol=1e-9)
    assert recommend("gelu", 8, input_norm=1.0).kernel[0] == pytest.approx(float(found.C_b + found.C_W))


@pytest.mark.parametrize("name", ["sigmoid", "softplus"])
def test_without_a_critical_point(name):
    found = recommend(name, 6)
    assert not found.critical and any("no critical point" in note for note in found.notes)
    flow = one_input(name, 6, 0, float(found.C_W), 1.0, tensors=False)
    assert math.prod(flow.multipliers) == pytest.approx(1, rel=1e-8)


def test_family_between_ntk_and_maximal_update():
    plain, between = recommend("tanh", 4, width=64), recommend("tanh", 4, width=64, s=0.5)
    assert between.output_multiplier == pytest.approx(64**-0.25)
    assert between.lambda_W == pytest.approx([8 * rate for rate in plain.lambda_W])
    # the output's NTK is multiplied by the square of the multiplier and by the learning rates
    assert between.output_multiplier**2 * between.lambda_b[0] == pytest.approx(plain.lambda_b[0])


def test_targets_count_more_between_the_parametrizations():
    """R ... U meet the targets n^s times as often, relative to the outputs: K + n^s y^2 for K + y^2."""
    plain, between = (recommend("tanh", 4, width=64, targets=0.7, s=s) for s in (0.0, 0.5))
    K = plain.output_variance
    for key, value in plain.corrections.items():
        factor = (K + 8 * 0.7) / (K + 0.7) if key.startswith(("R ", "S ", "T ", "U ")) else 1
        assert between.corrections[key] == pytest.approx(factor * value, rel=1e-12), key
    assert between.width == plain.width and any("NTK parametrization" in note for note in between.notes)


def test_data_set_bound(tmp_path):
    from numeric import flow

    X = np.random.default_rng(0).normal(size=(5, 3))
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in X.tolist()) + "\n")
    found = derive.recommend("tanh", 3, data=path)
    scaled = X / np.sqrt((X**2).mean(axis=1, keepdims=True))
    f = flow("tanh", scaled, 3, 1, 0.0, 1.0, found.lambda_b, found.lambda_W, tensors="Theta")
    assert found.eta_max == pytest.approx(2 / np.linalg.eigvalsh(np.asarray(f.Theta))[-1], rel=1e-9)
    assert found.eta_max < 2
    arguments = ["recommend", "tanh", "--depth", "3", "--data", str(path), "--format", "torch"]
    code = CliRunner().invoke(group, arguments, catch_exceptions=False).output
    assert f"ETA = {found.eta_max / 2!r}" in code and "--data FILE" in code
    assert str(path) not in code  # a file's name is not written into source


def mean(f, K):
    """<f> over N(0, K), by a sum."""
    x = np.arange(-9000, 9001) * 1e-3
    w = np.exp(-(x**2) / 2) * 1e-3 / np.sqrt(2 * np.pi)
    return float(w @ f(np.sqrt(K) * x))


@pytest.mark.parametrize(("skip", "branch"), [("3/5", 16 / 25), (1, 1 / 6)])
def test_residual_layers(skip, branch):
    """K and Theta by hand, one layer after another: the output's NTK is 1, half of it by biases, layers equal."""
    L, xi = 6, float(sp.Rational(skip))
    found = recommend("tanh", L, width=50, inputs=9, skip=sp.Rational(skip))
    assert found.C_W_layers == pytest.approx([1, *[branch] * (L - 2), 1]) and found.critical == (xi < 1)
    assert found.weight_std[:2] == pytest.approx([1 / 3, math.sqrt(branch / 50)])
    steps = [xi] * (L - 2) + [0.0]
    for on in [*range(2 * L), None]:
        rates = [
            [r if on in (None, 2 * l + kind) else 0.0 for l, r in enumerate(own)]
            for kind, own in enumerate((found.lambda_b, found.lambda_W))
        ]
        K, Theta = 1.0, rates[0][0] + rates[1][0]
        for l, step in enumerate(steps, start=1):
            C_W = found.C_W_layers[l]
            square, slope = mean(lambda z: np.tanh(z) ** 2, K), mean(lambda z: np.cosh(z) ** -4.0, K)
            K, Theta = step**2 * K + C_W * square, (step**2 + C_W * slope) * Theta + rates[0][l] + rates[1][l] * square
        assert Theta == pytest.approx(1 if on is None else 1 / (2 * L), rel=1e-7)
    assert found.kernel[-1] == pytest.approx(K, rel=1e-7)


@pytest.mark.slow
def test_residual_corrections_are_those_of_the_flow():
    from numeric import flow

    found = derive.recommend("gelu", 4, layer="residual", skip=0.8)
    x = np.sqrt(found.input_norm) * np.ones((1, 3))
    settings = (found.C_b_layers, found.C_W_layers, found.lambda_b, found.lambda_W)
    f = flow("gelu", x, 4, 100, *settings, skip=0.8)
    assert found.corrections["V/(n K^2)"] == pytest.approx(float(f.V.ravel()[0] / f.K.ravel()[0] ** 2), rel=1e-6)
    assert max(abs(v) for v in found.corrections.values()) / found.width <= 0.1
    # a skip counts a layer as 1 - skip^2 of a plain one: fluctuations grow more slowly
    assert found.corrections["V/(n K^2)"] < recommend("gelu", 4).corrections["V/(n K^2)"]


@pytest.mark.parametrize("name", ["softplus", "gelu"])
def test_residual_layers_of_other_classes(name):
    found = recommend(name, 5, skip=sp.Rational(4, 5))
    if name == "gelu":
        point = derive.criticality("gelu", layer="residual", skip="4/5").points[0]
        assert float(found.C_W) == pytest.approx(float(point.C_W)) and float(found.C_b) == pytest.approx(
            float(point.C_b)
        )
        assert np.allclose(found.kernel, float(point.K_star), rtol=1e-9)
    else:
        flow = one_input(name, 5, 0, list(found.C_W_layers), 1.0, tensors=False, skip=0.8)
        assert math.prod(flow.multipliers) == pytest.approx(1, rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tanh", "--depth", "0"], "the depth is the number of weight layers"),
        (["tanh", "--depth", "4", "--width", "-3"], "the width is the number of neurons"),
        (["tanh", "--depth", "4", "--outputs", "0"], "output neurons"),
        (["tanh", "--depth", "4", "--skip", "1"], "--skip belongs to --layer residual"),
        (["tanh", "--depth", "4", "--layer", "residual"], "needs --skip"),
        (["tanh", "--depth", "4", "--layer", "residual", "--skip", "2"], "skips from -1 to 1"),
        (["z^2", "--depth", "4"], "no critical initialization"),
        (["sign(z)", "--depth", "4"], "no critical initialization"),
        (["tanh", "--depth", "4", "--format", "theano"], "torch, flax, equinox, keras, json"),
        (["tanh", "--depth", "4", "--input-norm", "nan"], "positive number"),
        (["tanh", "--depth", "4", "--s", "2"], "between 0"),
        (["tanh", "--depth", "4", "--point", "3"], "there is no 3"),
        (["tanh", "--depth", "1000000"], "at most 100000"),
    ],
)
def test_bad_questions(arguments, sentence):
    with pytest.raises(DeriveError, match=sentence) as caught:
        CliRunner().invoke(group, ["recommend", *arguments], catch_exceptions=False, standalone_mode=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("skip", "critical"), [("4/5", True), ("1", False)])
def test_the_command_for_residual_layers(skip, critical):
    """What the command prints is JSON: no number or truth value of SymPy's."""
    arguments = ["recommend", "tanh", "--depth", "4", "--layer", "residual", "--skip", skip, "--json"]
    found = CliRunner().invoke(group, arguments, catch_exceptions=False, standalone_mode=False)
    assert json.loads(found.output)["critical"] is critical


def test_what_people_see():
    found = CliRunner().invoke(group, ["recommend", "gelu", "--depth", "20", "--width", "64"], catch_exceptions=False)
    for text in ("C_W = 1.98", "width for 10 %", "lambda_W", "not wide enough", "V/(n K^2)", "mutual information"):
        assert text in found.output.replace("\n", " "), text


def test_one_layer():
    found = recommend("gelu", 1)
    assert found.aspect_ratio is None and found.width == 1
    assert width_for({}) == 1
