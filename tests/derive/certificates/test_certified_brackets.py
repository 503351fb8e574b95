"""Certified brackets contain 40-digit values that were made without balls; a changed digit lies outside."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
import sympy as sp

pytest.importorskip("flint")

from click.testing import CliRunner

import derive
from derive.certificates import bracket_ball, decimals
from derive.certificates.outward import ends
from derive.cli import group
from derive.errors import DeriveError
from derive.gaussian import parse_bracket

DATA = Path(__file__).parents[2] / "data"
SINGLES = json.loads((DATA / "certificates" / "singles.json").read_text())
PAIRS = json.loads((DATA / "certificates" / "pairs.json").read_text())


def matrix(entries):
    a, c, b = (sp.Rational(x) for x in entries)
    return sp.Matrix([[a, c], [c, b]])


def check(row, digits):
    K = sp.Rational(row["K"]) if isinstance(row["K"], str) else matrix(row["K"])
    ball = bracket_ball(parse_bracket(row["pattern"]), row["activation"], K, digits, closed_forms=False)
    low, high = ends(ball)
    value = Fraction(row["value"])
    slack = abs(value) / 10**39 + Fraction(1, 10**43)  # the reference is rounded to 40 digits
    assert low - slack <= value <= high + slack, row
    if abs(value) > Fraction(1, 10**8):
        assert high - low <= abs(value) * Fraction(10) ** -(digits - 1), row
        changed = value + abs(value) * Fraction(3) / 10**digits
        assert not low <= changed <= high, row


@pytest.mark.parametrize("row", SINGLES[::41], ids=lambda r: f"{r['pattern']} {r['activation']}")
def test_single_brackets(row):
    check(row, 30)


@pytest.mark.parametrize("row", PAIRS[::197], ids=lambda r: f"{r['pattern']} {r['activation']}")
def test_pair_brackets(row):
    check(row, 14)


@pytest.mark.slow
def test_all_single_brackets():
    for row in SINGLES:
        check(row, 36)


@pytest.mark.slow
def test_all_pair_brackets():
    for row in PAIRS:
        check(row, 18)


@pytest.mark.parametrize("pattern, K", [("s0'' s1''", (1, "1/2", 2)), ("s0'' s1", (1, "-1/3", 2))])
def test_deltas_of_two_labels(pattern, K):
    """relu'' is a delta function: <delta delta> = exp(0)/(2 pi sqrt(det K)), <delta_0 sigma_1> is a half moment."""
    ball = bracket_ball(parse_bracket(pattern), "relu", matrix(K), 20, closed_forms=False)
    a, c, b = (sp.Rational(x) for x in K)
    determinant = a * b - c**2
    expected = 1 / (2 * sp.pi * sp.sqrt(determinant))
    if pattern.endswith("s1"):
        expected = sp.sqrt(determinant / a) / (2 * sp.pi * sp.sqrt(a))
    low, high = ends(ball)
    assert low <= Fraction(str(expected.evalf(45))) <= high


def test_cancellation_widens_and_never_lies():
    """(10^20 + tanh) minus 10^20: many digits cancel, the ball still holds the value of tanh."""
    ball = bracket_ball(parse_bracket("s0 s0"), "(tanh(z)+10^20)-10^20+0*z", 1, 12)
    assert ends(ball)[0] <= Fraction("0.394294490397841174416459772444120") <= ends(ball)[1]
    steep = bracket_ball(parse_bracket("s0"), "exp(z)-sinh(z)-cosh(z)+z^2", 1, 12)
    low, high = ends(steep)
    assert low <= 1 <= high


def test_outward_rounding():
    import flint

    third = flint.arb(1) / 3
    low, high = decimals(third)
    assert Fraction(low) <= ends(third)[0] < ends(third)[1] <= Fraction(high)


def test_what_is_too_dear_is_refused_with_its_cost():
    five = sp.Matrix(5, 5, lambda i, j: 1 if i == j else sp.S.Half)
    with pytest.raises(DeriveError, match=r"5 correlated labels .* would take days"):
        bracket_ball(parse_bracket("s0 s1 s2 s3 s4"), "swish", five, 12)
    near = sp.Matrix(3, 3, lambda i, j: 1 if i == j else 1 - sp.Rational(1, 10**6 + i + j))
    with pytest.raises(DeriveError, match=r"would take about .* (minutes|hours)"):
        bracket_ball(parse_bracket("s0 s1 s2"), "softsign", near, 12)


def test_command_and_function_agree():
    found = derive.expect("s0 s1", "tanh", K=["1.467", "-0.8", "0.922"], certify=True).to_json()
    low, high = map(Fraction, found["ball"])
    assert low <= Fraction(found["digits"]) * (1 + Fraction(1, 10**14)) or low <= Fraction(found["digits"])
    assert high - low < Fraction(1, 10**14)
    run = CliRunner().invoke(group, ["expect", "s0 s1", "tanh", "--K", "1.467", "-0.8", "0.922", "--certify", "--json"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["ball"] == found["ball"]
