"""The bracket object: patterns, LaTeX, integration by parts, derivatives in K, the single-input normal form."""

import mpmath as mp
import pytest
import sympy as sp

from derive.errors import FormulaError
from derive.gaussian import (
    Bracket,
    Sigma,
    Z,
    exact,
    expect,
    kernel_derivative,
    kernel_symbol,
    parse_bracket,
    partial,
    remove_insertions,
    single_input_normal_form,
    value,
)
from derive.symbols import K


def test_patterns():
    assert parse_bracket("s0 s1'' s2' s2' z0") == Bracket(Sigma(0), Sigma(1, 2), Sigma(2, 1), Sigma(2, 1), Z(0))
    assert parse_bracket("<s0*s0'>") == Bracket(Sigma(0), Sigma(0, 1))
    assert parse_bracket("s s'' z") == Bracket(Sigma(0), Sigma(0, 2), Z(0))
    assert parse_bracket("s10**3") == Bracket(Sigma(10), Sigma(10), Sigma(10))


@pytest.mark.parametrize(
    "text",
    ["", "x0", "s0.real", "__import__('os')", "s0 + s1", "z0'", "s0^(99)", "s0**99", "s0'^(2)", "s0 " * 200],
)
def test_patterns_refused(text):
    with pytest.raises(FormulaError) as caught:
        parse_bracket(text)
    assert "\n" not in str(caught.value)


@pytest.mark.equation("10.136")
def test_latex_as_the_seeds_print():
    assert sp.latex(parse_bracket("s1 s2")) == r"\left\langle \sigma_{1} \sigma_{2} \right\rangle"
    assert sp.latex(parse_bracket("s1'' z2")) == r"\left\langle \sigma^{\prime\prime}_{1} z_{2} \right\rangle"


def test_coinciding_labels():
    assert parse_bracket("s0 s1'").relabel({1: 0}) == parse_bracket("s0 s0'")
    assert expect(Sigma(0) ** 2 * 3 + Z(1)) == 3 * parse_bracket("s0 s0") + parse_bracket("z1")
    assert partial(Z(0) * Sigma(0, 1), 0) == Sigma(0, 1) + Z(0) * Sigma(0, 2)


@pytest.mark.parametrize("name", ["gelu", "erf", "relu", "sin"])
def test_derivative_in_the_kernel(name):
    """Price's theorem against SymPy's derivative of the closed form."""
    bracket = parse_bracket("s0 s1")
    at = {kernel_symbol(0, 0): sp.Rational(3, 2), kernel_symbol(0, 1): sp.Rational(2, 5), kernel_symbol(1, 1): sp.S.One}
    for labels in ((0, 1), (0, 0)):
        derived = kernel_derivative(bracket, *labels)
        closed = derived.xreplace({b: exact(b, name) for b in derived.atoms(Bracket)})
        direct = sp.diff(exact(bracket, name), kernel_symbol(*labels))
        assert abs((closed - direct).xreplace(at).evalf(30)) < 1e-25


def test_derivative_in_the_kernel_one_label_and_products():
    bracket = parse_bracket("s0 s0")
    derived = kernel_derivative(bracket**2, 0, 0)
    assert derived == sp.expand(2 * bracket * (parse_bracket("s0' s0'") + parse_bracket("s0 s0''")))


@pytest.mark.parametrize("name", ["gelu", "sin", "elu"])
def test_insertions_by_parts(name):
    """<z z sigma sigma'> computed as it stands, and after integration by parts."""
    bracket = parse_bracket("s0 s0' z0 z0")
    removed = remove_insertions(bracket, single=True)
    assert not removed.atoms(Z)
    closed = removed.xreplace({b: exact(b, name) for b in removed.atoms(Bracket)})
    assert abs((closed - exact(bracket, name)).subs(K, sp.Rational(4, 3)).evalf(30)) < 1e-25
    two = remove_insertions(parse_bracket("s0 s1 z0 z1"))
    assert two.coeff(kernel_symbol(0, 1)).has(Bracket)


def test_normal_form_rescues_sums_that_exist_only_together():
    """d^2<s s>/dK^2 = <d^4(s s)>/4 is zero for relu, though its brackets <s'' s''>, ... diverge one by one."""
    bracket = parse_bracket("s0 s0")
    fourth = kernel_derivative(kernel_derivative(bracket, 0, 0), 0, 0)
    assert any("''" in str(b) for b in fourth.atoms(Bracket))
    reduced = single_input_normal_form(fourth)
    assert sp.simplify(reduced.xreplace({b: exact(b, "relu") for b in reduced.atoms(Bracket)})) == 0
    smooth = {b: value(b, "tanh", 2, 25) for b in fourth.atoms(Bracket) | reduced.atoms(Bracket)}
    at = lambda e: e.xreplace({b: sp.Float(mp.nstr(v, 25), 25) for b, v in smooth.items()}).subs(K, 2)  # noqa: E731
    assert abs(at(fourth) - at(reduced)) < 1e-20
