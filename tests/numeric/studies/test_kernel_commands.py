"""`derive learnability` and `derive ntk-study` as a user runs them."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import derive
from derive.cli import group
from derive.errors import DeriveError
from numeric.spectra.eigensystem import hypercube
from numeric.spectra.network import network_kernel


def invoke(*arguments):
    result = CliRunner().invoke(group, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def relu_ntk(cosine):
    """Two layers, C_b = 0.1, C_W = 2, unit learning rates, by the arc-cosine formulas."""
    K = 0.1 + 2.0
    rho = (0.1 + 2 * cosine) / K
    angle = np.arccos(np.clip(rho, -1, 1))
    slopes, values = (np.pi - angle) / (2 * np.pi), K * (np.sin(angle) + (np.pi - angle) * rho) / (2 * np.pi)
    return 1 + values + 2 * slopes * (1 + cosine)


def test_kernel_of_a_network():
    cosines = np.linspace(-1, 1, 37)
    found = network_kernel("relu", 2, C_b=0.1, C_W=2.0, lambda_b=1.0, lambda_W=1.0)(cosines)
    np.testing.assert_allclose(found, relu_ntk(cosines), atol=1e-12)
    K = network_kernel("erf(z)", 2, "K", C_W=1.0)(cosines)  # (2/pi) asin(2 K_12 / (1 + 2 K_11))
    np.testing.assert_allclose(K, 2 / np.pi * np.arcsin(2 * cosines / 3), atol=1e-12)


def test_learnability_on_the_hypercube(tmp_path):
    options = ["--depth", "2", "--dimension", "5", "--samples", "4,12", "--trials", "60", "--json"]
    options += ["--lambda-b", "1", "--lambda-W", "1"]
    found = json.loads(invoke("learnability", "relu", *options, "-o", tmp_path))
    assert found["C_W"] == 2.0
    space = hypercube(relu_ntk, 5)
    assert np.allclose([l["eigenvalue"] for l in found["levels"]], space.eigenvalues[[0, 1, 6, 16, 26, 31]], rtol=1e-9)
    for k, n in enumerate(found["samples"]):
        assert sum(l["multiplicity"] * l["learnability"][k] for l in found["levels"]) == pytest.approx(n, abs=1e-10)
        for level in found["levels"]:
            assert abs(level["learnability"][k] - level["measured"][k]) < 4 * level["measured_error"][k] + 0.03
    with open(found["files"]["csv"], newline="") as file:
        assert len(list(csv.DictReader(file))) == 12
    with open(found["files"]["figure"], "rb") as file:
        assert file.read(4) == b"\x89PNG"


def test_learnability_on_the_sphere_is_exact_where_it_can_be():
    """A two-layer relu without bias variance: pi and rationals, equal to the quadrature."""
    import sympy as sp

    options = [
        "--space",
        "sphere",
        "--dimension",
        "4",
        "--depth",
        "2",
        "--C-b",
        "0",
        "--degree",
        "3",
        "--samples",
        "20",
        "--json",
    ]
    found = json.loads(invoke("learnability", "relu", *options))
    for level in found["levels"]:
        assert float(sp.sympify(level["exact"])) == pytest.approx(level["eigenvalue"], abs=1e-13)
    # 104/(225 pi^2) with unit learning rates; the default ones make the NTK's diagonal, 4, equal to 1
    assert found["levels"][2]["exact"] == "26/(225*pi**2)"


def test_learnability_for_people_and_mistakes():
    text = invoke("learnability", "relu", "--depth", 2, "--space", "circle", "--dimension", 12, "--samples", "3")
    assert "sum over modes: 3" in text
    for arguments, words in (
        (["--samples", "many"], "whole numbers"),
        (["--space", "sphere", "--trials", "3"], "discrete space"),
        (["--dimension", "4000"], "dimension from 1 to 1000"),
        (["--dimension", "40", "--trials", "3"], "up to 12 dimensions"),
        (["--depth", "2", "--C-b", "0", "--lambda-b", "0", "--samples", "200"], "nonzero modes"),
    ):
        with pytest.raises(DeriveError, match=words):
            CliRunner().invoke(group, ["learnability", "relu", *arguments], catch_exceptions=False)


def test_study_command_writes_data_and_goes_on(tmp_path):
    arguments = ["ntk-study", "tanh", "--widths", "4,8", "--networks", 3, "--steps", 10, "--depth", 2, "-o", tmp_path]
    found = json.loads(invoke(*arguments, "--json"))
    assert set(found["quantities"]) == {"f_gap", "ntk_gap", "parameter_change", "trace_change"}
    with open(found["files"]["csv"], newline="") as file:
        first = list(csv.DictReader(file))
    assert len(first) == 6
    arguments[5] = 4
    text = invoke(*arguments)
    assert "power" in text and "expected" in text
    with open(found["files"]["csv"], newline="") as file:
        second = list(csv.DictReader(file))
    assert len(second) == 8
    assert [row for row in second if int(row["network"]) < 3] == first  # the old rows were kept, not trained again
    with pytest.raises(DeriveError, match="whole numbers"):
        CliRunner().invoke(group, ["ntk-study", "tanh", "--widths", "a,b"], catch_exceptions=False)


def test_learnability_says_where_its_assumption_fails():
    """On a small circle the predicted test errors are off by factors; the command measures and says so, unasked."""
    options = ["--depth", "4", "--space", "circle", "--dimension", "32", "--samples", "16"]
    found = json.loads(invoke("learnability", "tanh", *options, "--json"))
    assert "random rotation" in found["assumption"]
    assert any("test error of degree 6" in warning for warning in found["warnings"])
    text = invoke("learnability", "tanh", *options)
    assert "It fails here" in text and "± " in text


def test_learnability_of_a_target_with_noise_and_in_many_dimensions(tmp_path):
    """The target's error beside its measurement; d = 16 against regression on sampled corners."""
    found = derive.learnability("relu", 2, 6, samples="8,24", noise=0.2, target="0.5,1,0.5", trials=200)
    for theory, seen, error in zip(found.target_mse, found.target_measured, found.target_measured_error):
        assert abs(theory - seen) < 4 * error + 0.05 * seen
    large = derive.learnability("relu", 2, 16, samples="60", target=[0, 1], noise=0.1, output=tmp_path)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".png"]
    kernel = network_kernel("relu", 2, C_b=0.1, C_W=large.C_W)
    rng, errors = np.random.default_rng(0), []
    for _ in range(20):
        X, T = rng.choice([-1.0, 1.0], size=(60, 16)), rng.choice([-1.0, 1.0], size=(200, 16))
        y, truth = X.sum(axis=1) / 4 + np.sqrt(0.1) * rng.normal(size=60), T.sum(axis=1) / 4
        fit = kernel(T @ X.T / 16) @ np.linalg.solve(kernel(X @ X.T / 16), y)
        errors.append(np.mean((fit - truth) ** 2))
    assert large.target_mse[0] == pytest.approx(np.mean(errors), abs=4 * np.std(errors) / 20**0.5)
    for wrong in ({"target": "1,-1"}, {"target": "0"}, {"noise": -1.0}, {"target": "1," * 20 + "1"}):
        with pytest.raises(derive.DeriveError):
            derive.learnability("relu", 2, 3, samples="2", **wrong)
