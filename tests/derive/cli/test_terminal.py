"""What a terminal gets: nothing cut at 80 and 60 columns, LaTeX for a paper, completion in the shells."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from derive.cli import SHELLS, group

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]\d+)?(?![\w.])")
DATA = ["data.csv", "--test", "test.csv", "--target", "y"]
COMMANDS = [
    ["activations"],
    ["criticality", "relu"],
    ["exponents", "relu"],
    ["recursion", "V"],
    ["exponents", "tanh", "--C-b", "0.1", "--C-W", "1.5"],
    ["recommend", "relu", "--depth", "4"],
    ["predict", *DATA, "--activation", "erf", "--depth", "2", "--width", "32", "--time", "1,200"],
    ["depth-study", *DATA, "--activations", "relu", "--depths", "2,3"],
    ["learnability", "relu", "--depth", "2", "--dimension", "3", "--samples", "2,4,8,16,32", "--C-b", "0"],
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_text("a,b,y\n1,0,1\n0,1,-1\n0.6,0.8,0.5\n")
    (tmp_path / "test.csv").write_text("a,b,y\n0.8,0.6,0.7\n-1,0,0\n")
    monkeypatch.chdir(tmp_path)


def printed(words: list[str], columns: int, monkeypatch) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = CliRunner().invoke(group, words, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_a_recursion_has_one_summand_a_line_with_its_sign(monkeypatch):
    lines = printed(["recursion", "V"], 60, monkeypatch).splitlines()
    terms = [line.split() for line in lines if line.startswith("  ")]
    assert [words[0] for words in terms] == ["=", "-", *["+"] * 9]
    assert sum("V_" in words[-1] for words in terms) == 9 and not any(words[1].startswith("-") for words in terms)


LONG = ("activations", "predict", "learnability")


@pytest.mark.parametrize(
    "words",
    [pytest.param(words, marks=pytest.mark.slow) if words[0] in LONG else words for words in COMMANDS],
    ids=lambda words: words[0],
)
def test_no_number_is_cut(words, folder, monkeypatch):
    wide = printed(words, 400, monkeypatch)
    assert len(_NUMBER.findall(wide)) > 3
    for columns in (80, 60):
        narrow = printed(words, columns, monkeypatch)
        assert "…" not in narrow
        assert set(_NUMBER.findall(wide)) <= set(_NUMBER.findall(narrow)), columns  # headings may be repeated
        if words[:2] != ["exponents", "tanh"]:  # lines of plain text are the terminal's to wrap
            assert max(map(len, narrow.splitlines())) <= columns


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        (["exponents", "relu"], r"\toprule"),
        (["criticality", "tanh"], r"\bottomrule"),
        (["criticality", "tanh", "--C-b", "0.1", "--C-W", "2"], r"\begin"),
        (["asymptotics", "relu", "A"], r"\begin{equation}"),
        (["expect", "s0 s0''", "gelu"], r"\begin{equation}"),
        (["generalization", "relu"], r"\begin{equation}"),
        (["recursion", "V"], r"\begin{align}"),
    ],
)
def test_latex_for_a_paper(words, holds, tmp_path):
    found = CliRunner().invoke(group, [*words, "--latex"], catch_exceptions=False)
    assert found.exit_code == 0 and holds in found.stdout
    begun, ended = (re.findall(rf"\\{end}\{{(\w+)\}}", found.stdout) for end in ("begin", "end"))
    assert sorted(begun) == sorted(ended)
    if shutil.which("pdflatex"):
        packages = r"\usepackage{amsmath,booktabs}"
        source = rf"\documentclass{{article}}{packages}\begin{{document}}{found.stdout}\end{{document}}"
        (tmp_path / "paper.tex").write_text(source)
        call = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
        assert subprocess.run(call, cwd=tmp_path, capture_output=True).returncode == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_scripts(shell):
    found = CliRunner().invoke(group, ["--completion", shell])
    assert found.exit_code == 0 and "_DERIVE_COMPLETE" in found.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=found.stdout, text=True, check=True)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("derive exp", {"expect", "exponents", "explore"}),
        ("derive criticality gel", {"gelu", "gelu_tanh"}),
        ("derive asymptotics tanh Th", {"Theta"}),
        ("derive recommend relu --dep", {"--depth"}),
    ],
)
def test_what_is_completed(line, wanted):
    words = line.split()
    environment = {
        **os.environ,
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_DERIVE_COMPLETE": "bash_complete",
    }
    call = [sys.executable, "-c", "from derive.entry import main; main()"]
    found = subprocess.run(call, env=environment, capture_output=True, text=True)
    assert {row.split(",", 1)[1] for row in found.stdout.split()} == wanted
