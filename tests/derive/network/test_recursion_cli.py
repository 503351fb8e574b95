"""`derive recursion` and `derive forward`: the JSON of INTERFACE.md, the human output, errors, and speed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from derive.cli import group
from derive.network import TENSORS

SCRIPT = Path(sys.executable).parent / "derive"


def run(*arguments):
    return CliRunner().invoke(group, list(arguments), catch_exceptions=False)


@pytest.mark.parametrize("name", list(TENSORS))
def test_json(name):
    found = json.loads(run("recursion", name, "--json").output)
    assert {"tensor", "latex", "terms", "depends_on"} <= set(found)
    assert found["tensor"] == name
    assert found["depends_on"][0] == "K"
    assert all(term["latex"] in found["latex"].replace("&- ", "&+ -") for term in found["terms"])


def test_single_input_latex_is_in_the_seeds_notation():
    text = run("recursion", "U", "--single-input", "--equal-widths", "--latex").output
    assert text == (
        "\\begin{align}\n"
        "U^{(\\ell+1)} &= \\left(C_{W}^{(\\ell+1)}\\right)^{2} \\left\\langle \\sigma^{\\prime} \\sigma^{\\prime} "
        "\\sigma^{\\prime\\prime} \\sigma^{\\prime\\prime} \\right\\rangle_{K^{(\\ell)}} "
        "\\left(\\Theta^{(\\ell)}\\right)^{3} \\\\\n&+ \\left(C_{W}^{(\\ell+1)}\\right)^{2} "
        "\\left(\\left\\langle \\sigma^{\\prime} \\sigma^{\\prime} \\right\\rangle_{K^{(\\ell)}}\\right)^{2} "
        "U^{(\\ell)}\n\\end{align}\n"
    )


def test_human_output_names_definition_terms_and_symmetries():
    text = run("recursion", "B", "--layer", "two-matrices").output
    assert "z'_i = b_i + sum_j W_ij sigma(z_j) + sum_j X_ij tau(z_j)" in " ".join(text.split())
    assert "<tau1' tau2' tau3' tau4'>" in text
    assert "B_1324 = " in text


def test_forward_json():
    found = json.loads(run("forward", "ddI", "--json").output)
    assert found["object"] == "ddI"
    assert len(found["terms"]) == 11
    assert found["terms"][0]["objects"]
    text = run("forward", "dH").output
    assert "δ_{i0 i1} lambda_W/n Σ_{j0 j2} W_{i2 j2} σ'(j0;0) σ(j0;1) σ'(j2;2) H(j0 j2;02)" in text
    assert "xi xi H(i1 i2;12)" in run("forward", "H", "--layer", "residual").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recursion", "Z"], "there is no tensor 'Z'"),
        (["forward", "W"], "there is no object 'W'"),
    ],
)
def test_errors_are_one_sentence_with_exit_code_2(arguments, message):
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_shows_an_example():
    for name in ("recursion", "forward"):
        assert "Example: derive " + name in " ".join(run(name, "--help").output.split())


def test_the_whole_set_is_quick_when_cold():
    """Under 60 s of processor time in a fresh process without a cache: it takes about two, imports included."""
    code = (
        "import time; from derive.network import recursions; "
        "[x.expression for x in recursions().values()]; print(time.process_time())"
    )
    environment = os.environ | {"DERIVE_CACHE_DIR": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert float(done.stdout) < 60


def test_cached_answer_does_not_derive_again(tmp_path, monkeypatch):
    monkeypatch.setenv("DERIVE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("derive.cache._edited_meanwhile", lambda: False)  # somebody may be editing while tests run
    first = run("recursion", "A", "--layer", "two-matrices", "--json").output

    def refuse(*_, **__):
        raise AssertionError("derived again")

    import derive

    monkeypatch.setattr(derive, "recursion", refuse)
    monkeypatch.setattr("derive.verbs.equations.recursion", refuse)
    started = time.process_time()
    assert run("recursion", "A", "--layer", "two-matrices", "--json").output == first
    assert time.process_time() - started < 1
