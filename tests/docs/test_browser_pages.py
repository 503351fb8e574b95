"""Reports and docs pages in headless Chromium without network: no error, no raw TeX, nothing wider than its place."""

from pathlib import Path

import pytest
from browser_checks import WIDTHS, chromium, complaints

import derive
from derive.activations.builtin import BUILTIN
from derive.reports.build import comparison, report, write_document
from derive.reports.document import Document, Equation, Section

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.mark.parametrize("width", WIDTHS)
def test_report_of_an_own_formula(browser, tmp_path_factory, width):
    folder = tmp_path_factory.getbasetemp() / "own-report"
    page = folder / "own.html"
    if not page.exists():
        write_document(report(derive.activation("sin(z)+z**2/3")), "own", folder, ["html"])
    assert complaints(browser, page, width) == []


def test_comparison_on_a_phone_in_the_dark(browser, tmp_path):
    document = comparison([derive.activation(name) for name in ("tanh", "relu", "softplus", "linear")])
    page = write_document(document, "comparison", tmp_path, ["html"])[0]
    assert complaints(browser, page, 390, "dark") == []


def test_the_checks_see_what_is_wrong(browser, tmp_path):
    """A page with raw TeX, a TeX error, a request to the network and a box that is too wide."""
    bad = Document("bad", "", (Section("x", (Equation(r"\undefinedmacro{x}"),)),))
    page = write_document(bad, "bad", tmp_path, ["html"])[0]
    text = page.read_text(encoding="utf-8").replace(
        "</body>",
        r"<p>a \frac{1}{2} that nobody rendered</p><img src='http://example.com/x.png'>"
        "<div style='width: 100px'><div style='width: 300px; height: 1px'></div></div></body>",
    )
    page.write_text(text, encoding="utf-8")
    found = " ".join(complaints(browser, page, 1280))
    for what in ("raw TeX: a \\frac", "error in TeX", "network: http://example.com", "too wide: <div"):
        assert what in found


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BUILTIN, "where(z<1,z,1)", "z*tanh(z)"])
def test_every_report(browser, tmp_path, name):
    page = write_document(report(derive.activation(name)), "report", tmp_path, ["html"])[0]
    assert {width: complaints(browser, page, width) for width in WIDTHS} == {width: [] for width in WIDTHS}


@pytest.mark.slow
def test_every_page_of_the_site(browser):
    pages = sorted(SITE.rglob("*.html"))
    assert len(pages) > 30, "the site is not built: run `make docs`"
    wrong = {f"{p.relative_to(SITE)} at {w}": complaints(browser, p, w) for p in pages for w in WIDTHS}
    assert {where: what for where, what in wrong.items() if what} == {}
