"""No text of a user runs: not through generated source, TeX, HTML, terminal markup or file names."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy as sp
from click.testing import CliRunner

import derive
from derive.cli import group
from derive.cli.output import shown, terminal
from derive.codegen import activation_module
from derive.errors import DeriveError, FormulaError
from derive.safety import UnsafeSource, check_source, run_checked
from derive.symbols import z

PAYLOADS = [
    'tanh(3*z)#"""; import os; os.system("touch OWNED"); """',
    'tanh(3*z) """; import os; os.system("touch OWNED"); """',
    "tanh(3*z)\nimport os; os.system('touch OWNED')",
    "tanh(3*z)\\\nimport os",
    "tanh(3*z)'; import os; os.system('touch OWNED'); '",
    "tanh(3*z)#$\\input{/etc/passwd}$",
    "tanh(3*z)#<script>alert(1)</script>",
    "tanh(3*z)#[/red]",
    "tanh(3*z)\x1b]0;owned\x07",
    "tanh(3*z)\r",
    "tanh(3*z)\u2028import os",
    "__import__('os').system('touch OWNED')",
    "elu(alpha=__import__('os').system('touch OWNED'))",
    "elu(alpha='x')",
    "z.__class__.__mro__",
    "().__class__.__bases__[0].__subclasses__()",
    "lambda: 0",
    "exec(z)",
    "eval(z)",
    "open(z)",
    "(z:=1)",
    "`touch OWNED`",
    "$(touch OWNED)",
    "z;touch OWNED",
]


@pytest.mark.parametrize("text", PAYLOADS)
def test_payloads_are_refused_before_anything_is_written(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormulaError):
        derive.activation(text)
    for command in (["generate", "-o", "module.py"], ["report", "-o", "r"], ["learnability"], ["criticality"]):
        result = CliRunner().invoke(group, [command[0], *command[1:], text])
        assert isinstance(result.exception, DeriveError)
    assert list(tmp_path.iterdir()) == []


def test_other_names_of_one_formula_are_written_alike() -> None:
    """The source depends on what was read, not on how it was typed."""
    assert activation_module("tanh( 3*z )", ["K"]) == activation_module("tanh(+3 * z)", ["K"])
    assert activation_module(sp.tanh(3 * z), ["K"]) == activation_module("tanh(3*z)", ["K"])


UNSAFE = [
    "import os",
    "import jax as os",
    "from numeric.brackets import *",
    "from os import system",
    "x = __import__('os')",
    "x = open('f')",
    "x = eval('1')",
    "def f(z):\n    return z.__class__",
    "def f(z):\n    return z.real",
    "x = (lambda: 1)()",
    "x = [y for y in (1, 2)]",
    "@f\ndef f(z):\n    return z",
    "class A:\n    pass",
    "while 1:\n    pass",
    "x = f'{1}'",
    "eval = 3",
    "x = 1; del x",
    "global x",
    "1 + 1",
    "x = y",
]


@pytest.mark.parametrize("source", UNSAFE)
def test_source_beyond_what_the_printers_write_is_not_run(source: str) -> None:
    with pytest.raises(UnsafeSource):
        check_source(source, imports=True)
    with pytest.raises(UnsafeSource):
        run_checked(source, {})


def test_a_name_that_closed_a_docstring_would_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second lock, with the first one (canonical names) taken away."""
    sigma = derive.activation("tanh(3*z)")
    for name in ('x"""\nimport os\n"""', "x\\", 'x"', "x\x00"):
        object.__setattr__(sigma, "name", name)
        try:
            with pytest.raises((DeriveError, UnsafeSource)):
                activation_module(sigma, ["K"])
        finally:
            object.__setattr__(sigma, "name", "tanh(3*z)")


def test_terminal_texts(capsys: pytest.CaptureFixture[str]) -> None:
    terminal().print("[red]a[/red] [/b] [link=file:///etc]x[/link]")
    assert capsys.readouterr().out == "[red]a[/red] [/b] [link=file:///etc]x[/link]\n"
    assert shown("a\x1b[2Jb\n\r\x00\udcff") == "a\\x1b[2Jb\\n\\r\\x00\\udcff"
    assert shown("größe") == "größe"


def test_columns_with_markup_and_controls(tmp_path: Path) -> None:
    train, test = tmp_path / "[red]train.csv", tmp_path / "test.csv"
    train.write_text("x,[/red]y\x1b[2J\n1,2\n2,3\n")
    test.write_text("x\n1.5\n")
    command = ["predict", str(train), "--test", str(test), "--depth", "2", "--infinite", "--target"]
    result = CliRunner().invoke(group, [*command, "[/red]y\x1b[2J"])
    assert result.exit_code == 0, result.output
    assert "[/red]y" in result.output.replace("\n", "") and "\x1b[2J" not in result.output
