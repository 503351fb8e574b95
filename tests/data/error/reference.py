"""One- and two-input flows in arithmetic of 60 digits and more: the judge of `f.error`.

The recursions of PDLT's chapters 4, 8 and 11 in their derivative form, written out label by label; expectations by
Gauss and trapezoidal rules in MPFR numbers, the derivatives of formulas by SymPy. Nothing of the package is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import gmpy2
import numpy as np
import sympy as sp
from gmpy2 import mpfr

Z = sp.Symbol("z", real=True)
KINKED = ("K", "Theta", "V", "G1", "D", "F", "H1", "A", "B")
SMOOTH = (*KINKED, "P", "Q", "R", "S", "T", "U")
Monomial = tuple[tuple[int, int], ...]  # (label, order) of each factor
Integrand = dict[Monomial, object]


@dataclass(frozen=True)
class Sigma:
    """A formula by its pieces, from left to right, between `kinks`.

    `scale` is the smallest distance over which it changes, `width` that of its nearest singularity from the real line
    (None for entire functions), `bell` the m of exp(-m z^2) that products of derivatives hold, `growth` the rate of
    exponential growth of products, `waves` their largest frequency.
    """

    pieces: tuple[str, ...]
    kinks: tuple[float, ...] = ()
    scale: float = 1.0
    width: float | None = None
    bell: float = 0.0
    growth: float = 0.0
    waves: float = 0.0

    @property
    def tensors(self) -> tuple[str, ...]:
        return KINKED if self.kinks else SMOOTH


FUNCTIONS = {
    name: np.frompyfunc(getattr(gmpy2, name), 1, 1)
    for name in ("exp", "log", "tanh", "sinh", "cosh", "sin", "cos", "erf", "sqrt", "atan")
}
LAMBDAS = {"softplus": sp.log(1 + sp.exp(Z)), "sigmoid": 1 / (1 + sp.exp(-Z))}


@cache
def derivatives(text: str) -> tuple[sp.Expr, ...]:
    names = {name: sp.Lambda(Z, body) for name, body in LAMBDAS.items()}
    expression = sp.parse_expr(text.replace("^", "**"), local_dict={"z": Z, **names})
    found = [sp.nsimplify(expression, rational=True)]
    for _ in range(5):
        found.append(sp.diff(found[-1], Z))
    return tuple(found)


def number(x: object) -> mpfr:
    if isinstance(x, sp.Rational):
        return mpfr(int(x.p)) / mpfr(int(x.q))
    return gmpy2.const_pi() if x is sp.pi else mpfr(x)


def evaluate(expression: sp.Expr, z: np.ndarray, known: dict) -> np.ndarray:
    """The expression at every number of z; `known` keeps what its parts were."""
    if expression in known:
        return known[expression]
    if expression == Z:
        out = z
    elif (expression.is_number and not expression.args) or isinstance(expression, sp.Rational):
        out = np.full(len(z), number(expression), dtype=object)
    elif expression.is_Add or expression.is_Mul:
        parts = [evaluate(part, z, known) for part in expression.args]
        out = parts[0]
        for part in parts[1:]:
            out = out + part if expression.is_Add else out * part
    elif expression.is_Pow:
        base, power = evaluate(expression.base, z, known), expression.exp
        if isinstance(power, sp.Integer):
            out = base ** int(power) if power > 0 else 1 / base ** int(-power)
        else:
            assert power.q == 2, power
            out = (
                FUNCTIONS["sqrt"](base) ** int(power.p) if power.p > 0 else 1 / FUNCTIONS["sqrt"](base) ** int(-power.p)
            )
    else:
        out = FUNCTIONS[type(expression).__name__](evaluate(expression.args[0], z, known))
    known[expression] = out
    return out


def values(sigma: Sigma, z: np.ndarray) -> Callable[[int], np.ndarray]:
    """k -> the k-th derivative at every number of z, piece by piece; evaluated when asked for."""
    place = np.searchsorted(np.array(sigma.kinks), np.array([float(x) for x in z]))
    rows = [np.flatnonzero(place == i) for i in range(len(sigma.pieces))]
    known: list[dict] = [{} for _ in sigma.pieces]

    @cache
    def order(k: int) -> np.ndarray:
        out = np.empty(len(z), dtype=object)
        for text, where, memory in zip(sigma.pieces, rows, known):
            if len(where):
                out[where] = evaluate(derivatives(text)[k], z[where], memory)
        return out

    return order


@cache
def gauss(n: int, precision: int) -> tuple[list, list]:
    """Gauss-Legendre nodes and weights on [0, 1], by Newton's method."""
    x, w = [], []
    for k in range(n):
        t = gmpy2.cos(gmpy2.const_pi() * (k + mpfr(3) / 4) / (n + mpfr(1) / 2))
        for _ in range(12):
            p0, p1 = mpfr(1), t
            for m in range(2, n + 1):
                p0, p1 = p1, ((2 * m - 1) * t * p1 - (m - 1) * p0) / m
            slope = n * (t * p1 - p0) / (t * t - 1)
            t -= p1 / slope
        x.append((1 + t) / 2)
        w.append(1 / ((1 - t * t) * slope * slope))
    return x, w


