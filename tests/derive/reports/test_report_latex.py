"""The LaTeX source of a report: well formed by a reader of our own, and compiled where pdflatex is installed."""

import re
import shutil
import subprocess

import pytest

import derive
from derive.reports.build import report, write_document
from derive.reports.latex import write_latex

_TOKEN = re.compile(r"\\begin\{([^}]*)\}|\\end\{([^}]*)\}|\\(left|right)(?![a-z])|\\.|([{}$])", re.S)
_KNOWN = """
    left right langle rangle frac sqrt sum prod partial sigma chi perp parallel lambda Theta ell delta gamma kappa psi
    prime star log exp tanh sin cos sinh cosh tan operatorname pi infty ldots dots cdot times approx sim ge le to
    begin end section paragraph title author date maketitle caption centering includegraphics linewidth hline texttt
    text mathrm ensuremath textless textgreater textbackslash raggedright arraybackslash Rightarrow qquad quad
    documentclass usepackage geometry setlength tabcolsep renewcommand arraystretch emergencystretch IfFileExists
    newenvironment ignorespacesafterend tfrac eta xi
"""
"""Commands that plain LaTeX with amsmath has, and that reports use."""


@pytest.fixture(scope="module")
def documents():
    return {name: report(derive.activation(name)) for name in ("softplus", "where(z<1,z,1)")}


def complaints(source: str) -> list[str]:
    """Environments, braces, \\left and \\right, dollars that do not match; unknown commands; letters beyond ASCII."""
    body = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", source, flags=re.S)
    open_, found, inside_math = [], [], False
    closing = {"}": "{", "right": "left"}
    for token in _TOKEN.finditer(body):
        begin, end, sized, single = token.groups()
        mark = begin or end or sized or single
        if mark == "$":
            inside_math = not inside_math
        elif begin or mark in ("{", "left"):
            open_.append(mark)
        elif mark and (not open_ or open_.pop() != closing.get(mark, mark)):
            found.append(f"unmatched {token[0]} near {body[max(0, token.start() - 40) : token.end()]!r}")
    found += [f"left open: {mark}" for mark in open_] + (["an odd number of $"] if inside_math else [])
    found += [
        f"unknown command \\{c}"
        for c in sorted(set(re.findall(r"(?<!\\)(?:\\\\)*\\([a-zA-Z]+)", body)) - set(_KNOWN.split()))
    ]
    return found + [f"letter {c!r}" for c in sorted(set(body)) if ord(c) > 126]


def test_source_is_well_formed(documents):
    for document in documents.values():
        assert complaints(write_latex(document, "f/")) == []


def test_the_reader_sees_what_is_wrong():
    bad = r"\begin{dmath*} \left( x \end{dmath*} $ \undefinedthing é"
    text = " ".join(complaints(bad))
    for what in ("unmatched \\end{dmath*}", "left open", "odd number of $", "\\undefinedthing", "letter 'é'"):
        assert what in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tanh", "gelu", "relu", "sin(z)+z**2/3"])
def test_source_compiles(name, tmp_path):
    """Without pdflatex the source is only read. No error, and no line that sticks out by more than a millimetre."""
    document = report(derive.activation(name))
    assert complaints(write_latex(document, "f/")) == []
    write_document(document, "report", tmp_path, ["tex"])
    if shutil.which("pdflatex"):
        call = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, done.stdout[-3000:]
        wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", done.stdout)]
        assert max(wide, default=0) < 3, wide
