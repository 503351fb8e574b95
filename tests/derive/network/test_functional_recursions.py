"""Residual layers: the recursions of functionals as derived, against the verified ones; the plain network inside."""

import json
from itertools import product

import pytest
import sympy as sp
from click.testing import CliRunner

import derive
from derive import symbols
from derive.cli import group
from derive.errors import DeriveError
from derive.network import RESIDUAL, Component, Layer, Skip, functional_recursion, recursion
from derive.network.definition import MLP, Bias, Weights
from derive.network.functional import SHAPES, tensor_functions
from derive.network.terms import Average

# Verified on sampled networks, term by term; hats, P and primes as the command explains them.
EXPECTED = {
    "V": """r V[Pf, Ph]
        C_W/2 Σ_{g1 g2} <∂g1 ∂g2 h>' V^[sg1 sg2, Pf]
        C_W/2 Σ_{g1 g2} <∂g1 ∂g2 f>' V^[sg1 sg2, Ph]
        C_W**2/4 Σ_{g1 g2 g3 g4} <∂g1 ∂g2 f>' <∂g3 ∂g4 h>' V^[sg1 sg2, sg3 sg4]""",
    "G1": """r G1[Pf]
        C_W/2 Σ_{g1 g2} V^[sg1 sg2, P ∂g1 ∂g2 f]
        C_W*r/2 Σ_{g1 g2} <∂g1 ∂g2 f>' G1[sg1 sg2]
        C_W**2/8 Σ_{g1 g2 g3 g4} <∂g1 ∂g2 ∂g3 ∂g4 f>' V^[sg1 sg2, sg3 sg4]""",
    "D": """r*xi**2 D[Pf]_34
        C_W*r <s3' s4'> D[Pf]_34
        C_W*r*xi**2/2 Σ_{g1 g2} <∂g1 ∂g2 f>' D[sg1 sg2]_34
        C_W**2*r/2 Σ_{g1 g2} <s3' s4'> <∂g1 ∂g2 f>' D[sg1 sg2]_34
        lambda_W V^[s3 s4, Pf]
        C_W Theta_34 V^[s3' s4', Pf]
        C_W*lambda_W/2 Σ_{g1 g2} <∂g1 ∂g2 f>' V^[s3 s4, sg1 sg2]
        C_W**2/2 Σ_{g1 g2} <∂g1 ∂g2 f>' Theta_34 V^[s3' s4', sg1 sg2]""",
    "F": """r*xi**2 F[Pf, Ph]_34
        C_W*xi Σ_{g1} <∂g1 f>' F^[s3' sg1, Ph]_34
        C_W*xi Σ_{g1} <∂g1 h>' F^[s4' sg1, Pf]_43
        C_W**2 Σ_{g1 g2} <∂g1 f>' <∂g2 h>' F^[s3' sg1, s4' sg2]_34""",
    "H1": """r*xi**2 H1[Pf]_12
        C_W*r*xi**2/2 Σ_{g1 g2} <∂g1 ∂g2 f>' D[sg1 sg2]_12
        lambda_W*r <f>' G1[s1 s2]
        C_W*r <f>' Theta_12 G1[s1' s2']
        C_W*r <f>' H1[s1' s2']_12
        lambda_W V^[s1 s2, Pf]
        C_W Theta_12 V^[s1' s2', Pf]
        C_W*r <s1' s2'> D[Pf]_12
        C_W*lambda_W/2 Σ_{g1 g2} <∂g1 ∂g2 f>' V^[s1 s2, sg1 sg2]
        C_W**2/2 Σ_{g1 g2} <∂g1 ∂g2 f>' Theta_12 V^[s1' s2', sg1 sg2]
        C_W**2*r/2 Σ_{g1 g2} <s1' s2'> <∂g1 ∂g2 f>' D[sg1 sg2]_12
        C_W**2 Σ_{g1 g2} <∂g1 ∂g2 f>' F^[s1' sg1, s2' sg2]_12
        C_W*xi Σ_{g1} F^[s2' sg1, P ∂g1 f]_21
        C_W*xi Σ_{g1} F^[s1' sg1, P ∂g1 f]_12""",
    "A": """r*xi**4 A_1234
        C_W*r*xi**2 <s1' s2'> A_1234
        C_W*r*xi**2 <s3' s4'> A_1234
        C_W**2*r <s1' s2'> <s3' s4'> A_1234
        lambda_W*r*xi**2 D[s3 s4]_12
        C_W*r*xi**2 Theta_34 D[s3' s4']_12
        C_W*lambda_W*r <s1' s2'> D[s3 s4]_12
        C_W**2*r <s1' s2'> Theta_34 D[s3' s4']_12
        lambda_W*r*xi**2 D[s1 s2]_34
        C_W*r*xi**2 Theta_12 D[s1' s2']_34
        C_W*lambda_W*r <s3' s4'> D[s1 s2]_34
        C_W**2*r <s3' s4'> Theta_12 D[s1' s2']_34
        lambda_W**2 V^[s1 s2, s3 s4]
        C_W*lambda_W Theta_34 V^[s1 s2, s3' s4']
        C_W*lambda_W Theta_12 V^[s1' s2', s3 s4]
        C_W**2 Theta_12 Theta_34 V^[s1' s2', s3' s4']""",
    "B": """r*xi**4 B[Pf, Ph]_1234
        C_W*xi**2 <h>' B^[s2' s4', Pf]_2143
        C_W*xi**2 <f>' B^[s1' s3', Ph]_1234
        C_W**2 <f>' <h>' B^[s1' s3', s2' s4']_1234""",
}
HATS = {
    "V": "V^[u, v] = r V[u, v] + <u v> - <u> <v>",
    "F": "F^[u, v]_34 = r F[u, v]_34 + <u v> Theta_34",
    "B": "B^[u, v]_1234 = r B[u, v]_1234 + <u v> Theta_12 Theta_34",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_verified_recursions_term_by_term(name):
    expected = {line.strip() for line in EXPECTED[name].splitlines()}
    found = functional_recursion(name, RESIDUAL)
    assert set(found.term_text()) == expected
    for hat in {n for n in HATS if f"{n}^" in EXPECTED[name]}:
        assert f"hat: {HATS[hat]}" in found.notes


def brackets(function, derivatives=()):
    """The mean of a function of activations and z's, differentiated."""
    if not function.atoms:
        return sp.Integer(not derivatives)
    names = {f"d{k}": label for k, label in enumerate(derivatives)}
    return Average(function.atoms, tuple(names)).expand(names)


def labels(function):
    return tuple(dict.fromkeys(label for label, _, _ in function.atoms))


def tensors(functional):
    """A functional of a plain layer in its tensors: the Gaussian expansion in joint cumulants, by hand."""
    name, at, functions = functional.name, functional.labels, functional.functions
    f = functions[0] if functions else None
    h = functions[1] if len(functions) > 1 else None
    half, total = sp.Rational(1, 2), sp.S.Zero
    twice = list(product(labels(f), repeat=2)) if f else []
    if name == "V":
        for (a, b), (c, d) in product(twice, product(labels(h), repeat=2)):
            total += Component("V", a, b, c, d) * brackets(f, (a, b)) * brackets(h, (c, d)) / 4
    elif name == "G1":
        for a, b in twice:
            total += half * Component("G1", a, b) * brackets(f, (a, b))
            for c, d in twice:
                total += Component("V", a, b, c, d) * brackets(f, (a, b, c, d)) / 8
    elif name == "D":
        total = sum(half * Component("D", a, b, *at) * brackets(f, (a, b)) for a, b in twice)
    elif name == "F":
        for a, b in product(labels(f), labels(h)):
            total += Component("F", a, at[0], b, at[1]) * brackets(f, (a,)) * brackets(h, (b,))
    elif name == "H1":
        x, y = at
        total = brackets(f) * Component("H1", x, y)
        for a, b in twice:
            both = Component("D", a, b, x, y) + Component("F", a, x, b, y) + Component("F", a, y, b, x)
            total += half * brackets(f, (a, b)) * both
    elif name == "A":
        total = Component("A", *at)
    elif name == "P":
        total = sum(brackets(f, (a,)) * brackets(h) * Component("P", *at, a) for a in labels(f))
    elif name == "Q":
        total = sum(brackets(f) * brackets(h, (a,)) * Component("Q", *at, a) for a in labels(h))
    else:
        shape = SHAPES[name]
        order = [shape.vertices.index(v) for v in shape.tensor.subscripts]
        total = brackets(f) * brackets(h) * Component(name, *(at[k] for k in order))
    return sp.expand(total)


def value(functional):
    """With its hat, if it has one."""
    inside = tensors(functional)
    if not functional.hat:
        return inside
    u, v = functional.functions
    together = brackets(u * v)
    for x, y in functional.shape.ntk_pairs:
        place = functional.shape.vertices.index
        together *= Component("Theta", functional.labels[place(x)], functional.labels[place(y)])
    return symbols.r * inside + together - (brackets(u) * brackets(v) if functional.name == "V" else 0)


def expanded(name, layer):
    """The tensor at a layer whose carried functions are numbers (the skip has no strength), sums carried out."""
    outer = dict(zip(("f", "h"), tensor_functions(name)))
    total = sp.S.Zero
    for term in functional_recursion(name, layer).terms:
        everything = [*term.means, *(term.functional.functions if term.functional else ())]
        home = {g: f.carried for f in everything for g in f.derivatives}
        for choice in product(*(labels(outer[f]) for f in home.values())):
            names = dict(zip(home, choice))
            factor = term.coefficient
            for mean in term.means:
                if mean.carried:  # its mean is over K', which the z's of a tensor do not notice but by their own count
                    atoms = outer[mean.carried].atoms
                    left = list(atoms)
                    for g in mean.derivatives:
                        left = [a for a in left if a[0] != names[g]] if names[g] in {a[0] for a in left} else None
                        if left is None:
                            break
                    factor *= sp.Integer(left == []) if left is not None else 0
                else:
                    factor *= brackets(mean.rename(names))
            for tensor, own in term.components:
                factor *= Component(tensor, *own)
            if term.functional is not None and factor != 0:
                functional = term.functional.rename(names)
                factor *= 0 if any(f.carried for f in functional.functions) else value(functional)
            total += factor
    return sp.expand(total)


@pytest.mark.parametrize("name", SHAPES)
def test_without_a_skip_the_functionals_are_the_plain_network(name):
    """As identities: the recursion of each functional at xi = 0, its functionals below made of tensors."""
    plain = Layer((Skip(sp.S.Zero), *MLP.terms))
    assert sp.expand(expanded(name, plain) - recursion(name).expression) == 0


def test_two_weight_matrices_beside_a_skip():
    """The engine takes any definition: V of z' = z/2 + b + W s + X t has every pair of matrices."""
    C = sp.Symbol("C_X", positive=True)
    layer = Layer((Skip(sp.Rational(1, 2)), Bias(), Weights(), Weights("X", "tau", C, C)))
    coefficients = sorted(str(t.coefficient) for t in functional_recursion("V", layer).terms)
    assert coefficients == sorted(["r", *["C_W/2", "C_X/2"] * 2, "C_W**2/4", "C_X**2/4", *["C_W*C_X/4"] * 2])


def test_tensors_are_functionals_at_preactivations():
    texts = {name: functional_recursion(name, RESIDUAL).tensor_text for name in SHAPES}
    assert texts["F"] == "F_1324 = F[z1, z2]_34" and texts["B"] == "B_1324 = B[1, 1]_1234"
    assert texts["D"] == "D_1234 = D[z1 z2]_34" and texts["A"] == "A_1234 = A_1234"
    assert texts["P"] == "P_0123 = P[z3, 1]_012" and texts["H1"] == "H1_12 = H1[1]_12"


def test_command_prints_and_hands_out_the_same():
    run = CliRunner()
    shown = run.invoke(group, ["recursion", "F", "--layer", "residual"])
    assert shown.exit_code == 0 and "= r*xi**2 F[Pf, Ph]_34" in shown.output and "F_1324 = F[z1, z2]_34" in shown.output
    data = json.loads(run.invoke(group, ["recursion", "F", "--layer", "residual", "--json"]).output)
    assert data["functional"] == "F[f, h]_34" and data["depends_on"] == ["K", "F"] and len(data["terms"]) == 4
    latex = run.invoke(group, ["recursion", "F", "--layer", "residual", "--latex"]).output
    assert r"\widehat{F}" in latex and latex.count(r"\\") == 3
    assert derive.recursion("F", layer="residual").to_json() == data
    single = derive.recursion("D", layer="residual", single_input=True, equal_widths=True)
    assert "xi**2 D[Pf]_00" in single.term_text()
    assert derive.recursion("K", layer="residual").expression.has(sp.Symbol("xi", real=True))


def test_kernels_have_no_functional():
    with pytest.raises(DeriveError, match="no functional of 'K'"):
        functional_recursion("K", RESIDUAL)
