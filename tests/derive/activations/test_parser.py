"""The whitelist parser refuses what it does not know, evaluates nothing, and keeps numbers exact."""

import builtins
import time

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.activations import activation, parse_number
from derive.activations.parser import parse_call, parse_formula
from derive.errors import DeriveError, FormulaError
from derive.symbols import z

REFUSED = {
    "z.__class__": "not allowed",
    "__import__('os').system('true')": "double underscores",
    "z__z": "double underscores",
    "tanh(z) # a comment": "not allowed",
    'tanh(z)#"""; import os; """': "not allowed",
    "tanh(z)\\n": "not allowed",
    "z\t+ 1": "not allowed",
    "tanh\n": "not allowed",
    "z + \x1b[31m": "not allowed",
    "z\x00": "not allowed",
    "$z$": "not allowed",
    "2z": "no operator",
    "0x10*z": "no operator",
    "z 2": "no operator",
    "z.real": "not allowed",
    "(z).diff(z)": "not allowed",
    "open('x')": "not allowed",
    "eval(z)": "Unknown function",
    "exec(z)": "Unknown function",
    "x + 1": "Unknown name 'x'",
    "z + t": "Unknown name 't'",
    "9**9**9*z": "too large",
    "z**65": "too large",
    "(z**32+1)**3": "degree",
    "((z**60)**60)**60": "degree",
    "10**60**2*z": "too large",
    "((9**64)**64)*z": "too large",
    "exp(exp(exp(9)))*z": "too large",
    "3 + pi": "does not depend on z",
    "exp(z)*exp(-z)": "does not depend on z",
    "": "empty",
    "   ": "empty",
    "lambda z: z": "not allowed",
    "[z for z in (1, 2)]": "not allowed",
    "z if z else 1": "not allowed",
    "(z := 3)": "not allowed",
    "f'{z}'": "not allowed",
    "'z'": "not allowed",
    "1j*z": "no operator",
    "True*z": "not allowed",
    "z @ z": "not allowed",
    "z % 2": "not allowed",
    "z // 2": "cannot be read",
    "z < 1": "where",
    "z and 1": "not allowed",
    "~z": "not allowed",
    "sin(z, z)": "1 argument",
    "sin(*z)": "Starred",
    "tanh(x=z)": "must be a number|no parameter",
    "sin(z)(z)": "called, by their names",
    "z**z": "positive number as its base",
    "(-2)**z": "positive number as its base",
    "z**pi": "not a rational number",
    "z/0": "divides by zero",
    "z/(1-1)": "divides by zero",
    "1e400*z": "out of range",
    "z;z": "not allowed",
    "z\nz": "not allowed",
    "ζ": "not allowed",
    "(" * 60 + "z" + ")" * 60: "nested",
    "z" + "+z" * 300: "longer than",
    "z" + "-" * 40 + "1": "operators in a row",
    "log(z)": "at z = 0",
    "1/z": "pole at z = 0",
    "1/(z-3)": "pole at z = 3",
    "sqrt(z)": "at z = 0",
    "sqrt(1-z**2)": "at z = -1",
    "log(exp(z)-3*z)": "at z = 0.61",
    "1/(exp(z)-2)": "at z = 0.693",
    "z**(1/3)": "at z = 0",
    "exp(z**2)": "for every K",
    "exp(exp(z))": "slower than every Gaussian",
    "exp(exp(exp(exp(z))))": "slower than every Gaussian",
    "abs(sin(z))": "isolated",
    "tan(z)": "Unknown function",
    "leaky_relu(slope=z)": "must be a number",
    "leaky_relu(alpha=1)": "no parameter",
    "leaky_relu(slope=1/0)": "divides by zero",
    "monomial(k=0)": "whole number",
    "monomial(k=1/2)": "whole number",
    "elu(alpha=-1)": "positive",
    "tanhh": "Unknown activation",
    "where(z, 1, 2)": "comparison",
    "where(z == 0, 1, 2)": "compares with",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_with_one_sentence(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(FormulaError, match=REFUSED[text]) as caught:
        activation(text)
    assert "\n" not in str(caught.value).replace(text, "")
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize("thing", [3, None, b"z", ["z"], sp.Symbol("t"), sp.Symbol("t") * sp.Symbol("z"), sp.S.One])
def test_other_objects_are_refused(thing: object) -> None:
    with pytest.raises(FormulaError):
        activation(thing)  # type: ignore[arg-type]


def test_nothing_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: object, **kwargs: object) -> None:
        raise AssertionError("text was evaluated")

    for name in ("eval", "exec"):
        monkeypatch.setattr(builtins, name, forbidden)
    monkeypatch.setattr(sp, "sympify", forbidden)
    monkeypatch.setattr("sympy.parsing.sympy_parser.parse_expr", forbidden)
    assert parse_formula("z*(1+erf(z/sqrt(2)))/2") == z * (1 + sp.erf(z / sp.sqrt(2))) / 2
    with pytest.raises(FormulaError):
        parse_formula("print(z)")


def test_numbers_stay_exact() -> None:
    assert parse_formula("0.1*z + 1e-3 + 1_000*z^2") == z / 10 + sp.Rational(1, 1000) + 1000 * z**2
    assert parse_number("1/3") == sp.Rational(1, 3)
    assert parse_call("elu(alpha=0.3)") == ("elu", {"alpha": sp.Rational(3, 10)})
    assert activation("leaky_relu(slope=1/10)").scale_invariant == (1, sp.Rational(1, 10))
    with pytest.raises(FormulaError):
        parse_number("z")


def test_names_are_prints_of_what_was_read() -> None:
    assert activation("  tanh( 3*z )").name == "tanh(3*z)"
    assert activation("z^2 + 0*z").name == "z**2"
    assert activation("logistic").name == "sigmoid"
    assert activation("elu( alpha = 0.5 )").name == "elu(alpha=1/2)"
    for text in ("max(z, 0) - 0.3*min(z, abs(z))", "where(z < 1, where(z < 0, 0, z^2), z)", "z*erfc(z)", "2^z"):
        sigma = activation(text)
        assert activation(sigma.name).pieces == sigma.pieces
    with pytest.raises(FormulaError, match="may not hold"):
        activation(sp.Function("system")(z) + z)


def test_a_formula_is_the_same_as_a_name() -> None:
    assert activation("z/(1+exp(-z))").expression == activation("silu").expression
    assert activation("max(z, 0)").pieces == activation("relu").pieces
    assert activation("sigmoid(z) - 1/2").expression == activation("sigmoid-1/2").expression
    assert activation("sigmoid_half").expression == activation("shifted_sigmoid").expression
    assert activation("where(z < 0, exp(z) - 1, z)").pieces == activation("elu").pieces
    assert activation(sp.tanh(sp.Symbol("z"))).expression == activation("tanh").expression
    assert activation("z").scale_invariant == (1, 1)
    assert activation("z^3").expression == activation("monomial(k=3)").expression


@st.composite
def formulas(draw: st.DrawFn, depth: int = 3) -> str:
    """Random well-formed formulas of the whitelist."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["z", "2", "0.5", "pi", "1/3", "z", "z"]))
    kind = draw(st.sampled_from(["+", "-", "*", "/", "f", "**"]))
    left = draw(formulas(depth - 1))
    if kind == "f":
        functions = ["exp", "tanh", "sin", "erf", "atan", "cosh", "relu", "abs", "log", "sqrt"]
        return f"{draw(st.sampled_from(functions))}({left})"
    if kind == "**":
        return f"({left})**{draw(st.integers(0, 3))}"
    return f"({left}) {kind} ({draw(formulas(depth - 1))})"


@settings(max_examples=60)
@given(formulas())
def test_random_formulas_are_accepted_with_the_right_values_or_refused(text: str) -> None:
    """What is accepted agrees with an evaluation by mpmath in this test's own namespace."""
    try:
        sigma = activation(text)
    except DeriveError:
        return
    names = {k: getattr(mpmath, k) for k in ("exp", "tanh", "sin", "erf", "atan", "cosh", "log", "sqrt", "pi")}
    names |= {"relu": lambda u: max(u, 0), "abs": abs}
    for point in ("-1.3", "0.4", "2.1"):
        expected = eval(text.replace("1/3", "(mpf(1)/3)"), {**names, "mpf": mpmath.mpf, "z": mpmath.mpf(point)})
        value = sigma(sp.Rational(point)).evalf(20)
        assert abs(mpmath.mpf(value) - expected) <= 1e-10 * max(1, abs(expected))


@settings(max_examples=150)
@given(st.text(alphabet="z0129.+-*/^() ,eExpsintahlogqr_'\"[]{}:=<>!@#%&\\x", max_size=60))
def test_random_text_never_escapes(text: str) -> None:
    """Any text gives an activation or a FormulaError: no other exception."""
    try:
        activation(text)
    except DeriveError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "name"),
    {
        "ReLU": "relu",
        "GELU": "gelu",
        "LeakyReLU": "leaky_relu",
        "Leaky_ReLU(0.1)": "leaky_relu(slope=1/10)",
        "leaky_relu(0.1)": "leaky_relu(slope=1/10)",
        "SiLU": "swish",
        "swish(2)": "swish(beta=2)",
        "selu(3/2, 1)": "selu(alpha=3/2, scale=1)",
        "monomial(3)": "monomial(k=3)",
        "Tanh(2*z)": "tanh(2*z)",
        "2*GELU(z)": "z*(erf(sqrt(2)*z/2) + 1)",
        "leaky_relu(z)": "where(z < 0, z/100, z)",
    }.items(),
)
def test_names_in_any_case_and_parameters_in_order(text: str, name: str) -> None:
    assert activation(text).name == name


@pytest.mark.parametrize(
    ("text", "sentence"),
    {
        "tahn": "did you mean tanh",
        "rleu": "did you mean relu",
        "tahn(z)": "did you mean tanh",
        "Z": "did you mean z",
        "Sofplus": "did you mean softplus",
        "gelu(0.1)": "gelu has no parameters",
        "leaky_relu(0.1, 2)": "leaky_relu has 1 parameter",
        "monomial(2.5)": "whole number",
        "gelu + 1": "needs its argument",
    }.items(),
)
def test_what_was_probably_meant(text: str, sentence: str) -> None:
    with pytest.raises(FormulaError, match=sentence):
        activation(text)
