"""The two commands: JSON as the interface page has it, tables for people, errors as sentences, cached answers."""

import json
import time

import pytest
import sympy as sp
from click.testing import CliRunner

from derive.cli.asymptotics import command as asymptotics_command
from derive.cli.exponents import command as exponents_command
from derive.errors import DeriveError

TENSORS = ["K", "Theta", "V", "G1", "D", "F", "H1", "A", "B", "P", "Q", "R", "S", "T", "U"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("DERIVE_CACHE_DIR", str(tmp_path))

    def call(command, *arguments):
        result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    return call


def test_exponents_json(run):
    data = json.loads(run(exponents_command, "tanh", "--json"))
    assert {"activation", "class", "p_perp", "tensors", "ratios"} <= set(data)
    assert data["class"] == "K*=0" and data["p_perp"] == {"exact": "1", "value": 1.0}
    assert list(data["tensors"]) == TENSORS
    for entry in data["tensors"].values():
        assert {"exponent", "log_power", "coefficient", "exists"} <= set(entry) and entry["exists"]
    coefficient = sp.sympify(data["tensors"]["R"]["coefficient"]["exact"])
    b, w = sp.symbols("lambda_b lambda_W")
    assert sp.expand(coefficient + (w + 2 * b) ** 2 * (2 * w + 3 * b) / 96) == 0
    assert data["ratios"]["V"]["coefficient"]["exact"] == "2/3"


def test_missing_tensors_json(run):
    data = json.loads(run(exponents_command, "relu", "--json"))
    entry = data["tensors"]["S"]
    assert entry["exists"] is False and "delta function" in entry["reason"] and entry["coefficient"] is None
    assert "S" not in data["ratios"]


def test_numbers_that_are_not_exact_say_so(run):
    data = json.loads(run(exponents_command, "gelu", "--plateau", "--json"))
    entry = data["tensors"]["V"]["coefficient"]
    assert entry["digits"] >= 25 and abs(entry["value"] - 62.208434333603654) < 1e-10


def test_asymptotics_json(run):
    data = json.loads(run(asymptotics_command, "tanh", "V", "--order", "2", "--json"))
    assert {"series", "remainder", "free_constants", "steps"} <= set(data)
    assert data["free_constants"] == ["c_K"] and "ell**(-3)" in data["remainder"]
    assert len(data["steps"]) >= 4 and all({"text", "latex"} <= set(step) for step in data["steps"])
    assert sp.sympify(data["series"]).has(sp.log)


def test_human_output(run):
    shown = run(exponents_command, "tanh")
    assert "p_perp = 1" in shown and "V/(K^2)" in shown
    shown = run(asymptotics_command, "relu", "T")
    assert "does not exist" in shown
    assert "remainder" in run(asymptotics_command, "sin", "K", "--order", "3")


def test_off_criticality(run):
    data = json.loads(run(exponents_command, "tanh", "--C-b", "0", "--C-W", "1/2", "--json"))
    assert data["K_star"] == 0 and data["tensors"]["Theta"]["limit"] == 2.0 and data["tensors"]["K"]["factor"] == 0.5
    assert "0.5^l" in run(exponents_command, "tanh", "--C-b", "0", "--C-W", "1/2")


def test_cached_answer_is_fast(run):
    first = run(exponents_command, "sin", "--json")
    start = time.process_time()
    assert run(exponents_command, "sin", "--json") == first
    assert time.process_time() - start < 1.0


def test_errors_are_user_errors():
    for arguments in (["nothing_such"], ["tanh", "--point", "7"], ["tanh", "--learning-rates", "often"]):
        with pytest.raises(DeriveError):
            exponents_command.main(arguments, standalone_mode=False)
    for command in (exponents_command, asymptotics_command):
        assert "derive " in CliRunner().invoke(command, ["--help"]).output
