"""Derivations are data: a step's text, TeX and JSON are one object, and no text of ours is read back."""

import ast
import pickle
from pathlib import Path

import pytest
import sympy as sp

import derive
from derive.notation import K_STAR, TensorSymbol, latex, text
from derive.steps import Step, Verbatim, Words, as_written, equal, listed, said, small
from derive.symbols import K, ell, lambda_W

PACKAGE = Path(derive.__file__).parent
READS_OTHERS = {
    "activations/parser.py": "formulas that users type",
    "activations/syntax.py": "formulas that users type",
    "gaussian/pattern.py": "patterns that users type",
    "cli/parameters.py": "arguments that users type",
    "cache.py": "names of files in a folder that others write to",
    "codegen/module.py": "the header of a file that a user hands in",
    "codegen/printer.py": "pieces of Python source while they are put together",
}
"""Modules that may hold a regular expression, and whose text it reads."""


def test_no_regular_expression_reads_our_own_text():
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if "re" in names or (isinstance(node, ast.ImportFrom) and node.module == "re"):
                found.add(str(file.relative_to(PACKAGE)))
    assert found <= set(READS_OTHERS), found - set(READS_OTHERS)


def test_a_sentence_is_its_text_and_keeps_its_mathematics():
    s = said("With {} see {} of {}.", equal(K_STAR, sp.Rational(1, 2)), Verbatim("a_b"), listed([K, ell]))
    assert s == "With K* = 1/2 see a_b of K, ell."
    assert s.render(str.upper, lambda c: f"`{c}`", lambda m: f"${m}$") == (
        "WITH $K^\\star = \\frac{1}{2}$ SEE `a_b` OF $K$, $\\ell$."
    )
    again = pickle.loads(pickle.dumps(s))
    assert isinstance(again, Words) and again.parts == s.parts


def test_a_sum_stays_as_it_was_written():
    """Also after pickling, where SymPy would sort it."""
    flow = equal(sp.Symbol("K'"), as_written(K, -2 * K**2, lambda_W), open_ended=True, order="none")
    for f in (flow, pickle.loads(pickle.dumps(flow))):
        assert f.text() == "K' = K - 2*K**2 + lambda_W + ..."
        assert f.latex() == "K' = K - 2 K^{2} + \\lambda_W + \\dots"


def test_a_template_takes_all_it_is_given():
    with pytest.raises(ValueError, match="no place"):
        said("{}", K, ell)
    with pytest.raises(TypeError):
        said("{}", 1.5)


def test_steps_as_text_tex_and_json():
    step = Step(said("Matching"), (equal(TensorSymbol("Theta", "ell"), lambda_W / 2),))
    assert step.to_json() == {
        "text": "Matching: Theta^(ell) = lambda_W/2.",
        "latex": r"\Theta^{(\ell)} = \frac{\lambda_W}{2}",
    }
    assert latex(TensorSymbol("G1", "ell+1")) == r"G^{\{1\}(\ell+1)}"


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (sp.Float("1.00000000000000000000000000000", 30), "1"),
        (sp.Float("32587989.25", 30), "32587989.25"),
        (sp.pi.n(30), "3.141592654"),
    ],
)
def test_numbers_are_rounded_for_reading(number, shown):
    assert text(number) == shown


def test_rough_numbers():
    assert small(3.2e5).latex() == r"3.2\times 10^{5}" and small(sp.Float("5e2920")).text() == "5e+2920"
