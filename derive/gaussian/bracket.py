r"""The bracket: one object for <sigma^(k)_a ... z_b ...>, an expectation over one neuron's Gaussian preactivations.

An integrand is an ordinary SymPy polynomial in the atoms `Sigma(label, order)` and `Z(label)`; `partial` is the
derivation d/dz_label on it and `expect` sends it to a linear combination of `Bracket` objects. This is the language
in which recursions are derived, printed, expanded and turned into code.

>>> f = Sigma(1) * Sigma(2, 1)
>>> expect(partial(f, 1))
<s1' s2'>
>>> sp.latex(expect(f))
'\\left\\langle \\sigma_{1} \\sigma^{\\prime}_{2} \\right\\rangle'
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp
from sympy.core.sympify import sympify

_PRIMES = {0: "", 1: r"^{\prime}", 2: r"^{\prime\prime}", 3: r"^{\prime\prime\prime}"}


class _Atom(sp.Expr):
    """Shared by integrand atoms: commutative, real, treated as an indivisible variable."""

    is_commutative = True
    is_real = True

    @property
    def label(self) -> sp.Basic:
        return self.args[0]


def _alone(atom: _Atom, printer: object) -> bool:
    """Whether a label goes without saying: that of the single input, for a printer of single-input formulas."""
    return bool(getattr(printer, "single_input", False) and atom.label == 0)


class Sigma(_Atom):
    """sigma^(order)(z_label); `function` names another activation where a layer has several (tau)."""

    def __new__(cls, label: object, order: object = 0, function: object = "sigma") -> Sigma:
        name = sp.Symbol(function) if isinstance(function, str) else function
        return sp.Expr.__new__(cls, sympify(label, strict=True), sympify(order, strict=True), name)

    @property
    def order(self) -> int:
        return int(self.args[1])

    @property
    def function(self) -> str:
        return str(self.args[2])

    def _latex(self, printer: object) -> str:
        name = self.args[2].name
        symbol = {"sigma": r"\sigma", "tau": r"\tau"}.get(name, rf"\mathrm{{{name}}}")
        order = self.order
        return f"{symbol}{_PRIMES.get(order, f'^{{({order})}}')}" + (
            "" if _alone(self, printer) else f"_{{{self.label}}}"
        )

    def _sympystr(self, printer: object) -> str:
        name = self.args[2].name
        order = self.order
        tail = "'" * order if order <= 4 else f"^({order})"
        return f"{'s' if name == 'sigma' else name}{'' if _alone(self, printer) else self.label}{tail}"

    def __str__(self) -> str:
        return self._sympystr(None)

    __repr__ = __str__


class Z(_Atom):
    """A bare insertion of the preactivation z_label."""

    def __new__(cls, label: object) -> Z:
        return sp.Expr.__new__(cls, sympify(label, strict=True))

    def _latex(self, printer: object) -> str:
        return "z" if _alone(self, printer) else f"z_{{{self.label}}}"

    def _sympystr(self, printer: object) -> str:
        return "z" if _alone(self, printer) else f"z{self.label}"

    def __str__(self) -> str:
        return self._sympystr(None)

    __repr__ = __str__


class Bracket(sp.Expr):
    """<product of atoms> over N(0, K). Its args are the atoms, sorted, repeated ones repeated; the empty one is 1."""

    is_commutative = True
    is_real = True

    def __new__(cls, *atoms: _Atom) -> sp.Expr:
        if not atoms:
            return sp.S.One
        return sp.Expr.__new__(cls, *sorted(atoms, key=_sort_key))

    @property
    def labels(self) -> tuple[sp.Basic, ...]:
        """The distinct labels, in the order of appearance."""
        return tuple(dict.fromkeys(atom.args[0] for atom in self.args))

    @property
    def integrand(self) -> sp.Expr:
        return sp.Mul(*self.args)

    def relabel(self, mapping: Mapping[object, object]) -> sp.Expr:
        """The bracket with labels replaced; coinciding labels are allowed."""
        table = {sympify(old, strict=True): sympify(new, strict=True) for old, new in mapping.items()}
        return Bracket(*(a.func(table.get(a.args[0], a.args[0]), *a.args[1:]) for a in self.args))

    def _latex(self, printer: object) -> str:
        return r"\left\langle " + " ".join(a._latex(printer) for a in self.args) + r" \right\rangle"

    def _sympystr(self, printer: object) -> str:
        return "<" + " ".join(a._sympystr(printer) for a in self.args) + ">"

    def __str__(self) -> str:
        return self._sympystr(None)

    __repr__ = __str__


def _sort_key(atom: _Atom) -> tuple:
    label = atom.args[0]
    key = (0, int(label), "") if label.is_Integer else (1, 0, str(label))
    return (isinstance(atom, Z), *key, getattr(atom, "order", 0), str(atom))


def expect(integrand: sp.Expr) -> sp.Expr:
    """The linear map from integrands to brackets: E[c f + g] = c <f> + <g>; what holds no atom is a coefficient."""
    total = sp.S.Zero
    for term in sp.Add.make_args(sp.expand(integrand)):
        coefficient, atoms = sp.S.One, []
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if isinstance(base, _Atom):
                atoms += [base] * int(power)
            else:
                coefficient *= factor
        total += coefficient * Bracket(*atoms)
    return total


def partial(integrand: sp.Expr, label: object) -> sp.Expr:
    """d/dz_label of an integrand, by the product rule."""
    target = sympify(label, strict=True)
    total = sp.S.Zero
    for atom in integrand.atoms(_Atom):
        if atom.args[0] == target:
            dummy = sp.Dummy()
            inner = Sigma(atom.args[0], atom.args[1] + 1, atom.args[2]) if isinstance(atom, Sigma) else sp.S.One
            total += sp.diff(integrand.xreplace({atom: dummy}), dummy).xreplace({dummy: atom}) * inner
    return sp.expand(total)
