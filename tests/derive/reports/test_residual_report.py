"""The report of residual layers: its sections, its numbers, the samples it shows."""

import json
from pathlib import Path

import pytest
import sympy as sp

import derive
from derive.activations import activation
from derive.design.residual_depth import residual_exponents
from derive.design.residual_growth import residual_growth
from derive.errors import DeriveError
from derive.reports.build import write_document
from derive.reports.residual import SAMPLES, residual_report
from derive.reports.residual import __file__ as home

DATA = Path(__file__).parents[2] / "data" / "sampled"


@pytest.fixture(scope="module")
def document():
    return residual_report(activation("tanh"), sp.Rational(3, 5), residual_exponents("tanh", sp.Rational(3, 5)))


def test_sections_and_files(document, tmp_path):
    titles = [section.title for section in document.sections]
    assert titles[1:] == ["Criticality", "What closes", "Large depth", "How far tensors alone are off"]
    files = write_document(document, "tanh-residual", tmp_path)
    assert {f.suffix for f in files} >= {".html", ".md", ".tex"}
    text = (tmp_path / "tanh-residual.md").read_text()
    assert "16/25" in text and r"\widehat{V}" in text and "1088" in text


def test_a_skip_of_one_reports_growth(tmp_path):
    found = residual_report(activation("tanh"), sp.Integer(1), residual_growth("tanh", sp.Integer(1)))
    write_document(found, "tanh-residual", tmp_path, ("md",))
    text = (tmp_path / "tanh-residual.md").read_text()
    assert "no critical point" in text and "a finite limit" in text


def test_samples_are_the_stored_ones():
    """The packaged summary against the sampled networks; tensors alone are far off where the functionals are not."""
    shown = json.loads((Path(home).parent / SAMPLES).read_text())
    assert shown
    for row in shown:
        record = json.loads((DATA / f"residual-{row['activation']}-{row['skip']:.1f}-{row['depth']}.json").read_text())
        V = record["tensors"]["V"]
        assert row["sampled"] == V["value"][0][0][0][0] and row["standard_error"] == V["standard_error"][0][0][0][0]
        assert abs(row["functionals"] - row["sampled"]) < 3.5 * row["standard_error"]
        assert abs(row["tensors"] - row["sampled"]) > 3.5 * row["standard_error"]


def test_refusals():
    with pytest.raises(DeriveError, match="--skip belongs to --layer residual"):
        derive.report("tanh", skip=1)
