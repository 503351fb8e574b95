"""The README's Python examples are run, its commands exist, its numbers are the stored or derived ones."""

import doctest
import json
import re
from pathlib import Path

import sympy as sp
from sympy.parsing.sympy_parser import implicit_multiplication, parse_expr, standard_transformations

import derive
from derive.cli import COMMANDS

README = Path(__file__).parents[1] / "README.md"


def test_python_examples() -> None:
    result = doctest.testfile(str(README), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0 and result.failed == 0


def test_commands_exist() -> None:
    used = set(re.findall(r"^\s*derive ([a-z][a-z-]*)", README.read_text(), re.MULTILINE))
    assert used and used <= set(COMMANDS)


RESULTS = json.loads(max((README.parent / "bench").glob("results-*.json")).read_text())
ROWS = {row["what"]: row for row in RESULTS["rows"]}


def test_table_of_tanh_is_what_is_derived() -> None:
    """Each entry of the table of tensors, read as a formula, is the leading behaviour that `derive.exponents` gives."""
    names = {"ℓ": "ell", "λ_W": "lambda_W", "λ_b": "lambda_b", "²": "**2", "³": "**3"}
    cells = re.findall(r"\| (K|Θ|V|G1|D|F|H1|A|B|P|Q|R|S|T|U) \| ([^|]+?) (?=\|)", README.read_text())
    table = derive.exponents("tanh").tensors
    assert sorted(name.replace("Θ", "Theta") for name, _ in cells) == sorted(table)
    for name, text in cells:
        for sign, word in names.items():
            text = text.replace(sign, word)
        local = {word: sp.Symbol(word, positive=True) for word in ("ell", "lambda_W", "lambda_b")}
        shown = parse_expr(text, local_dict=local, transformations=(*standard_transformations, implicit_multiplication))
        found = table[name.replace("Θ", "Theta")]
        derived = found.coefficient * sp.Symbol("ell", positive=True) ** (-found.exponent)
        by_name = {s: sp.Symbol(s.name, positive=True) for s in derived.free_symbols}
        assert sp.simplify(shown - derived.xreplace(by_name)) == 0, name


def test_measured_numbers_are_the_stored_ones() -> None:
    """Ratios to the peer and to dgemm, errors, and the number of errata."""
    text = README.read_text()
    found = dict(re.findall(r"(tanh|gelu|erf|relu) (\d+(?:\.\d+)?)(?: times)?", text))
    for name in ("tanh", "gelu", "erf", "relu"):
        ratio = ROWS[f"K, Theta: {name}, N = 1000"]["ratio"]
        assert abs(float(found[name]) / ratio - 1) < 0.05, name
    dgemm = re.search(r"(\d+\.\d+) times its time", text)
    assert dgemm and abs(float(dgemm[1]) / ROWS["all 15: tanh, N = 32, 1 hidden"]["over_dgemm"] - 1) < 0.05
    rows = {name: ROWS[f"K, Theta: {name}, N = 1000"] for name in ("tanh", "relu")}
    claims = {
        r"quadrature is off by (\S+)\)": rows["tanh"]["peer_error"],
        r"NTK diagonal to (\S+) ": rows["relu"]["diagonal_error"],
        r"\(its: (\S+)\)": rows["relu"]["peer_diagonal_error"],
    }
    for pattern, measured in claims.items():
        said = re.search(pattern, text)
        assert said and f"{measured:.0e}".replace("e-0", "e-") == said[1], pattern
    seventh = {"seventh": 7, "tenth": 10, "fifth": 5, "sixth": 6, "eighth": 8, "quarter": 4, "third": 3, "eleventh": 11}
    part = re.search(r"gelu to 1e-12 in an? (\w+) of tanh's", text)
    assert part and round(ROWS["all 15: gelu, N = 32, 1 hidden"]["tanh_over_this"]) == seventh[part[1]]
    errata = re.search(r"(\d+) errata", text)
    assert errata and int(errata[1]) == len(list((README.parent / "docs" / "errata").glob("*.md")))


def test_the_page_on_performance_quotes_what_is_stored() -> None:
    """The table of the benchmark and the fitted exponents."""
    page = (README.parent / "docs" / "performance.md").read_text()
    told = {row.split(" | ")[0].lstrip("| "): row for row in page.splitlines() if row.startswith("| ")}
    growth = json.loads(max((README.parent / "bench").glob("scaling-*.json")).read_text())
    for row in growth:
        cost = ", ".join(f"{x}: {seconds:.2g}" for x, seconds in row["cost"].items())
        assert f"| {cost} | {row['exponent']} |" in told[row["what"]]
    quoted = {
        "K, Θ, 1000 inputs, ten hidden layers, times": [
            ROWS[f"K, Theta: {n}, N = 1000"]["ratio"] for n in ("relu", "erf", "gelu", "tanh")
        ],
        "K, Θ, 10 000 inputs": [ROWS["K, Theta: erf, N = 10000 in blocks"]["over_N_squared"]],
        "swish, softplus, mish": [
            ROWS[f"all 15: {n}, N = 16, 10 hidden"]["over_tanh"] for n in ("swish", "softplus", "mish")
        ],
        "`import numeric`": [ROWS["import numeric"]["over_jax"]],
    }
    tanh = [ROWS[f"all 15: tanh, {size} hidden"] for size in ("N = 32, 1", "N = 16, 10", "N = 8, 10")]
    quoted["all 15, tanh, 1e-8, over dgemm for the flops of version"] = [r["over_dgemm_of_first_plan"] for r in tanh]
    quoted["the same, over dgemm"] = [r["over_dgemm"] for r in tanh]
    for start, measured in quoted.items():
        (row,) = (row for what, row in told.items() if what.startswith(start))
        now = [float(x) for x in re.findall(r"[\d.]+", row.split(" | ")[2])]
        assert len(now) == len(measured) and all(abs(a / b - 1) < 0.02 for a, b in zip(now, measured)), start


def test_recommended_width_is_the_one_that_is_said() -> None:
    said = re.search(r"(\d+) for gelu at depth 8", README.read_text())
    assert said and derive.recommend("gelu", depth=8).width == int(said[1])


def test_notebooks_are_counted() -> None:
    words = {7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}
    count = len(list((README.parent / "notebooks").glob("*.ipynb")))
    assert f"{words[count]} stories" in README.read_text()


def test_links_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
