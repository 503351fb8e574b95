"""Leading coefficients lie in their proved intervals: README's table, mpmath's own integrals, the solver's digits."""

import re
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
import sympy as sp
from sympy.parsing.sympy_parser import implicit_multiplication, parse_expr, standard_transformations

pytest.importorskip("flint")

import derive
from derive import depth
from derive.certificates.coefficients import _leading, with_balls
from derive.certificates.outward import ends
from derive.depth.exponent_table import problem

README = Path(__file__).parents[3] / "README.md"
lambda_b, lambda_W, ell = sp.symbols("lambda_b lambda_W ell")


def readme_table():
    """{tensor: coefficient} as printed."""
    rows = re.findall(r"^\| (\S+) \| ([^|]+) \| ?(\S*) \| ([^|]*) \|$", README.read_text(), re.M)
    words = {"λ_W": " lambda_W ", "λ_b": " lambda_b ", "ℓ": " ell ", "²": "**2 ", "³": "**3 "}
    names = {"lambda_b": lambda_b, "lambda_W": lambda_W, "ell": ell}
    found = {}
    for a, first, b, second in rows:
        for name, text in ((a, first), (b, second)):
            if name in ("K", "Θ", "V", "G1", "D", "F", "H1", *"ABPQRSTU"):
                for word, plain in words.items():
                    text = text.replace(word, plain)
                rules = (*standard_transformations, implicit_multiplication)
                found["Theta" if name == "Θ" else name] = parse_expr(text.strip(), names, rules)
    return found


def test_readme_table_lies_inside():
    """tanh's coefficients are exact; the solver in balls knows nothing of that."""
    table = readme_table()
    assert len(table) == 15
    balls, _ = _leading(problem("tanh"))
    for name, printed in table.items():
        terms = sp.Poly(sp.expand(printed.subs(ell, 1)), lambda_b, lambda_W).terms()
        expected = {str(lambda_b**i * lambda_W**j): c for (i, j), c in terms}
        assert set(expected) == {str(m) for m in balls[name]}, name
        for monomial, ball in balls[name].items():
            low, high = ends(ball)
            c = Fraction(int(expected[str(monomial)].p), int(expected[str(monomial)].q))
            assert low <= c <= high, (name, monomial)
            assert high - low < abs(c) / 10**30
            assert not low <= c * (1 + Fraction(1, 10**30)) <= high


def test_gelu_against_mpmath():
    """V's slope on the plateau is C_W^2 (<s^4> - <s s>^2); p_perp = 2 <s'^2>_1/<s s>_2 from moments of the Gaussian."""
    with mpmath.workdps(45):
        K = (3 + mpmath.sqrt(17)) / 2
        s = mpmath.sqrt(K)

        def phi(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        def mean(f):
            norm = s * mpmath.sqrt(2 * mpmath.pi)
            borders = mpmath.linspace(-16 * s, 16 * s, 17)
            return mpmath.quad(lambda x: f(x) * mpmath.exp(-(x**2) / (2 * K)) / norm, borders)

        def slope(x):
            return phi(x) + x * mpmath.exp(-(x**2) / 2) / mpmath.sqrt(2 * mpmath.pi)

        def he2(x):
            return x**2 / K - 1

        def he4(x):
            return (x**2 / K) ** 2 - 6 * x**2 / K + 3

        weight = 1 / mean(lambda x: slope(x) ** 2)
        square = mean(lambda x: (x * phi(x)) ** 2)
        V = weight**2 * (mean(lambda x: (x * phi(x)) ** 4) - square**2)
        first = mean(lambda x: slope(x) ** 2 * he2(x)) / (2 * K)
        second = mean(lambda x: (x * phi(x)) ** 2 * he4(x)) / (8 * K**2)
        found = {"V": mpmath.nstr(V, 40), "p": mpmath.nstr(first / second, 40), "K": mpmath.nstr(K, 40)}
    flat, _ = _leading(problem("gelu", plateau=True))
    _, p_perp = _leading(problem("gelu"))
    slack = 1 + Fraction(1, 10**38)
    for (low, high), text in (
        (ends(flat["V"][sp.S.One]), found["V"]),
        (ends(flat["K"][sp.S.One]), found["K"]),
        (map(Fraction, p_perp), found["p"]),
    ):
        value = Fraction(text)
        low, high = sorted((low / slack, low * slack))[0], sorted((high / slack, high * slack))[1]
        assert low <= value <= high, text
        assert high - low < abs(value) / 10**30


@pytest.mark.slow
@pytest.mark.parametrize("name", ("gelu", "gelu_tanh", "swish", "mish", "selu"))
def test_every_number_of_the_table_lies_inside(name):
    """The digits that `derive exponents` prints, to the number of digits that it claims, less three."""
    data = derive.exponents(name).to_json()
    seen = 0
    for table in (data, data.get("plateau", {"tensors": {}})):
        for tensor, row in table["tensors"].items():
            entry = row["coefficient"]
            if entry is None or "digits" not in entry:
                continue
            balls = entry.get("balls") or {"1": entry["ball"]}
            printed = sp.sympify(entry["exact"]).subs(sp.Symbol("L"), 1)
            for monomial, (low, high) in balls.items():
                m = sp.sympify(monomial)
                c = Fraction(str(sp.expand(printed).coeff(m) if m != 1 else printed.as_coefficients_dict()[sp.S.One]))
                slack = abs(c) / 10**24
                assert Fraction(low) - slack <= c <= Fraction(high) + slack, (tensor, monomial)
                seen += 1
    assert seen > 10


def test_exact_tables_are_left_alone():
    table = depth.exponents("tanh")
    assert with_balls(table, problem("tanh")) is table
