"""One verb, three faces: every command is a function of the package with the same name, arguments and answer.

A new command needs one line in EXAMPLES; everything else is checked from it.
"""

from __future__ import annotations

import inspect
import json
import pickle
import re
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import derive
from derive.cli import COMMANDS, group
from derive.results import Result, TableResult

EXAMPLES = {
    "activations": [],
    "certify": ["relu"],
    "criticality": ["tanh"],
    "expect": ["s0 s0''", "tanh", "--K", "1"],
    "forward": ["dH"],
    "recursion": ["D", "--single-input"],
    "exponents": ["relu"],
    "asymptotics": ["relu", "A"],
    "recommend": ["relu", "--depth", "4", "--outputs", "2"],
    "generate": ["linear", "-o", "linear_theory.py"],
    "predict": ["data.csv", "--test", "test.csv", "--target", "y", "--infinite", "--activation", "erf"],
    "kernel": ["data.csv", "--target", "y", "--test", "test.csv", "--activation", "erf", "--ridge", "0.1"],
    "projectors": ["--eta", "0.3", "--eigenvalues", "0.5,1"],
    "generalization": ["relu"],
    "starpolation": ["relu"],
    "depth-study": ["data.csv", "--test", "test.csv", "--target", "y", "--activations", "relu", "--depths", "2,3"],
    "explore": ["linear", "--static", "explorer.html"],
    "report": ["linear", "-o", "reports"],
    "scale-study": [
        "linear",
        "--widths",
        "4,8",
        "--networks",
        "2",
        "--steps",
        "2",
        "--powers",
        "-1,0",
        "--s",
        "1",
        "--depth",
        "2",
        "-o",
        "study",
    ],
    "ntk-study": ["linear", "--widths", "4,8", "--networks", "2", "--steps", "5", "-o", "study"],
    "learnability": ["relu", "--depth", "2", "--dimension", "3", "--samples", "2,4", "--C-b", "0"],
}
LONG = {"explore", "report", "scale-study", "ntk-study"}
"""Their answers are compared by `make verify`."""
FORMS = {"as_json", "latex", "form"}
"""Options that choose how the answer is printed; they are no arguments of the verb."""
PARSED = {("expect", "more")}
"""What click needs to read `--K 1 0.5 2`."""
OTHER_DEFAULT = {("generalization", "learning_rates"), ("report", "output")}
"""The command line shows both learning rates unless told; a folder is a Path there."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_text("a,b,y\n1,0,1\n0,1,-1\n0.6,0.8,0.5\n")
    (tmp_path / "test.csv").write_text("a,b,y\n0.8,0.6,0.7\n-1,0,0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(name: str) -> click.Command:
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


def verb(name: str):
    return getattr(derive, name.replace("-", "_"))


def arguments(name: str) -> dict[str, inspect.Parameter]:
    function = type(verb(name)).__call__ if name == "activations" else verb(name)
    found = inspect.signature(function).parameters
    assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in found.values()), f"{name} hides its options"
    return {key: p for key, p in found.items() if key not in ("self", "progress")}


@pytest.mark.parametrize("name", COMMANDS)
def test_same_arguments_and_defaults(name):
    options = {p.name: p for p in command(name).params if p.name not in FORMS and (name, p.name) not in PARSED}
    own = arguments(name)
    assert set(options) == set(own)
    positional = [key for key, p in options.items() if isinstance(p, click.Argument)]
    assert positional == list(own)[: len(positional)], "arguments come first, in the same order"
    for key, p in own.items():
        if p.default is p.empty or (name, key) in OTHER_DEFAULT:
            continue
        default = options[key].get_default(click.Context(command(name)))
        unset = default is None or type(default).__name__ == "Sentinel"  # what click calls no default
        assert (None if unset else default) == p.default, key
    assert inspect.getdoc(verb(name))


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in COMMANDS])
def test_same_answer(name, folder):
    assert name in EXAMPLES, f"give an example of {name} in {Path(__file__).name}"
    example = EXAMPLES[name]
    printed = CliRunner().invoke(group, [name, *example, "--json"], catch_exceptions=False)
    assert printed.exit_code == 0, printed.output
    answer = json.loads(printed.stdout)
    given = command(name).make_context(name, list(example)).params
    given = {key: value for key, value in given.items() if key in arguments(name)}
    given = {key: value for key, value in given.items() if (name, key) not in OTHER_DEFAULT or value is not None}
    result = verb(name)(**given)
    assert isinstance(result, Result)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False)) == answer
    assert json.loads(json.dumps(pickle.loads(pickle.dumps(result)).to_json())) == answer
    check_forms(result)


def check_forms(result: Result) -> None:
    """The three forms are there and whole: environments are closed, tags are balanced, MathJax knows what it gets."""
    for text in (result.latex(), result._repr_latex_()):
        assert text.strip()
        begun, ended = re.findall(r"\\begin\{(.*?)\}", text), re.findall(r"\\end\{(.*?)\}", text)
        assert sorted(begun) == sorted(ended)
        for name in ("equation", "align"):
            for inside in re.findall(rf"\\begin{{{name}}}(.*?)\\end{{{name}}}", text, re.DOTALL):
                assert "$" not in inside
                assert inside.count(r"\left") - inside.count(r"\leftarrow") == inside.count(r"\right") - inside.count(
                    r"\rightarrow"
                )
    assert "tabular" not in result._repr_latex_()
    Balanced().check(result._repr_html_())
    if isinstance(result, TableResult):
        rows = result.rows()
        frame = result.to_dataframe()
        assert list(frame.columns) == list(rows[0]) and len(frame) == len(rows)
        assert len(result.to_csv().splitlines()) == len(rows) + 1


class Balanced(HTMLParser):
    def check(self, text: str) -> None:
        self.open: list[str] = []
        self.feed(text)
        assert not self.open and text.strip()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_one_of_two_variances_is_refused():
    for ask in (derive.criticality, derive.exponents):
        with pytest.raises(derive.DeriveError, match="both"):
            ask("tanh", C_b="0.1")


def test_what_can_be_completed():
    names = dir(derive)
    assert {name.replace("-", "_") for name in COMMANDS} <= set(names)
    assert {"__version__", "activation", "Activation"} <= set(names)
    assert all(getattr(derive, name) is not None for name in names)


def test_numbers_are_read_alike_from_text_and_python():
    from fractions import Fraction

    found = [derive.criticality("tanh", bias, 2).to_json() for bias in ("1/10", 0.1, Fraction(1, 10), "0.1")]
    assert all(entry == found[0] for entry in found)
    assert derive.expect("s0 s0", "relu", K="1/3").form == derive.expect("s0 s0", "relu", K=[Fraction(1, 3)]).form
    for wrong in (float("nan"), float("inf"), "import os", True, None, [1, 2]):
        with pytest.raises(derive.DeriveError):
            derive.criticality("tanh", wrong, 2)


def test_results_in_a_paper(tmp_path):
    """What `.latex()` gives compiles as it stands, where a LaTeX is installed."""
    import shutil
    import subprocess

    if shutil.which("pdflatex") is None:
        pytest.skip("no LaTeX here")
    parts = [derive.criticality("gelu"), derive.recursion("V"), derive.exponents("tanh"), derive.starpolation("tanh")]
    body = "\n\n".join(part.latex() for part in parts)
    source = "\\documentclass{article}\\usepackage{amsmath}\\begin{document}\n" + body + "\n\\end{document}\n"
    (tmp_path / "paper.tex").write_text(source)
    call = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-1500:]
