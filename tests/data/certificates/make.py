"""References for certified brackets that share nothing with the package: `python tests/data/certificates/make.py`.

Nothing of `derive` and nothing of FLINT is imported. singles.json: 200 expectations of one input by mpmath's quadrature
of the definition between its kinks, at 60 digits. pairs.json: 1000 of two inputs in MPFR's numbers (gmpy2) of 210 bits,
the double integral reduced to one dimension by conditioning: given one variable, the mean of the other's function is a
formula typed below (each is compared with a quadrature first), or, for tanh, swish, softplus and sigmoid, which have
none, an inner trapezoidal rule. Outer rules are halved until two sums agree to 30 digits, the error being the square.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import gmpy2
import mpmath
import sympy as sp
from gmpy2 import const_pi as pi
from gmpy2 import exp, mpfr, mpq, sqrt
from mpmath import mp, mpf

HERE = Path(__file__).parent
DIGITS, BITS = 60, 210
z = sp.Symbol("z", real=True)
SELU = sp.Rational("1.0507009873554804934193349852946"), sp.Rational("1.6732632423543772848170429916717")
LOGISTIC = 1 / (1 + sp.exp(-z))
SINGLE: dict[str, tuple[tuple[sp.Expr, ...], tuple[object, ...]]] = {  # pieces, kinks
    "tanh": ((sp.tanh(z),), ()),
    "gelu": ((z * sp.erfc(-z / sp.sqrt(2)) / 2,), ()),
    "swish": ((z * LOGISTIC,), ()),
    "softplus": ((sp.log(1 + sp.exp(z)),), ()),
    "mish": ((z * sp.tanh(sp.log(1 + sp.exp(z))),), ()),
    "arctan": ((sp.atan(z),), ()),
    "sin": ((sp.sin(z),), ()),
    "elu": ((sp.exp(z) - 1, z), (0,)),
    "selu": ((SELU[0] * SELU[1] * (sp.exp(z) - 1), SELU[0] * z), (0,)),
    "softsign": ((z / (1 - z), z / (1 + z)), (0,)),
    "sigmoid": ((LOGISTIC,), ()),
    "relu": ((sp.S.Zero * z, z), (0,)),
    "abs(z^3-pi*z+1)": (tuple(s * (z**3 - sp.pi * z + 1) for s in (-1, 1, -1, 1)), ("roots",)),
    "sqrt(1+z^2)-1": ((sp.sqrt(1 + z**2) - 1,), ()),
    "max(z,tanh(z+1))": ((sp.tanh(z + 1), z), ("crossing",)),
    "log(1+abs(z))*sign(z)": ((-sp.log(1 - z), sp.log(1 + z)), (0,)),
}
SINGLE_PATTERNS = {  # orders of the factors, power of z
    "s0": ((0,), 0),
    "s0 s0": ((0, 0), 0),
    "s0' s0'": ((1, 1), 0),
    "s0 s0' z0": ((0, 1), 1),
    "s0**4": ((0, 0, 0, 0), 0),
    "s0' s0' z0 z0": ((1, 1), 2),
}
PAIR_PATTERNS = {  # orders of the two factors, which variable is the outer one, power of z at the outer one
    "s0 s1": ((0, 0), 0, 0),
    "s0' s1'": ((1, 1), 0, 0),
    "s0 s1'": ((0, 1), 0, 0),
    "s0 s1 z0": ((0, 0), 0, 1),
    "s0' s1' z1": ((1, 1), 1, 1),
}
Function = Callable[[mpfr], mpfr]
Mean = Callable[[mpfr, mpfr], mpfr]


def cdf(x: mpfr) -> mpfr:
    return gmpy2.erfc(-x / sqrt(2)) / 2


def pdf(x: mpfr) -> mpfr:
    return exp(-(x**2) / 2) / sqrt(2 * pi())


def ramp(m: mpfr, v: mpfr) -> mpfr:
    """E max(z, 0), z ~ N(m, v)."""
    s = sqrt(v)
    return m * cdf(m / s) + s * pdf(m / s)


def step(m: mpfr, v: mpfr) -> mpfr:
    return cdf(m / sqrt(v))


def decay(m: mpfr, v: mpfr) -> mpfr:
    """E exp(z) where z < 0."""
    return exp(m + v / 2) * cdf(-(m + v) / sqrt(v))


def bell(m: mpfr, v: mpfr) -> mpfr:
    """E exp(-z^2)."""
    return exp(-(m**2) / (1 + 2 * v)) / sqrt(1 + 2 * v)


def _selu(first: mpfr, second: mpfr) -> mpfr:
    scale, alpha = (mpfr(mpq(int(x.p), int(x.q))) for x in SELU)
    return scale * (first + alpha * second)


# name: (sigma, sigma' as functions; their means over N(m, v))
CONDITIONED: dict[str, tuple[Function, Function, Mean, Mean]] = {
    "relu": (lambda x: max(x, mpfr(0)), lambda x: mpfr(1 if x > 0 else 0), ramp, step),
    "leaky_relu": (
        lambda x: x if x > 0 else x / 100,
        lambda x: mpfr(1) if x > 0 else mpfr(1) / 100,
        lambda m, v: m / 100 + ramp(m, v) * 99 / 100,
        lambda m, v: (1 + 99 * step(m, v)) / 100,
    ),
    "abs(z)": (
        abs,
        lambda x: mpfr(1 if x > 0 else -1),
        lambda m, v: 2 * ramp(m, v) - m,
        lambda m, v: 2 * step(m, v) - 1,
    ),
    "elu": (
        lambda x: x if x > 0 else gmpy2.expm1(x),
        lambda x: mpfr(1) if x > 0 else exp(x),
        lambda m, v: ramp(m, v) + decay(m, v) - step(-m, v),
        lambda m, v: step(m, v) + decay(m, v),
    ),
    "selu": (
        lambda x: _selu(max(x, mpfr(0)), gmpy2.expm1(min(x, mpfr(0)))),
        lambda x: _selu(mpfr(1 if x > 0 else 0), mpfr(0) if x > 0 else exp(x)),
        lambda m, v: _selu(ramp(m, v), decay(m, v) - step(-m, v)),
        lambda m, v: _selu(step(m, v), decay(m, v)),
    ),
    "erf": (
        gmpy2.erf,
        lambda x: 2 * exp(-(x**2)) / sqrt(pi()),
        lambda m, v: gmpy2.erf(m / sqrt(1 + 2 * v)),
        lambda m, v: 2 * bell(m, v) / sqrt(pi()),
    ),
    "gelu": (
        lambda x: x * cdf(x),
        lambda x: cdf(x) + x * pdf(x),
        lambda m, v: m * cdf(m / sqrt(1 + v)) + v * pdf(m / sqrt(1 + v)) / sqrt(1 + v),
        lambda m, v: cdf(m / sqrt(1 + v)) + m * pdf(m / sqrt(1 + v)) / sqrt(1 + v) ** 3,
    ),
    "sin": (
        gmpy2.sin,
        gmpy2.cos,
        lambda m, v: exp(-v / 2) * gmpy2.sin(m),
        lambda m, v: exp(-v / 2) * gmpy2.cos(m),
    ),
    "cos(z)": (
        gmpy2.cos,
        lambda x: -gmpy2.sin(x),
        lambda m, v: exp(-v / 2) * gmpy2.cos(m),
        lambda m, v: -exp(-v / 2) * gmpy2.sin(m),
    ),
    "exp": (
        exp,
        exp,
        lambda m, v: exp(m + v / 2),
        lambda m, v: exp(m + v / 2),
    ),
    "z^3-z": (
        lambda x: x**3 - x,
        lambda x: 3 * x**2 - 1,
        lambda m, v: m**3 + 3 * m * v - m,
        lambda m, v: 3 * (m**2 + v) - 1,
    ),
    "z*exp(-z^2)": (
        lambda x: x * exp(-(x**2)),
        lambda x: (1 - 2 * x**2) * exp(-(x**2)),
        lambda m, v: bell(m, v) * m / (1 + 2 * v),
        lambda m, v: bell(m, v) * (1 - 2 * (m**2 / (1 + 2 * v) ** 2 + v / (1 + 2 * v))),
    ),
}


def logistic(x: mpfr) -> mpfr:
    return 1 / (1 + exp(-x))


DOUBLE: dict[str, tuple[Function, Function]] = {
    "tanh": (gmpy2.tanh, lambda x: 1 - gmpy2.tanh(x) ** 2),
    "swish": (lambda x: x * logistic(x), lambda x: logistic(x) * (1 + x * logistic(-x))),
    "softplus": (lambda x: gmpy2.log1p(exp(x)), logistic),
    "sigmoid": (logistic, lambda x: logistic(x) * logistic(-x)),
}
"""Their poles nearest to the real line are at pi i/2 (tanh) and pi i."""


def exact(text: str) -> mpfr:
    return mpfr(mpq(text))


def quadrature(f: Callable[[mpf], mpf], s: mpf, kinks: list[mpf], extra: mpf | int = 0, most: mpf | None = None) -> mpf:
    """The integral of f over the line, f falling like exp(-x^2/(2 s^2)) beyond `extra`."""
    end = 17 * s + extra
    width = min(2 * s, most) if most is not None else 2 * s
    total = mpf(0)
    for a, b in pairwise([-end, *(k for k in kinks if abs(k) < end), end]):
        count = int(mpmath.ceil((b - a) / width))
        value, error = mpmath.quad(f, mpmath.linspace(a, b, count + 1), method="gauss-legendre", error=True)
        assert error < mpf(10) ** -44 * (1 + abs(value)), error
        total += value
    return total


def single(pattern: str, name: str, K: mpf) -> mpf:
    (orders, power), (pieces, kinks) = SINGLE_PATTERNS[pattern], SINGLE[name]
    if kinks == ("roots",):
        places = sorted(r.real for r in mpmath.polyroots([1, 0, -mpmath.pi, 1], maxsteps=400, extraprec=400))
    elif kinks == ("crossing",):  # z = tanh(z + 1)
        places = [mpmath.findroot(lambda x: x - mpmath.tanh(x + 1), mpf("0.96"))]
    else:
        places = [mpf(k) for k in kinks]
    s = mpmath.sqrt(K)
    tables = [[sp.lambdify(z, sp.diff(p, z, k), "mpmath") for k in orders] for p in pieces]

    def integrand(x: mpf) -> mpf:
        functions = tables[sum(1 for k in places if k < x)]
        total = mpmath.exp(-(x**2) / (2 * K)) / (s * mpmath.sqrt(2 * mpmath.pi)) * x**power
        for f in functions:
            total *= f(x)
        return total

    return quadrature(integrand, s, places, most=mpf(1))


def half_lines(f: Function, s: mpfr) -> mpfr:
    """The integral over the line of f, analytic on both sides of zero, by x = s exp(t - exp(-t)), halved.

    The rule's error at one step is the square of that at twice the step: two sums agree to 30 digits at the end.
    """
    h = mpfr("0.125")

    def part(step: mpfr, odd: bool) -> mpfr:
        found = mpfr(0)
        for k in range(-int(4.7 / step), int(3 / step) + 1):
            if k % 2 or not odd:
                t = k * step
                x = s * exp(t - exp(-t))
                found += (f(x) + f(-x)) * x * (1 + exp(-t))
        return found * step

    total = part(h, False)
    while True:
        h /= 2
        before = total
        total = before / 2 + part(h, True)
        if abs(total - before) < mpfr(10) ** -30 * (1 + abs(total)):
            return total


def pair(pattern: str, name: str, entries: tuple[mpfr, ...]) -> mpfr:
    (orders, outer, power), inner = PAIR_PATTERNS[pattern], 1 - PAIR_PATTERNS[pattern][1]
    K = {(0, 0): entries[0], (0, 1): entries[1], (1, 0): entries[1], (1, 1): entries[2]}
    slope = K[0, 1] / K[outer, outer]
    v, s = K[inner, inner] - slope * K[0, 1], sqrt(K[outer, outer])
    if name in DOUBLE:
        pole = pi() / 2 if name == "tanh" else pi()
        return double(DOUBLE[name][orders[outer]], DOUBLE[name][orders[inner]], pole, power, slope, v, s)
    parts = CONDITIONED[name]
    f, mean, norm = parts[orders[outer]], parts[2 + orders[inner]], s * sqrt(2 * pi())
    return half_lines(lambda x: f(x) * x**power * mean(slope * x, v) * exp(-((x / s) ** 2) / 2) / norm, s)


def double(f: Function, g: Function, pole: mpfr, power: int, slope: mpfr, v: mpfr, s: mpfr) -> mpfr:
    """Two nested trapezoidal rules in units of the deviations, with a step for the nearest pole, and a finer one."""
    deviation = sqrt(v)
    away = min(mpfr(10), pole / max(s, abs(slope) * s, deviation))
    h = 2 * pi() * away / (104 + away**2 / 2)
    first, second = (_trapezoid(f, g, power, slope, deviation, s, x) for x in (h, h * 6 / 7))
    assert abs(first - second) < mpfr(10) ** -41 * (1 + abs(first)), (first, second)
    return second


def _trapezoid(f: Function, g: Function, power: int, slope: mpfr, deviation: mpfr, s: mpfr, h: mpfr) -> mpfr:
    count = int(mpfr("14.8") / h) + 1
    rule = [(k * h, h * exp(-((k * h) ** 2) / 2) / sqrt(2 * pi())) for k in range(-count, count + 1)]
    total = mpfr(0)
    for y, weight in rule:
        x = s * y
        inner = sum((w * g(slope * x + deviation * u) for u, w in rule if y**2 + u**2 < 220), mpfr(0))
        total += weight * f(x) * x**power * inner
    return total


def check_means() -> None:
    """Each typed mean against a quadrature."""
    m, v = mpfr(3) / 7, mpfr(5) / 8
    s = sqrt(v)

    def density(x: mpfr) -> mpfr:
        return exp(-((x - m) ** 2) / (2 * v)) / (s * sqrt(2 * pi()))

    for name, (f, df, mean, slope) in CONDITIONED.items():
        for function, typed in ((f, mean), (df, slope)):
            found = half_lines(lambda x, g=function: g(x) * density(x), s)
            assert abs(found - typed(m, v)) < mpfr(10) ** -42, name


def _text(value: mpf | mpfr) -> str:
    if abs(value) < 1e-41:
        return "0"
    return mpmath.nstr(value, 40) if isinstance(value, mpf) else f"{value:.39e}"


def singles() -> None:
    """200 expectations of one input."""
    generator = random.Random(20)
    rows = []
    names, patterns = list(SINGLE), list(SINGLE_PATTERNS)
    for i in range(200):
        pattern, name = patterns[i % 6], names[(i * 7) % len(names)]
        K = Fraction(f"{10 ** generator.uniform(-2, 1):.6f}")
        rows.append(
            {
                "pattern": pattern,
                "activation": name,
                "K": str(K),
                "value": _text(single(pattern, name, mpf(K.numerator) / K.denominator)),
            }
        )
    (HERE / "singles.json").write_text(json.dumps(rows, indent=0) + "\n")


def pair_tasks() -> list[tuple[str, str, tuple[str, str, str]]]:
    """960 brackets to be conditioned and 40 double integrals."""
    generator = random.Random(21)
    rows = []
    tasks = [(p, n, 16, (-1.5, 0.7)) for n in CONDITIONED for p in PAIR_PATTERNS]
    tasks += [(p, n, 2, (-1.5, 0.0)) for n in DOUBLE for p in PAIR_PATTERNS]
    for pattern, name, count, sizes in tasks:
        for _ in range(count):
            a, b = (Fraction(f"{10 ** generator.uniform(*sizes):.5f}") for _ in range(2))
            top = 0.9 * float(a * b) ** 0.5
            c = Fraction(f"{generator.uniform(-top, top):.6f}")
            rows.append((pattern, name, (str(a), str(c), str(b))))
    return rows


def pair_row(pattern: str, name: str, K: tuple[str, str, str]) -> dict[str, object]:
    value = pair(pattern, name, tuple(map(exact, K)))
    return {"pattern": pattern, "activation": name, "K": list(K), "value": _text(value)}


def pairs() -> None:
    """1000 expectations of two inputs."""
    check_means()
    rows = [pair_row(*task) for task in pair_tasks()]
    (HERE / "pairs.json").write_text(json.dumps(rows, indent=0) + "\n")


if __name__ == "__main__":
    mp.dps = DIGITS
    gmpy2.get_context().precision = BITS
    pairs()
    singles()