def panels(edges: Iterable, n: int) -> tuple[np.ndarray, np.ndarray]:
    rule = gauss(n, gmpy2.get_context().precision)
    x, w = [], []
    for low, high in itertools.pairwise(edges):
        x += [low + (high - low) * t for t in rule[0]]
        w += [(high - low) * v for v in rule[1]]
    return np.array(x, dtype=object), np.array(w, dtype=object)


def doubling(start: float, end: float) -> list[float]:
    """start, 2 start, 4 start, ... below end."""
    out = []
    while start < 0.75 * end:
        out.append(start)
        start *= 2
    return out


def one_input(sigma: Sigma, K: mpfr, n: int) -> tuple[list[np.ndarray], np.ndarray]:
    s = gmpy2.sqrt(K)
    reach = 15 + sigma.growth * float(s)
    end = reach * float(s)
    edges = {-end, end, *(k for k in sigma.kinks if abs(k) < end)}
    for centre in {0.0, *sigma.kinks}:
        for step in doubling(sigma.scale, 2 * end):
            edges |= {e for e in (centre - step, centre + step) if abs(e) < end}
    edges |= {k * float(s) for k in range(-int(reach), int(reach) + 1, 2)}
    order = sorted(edges)
    smallest = 1e-9 * float(s)
    kept = [order[0]]
    for edge in order[1:]:
        if edge - kept[-1] > smallest or edge in sigma.kinks:
            if edge in sigma.kinks and edge - kept[-1] <= smallest:
                kept[-1] = edge
            else:
                kept.append(edge)
    z, w = panels([mpfr(e) for e in kept], n)
    return [z], w * FUNCTIONS["exp"](-z * z / (2 * K))


def two_inputs(sigma: Sigma, K: np.ndarray, n: int) -> tuple[list[np.ndarray], np.ndarray]:
    a, b = gmpy2.sqrt(K[0, 0]), gmpy2.sqrt(K[1, 1])
    phi = gmpy2.atan2(gmpy2.sqrt(K[0, 0] * K[1, 1] - K[0, 1] ** 2), K[0, 1])
    large = float(max(a, b))
    reach = 12 + sigma.growth * large
    if not sigma.kinks:
        step = np.sqrt(2 * np.pi**2 / (50 * (1 + sigma.bell * large**2)))
        step = min(step, 2 * np.pi / (10 + sigma.waves * large))
        if sigma.width is not None:  # 68 = 42 + what poles of order ten (four factors, six derivatives) multiply
            step = min(step, 2 * np.pi * sigma.width / (68 * large))
        if reach / step < 100:
            grid = np.arange(-int(reach / step), int(reach / step) + 1)
            i, j = (m.ravel() for m in np.meshgrid(grid, grid))
            near = (i**2 + j**2) * step**2 < reach**2
            h = mpfr(step)
            x, y = (np.array([h * int(k) for k in m[near]], dtype=object) for m in (i, j))
            z = [a * x, b * (gmpy2.cos(phi) * x + gmpy2.sin(phi) * y)]
            return z, FUNCTIONS["exp"](-(x * x + y * y) / 2)
    pi = gmpy2.const_pi()
    lines = [(phi - pi / 2, b), (pi / 2, a), (phi + pi / 2, b), (3 * pi / 2, a), (phi + 3 * pi / 2, b)]
    edges: list = []
    for (low, left), (high, right) in itertools.pairwise(lines):
        half = float(high - low) / 2
        edges += [low, *(low + mpfr(d) for d in doubling(sigma.scale / (9 * float(left)), half))]
        edges += [(low + high) / 2, *(high - mpfr(d) for d in doubling(sigma.scale / (9 * float(right)), half)[::-1])]
    edges.append(lines[-1][0])
    t, v = panels(edges, n)
    r, u = panels([mpfr(e) for e in (0, *doubling(sigma.scale / large, 2), 2, 4, 6.5, 9, reach)], n)
    u = u * r * FUNCTIONS["exp"](-r * r / 2)
    cosines = [np.array([gmpy2.cos(x - shift) for x in t], dtype=object) for shift in (0, phi)]
    return [np.outer(c, r).ravel() * m for c, m in zip(cosines, (a, b))], np.outer(v, u).ravel()


