"""Certificates of critical points, re-checked by an independent evaluation of signs."""

import re
import subprocess
import sys
from fractions import Fraction

import pytest
import sympy as sp

pytest.importorskip("flint")

from checker import check_point, z

import derive
from derive.activations import BUILTIN, enclosure
from derive.reports.proof import proved

GELU = [z * (1 + sp.erf(z / sp.sqrt(2))) / 2]
SWISH = [z / (1 + sp.exp(-z))]


@pytest.mark.parametrize("name, sigma", [("gelu", GELU), ("swish", SWISH)])
def test_half_stable_points_pass_the_checker(name, sigma):
    found = derive.certify(name, digits=28).to_json()
    assert found["proved"]
    point = next(p for p in found["points"] if p["class"] == "half-stable")
    check_point(sigma, [], point)
    low, high = map(Fraction, point["K_star"])
    assert high - low < low / 10**26
    assert [found["none_between"][0][0], found["none_between"][-1][1]] == ["0", "1000"]
    assert found["none_between"][0][1] == point["K_star"][0]
    assert found["none_between"][1][0] == point["K_star"][1]


def test_gelu_exactly():
    """The zero is (3 + sqrt(17))/2."""
    point = derive.certify("gelu", digits=28).to_json()["points"][0]
    low, high = map(Fraction, point["K_star"])
    exact = Fraction(str(((3 + sp.sqrt(17)) / 2).evalf(50)))
    assert low < exact < high


@pytest.mark.parametrize("name", ("tanh", "relu", "softsign", "sigmoid", "elu", "sin"))
def test_agrees_with_criticality(name):
    found, known = derive.certify(name, digits=25).to_json(), derive.criticality(name).to_json()
    assert found["proved"]
    assert [p["class"] for p in found["points"]] == [p["class"] for p in known["points"]]
    for mine, theirs in zip(found["points"], known["points"]):
        low, high = map(Fraction, mine["C_W"])
        assert low <= Fraction(theirs["C_W"]["exact"]) <= high


def test_reports_have_the_intervals():
    """The "Proved" lines: what was shown, and the ends of K*, C_W, C_b, with (3 + sqrt(17))/2 between the first two."""
    first, second = (line.text for line in proved(derive.activation("gelu")))
    assert first.startswith("Proved: ") and "one zero of <s s''>" in first
    low, high = map(Fraction, re.findall(r"\[([\d.]+), ([\d.]+)\]", second)[0])
    assert low < Fraction(str(((3 + sp.sqrt(17)) / 2).evalf(40))) < high
    assert high - low < low / 10**13
    assert len(re.findall(r"\[", second)) == 3


def test_reports_say_why_nothing_is_proved(monkeypatch):
    monkeypatch.setattr(enclosure, "flint", None)
    (line,) = proved(derive.activation("gelu"))
    assert line.text.startswith("Not proved: Certificates need FLINT")


def test_digits_are_checked():
    with pytest.raises(derive.DeriveError, match="digits"):
        derive.certify("tanh", digits=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILTIN)
def test_every_builtin_is_proved(name):
    assert derive.certify(name).proved


def test_without_flint_all_but_certificates_works():
    """The import is blocked in a process of its own."""
    code = """
import sys
sys.modules["flint"] = None
import derive
print(derive.expect("s0 s0", "tanh", K=1).to_json()["digits"])
print(derive.expect("s0 s1", "softsign", K=["1", "1/2", "1"], digits=6).to_json()["digits"])
for call in (lambda: derive.certify("gelu"), lambda: derive.expect("s0", "tanh", K=1, certify=True)):
    try:
        call()
    except derive.DeriveError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "0.394294490397841" and lines[1].startswith("0.0")
    assert lines[2:] == ["Certificates need FLINT's ball arithmetic: install the package python-flint."] * 2
