"""No text of a user runs: not through generated source, TeX, HTML, terminal markup or file names."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from html import escape
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner

import derive
from derive.cli import group
from derive.cli.output import shown, terminal
from derive.codegen import activation_module
from derive.errors import DeriveError, FormulaError
from derive.gaussian.covariance import covariance
from derive.layout import Table, Text, latex, mathjax
from derive.layout import html as notebook_html
from derive.reports.document import Document, Section
from derive.reports.html import write_html
from derive.reports.latex import write_latex
from derive.reports.markdown import write_markdown
from derive.safety import UnsafeSource, check_source, run_checked
from derive.symbols import z
from numeric import activations

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


def test_numbers_given_to_objects_are_parsed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SymPy evaluates a text that it is asked to make a number of."""
    monkeypatch.chdir(tmp_path)
    payload = "__import__('pathlib').Path('OWNED').touch()"
    sigma = derive.activation("tanh")
    for question in (
        lambda: sigma(payload),
        lambda: sigma.one_sided(3, payload),
        lambda: derive.expect("s0 s0", "tanh", K=[payload]),
        lambda: covariance({(0, 0): payload}, [sp.S.Zero]),
        lambda: covariance([[payload]], [sp.S.Zero]),
        lambda: derive.exponents("relu", C_b=payload, C_W=1),
        lambda: derive.criticality("relu", C_b=1, C_W=payload),
    ):
        with pytest.raises(DeriveError):
            question()
    assert (
        list(tmp_path.iterdir()) == []
        and sigma("0") == 0
        and covariance("1/2", [sp.S.Zero]).matrix[0] == sp.Rational(1, 2)
    )


def test_no_text_is_given_to_sympy() -> None:
    """Everywhere in the package: sympify only with strict=True, which takes no text, and none of its other parsers."""
    calls = 0
    for path in Path(derive.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert name not in ("parse_expr", "parse_latex", "S", "literal_eval", "eval_expr"), f"{path}:{node.lineno}"
            if name == "sympify":
                calls += 1
                assert any(k.arg == "strict" and k.value.value is True for k in node.keywords), f"{path}:{node.lineno}"  # type: ignore[attr-defined]
    assert calls > 10


TEXTS = [
    r"$\input{/etc/passwd}$",
    r"\(\href{javascript:alert(1)}{x}\)",
    "<script>alert(1)</script>",
    "`a` [b](c)",
    "]]>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_plain_texts_stay_plain_in_every_writer(text: str) -> None:
    """Column names, file names and messages: neither TeX, nor MathJax, nor HTML, nor Markdown."""
    blocks = [Text(text), Table((text,), ((text,),), text)]
    document = Document(text, text, (Section(text, (Text(text), Table((text,), ((text,),), text))),))
    for tex in (latex(blocks), mathjax(blocks), write_latex(document, "f/").split("begin{document}")[1]):
        for control in (r"\input", r"\href"):
            assert control not in tex and tex.count("$") == tex.count(r"\$") + 2 * tex.count("$$")
    page = write_html(document)
    for html in (notebook_html(blocks), page[page.index("<body>") :]):
        assert "<script>alert" not in html
        if "$" in text or "\\" in text:
            assert html.count(escape(text)) == html.count(f'mathjax_ignore">{escape(text)}</span>') > 0
    markdown = write_markdown(document, "f/")
    assert all(text not in line for line in markdown.splitlines()) or text == "]]>"


@pytest.mark.parametrize("framework", ["torch", "flax", "equinox", "keras"])
def test_snippets_hold_nothing_but_the_network(framework: str) -> None:
    for name in ("gelu", "tanh(2*z)"):
        tree = ast.parse(derive.recommend(name, 2, width=8).code(framework))
        modules = {a.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
        modules |= {str(node.module).split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert modules <= {"torch", "jax", "flax", "equinox", "optax", "keras", "numpy", "math", "os"}, modules


def test_kept_source_of_a_formula_is_read_with_distrust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generated module of a formula is kept on disk: what somebody else wrote there does not run."""
    monkeypatch.setenv("DERIVE_CACHE_DIR", str(tmp_path))
    activations._generated.cache_clear()
    kept = activations.load("tanh(7*z)/7")
    (path,) = tmp_path.rglob("*.json")
    stored, owned = json.loads(path.read_text()), tmp_path / "OWNED"
    assert "tanh" in stored["answer"]["source"]
    stored["answer"]["source"] += f"\nimport os\nos.mkdir({str(owned)!r})\n"
    path.write_text(json.dumps(stored))
    activations._generated.cache_clear()
    again = activations.load("tanh(7*z)/7")
    assert again is not kept and not owned.exists()
    assert float(again.FUNCTIONS.derivatives(jnp.asarray(0.1), 0)) == pytest.approx(np.tanh(0.7) / 7, rel=1e-15)


def test_a_second_process_takes_kept_source_without_sympy(tmp_path: Path) -> None:
    code = (
        "import sys; from numeric.activations import load; "
        "f = load('z**3').FUNCTIONS.derivatives(2.0, 1); print(float(f), 'sympy' in sys.modules)"
    )
    environment = os.environ | {"DERIVE_CACHE_DIR": str(tmp_path)}
    told = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert [text.split() for text in told] == [["12.0", "True"], ["12.0", "False"]]
