"""The equation ledger: the numbered equations of PDLT's chapters 10 and infinity and of a review of the NTK's papers.

Where they live and what checks them. `review.33` is equation (33) of B. McKinzie's review of Lee et al. (2019) and
Simon et al. (2021). What an equation is (definition, step, result), and why it has no test of its own, is a reading of
the source and stands in equations.toml; where the product has it is collected from the numbers that modules name in
their docstrings and comments; the tests are collected from their `equation` markers. Run alone, it prints the counts.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent

_NUMBER = re.compile(r"(infinity|∞|10|review)\.(\d+)")
_RANGE = re.compile(r"\(?(infinity|∞|10|review)\.(\d+)\)?\s*(?:-|–|to|\.\.\.)\s*\(?(?:(?:infinity|∞|10|review)\.)(\d+)")

_ESCAPES = str.maketrans({c: "\\" + c for c in "*_<>|[]'\""})

_COLLECTOR = """
import pytest, sys, json
class Collector:
    def __init__(self): self.found = {}
    def pytest_collection_modifyitems(self, items):
        for item in items:
            for marker in item.iter_markers("equation"):
                for number in marker.args:
                    self.found.setdefault(number, set()).add(item.nodeid.split("[")[0])
collector = Collector()
code = pytest.main(["--collect-only", "-qq", "-n", "0", "tests"], plugins=[collector])
print("\\nLEDGER " + json.dumps({k: sorted(v) for k, v in collector.found.items()}))
sys.exit(code)
"""


def tests_by_equation() -> dict[str, list[str]]:
    """Equation number -> node ids of the tests that carry its marker, by pytest's own collection."""
    import json

    run = subprocess.run([sys.executable, "-c", _COLLECTOR], cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"the tests could not be collected:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    line = next(line for line in reversed(run.stdout.splitlines()) if line.startswith("LEDGER "))
    return json.loads(line.removeprefix("LEDGER "))


def numbers_in(text: str) -> set[str]:
    """All equation numbers a text names, ranges included.

    >>> sorted(numbers_in("implements (10.39) and (infinity.14)-(infinity.16)"))
    ['10.39', 'infinity.14', 'infinity.15', 'infinity.16']
    """
    found = set()
    for chapter, first, last in _RANGE.findall(text):
        prefix = _chapter(chapter)
        found |= {f"{prefix}.{n}" for n in range(int(first), int(last) + 1)}
    for chapter, number in _NUMBER.findall(text):
        found.add(f"{_chapter(chapter)}.{number}")
    return found


def _chapter(text: str) -> str:
    return text if text in ("10", "review") else "infinity"


def modules_by_equation() -> dict[str, list[str]]:
    """Equation number -> modules of the product that name it."""
    where: dict[str, list[str]] = {}
    for package in ("derive", "numeric"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for number in numbers_in(path.read_text(encoding="utf-8")):
                where.setdefault(number, []).append(str(path.relative_to(ROOT)))
    return where


def write_ledger(target: Path) -> dict[str, int]:
    """Write the ledger page and return its counts."""
    equations = tomllib.loads((HERE / "equations.toml").read_text(encoding="utf-8"))["equation"]
    known = {e["number"] for e in equations}
    tests, modules = tests_by_equation(), modules_by_equation()
    if unknown := sorted(set(tests) - known):
        raise RuntimeError(f"tests mark equations that the sources do not have: {', '.join(unknown)}")
    rows, counts = [], {"equations": len(equations), "with tests": 0, "with a home in the product": 0}
    results = {"result": 0, "result tested": 0}
    for e in equations:
        number = e["number"]
        own_tests, homes = tests.get(number, []), modules.get(number, [])
        counts["with tests"] += bool(own_tests)
        counts["with a home in the product"] += bool(homes)
        if e["kind"] == "result":
            results["result"] += 1
            results["result tested"] += bool(own_tests)
        shown = number.replace("infinity", "∞")
        reason = e.get("reason", "").translate(_ESCAPES).replace("infinity", "∞")
        test_cell = "<br>".join(f"`{t.split('/')[-1]}`" for t in own_tests) or f"no test: {reason}"
        home_cell = "<br>".join(f"`{h}`" for h in homes) or "—"
        rows.append(f"| ({shown}) | {e['kind']} | {e['what'].translate(_ESCAPES)} | {home_cell} | {test_cell} |")
    head = (
        "# The equation ledger\n\nEvery numbered equation of PDLT's chapters 10 and ∞ and, as (review.N), of "
        "B. McKinzie's review of Lee et al. (2019) and Simon et al. (2021). Tests are collected from their markers, "
        "places from what the modules name.\n\n"
        f"{counts['equations']} equations; {counts['with tests']} have a test of their own, "
        f"{counts['with a home in the product']} are named in the product's source; of {results['result']} results "
        f"{results['result tested']} have a test.\n\n"
        ":::{container} ledger\n\n"
        "| equation | kind | what | where | tests |\n| --- | --- | --- | --- | --- |\n"
    )
    target.write_text(head + "\n".join(rows) + "\n\n:::\n", encoding="utf-8")
    return counts | results


if __name__ == "__main__":
    target = HERE / "_collected" / "ledger.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    for name, count in write_ledger(target).items():
        print(f"{name}: {count}")
