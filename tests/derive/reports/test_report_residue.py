"""Every report's TeX comes from objects: nothing that joining strings would leave is in it, nor rounding as a term."""

import pytest
from residue import RESIDUE, residue

import derive
from derive.activations import BUILTIN
from derive.depth import exponents
from derive.reports.build import report
from derive.reports.depth import generalization_section, solution_section, table_section
from derive.reports.document import Document
from derive.reports.markdown import write_markdown


def test_the_reader_sees_what_was_once_printed():
    once = {
        "a name without its backslash": "Theta^{(\\ell)} = 1",
        "SymPy's or Python's text": "K' = K - C_W**2",
        "two signs": "x + -C_W",
        "a factor or an exponent of one": "-1/(1 a_1) + \\ell^{-1/1}",
        "a whole number with a point": "1.0 \\lambda_b",
        "rounding as a term": "4.68 \\cdot 10^{-23} c_{P} \\log^{2} \\ell",
        "a constant over itself": "\\frac{2 c_{K} x}{c_{K}}",
        "a number as the order of a term": "\\left.V^{(\\ell)}\\right|_{130169.25} = \\log \\ell",
    }
    assert set(once) == set(RESIDUE)
    for what, tex in once.items():
        assert any(found.startswith(what) for found in residue(f"${tex}$")), what
    assert residue("$\\frac{c_{K} + 1}{2} \\Theta$ and `a**2`") == []


def depth_sections(name: str) -> str:
    sigma = derive.activation(name)
    table, constant = exponents(sigma), exponents(sigma, learning_rates="constant")
    sections = (table_section(table, constant), solution_section(sigma, 0, table), generalization_section(sigma))
    return write_markdown(Document(name, "", sections), "f/")


@pytest.mark.parametrize("name", ["relu", "z*tanh(z)"])
def test_large_depth_leaves_no_residue(name):
    """z*tanh(z) is half-stable: its numbers are floating-point, and its V once had the logarithm's coefficient for an
    order."""
    assert residue(depth_sections(name)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BUILTIN, "z*tanh(z)", "sin(z)+z**2/3"])
def test_no_report_leaves_residue(name):
    assert residue(write_markdown(report(derive.activation(name)), "f/")) == []