class Expectations:
    """<f> and <d_g ... f> over N(0, K), f a sum of products of derivatives of sigma.

    The rule's weights add up to one, so that what is constant cancels exactly in cumulants. Formulas with kinks take
    derivatives of the Gaussian instead of their own: insertions of y = K^-1 z.
    """

    def __init__(self, sigma: Sigma, K: np.ndarray, n: int) -> None:
        self.labels = range(len(K))
        self.z, w = one_input(sigma, K[0, 0], n) if len(K) == 1 else two_inputs(sigma, K, n)
        self.by_parts = bool(sigma.kinks)
        self.orders = [values(sigma, z) for z in self.z]
        self.weights = {(): w / np.sum(w)}
        self.products: dict = {}
        self.known: dict = {}
        if self.by_parts:
            if len(K) == 1:
                self.inverse = np.array([[1 / K[0, 0]]], dtype=object)
            else:
                det = K[0, 0] * K[1, 1] - K[0, 1] ** 2
                self.inverse = np.array([[K[1, 1], -K[0, 1]], [-K[0, 1], K[0, 0]]], dtype=object) / det
            self.y = [sum(self.inverse[i, j] * self.z[j] for j in self.labels) for i in self.labels]

    def weight(self, inserted: tuple[int, ...]) -> np.ndarray:
        """The weights times the Hermite polynomial of these labels."""
        if inserted not in self.weights:
            g, rest = inserted[0], inserted[1:]
            out = self.y[g] * self.weight(rest)
            for i, h in enumerate(rest):
                out = out - self.inverse[g, h] * self.weight(rest[:i] + rest[i + 1 :])
            self.weights[inserted] = out
        return self.weights[inserted]

    def product(self, label: int, orders: tuple[int, ...]) -> np.ndarray:
        if (label, orders) not in self.products:
            own = self.orders[label](orders[-1])
            self.products[label, orders] = own * self.product(label, orders[:-1]) if orders[1:] else own
        return self.products[label, orders]

    def monomial(self, key: Monomial, inserted: tuple[int, ...]) -> mpfr:
        key = tuple(sorted(key))
        if (key, inserted) not in self.known:
            left = self.weight(inserted)
            own = [tuple(k for label, k in key if label == i) for i in self.labels]
            factors = [self.product(i, orders) for i, orders in enumerate(own) if orders]
            if len(factors) == 2:
                tag = (0, own[0], inserted)
                if tag not in self.products:
                    self.products[tag] = left * factors[0]
                left = self.products[tag]
            self.known[key, inserted] = np.dot(left, factors[-1])
        return self.known[key, inserted]

    def __call__(self, f: Integrand, *by: int) -> mpfr:
        if self.by_parts:
            inserted = tuple(sorted(by))
            return sum((c * self.monomial(key, inserted) for key, c in f.items()), mpfr(0))
        for g in by:
            f = derivative(f, g)
        return sum((c * self.monomial(key, ()) for key, c in f.items()), mpfr(0))


def derivative(f: Integrand, g: int) -> Integrand:
    out: Integrand = {}
    for key, c in f.items():
        for i, (label, order) in enumerate(key):
            if label == g:
                new = tuple(sorted((*key[:i], (label, order + 1), *key[i + 1 :])))
                out[new] = out.get(new, 0) + c
    return out


def s(*factors: tuple[int, int]) -> Integrand:
    return {tuple(sorted(factors)): 1}


def times(f: Integrand, g: Integrand) -> Integrand:
    out: Integrand = {}
    for (p, c), (q, d) in itertools.product(f.items(), g.items()):
        key = tuple(sorted(p + q))
        out[key] = out.get(key, 0) + c * d
    return out


def plus(f: Integrand, g: Integrand) -> Integrand:
    return {key: f.get(key, 0) + g.get(key, 0) for key in {**f, **g}}


def scaled(c: object, f: Integrand) -> Integrand:
    return {key: c * value for key, value in f.items()}


