"""The generated training theory, run on symbols: projectors, one network's terms, updates, moments and pairings."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from derive.training import GradientDescent, GradientFlow, NewtonStep, expansion
from derive.training.projectors import NAMES, h, projectors, term_weight
from numeric.generated import training

RULES = {"descent": GradientDescent(), "flow": GradientFlow(), "Newton": NewtonStep()}


class Symbolic:
    """The calculus of weights on symbols: a signal is {modes that decay: coefficient}, as geometric series add up."""

    def __init__(self, rule):
        self.rule = rule

    def accumulate(self, root, *branches):
        signal = {(root,): sp.S.One}
        for branch in branches:
            joint = {}
            for (a, x), (b, y) in product(signal.items(), branch.items()):
                modes = tuple(sorted(a + b))
                joint[modes] = joint.get(modes, 0) + x * y
            signal = joint
        total = {}
        for modes, x in signal.items():
            term = x * self.rule.rate(root) / self.rule.decay(modes)
            total[()] = total.get((), 0) + term
            total[modes] = total.get(modes, 0) - term
        return total

    def respond(self, mode, force):
        return {(): force[()] / h(mode)}

    def product(self, coefficient, *factors):
        return sp.nsimplify(coefficient) * sp.prod([factor.get((), 0) for factor in factors])


@pytest.mark.parametrize("name", RULES)
def test_projectors_on_symbols(name):
    rule = RULES[name]
    for projector, expected in projectors(rule).items():
        labels = "ab" if projector in ("Z_A", "Z_B") else "abc"
        assert sp.simplify(training.WEIGHTS[projector](Symbolic(rule), *labels) - expected) == 0, projector
    assert training.force(Symbolic(rule), "a") == -1 / h("a")
    assert training.response(Symbolic(rule), "a", "b") == 1 / (h("a") * h("b"))


class Net:
    """One network of symbols; the external slots do not matter, inputs and modes are the same samples."""

    def __init__(self, outputs, samples):
        self.outputs, self.samples = outputs, samples
        self.arrays = {name: self._symbols(name, rank) for name, rank in (("H", 2), ("dH", 3), ("ddI", 4), ("ddII", 4))}
        self.e = np.array([[sp.Symbol(f"e{i}{a}") for a in range(samples)] for i in range(outputs)], dtype=object)

    def _symbols(self, name, rank):
        array = np.empty((self.outputs,) * rank + (self.samples,) * rank, dtype=object)
        for index in np.ndindex(array.shape):
            array[index] = sp.Symbol(f"{name}_" + "".join(map(str, index)))
        return array

    def __getattr__(self, name):
        return lambda *external: self.arrays[name]

    def summed(self, terms, weigh, kept=()):
        """Σ over components and samples of coefficient × weight × tensor × errors, label by label, in loops."""
        marked = sorted({s for s in terms[0].subscripts if s in "xyz"})
        outside = [*marked, *kept]
        shape = (self.outputs,) * len(outside) + (self.samples,) * len(outside)
        total = np.full(shape, sp.S.Zero, dtype=object)
        for term in terms:
            labels = sorted(term.subscripts)
            for i, a in product(
                product(range(self.outputs), repeat=len(labels)), product(range(self.samples), repeat=len(labels))
            ):
                component, sample = dict(zip(labels, i)), dict(zip(labels, a))
                value = self.arrays[term.tensor][
                    tuple(component[s] for s in term.subscripts) + tuple(sample[s] for s in term.subscripts)
                ]
                for s in labels:
                    if s not in outside:
                        value = value * self.e[component[s], sample[s]]
                place = tuple(component[s] for s in outside) + tuple(sample[s] for s in outside)
                total[place] += weigh(term, sample) * value
        return total


def same(found, expected):
    assert found.shape == expected.shape
    for x, y in zip(found.ravel(), expected.ravel()):
        assert sp.expand(sp.nsimplify(x) - y) == 0


def tree_weights(samples):
    """p, q as arrays of symbols and the weight of a term from them."""
    p = np.array([sp.Symbol(f"p{a}") for a in range(samples)], dtype=object)
    q = np.array([[sp.Symbol(f"q{a}{b}") for b in range(samples)] for a in range(samples)], dtype=object)

    def weigh(term, sample):
        factors = [
            p[sample[labels[0]]] if tree == () else q[sample[labels[0]], sample[labels[1]]]
            for tree, labels in term.branches
        ]
        return term.coefficient * sp.prod(factors)

    return SimpleNamespace(p=p, q=q), weigh


@pytest.mark.equation("infinity.117")
@pytest.mark.equation("infinity.102")
@pytest.mark.parametrize(("outputs", "samples"), [(1, 2), (2, 1)])
def test_one_network_on_symbols(outputs, samples):
    net = Net(outputs, samples)
    w, weigh = tree_weights(samples)
    ntk = [*expansion(("x", "y"), 1), *expansion(("x", "y"), 2)]
    same(training.ntk_change(net, w, net.e), net.summed(ntk, weigh))
    same(training.dntk_change(net, w, net.e), net.summed(expansion(("x", "y", "z"), 1), weigh))
    terms = {NAMES[t.tensor, t.subscripts.index("x")]: t for order in (2, 3) for t in expansion(("x",), order)}
    Z = {}
    for name, term in terms.items():
        rank = len(term.subscripts) - 1
        Z[name] = np.empty((samples,) * rank, dtype=object)
        for index in np.ndindex(Z[name].shape):
            Z[name][index] = sp.Symbol(name + "_" + "".join(map(str, index)))
    changes = training.output_change(net, SimpleNamespace(**Z), net.e)
    stripped = 0
    for name, term in terms.items():
        letters = [s for s in sorted(term.subscripts) if s != "x"]

        def entry(_, sample, name=name, letters=letters):
            return Z[name][tuple(sample[s] for s in letters)]

        same(changes[name], net.summed([term], entry))
        stripped = stripped + net.summed([term], entry, kept=letters[-1:])
    same(training.stripped_change(net, SimpleNamespace(**Z), net.e), stripped)


@pytest.mark.equation("infinity.81")
@pytest.mark.equation("infinity.82")
@pytest.mark.equation("infinity.83")
def test_updates_are_taylor_series_of_a_model():
    """z, H, dH of a model with symbols as derivatives, displaced by -Σ e λ∇z: nothing of the expansion is used."""
    D, e, step = 2, sp.Symbol("e00"), sp.Symbol("step")
    theta = sp.symbols("t0:2")
    J, A, C = (
        {i: sp.Symbol(f"{n}{''.join(map(str, sorted(i)))}") for i in product(range(D), repeat=r)}
        for n, r in (("J", 1), ("A", 2), ("C", 3))
    )
    z = sum(J[i,] * theta[i] for i in range(D))
    z += sum(A[i, j] * theta[i] * theta[j] for i, j in product(range(D), repeat=2)) / 2
    z += sum(C[i, j, k] * theta[i] * theta[j] * theta[k] for i, j, k in product(range(D), repeat=3)) / 6
    g = [sp.diff(z, t) for t in theta]
    hess = sp.Matrix(D, D, lambda i, j: sp.diff(z, theta[i], theta[j]))
    v = sp.Matrix(g)
    H, dH = (v.T * v)[0], (v.T * hess * v)[0]
    third = sum(
        sp.diff(z, *(theta[k] for k in ijk)) * sp.prod([g[k] for k in ijk]) for ijk in product(range(D), repeat=3)
    )
    ddII = ((hess * v).T * (hess * v))[0]
    start = {t: 0 for t in theta}
    net = SimpleNamespace()
    for name, value, rank in (("H", H, 2), ("dH", dH, 3), ("ddI", third, 4), ("ddII", ddII, 4)):
        array = np.array(value.subs(start), dtype=object).reshape((1,) * (2 * rank))
        setattr(net, name, lambda *external, array=array: array)
    moved = {t: -step * e * x.subs(start) for t, x in zip(theta, g)}
    for update, value, order in ((training.step_z, z, 3), (training.step_H, H, 2), (training.step_dH, dH, 1)):
        exact = sp.expand(value.subs(moved, simultaneous=True) - value.subs(start))
        truncated = sum(exact.coeff(step, k) * step**k for k in range(1, order + 1))
        ours = sp.nsimplify(update(net, np.array([[step * e]], dtype=object)).ravel()[0])
        assert sp.expand(ours - truncated) == 0


def test_moments_by_the_formula_for_three_gaussians():
    """E[xyz] = abc + a C_yz + b C_xz + c C_xy for two outputs and two modes; legs: derivatives with respect to z."""
    n, M = 2, 2
    y = np.array([[sp.Symbol(f"y{i}{a}") for a in range(M)] for i in range(n)], dtype=object)
    K = np.array([[sp.Symbol(f"K{min(a, b)}{max(a, b)}") for b in range(M)] for a in range(M)], dtype=object)
    one, components = np.eye(M, dtype=int).astype(object), np.eye(n, dtype=int).astype(object)

    def mean(i, a):
        return -y[i, a]

    def cov(i, a, j, b):
        return K[a, b] if i == j else sp.S.Zero

    def delta(i, a, j, b):
        return sp.Integer(int((i, a) == (j, b)))

    for carrier in range(3):
        found = {kinds: training.MOMENTS[kinds][carrier](y, K, one, components) for kinds in ("eee", "eel", "lle")}
        for i, a, b, c in product(range(n), range(M), range(M), range(M)):
            totals = dict.fromkeys(found, sp.S.Zero)
            for j in range(n):
                p, q, r = ((i if slot == carrier else j, x) for slot, x in enumerate((a, b, c)))
                totals["eee"] += mean(*p) * mean(*q) * mean(*r) + mean(*p) * cov(*q, *r)
                totals["eee"] += mean(*q) * cov(*p, *r) + mean(*r) * cov(*p, *q)
                totals["eel"] += mean(*p) * delta(*q, *r) + mean(*q) * delta(*p, *r)
                totals["lle"] += mean(*r) * delta(*p, *q)
            for kinds, total in totals.items():
                assert sp.expand(found[kinds][i, a, b, c] - total) == 0
    v = np.array([[[sp.Symbol(f"v{i}{a}") for a in range(M)] for i in range(n)]], dtype=object)
    s = sp.Symbol("s")
    for kinds, slopes in training.SLOPES.items():
        for moment, slope in zip(training.MOMENTS[kinds], slopes):
            moved = moment(y + s * v[0], K, one, components)
            for x, d in zip(moved.ravel(), slope(v, y, K, one, components).ravel()):
                assert sp.expand(sp.diff(x, s).subs(s, 0) - d) == 0
    pairs = training.MOMENTS["ee"][0](y, K, one, components)
    assert sp.expand(pairs[0, 1, 0, 1] - y[0, 0] * y[1, 1]) == 0
    assert sp.expand(pairs[1, 1, 0, 1] - y[1, 0] * y[1, 1] - K[0, 1]) == 0


def test_pairings_are_those_of_the_theory():
    """The decompositions (8.82), (11.42), (infinity.176), (infinity.178), typed by hand."""
    expected = {
        "z.z.H": {("D", 1, (0, 1, 2, 3)), ("F", 2, (0, 2, 1, 3)), ("F", 3, (0, 3, 1, 2))},
        "H.H": {("A", 1, (0, 1, 2, 3)), ("B", 2, (0, 2, 1, 3)), ("B", 3, (0, 3, 1, 2))},
        "dH.z": {("P", 3, (0, 1, 2, 3)), ("Q", 1, (0, 1, 2, 3)), ("Q", 2, (0, 2, 1, 3))},
        "ddI": {("R", 1, (0, 1, 2, 3)), ("R", 2, (0, 2, 1, 3)), ("R", 3, (0, 3, 1, 2))},
        "ddII": {("S", 1, (0, 1, 2, 3)), ("T", 2, (0, 2, 3, 1)), ("U", 3, (0, 3, 1, 2))},
    }
    for name, pairings in training.CUMULANTS.items():
        found = {(p.tensor, next(b for a, b in p.pairs if a == 0), p.order) for p in pairings}
        assert found == expected[name]


def test_a_term_weighs_what_the_projectors_say():
    (first,) = expansion(("x",), 1)
    assert term_weight(GradientFlow(), first) == -1 / h("a")


@pytest.mark.equation("10.43")
def test_carried_tangents_on_symbols():
    """sigma = z^3: moments of (3 z_a^2 q_a) with z_b^3 and 3 z_b^2 q_b, against Isserlis' theorem for all pairings."""
    size, groups = 2, 2
    K = np.array([[sp.Symbol(f"K{min(a, b)}{max(a, b)}") for b in range(size)] for a in range(size)], dtype=object)
    z = np.array([[[sp.Symbol(f"z{g}{a}{b}") for b in range(2)] for a in range(2)] for g in range(2)], dtype=object)
    q = np.empty((2, 2, 2, 2), dtype=object)
    for g, k, a, b in np.ndindex(q.shape):
        q[g, k, a, b] = sp.Symbol("q" + "".join(map(str, min((g, a, k, b), (k, b, g, a)))))

    def covariance(u, v):
        if len(u) == len(v) == 1:
            return K[u[0], v[0]]
        if len(u) == len(v) == 2:
            return q[u[0], v[0], u[1], v[1]]
        tangent, other = (u, v) if len(u) == 2 else (v, u)
        return z[tangent[0], tangent[1], other[0]]

    def isserlis(variables):
        if not variables:
            return sp.S.One
        first, rest = variables[0], variables[1:]
        return sum(covariance(first, rest[k]) * isserlis(rest[:k] + rest[k + 1 :]) for k in range(len(rest)))

    power = {0: (1, 3), 1: (3, 2), 2: (6, 1), 3: (6, 0)}  # derivatives of z^3
    brackets = {}
    for j, k in [(2, 0), (1, 1), (2, 2), (3, 1)]:
        table = np.empty((size, size), dtype=object)
        for a, b in np.ndindex(table.shape):
            (c, m), (d, n) = power[j], power[k]
            table[a, b] = c * d * isserlis([(a,)] * m + [(b,)] * n)
        brackets[j, k] = table
    with_z, with_q = training.carried_z(z, brackets), training.carried_q(z, q, brackets)
    for g, a, b in product(range(groups), range(size), range(size)):
        direct = 3 * isserlis([(a,), (a,), (g, a), (b,), (b,), (b,)])
        assert sp.expand(with_z[g, a, b] - direct) == 0
        for k in range(groups):
            direct = 9 * isserlis([(a,), (a,), (g, a), (b,), (b,), (k, b)])
            assert sp.expand(with_q[g, k, a, b] - direct) == 0


