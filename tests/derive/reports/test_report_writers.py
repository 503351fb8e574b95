"""The writers: the same document in HTML, Markdown and LaTeX, whatever characters its text holds."""

import re

import sympy as sp

from derive.notation import latex, was_rounded
from derive.reports.document import Code, Document, Equation, Figure, Gallery, Section, Steps, Table, Text
from derive.reports.html import write_html
from derive.reports.latex import write_latex
from derive.reports.markdown import write_markdown
from derive.steps import Verbatim, said, typeset

SVG = '<?xml version="1.0"?>\n<svg width="1"><path d="M0"/></svg>'
DOCUMENT = Document(
    "A & B <tags>",
    said("50 % of {}", typeset("x_1")),
    (
        Section(
            "First_section",
            (
                Text(said("a < b & c_d with {} and {}, 5 # 6", Verbatim("code <x>"), typeset("\\frac{1}{2} < 1"))),
                Equation("a < b", "a note"),
                Table(("x|y", typeset("p")), (("1 | 2", typeset("|q|")),), "caption"),
                Figure("one", SVG, "seen [1]"),
                Gallery((Figure("two", SVG, "t"), Figure("three", SVG, "u")), "many"),
                Code("print('<b>')"),
                Steps("fold", (Text("inside"),)),
            ),
        ),
    ),
)


def body(text: str) -> str:
    """The HTML without the MathJax bundle."""
    return re.sub(r"<script>.*?</script>", "", text, flags=re.S)


def test_html_escapes_text_but_keeps_mathematics_and_pictures():
    text = body(write_html(DOCUMENT))
    assert "A &amp; B &lt;tags&gt;" in text and "<tags>" not in text
    assert r"\(\frac{1}{2} &lt; 1\)" in text and "<code>code &lt;x&gt;</code>" in text
    assert r"\[a &lt; b\]" in text
    assert text.count("<svg") == 3 and "<?xml" not in text
    assert "print(&#x27;&lt;b&gt;&#x27;)" in text
    assert '<section id="first-section">' in text and 'href="#first-section"' in text


def test_html_needs_no_network():
    text = write_html(DOCUMENT)
    assert not re.search(r"<(?:script|img|link)[^>]+(?:src|href)=", body(text))
    assert "window.glyphs" in text and "</script" not in re.sub(r"</script></head>", "", text)


def test_markdown_escapes_what_would_be_markup():
    text = write_markdown(DOCUMENT, "files/")
    assert "a \\< b & c\\_d with `code <x>`" in text
    assert "| x\\|y | $p$ |" in text
    assert "![seen (1)](files/one.svg)" in text and "![t](files/two.svg)" in text
    assert "$$\na < b\n$$" in text and "```python\nprint('<b>')\n```" in text


def test_latex_escapes_every_special_character():
    text = write_latex(DOCUMENT, "files/")
    assert r"A \& B \textless{}tags\textgreater{}" in text and r"50 \% of $x_1$" in text
    assert r"c\_d" in text and r"5 \# 6" in text
    assert text.count(r"\begin{") == text.count(r"\end{")
    assert text.count(r"\includegraphics") == 3


def test_figures_and_code_are_found_wherever_they_are():
    assert [figure.name for figure in DOCUMENT.figures()] == ["one", "two", "three"]
    assert DOCUMENT.code() == ["print('<b>')"]


def test_a_dollar_or_a_backtick_is_text():
    """Nothing in a string is markup: mathematics and code are parts of a sentence."""
    text = write_latex(Document("t", "", (Section("s", (Text("costs $5$ or `x`"),)),)), "f/")
    assert r"costs \$5\$ or `x`" in text


def test_long_numbers_are_rounded_and_said_to_be():
    long = sp.Rational(10**20 + 1, 3 * 10**20)
    assert latex(long * sp.Symbol("x")) == "0.33333333 x" and was_rounded(long)
    assert latex(sp.Rational(1, 3)) == "\\frac{1}{3}" and not was_rounded(sp.Rational(1, 3))
    assert was_rounded(sp.pi.n(30)) and not was_rounded(sp.Float("0.25"))


def test_ratios_are_fractions():
    from derive.depth import Ratio

    assert Ratio("V", sp.S.One, 0, sp.S.One).formula.latex() == "\\frac{V}{n K^{2}}"
    assert Ratio("H1", sp.S.One, 0, sp.S.One).formula.latex() == "\\frac{H^{\\{1\\}}}{n \\Theta}"


def test_only_a_last_column_of_formulas_takes_the_room():
    """A table of numbers with four columns keeps them whole; exponents beside long coefficients are narrow."""
    numbers = Table(("depth", "4", "16", "64"), (("C_b", "0.172922", "0.172922", "0.172922"),))
    formulas = Table(("tensor", "p", "q", "coefficient"), (("R", "-2", "0", "-(lambda_W+2*lambda_b)**2/96"),))
    for table, narrow in ((numbers, False), (formulas, True)):
        document = Document("t", "", (Section("s", (table,)),))
        assert ('class="columns"' in body(write_html(document))) == narrow


def test_folded_steps_are_folded_on_the_site_too():
    steps = Steps(said("{} & more", sp.Symbol("lambda_b")), (Text("inside"),), folded=True)
    text = write_markdown(Document("t", "", (Section("s", (steps,)),)), "")
    assert '<summary><span class="math">\\(\\lambda_b\\)</span> &amp; more</summary>\n\ninside\n\n</details>' in text