def advance(E: Expectations, t: dict, names: Sequence[str], C_b, C_W, l_b, l_W, r) -> dict:
    I = E.labels
    new = {name: np.full(x.shape, mpfr(0), dtype=object) for name, x in t.items()}
    Th, V = t["Theta"], t["V"]

    def Omega(i, j):
        return plus(scaled(l_W, s((i, 0), (j, 0))), scaled(C_W * Th[i, j], s((i, 1), (j, 1))))

    def omega(i, j):
        return plus(scaled(l_W, s((i, 1), (j, 0))), scaled(C_W * Th[i, j], s((i, 2), (j, 1))))

    def two(f):
        return np.array([[E(f, g, h) for h in I] for g in I], dtype=object)

    def one(f):
        return np.array([E(f, g) for g in I], dtype=object)

    def dl(f):
        four = sum(V[g] * E(f, *g) for g in itertools.product(I, repeat=4))
        return np.sum(t["G1"] * two(f)) / 2 + four / 8

    ss = {(i, j): E(s((i, 0), (j, 0))) for i in I for j in I}
    dd = {(i, j): E(s((i, 1), (j, 1))) for i in I for j in I}
    for i, j in itertools.product(I, repeat=2):
        S, D = s((i, 0), (j, 0)), s((i, 1), (j, 1))
        new["K"][i, j] = C_b + C_W * ss[i, j]
        new["Theta"][i, j] = l_b + l_W * ss[i, j] + C_W * dd[i, j] * Th[i, j]
        dS = dl(S)
        new["G1"][i, j] = r * C_W * dS
        inner = t["D"][:, :, i, j] + t["F"][:, i, :, j] + t["F"][:, j, :, i]
        new["H1"][i, j] = r * (
            l_W * dS + C_W * Th[i, j] * dl(D) + C_W * dd[i, j] * t["H1"][i, j] + C_W / 2 * np.sum(two(D) * inner)
        )
    pair = {(i, j): two(s((i, 0), (j, 0))) for i in I for j in I}
    Om = {(i, j): Omega(i, j) for i in I for j in I}
    mean, curve = {p: E(f) for p, f in Om.items()}, {p: two(f) for p, f in Om.items()}
    slope = {(i, j): one(s((i, 0), (j, 1))) for i in I for j in I}
    smooth = "T" in names
    if smooth:
        om = {(i, j): omega(i, j) for i in I for j in I}
        first = {p: one(f) for p, f in om.items()}

    def VV(x, y):
        return sum(V[g] * x[g[:2]] * y[g[2:]] for g in itertools.product(I, repeat=4))

    for q in itertools.product(I, repeat=4):
        p, u = q[:2], q[2:]
        SS = s((q[0], 0), (q[1], 0))
        fluctuation = E(times(SS, s((q[2], 0), (q[3], 0)))) - ss[p] * ss[u]
        new["V"][q] = C_W**2 * fluctuation + r * C_W**2 / 4 * VV(pair[p], pair[u])
        D = t["D"]
        new["D"][q] = (
            C_W * (E(times(SS, Om[u])) - ss[p] * mean[u])
            + r * C_W / 4 * VV(pair[p], curve[u])
            + r * C_W**2 / 2 * dd[u] * np.sum(D[:, :, u[0], u[1]] * pair[p])
        )
        new["A"][q] = (
            E(times(Om[p], Om[u]))
            - mean[p] * mean[u]
            + r / 4 * VV(curve[p], curve[u])
            + r * C_W / 2 * (dd[u] * np.sum(D[:, :, u[0], u[1]] * curve[p]))
            + r * C_W / 2 * (dd[p] * np.sum(D[:, :, p[0], p[1]] * curve[u]))
            + r * C_W**2 * dd[p] * dd[u] * t["A"][q]
        )
        a, c, b, d = q  # 1324
        FF = sum(slope[a, c][g] * slope[b, d][h] * t["F"][g, c, h, d] for g in I for h in I)
        new["F"][q] = C_W**2 * E(s((a, 0), (b, 0), (c, 1), (d, 1))) * Th[c, d] + r * C_W**2 * FF
        four = E(s((a, 1), (b, 1), (c, 1), (d, 1)))
        new["B"][q] = C_W**2 * four * Th[a, b] * Th[c, d] + r * C_W**2 * dd[a, c] * dd[b, d] * t["B"][q]
        if not smooth:
            continue
        B, F = t["B"], t["F"]
        i0, i1, i2, i3 = q  # P, Q, R
        mixed = E(s((i0, 2), (i3, 0))) * B[i0, i0, i1, i2]
        mixed += sum(t["P"][i0, i1, i2, g] * x for g, x in enumerate(one(s((i0, 1), (i3, 0)))))
        new["P"][q] = (
            C_W**2 * E(s((i0, 2), (i1, 1), (i2, 1), (i3, 0))) * Th[i0, i1] * Th[i0, i2]
            + r * C_W**2 * dd[i1, i2] * mixed
        )
        tail = one(s((i2, 1), (i3, 0)))
        new["Q"][q] = (
            C_W * E(times(s((i2, 1), (i3, 0)), om[i0, i1])) * Th[i0, i2]
            + r * C_W * sum(first[i0, i1][g] * tail[h] * F[g, i0, h, i2] for g in I for h in I)
            + r * C_W**2 * dd[i0, i1] * sum(t["Q"][i0, i1, i2, g] * tail[g] for g in I)
        )
        P = t["P"][i0, i2, i3]
        low = E(s((i0, 2), (i1, 0))) * B[i0, i0, i2, i3] + np.dot(P, one(s((i0, 1), (i1, 0))))
        high = E(s((i0, 3), (i1, 1))) * B[i0, i0, i2, i3] + np.dot(P, one(s((i0, 2), (i1, 1))))
        new["R"][q] = (
            l_W * C_W * E(s((i0, 2), (i1, 0), (i2, 1), (i3, 1))) * Th[i0, i2] * Th[i0, i3]
            + C_W**2 * E(s((i0, 3), (i1, 1), (i2, 1), (i3, 1))) * Th[i0, i1] * Th[i0, i2] * Th[i0, i3]
            + r * C_W * dd[i2, i3] * (l_W * low + C_W * Th[i0, i1] * high + C_W * dd[i0, i1] * t["R"][q])
        )
        a, b, c, d = q  # S_1234
        new["S"][q] = (
            C_W * l_W * four * Th[a, c] * Th[b, d]
            + C_W**2 * E(s((a, 2), (b, 2), (c, 1), (d, 1))) * Th[a, b] * Th[a, c] * Th[b, d]
            + r * C_W * dd[c, d] * (l_W * dd[a, b] + C_W * Th[a, b] * E(s((a, 2), (b, 2)))) * B[q]
            + r * C_W**2 * dd[a, b] * dd[c, d] * t["S"][q]
        )
        a, c, d, b = q  # T_1342
        new["T"][q] = (
            E(times(om[a, c], om[b, d])) * Th[a, b]
            + r * sum(first[a, c][g] * first[b, d][h] * F[g, a, h, b] for g in I for h in I)
            + r * C_W * dd[b, d] * np.dot(t["Q"][b, d, a], first[a, c])
            + r * C_W * dd[a, c] * np.dot(t["Q"][a, c, b], first[b, d])
            + r * C_W**2 * dd[a, c] * dd[b, d] * t["T"][q]
        )
        a, d, b, c = q  # U_1423
        new["U"][q] = (
            C_W**2 * E(s((a, 2), (b, 2), (c, 1), (d, 1))) * Th[a, b] * Th[a, c] * Th[b, d]
            + r * C_W**2 * dd[a, d] * dd[b, c] * t["U"][q]
        )
    return new


