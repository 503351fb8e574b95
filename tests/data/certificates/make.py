"""References for certified brackets, made without ball arithmetic: `python tests/data/certificates/make.py`.

singles.json: 200 expectations of one input to 40 digits by mpmath's quadrature of the definitions. pairs.json: 1000 of
two inputs to 40 digits, from closed forms in K_00, K_01, K_11 (arc-cosine kernels, erf, exponentials, polynomials).
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import mpmath
import sympy as sp

from derive.activations import activation
from derive.gaussian import Sigma, exact, kernel_symbol, parse_bracket
from derive.symbols import z

HERE = Path(__file__).parent
SINGLE = ("tanh", "gelu", "swish", "softplus", "mish", "arctan", "sin", "elu", "selu", "softsign", "sigmoid", "relu",
          "abs(z^3-pi*z+1)", "sqrt(1+z^2)-1", "max(z,tanh(z+1))", "log(1+abs(z))*sign(z)")  # fmt: skip
SINGLE_PATTERNS = ("s0", "s0 s0", "s0' s0'", "s0 s0' z0", "s0**4", "s0' s0' z0 z0")
PAIR = ("relu", "leaky_relu", "erf", "gelu", "sin", "exp", "cos(z)", "z^3-z", "abs(z)", "z*exp(-z^2)")
PAIR_PATTERNS = ("s0 s1", "s0' s1'", "s0 s1'", "s0 s1 z0", "s0' s1' z1")


def single(pattern: str, name: str, K: mpmath.mpf) -> mpmath.mpf:
    """The definition, integrated between the kinks, with panels of one standard deviation and of length one."""
    sigma, bracket = activation(name), parse_bracket(pattern)
    kinks = [mpmath.mpf(str(k.evalf(60))) for k in sigma.kinks]
    orders = sorted({a.order for a in bracket.args if isinstance(a, Sigma)})
    tables = {k: [sp.lambdify(z, p, "mpmath") for p in sigma.derivative_pieces(k)] for k in orders}
    s = mpmath.sqrt(K)

    def integrand(x: mpmath.mpf, piece: int) -> mpmath.mpf:
        total = mpmath.exp(-(x**2) / (2 * K)) / (s * mpmath.sqrt(2 * mpmath.pi))
        for atom in bracket.args:
            total *= tables[atom.order][piece](x) if isinstance(atom, Sigma) else x
        return total

    ends = [-15 * s, *kinks, 15 * s]
    total = mpmath.mpf(0)
    for piece, (a, b) in enumerate(pairwise(ends)):
        a, b = max(a, -15 * s), min(b, 15 * s)
        if a < b:
            count = int(mpmath.ceil((b - a) / min(s * 4, mpmath.mpf(4))))
            total += mpmath.quad(lambda x, i=piece: integrand(x, i), mpmath.linspace(a, b, count + 1))
    return total


def singles() -> None:
    """200 expectations of one input."""
    generator = random.Random(20)
    rows = []
    with mpmath.workdps(46):
        for i in range(200):
            pattern, name = SINGLE_PATTERNS[i % 6], SINGLE[(i * 7) % len(SINGLE)]
            K = sp.Rational(f"{10 ** generator.uniform(-2, 1):.6f}")
            value = single(pattern, name, mpmath.mpf(int(K.p)) / int(K.q))
            text = "0" if abs(value) < mpmath.mpf("1e-40") else mpmath.nstr(value, 40)
            rows.append({"pattern": pattern, "activation": name, "K": str(K), "value": text})
    (HERE / "singles.json").write_text(json.dumps(rows, indent=0) + "\n")


def pairs() -> None:
    """1000 expectations of two inputs."""
    generator = random.Random(21)
    rows = []
    symbols = [kernel_symbol(0, 0), kernel_symbol(0, 1), kernel_symbol(1, 1)]
    for name in PAIR:
        for pattern in PAIR_PATTERNS:
            form = exact(parse_bracket(pattern), name)
            assert form is not None, (name, pattern)
            for _ in range(20):
                a, b = (sp.Rational(f"{10 ** generator.uniform(-1.5, 0.7):.5f}") for _ in range(2))
                top = 0.9 * float(sp.sqrt(a * b))
                c = sp.Rational(f"{generator.uniform(-top, top):.6f}")
                value = form.xreplace(dict(zip(symbols, (a, c, b)))).evalf(45, maxn=300)
                text = "0" if abs(value) < 1e-44 else mpmath.nstr(mpmath.mp.make_mpf(value._mpf_), 40)
                rows.append({"pattern": pattern, "activation": name, "K": [str(x) for x in (a, c, b)], "value": text})
    (HERE / "pairs.json").write_text(json.dumps(rows, indent=0) + "\n")


if __name__ == "__main__":
    pairs()
    singles()
