"""The equation ledger: complete, honest about what has no test, and collected rather than typed."""

import importlib.util
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("ledger", DOCS / "ledger.py")
ledger = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ledger)
_MARKER = re.compile(r"mark\.equation\(\"([\w.]+)\"\)")
_MARKERS, _QUOTED = re.compile(r"mark\.equation\(([^)]*)\)"), re.compile(r'"([\w.]+)"')
PLAIN = ("10.10", "review.7", "review.92")
"""Results without a test whose reason is one of their own: an identity inside a proof, no data, open constants."""
EQUATIONS = tomllib.loads((DOCS / "equations.toml").read_text(encoding="utf-8"))["equation"]


def test_every_number_of_the_sources_is_there_once():
    numbers = Counter(e["number"] for e in EQUATIONS)
    wanted = {f"10.{n}" for n in range(1, 142)} | {f"infinity.{n}" for n in range(1, 182)}
    wanted |= {f"review.{n}" for n in range(1, 165)}
    assert set(numbers) == wanted and set(numbers.values()) == {1}
    assert {e["kind"] for e in EQUATIONS} <= {"definition", "step", "result"}
    assert all(e["what"] for e in EQUATIONS)


def test_numbers_are_read_from_prose():
    found = ledger.numbers_in("PDLT's (10.74), (∞.29) and (infinity.141)-(infinity.143); 10.5 of something")
    assert {"10.74", "infinity.29", "infinity.141", "infinity.142", "infinity.143"} <= found


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    target = tmp_path_factory.mktemp("ledger") / "ledger.md"
    return ledger.write_ledger(target), target.read_text(encoding="utf-8")


def test_marked_numbers_exist_and_counts_add_up(page):
    counts, text = page  # write_ledger refuses markers whose number the chapters do not have
    rows = [line for line in text.splitlines() if line.startswith("| (")]
    assert len(rows) == counts["equations"] == 486
    assert counts["with tests"] == sum("test_" in row for row in rows)
    assert sum("| no test: " in row for row in rows) == 486 - counts["with tests"]
    assert f"{counts['with tests']} have a test of their own" in text


def test_markers_in_the_source_text_are_all_collected(page):
    """A second reading of the tests, by pattern instead of by pytest."""
    tests = DOCS.parent / "tests"
    marked = {n for path in tests.rglob("test_*.py") for n in _MARKER.findall(path.read_text(encoding="utf-8"))}
    rows = {
        line.split("|")[1].strip(" ()").replace("∞", "infinity"): line
        for line in page[1].splitlines()[6:]
        if "|" in line
    }
    assert len(marked) > 50
    assert [number for number in sorted(marked) if "test_" not in rows[number]] == []


def test_an_equation_without_a_test_says_why():
    """Either a marked test or a reason, never both; what a reason points to has a test, so that no chain is empty."""
    tests = DOCS.parent / "tests"
    texts = [path.read_text(encoding="utf-8") for path in tests.rglob("test_*.py")]
    marked = {number for text in texts for group in _MARKERS.findall(text) for number in _QUOTED.findall(group)}
    for e in EQUATIONS:
        reason = e.get("reason", "")
        assert (e["number"] in marked) != bool(reason), e["number"]
        named = ledger.numbers_in(reason)
        assert named <= marked, (e["number"], sorted(named - marked))
        if reason and e["kind"] != "definition":
            assert named or reason.startswith(("an assumption", "names", "an example")), e["number"]
    results = [e for e in EQUATIONS if e["kind"] == "result" and "reason" in e]
    assert len(results) <= 11 and all(
        "bound" in e["reason"] or "order" in e["reason"] or e["number"] in PLAIN for e in results
    )


def test_errata_say_what_is_printed_and_how_to_see_it():
    pages = sorted((DOCS / "errata").glob("*.md"))
    assert pages
    for page_file in pages:
        text = page_file.read_text(encoding="utf-8")
        assert text.startswith("# "), page_file.name
        assert "`" in text and ("pytest" in text or "derive " in text or "python" in text), page_file.name