@pytest.mark.equation("10.12")
def test_penultimate_update_is_the_printed_one():
    """(10.11), (10.12) with a metric, written out with loops."""
    random = np.random.default_rng(3)
    y, kappa, theta = random.normal(size=(3, 2)), random.normal(size=(2, 2)), random.normal(size=(4, 2))
    K, b = random.normal(size=(2, 2)), {(1, 0): random.normal(size=(2, 2)), (1, 1): random.normal(size=(2, 2))}
    mean, own = np.zeros(4), np.zeros((4, 4))
    errors = training.penultimate_errors(y, K, kappa)
    for d, i, a, c in product(range(4), range(3), range(2), range(2)):
        mean[d] -= theta[d, a] * kappa[a, c] * b[1, 0][a, c]
        for e, f, g in product(range(4), range(2), range(2)):
            pair = (y[i, c] * y[i, g] + K[c, g]) * kappa[a, c] * kappa[f, g]
            own[d, e] += theta[d, a] * theta[e, f] * b[1, 1][a, f] * pair
    assert np.allclose(training.penultimate_mean(theta, y, kappa, b), mean, rtol=1e-12)
    assert np.allclose(training.penultimate_own(theta, errors, b), own, rtol=1e-12)


def test_the_committed_training_theory_is_what_the_derivation_gives():
    """Every line of derive.training is in it. If this fails: `make generate`."""
    from derive.codegen import training_module

    committed = Path(training.__file__).read_text(encoding="utf-8")
    assert training_module() == committed, "numeric/generated/training.py is out of date: run `make generate`"
