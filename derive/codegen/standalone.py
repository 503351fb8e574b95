"""A module that stands alone: every tensor of one input through the layers, with JAX and nothing of ours.

The recursions are those of `derive.network`; their brackets, turned into ordinary integrals and delta functions by
`derive.gaussian.support`, are taken by Gauss-Legendre panels between the kinks, in float64.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import sympy as sp
from sympy.printing.numpy import NumPyPrinter

from derive.activations import Activation
from derive.activations import activation as read_activation
from derive.codegen.module import header
from derive.depth.critical_solution import first_layer, network_equations
from derive.depth.tensor_recursions import Admitted, admit
from derive.errors import DeriveError
from derive.gaussian.covariance import covariance
from derive.gaussian.support import regular_integrals
from derive.network.component import Component
from derive.symbols import K, z

_HEAD = '''import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, erfc

jax.config.update("jax_enable_x64", True)
RANGE = 11.0  # standard deviations that the integrals reach
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
SCALES = RANGE / 2.0 ** np.arange(9)  # panels shrink towards the origin
KINKS = {kinks}
NAMES = {names}


def integrands(z):
    """What is averaged over N(0, K), one row each."""
    return jnp.stack([{integrands}])


def brackets(K):
    """The Gaussian expectations that the recursions need, at kernel K."""
    root = jnp.sqrt(K)
    edges = jnp.concatenate([-SCALES * root, jnp.zeros(1), SCALES * root, jnp.asarray(KINKS, dtype=float)])
    edges = jnp.sort(jnp.clip(edges, -RANGE * root, RANGE * root))
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    z = (middle[:, None] + half[:, None] * NODES).ravel()
    weights = (half[:, None] * WEIGHTS).ravel() * jnp.exp(-(z**2) / (2 * K)) / jnp.sqrt(2 * jnp.pi * K)
    m = integrands(z) @ weights
    return [{brackets}]


def first(gram, C_b, C_W, lambda_b, lambda_W):
    """The tensors of layer 1."""
    return [{first}]


def step(C_b, C_W, lambda_b, lambda_W, t, b):
    """The tensors of the next layer, from those of this one (t) and their brackets (b)."""
    return [{step}]


def flow(*, depth, C_b, C_W, lambda_b=1.0, lambda_W=1.0, input_norm=1.0):
    """{{tensor: its values at layers 1 to depth}} of one input with x.x/n_0 = input_norm, all widths equal.

    C_b, C_W, lambda_b and lambda_W are numbers or one for each layer. Every tensor but K and Theta is to be divided
    by the width.
    """
    rates = [jnp.broadcast_to(jnp.asarray(x, dtype=float), (depth,)) for x in (C_b, C_W, lambda_b, lambda_W)]
    states = [first(input_norm, *(x[0] for x in rates))]
    for layer in range(1, depth):
        states.append(step(*(x[layer] for x in rates), states[-1], brackets(states[-1][NAMES.index("K")])))
    return {{name: jnp.stack([jnp.asarray(s[i], dtype=float) for s in states]) for i, name in enumerate(NAMES)}}


if __name__ == "__main__":
    found = flow(depth=5, C_b={bias}, C_W={weight}, lambda_b=1.0, lambda_W=1.0, input_norm=1.0)
    for name, values in found.items():
        print(f"{{name:6}}", *(f"{{float(v):.8g}}" for v in values))
'''


class _Printer(NumPyPrinter):
    """jax.numpy under its usual name; error functions from jax.scipy."""

    def _print_erf(self, expr: sp.Expr) -> str:
        return f"erf({self._print(expr.args[0])})"

    def _print_erfc(self, expr: sp.Expr) -> str:
        return f"erfc({self._print(expr.args[0])})"


def standalone_module(definition: str | sp.Expr | Activation) -> str:
    """Python source; tensors that do not exist for the activation are left out, and named in the header."""
    sigma = read_activation(definition)
    admitted = admit(network_equations(), sigma)
    for name in ("K", "Theta"):
        if name in admitted.missing:
            raise DeriveError(f"{sigma.name} has no {name}: {admitted.missing[name]}")
    body = _body(sigma, admitted)
    missing = ", ".join(admitted.missing) or "none"
    lines = [
        f"definition: sigma(z) = {sigma.expression}",
        f"tensors that diverge and are left out: {missing}",
        "usage: python THIS_FILE prints an example; flow(depth=8, C_b=0.1, C_W=1.5) gives all tensors of one input",
    ]
    return header(
        f"{sigma.name}: the effective theory of one input, as JAX code that stands alone.", lines, body, foreign=False
    )


def _body(sigma: Activation, admitted: Admitted) -> str:
    names, wanted = list(admitted.equations), sorted(admitted.brackets, key=str)
    kinks = sorted({sp.sympify(k, strict=True) for k in sigma.kinks}, key=float)
    rows: dict[sp.Expr, int] = {}
    sums = []
    for bracket in wanted:
        total = sp.S.Zero
        for term in regular_integrals(bracket, sigma, covariance(K, bracket.labels)):
            factor = sp.S.One
            if term.factors:
                place = rows.setdefault(_piecewise(term.factors[0].knots, term.factors[0].pieces), len(rows))
                factor = sp.Symbol(f"m[{place}]")
            total += term.coefficient * factor
        sums.append(total)
    state = {name: sp.Symbol(f"t[{i}]") for i, name in enumerate(names)}
    table: dict[sp.Expr, sp.Expr] = {b: sp.Symbol(f"b[{i}]") for i, b in enumerate(wanted)} | {K: state["K"]}
    equations = [admitted.equations[name].expression for name in names]
    table |= {c: state[c.name] for e in equations for c in e.atoms(Component)}
    start = [e.xreplace({c: sp.Symbol("gram") for c in e.atoms(Component)}) for e in (first_layer()[n] for n in names)]
    return _HEAD.format(
        kinks=[float(k) for k in kinks],
        names=names,
        integrands=_lines([f"jnp.broadcast_to({_code(e)}, z.shape)" for e in rows]),
        brackets=_lines([_code(e) for e in sums]),
        first=_lines([_code(e) for e in start]),
        step=_lines([_code(e.xreplace(table)) for e in equations]),
        bias=0.1,
        weight=1.5,
    )


def _piecewise(knots: Sequence[sp.Expr], pieces: Sequence[sp.Expr]) -> sp.Expr:
    """The pieces between the knots as one expression; nodes never lie on a knot."""
    ends = itertools.chain(((z < k) for k in knots), [sp.true])
    return sp.Piecewise(*zip(pieces, ends)) if len(pieces) > 1 else pieces[0]


def _lines(parts: Sequence[str]) -> str:
    return "\n        " + ",\n        ".join(parts) + ",\n    "


def _code(expression: sp.Expr) -> str:
    return str(_Printer({"fully_qualified_modules": True}).doprint(expression)).replace("numpy.", "jnp.")