def flow(sigma: Sigma, case: dict, n: int, digits: int) -> dict[str, list]:
    """The tensors of the output layer; `case` holds X, depth, widths and the hyperparameters, scalars or lists."""
    with gmpy2.context(precision=int(3.33 * digits) + 8):
        X = [[mpfr(v) for v in row] for row in case["X"]]
        depth, widths = case["depth"], [len(X[0]), *case["width"]]

        def of(name: str, layer: int) -> mpfr:
            given = case[name]
            return mpfr(given[layer - 1] if isinstance(given, list) else given)

        gram = np.array([[sum(a * b for a, b in zip(u, v)) / len(u) for v in X] for u in X], dtype=object)
        zero = {k: np.full((len(X),) * k, mpfr(0), dtype=object) for k in (2, 4)}
        t = {name: zero[2] if name in ("G1", "H1") else zero[4] for name in sigma.tensors}
        t |= {"K": of("C_b", 1) + of("C_W", 1) * gram, "Theta": of("lambda_b", 1) + of("lambda_W", 1) * gram}
        for layer in range(2, depth + 1):
            numbers = [of(name, layer) for name in ("C_b", "C_W", "lambda_b", "lambda_W")]
            ratio = mpfr(widths[layer - 1]) / widths[layer - 2]
            t = advance(Expectations(sigma, t["K"], n), t, sigma.tensors, *numbers, ratio)
        return {name: np.vectorize(float, otypes=[float])(t[name]).tolist() for name in sigma.tensors}
