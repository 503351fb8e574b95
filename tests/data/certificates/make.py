"""References for certified brackets that share nothing with the package: `python tests/data/certificates/make.py`.

Only mpmath and SymPy's diff, at 60 digits; nothing of `derive` is imported. singles.json: 200 expectations of one
input by quadrature of the definition between its kinks. pairs.json: 1000 of two inputs, the double integral reduced to
one dimension by conditioning: given one variable, the mean of the other's function is a formula typed below (and each
formula is compared with a quadrature first), or, for tanh, swish, softplus and sigmoid, which have none, an inner
trapezoidal rule. Every outer integral comes with an error below 1e-44.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import mpmath
import sympy as sp
from mpmath import mp, mpf

HERE = Path(__file__).parent
DIGITS = 60
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
Function = Callable[[mpf], mpf]
Mean = Callable[[mpf, mpf], mpf]


def cdf(x: mpf) -> mpf:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def pdf(x: mpf) -> mpf:
    return mpmath.exp(-(x**2) / 2) / mpmath.sqrt(2 * mpmath.pi)


def ramp(m: mpf, v: mpf) -> mpf:
    """E max(z, 0), z ~ N(m, v)."""
    s = mpmath.sqrt(v)
    return m * cdf(m / s) + s * pdf(m / s)


def step(m: mpf, v: mpf) -> mpf:
    return cdf(m / mpmath.sqrt(v))


def decay(m: mpf, v: mpf) -> mpf:
    """E exp(z) where z < 0."""
    return mpmath.exp(m + v / 2) * cdf(-(m + v) / mpmath.sqrt(v))


def bell(m: mpf, v: mpf) -> mpf:
    """E exp(-z^2)."""
    return mpmath.exp(-(m**2) / (1 + 2 * v)) / mpmath.sqrt(1 + 2 * v)


def _selu(first: mpf, second: mpf) -> mpf:
    scale, alpha = (mpf(int(x.p)) / int(x.q) for x in SELU)
    return scale * (first + alpha * second)


# name: (sigma, sigma' as functions; their means over N(m, v)), the kink at zero or none
CONDITIONED: dict[str, tuple[Function, Function, Mean, Mean, bool]] = {
    "relu": (lambda x: max(x, mpf(0)), lambda x: mpf(x > 0), ramp, step, True),
    "leaky_relu": (
        lambda x: x if x > 0 else x / 100,
        lambda x: mpf(1) if x > 0 else mpf(1) / 100,
        lambda m, v: m / 100 + ramp(m, v) * 99 / 100,
        lambda m, v: (1 + 99 * step(m, v)) / 100,
        True,
    ),
    "abs(z)": (abs, mpmath.sign, lambda m, v: 2 * ramp(m, v) - m, lambda m, v: 2 * step(m, v) - 1, True),
    "elu": (
        lambda x: x if x > 0 else mpmath.expm1(x),
        lambda x: mpf(1) if x > 0 else mpmath.exp(x),
        lambda m, v: ramp(m, v) + decay(m, v) - step(-m, v),
        lambda m, v: step(m, v) + decay(m, v),
        True,
    ),
    "selu": (
        lambda x: _selu(max(x, mpf(0)), mpmath.expm1(min(x, mpf(0)))),
        lambda x: _selu(mpf(x > 0), mpf(0) if x > 0 else mpmath.exp(x)),
        lambda m, v: _selu(ramp(m, v), decay(m, v) - step(-m, v)),
        lambda m, v: _selu(step(m, v), decay(m, v)),
        True,
    ),
    "erf": (
        mpmath.erf,
        lambda x: 2 * mpmath.exp(-(x**2)) / mpmath.sqrt(mpmath.pi),
        lambda m, v: mpmath.erf(m / mpmath.sqrt(1 + 2 * v)),
        lambda m, v: 2 * bell(m, v) / mpmath.sqrt(mpmath.pi),
        False,
    ),
    "gelu": (
        lambda x: x * cdf(x),
        lambda x: cdf(x) + x * pdf(x),
        lambda m, v: m * cdf(m / mpmath.sqrt(1 + v)) + v * pdf(m / mpmath.sqrt(1 + v)) / mpmath.sqrt(1 + v),
        lambda m, v: cdf(m / mpmath.sqrt(1 + v)) + m * pdf(m / mpmath.sqrt(1 + v)) / mpmath.sqrt(1 + v) ** 3,
        False,
    ),
    "sin": (
        mpmath.sin,
        mpmath.cos,
        lambda m, v: mpmath.exp(-v / 2) * mpmath.sin(m),
        lambda m, v: mpmath.exp(-v / 2) * mpmath.cos(m),
        False,
    ),
    "cos(z)": (
        mpmath.cos,
        lambda x: -mpmath.sin(x),
        lambda m, v: mpmath.exp(-v / 2) * mpmath.cos(m),
        lambda m, v: -mpmath.exp(-v / 2) * mpmath.sin(m),
        False,
    ),
    "exp": (
        mpmath.exp,
        mpmath.exp,
        lambda m, v: mpmath.exp(m + v / 2),
        lambda m, v: mpmath.exp(m + v / 2),
        False,
    ),
    "z^3-z": (
        lambda x: x**3 - x,
        lambda x: 3 * x**2 - 1,
        lambda m, v: m**3 + 3 * m * v - m,
        lambda m, v: 3 * (m**2 + v) - 1,
        False,
    ),
    "z*exp(-z^2)": (
        lambda x: x * mpmath.exp(-(x**2)),
        lambda x: (1 - 2 * x**2) * mpmath.exp(-(x**2)),
        lambda m, v: bell(m, v) * m / (1 + 2 * v),
        lambda m, v: bell(m, v) * (1 - 2 * (m**2 / (1 + 2 * v) ** 2 + v / (1 + 2 * v))),
        False,
    ),
}


def logistic(x: mpf) -> mpf:
    return 1 / (1 + mpmath.exp(-x))


DOUBLE: dict[str, tuple[Function, Function]] = {
    "tanh": (mpmath.tanh, lambda x: 1 - mpmath.tanh(x) ** 2),
    "swish": (lambda x: x * logistic(x), lambda x: logistic(x) * (1 + x * logistic(-x))),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), logistic),
    "sigmoid": (logistic, lambda x: logistic(x) * logistic(-x)),
}
"""Their poles nearest to the real line are at pi i/2 (tanh) and pi i."""


def exact(text: str) -> mpf:
    value = Fraction(text)
    return mpf(value.numerator) / value.denominator


def quadrature(f: Function, s: mpf, kinks: list[mpf], extra: mpf | int = 0, most: mpf | None = None) -> mpf:
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


def pair(pattern: str, name: str, entries: tuple[mpf, mpf, mpf]) -> mpf:
    (orders, outer, power), inner = PAIR_PATTERNS[pattern], 1 - PAIR_PATTERNS[pattern][1]
    K = {(0, 0): entries[0], (0, 1): entries[1], (1, 0): entries[1], (1, 1): entries[2]}
    slope = K[0, 1] / K[outer, outer]
    v, s = K[inner, inner] - slope * K[0, 1], mpmath.sqrt(K[outer, outer])
    if name in DOUBLE:
        pole = mp.pi / 2 if name == "tanh" else mp.pi
        return double(DOUBLE[name][orders[outer]], DOUBLE[name][orders[inner]], pole, power, slope, v, s)
    parts = CONDITIONED[name]
    f, mean = parts[orders[outer]], parts[2 + orders[inner]]

    def integrand(x: mpf) -> mpf:
        return f(x) * x**power * mean(slope * x, v) * mpmath.exp(-(x**2) / (2 * s**2)) / (s * mpmath.sqrt(2 * mp.pi))

    if not parts[4]:
        return halved(integrand, s, 2 * (K[0, 0] + abs(K[0, 1]) + K[1, 1]) if name == "exp" else mpf(0))
    sharp = 3 * mpmath.sqrt(v) / abs(slope) if slope else None  # the inner mean varies on this scale
    return quadrature(integrand, s, [mpf(0)], 0, sharp)


def halved(f: Function, s: mpf, extra: mpf) -> mpf:
    """The trapezoidal rule for an entire integrand, halved until two sums agree to 44 digits."""
    end, h = 15 * s + extra, s / 3
    total = h * sum((f(k * h) for k in range(-int(end / h), int(end / h) + 1)), mpf(0))
    while True:
        h /= 2
        count = int(end / h)
        before, new = total, sum((f(k * h) for k in range(-count, count + 1) if k % 2), mpf(0))
        total = before / 2 + h * new
        if abs(total - before) < mpf(10) ** -44 * (1 + abs(total)):
            return total


def double(f: Function, g: Function, pole: mpf, power: int, slope: mpf, v: mpf, s: mpf) -> mpf:
    """Two nested trapezoidal rules in units of the deviations, with a step for the nearest pole, and a finer one."""
    deviation = mpmath.sqrt(v)
    away = min(mpf(10), pole / max(s, abs(slope) * s, deviation))
    h = 2 * mp.pi * away / (104 + away**2 / 2)
    first, second = (_trapezoid(f, g, power, slope, deviation, s, x) for x in (h, h * 6 / 7))
    assert abs(first - second) < mpf(10) ** -41 * (1 + abs(first)), (first, second)
    return second


def _trapezoid(f: Function, g: Function, power: int, slope: mpf, deviation: mpf, s: mpf, h: mpf) -> mpf:
    count = int(mpmath.ceil(mpf("14.8") / h))
    rule = [(k * h, h * mpmath.exp(-((k * h) ** 2) / 2) / mpmath.sqrt(2 * mp.pi)) for k in range(-count, count + 1)]
    total = mpf(0)
    for y, weight in rule:
        x = s * y
        inner = sum((w * g(slope * x + deviation * u) for u, w in rule if y**2 + u**2 < 220), mpf(0))
        total += weight * f(x) * x**power * inner
    return total


@lru_cache(maxsize=1)
def check_means() -> None:
    """Each typed mean against a quadrature."""
    m, v = mpf(3) / 7, mpf(5) / 8
    s = mpmath.sqrt(v)
    for name, (f, df, mean, slope, _) in CONDITIONED.items():
        for function, typed in ((f, mean), (df, slope)):

            def integrand(x: mpf, function: Function = function) -> mpf:
                return function(m + x) * mpmath.exp(-(x**2) / (2 * v)) / (s * mpmath.sqrt(2 * mp.pi))

            assert abs(quadrature(integrand, s, [-m], 2) - typed(m, v)) < mpf(10) ** -44, name


def _text(value: mpf) -> str:
    return "0" if abs(value) < mpf(10) ** -41 else mpmath.nstr(value, 40)


def singles() -> None:
    """200 expectations of one input."""
    generator = random.Random(20)
    rows = []
    names, patterns = list(SINGLE), list(SINGLE_PATTERNS)
    for i in range(200):
        pattern, name = patterns[i % 6], names[(i * 7) % len(names)]
        K = Fraction(f"{10 ** generator.uniform(-2, 1):.6f}")
        rows.append(
            {"pattern": pattern, "activation": name, "K": str(K), "value": _text(single(pattern, name, exact(str(K))))}
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
    pairs()
    singles()
