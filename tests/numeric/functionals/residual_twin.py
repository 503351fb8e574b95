"""The slow, obviously right twin of residual flows: the verified recursions typed out, brackets by a grid.

A function of one neuron is a tuple of (input, order), a product of activations' derivatives at one layer (order -1: the
preactivation itself); P is a Gaussian average over the layers in between, done on a product grid of 2N dimensions.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import jax
import numpy as np


def differentiate(function, *labels):
    """{function: multiplicity}."""
    total = {function: 1}
    for label in labels:
        new = {}
        for own, number in total.items():
            for k, (x, order) in enumerate(own):
                if x == label:
                    inner = () if order == -1 else ((x, order + 1),)
                    key = tuple(sorted((*own[:k], *inner, *own[k + 1 :])))
                    new[key] = new.get(key, 0) + number
        total = new
    return total


class Twin:
    """Layers count from 1; `xi[l]` leads into layer l; hyperparameters are sequences with layer l at l - 1."""

    def __init__(self, sigma, X, xi, C_b, C_W, lambda_b, lambda_W, step=0.45, radius=6.3):
        self.derivatives = [sigma]
        for _ in range(5):
            self.derivatives.append(jax.grad(self.derivatives[-1]))
        self.derivatives = [jax.jit(jax.vmap(d)) for d in self.derivatives]
        self.N, self.L = len(X), len(C_W)
        self.xi = {layer: xi[layer - 1] for layer in range(1, self.L + 1)}
        self.C, self.rate = dict(enumerate(C_W, 1)), dict(enumerate(lambda_W, 1))
        line = np.arange(-round(radius / step), round(radius / step) + 1) * step
        self.grid = np.stack([g.ravel() for g in np.meshgrid(*[line] * (2 * self.N), indexing="ij")])
        self.weight = np.exp(-0.5 * (self.grid**2).sum(0)) * (step / np.sqrt(2 * np.pi)) ** (2 * self.N)
        gram = np.asarray(X) @ np.asarray(X).T / np.shape(X)[1]
        self.K, self.Theta = {1: C_b[0] + C_W[0] * gram}, {1: lambda_b[0] + lambda_W[0] * gram}
        for l in range(1, self.L):
            K, T = np.empty_like(gram), np.empty_like(gram)
            for a, b in np.ndindex(*gram.shape):
                s = self.mean(((a, 0), (b, 0)), l)
                K[a, b] = self.xi[l + 1] ** 2 * self.K[l][a, b] + C_b[l] + C_W[l] * s
                slope = self.xi[l + 1] ** 2 + C_W[l] * self.mean(((a, 1), (b, 1)), l)
                T[a, b] = lambda_b[l] + lambda_W[l] * s + slope * self.Theta[l][a, b]
            self.K[l + 1], self.Theta[l + 1] = K, T

    # brackets

    def product_of_skips(self, l, m):
        return float(np.prod([self.xi[k] for k in range(l + 1, m + 1)]))

    @cache
    def values(self, l, m, which):
        """z of layer l (which = 0) or m (1) on the grid."""
        root = np.linalg.cholesky(self.K[l])
        low = root @ self.grid[: self.N]
        if which == 0:
            return low
        a = self.product_of_skips(l, m)
        rest = self.K[m] - a**2 * self.K[l]
        return a * low + np.linalg.cholesky(rest + 1e-300 * np.eye(self.N)) @ self.grid[self.N :]

    @cache
    def activation(self, l, m, which, label, order):
        z = self.values(l, m, which)[label]
        return z if order == -1 else np.asarray(self.derivatives[order](z))

    @cache
    def bracket(self, f, m, g, l):
        """<f(z^(m)) g(z^(l))>, m >= l."""
        value = self.weight.copy()
        for label, order in f:
            value *= self.activation(l, m, 1 if m > l else 0, label, order)
        for label, order in g:
            value *= self.activation(l, m, 0, label, order)
        return value.sum()

    def mean(self, f, m, *labels):
        """<d ... f> over layer m's kernel."""
        return sum(n * self.bracket((), m, own, m) for own, n in differentiate(f, *labels).items())

    def slope(self, f, m, l, *labels):
        """<d ... P..P f> at layer l of a function of layer m."""
        return self.product_of_skips(l, m) ** len(labels) * self.mean(f, m, *labels)

    @staticmethod
    def labels(f):
        return sorted({x for x, _ in f})

    def pairs(self, f):
        return list(product(self.labels(f), repeat=2))

    # functionals: (function, its layer)

    def Ch(self, l, u, v):
        (f, m), (h, k) = sorted((u, v), key=lambda x: -x[1])
        assert k == l
        return self.bracket(f, m, h, l) - self.mean(f, m) * self.mean(h, l) + self.C2(l, (f, m), (h, k))

    @cache
    def C2(self, l, u, v):
        if l == 1:
            return 0.0
        (f, m), (h, k), b, C = u, v, l - 1, self.C[l]
        total = self.C2(b, u, v)
        square = lambda x, y: (tuple(sorted(((x, 0), (y, 0)))), b)  # noqa: E731
        for x, y in self.pairs(h):
            total += C / 2 * self.slope(h, k, l, x, y) * self.Ch(b, u, square(x, y))
        for x, y in self.pairs(f):
            total += C / 2 * self.slope(f, m, l, x, y) * self.Ch(b, square(x, y), v)
            for p, q in self.pairs(h):
                both = self.slope(f, m, l, x, y) * self.slope(h, k, l, p, q)
                total += C**2 / 4 * both * self.Ch(b, square(x, y), square(p, q))
        return total

    def omega(self, l, x, y, functional):
        """functional(Omega_xy) of layer l with the hyperparameters of layer l + 1."""
        zero, one = tuple(sorted(((x, 0), (y, 0)))), tuple(sorted(((x, 1), (y, 1))))
        return self.rate[l + 1] * functional((zero, l)) + self.C[l + 1] * self.Theta[l][x, y] * functional((one, l))

    def chi(self, l, x, y):
        """xi^2 + C_W <s' s'> of the step to layer l."""
        return self.xi[l] ** 2 + self.C[l] * self.mean(((x, 1), (y, 1)), l - 1)

    @cache
    def D(self, l, u, x, y):
        if l == 1:
            return 0.0
        (f, m), b, C = u, l - 1, self.C[l]
        squares = [(self.slope(f, m, l, p, q) * C / 2, (tuple(sorted(((p, 0), (q, 0)))), b)) for p, q in self.pairs(f)]
        inner = self.D(b, u, x, y) + sum(w * self.D(b, s, x, y) for w, s in squares)
        total = self.chi(l, x, y) * inner + self.omega(b, x, y, lambda o: self.Ch(b, u, o))
        return total + sum(w * self.omega(b, x, y, lambda o, s=s: self.Ch(b, s, o)) for w, s in squares)

    def Fh(self, l, u, v, x, y):
        (f, m), (h, _) = sorted((u, v), key=lambda w: -w[1])
        return self.Theta[l][x, y] * self.bracket(f, m, h, l) + self.F(l, u, v, x, y)

    @cache
    def F(self, l, u, v, x, y):
        """f with slot x, h with slot y."""
        if l == 1:
            return 0.0
        (f, m), (h, k), b, C, xi = u, v, l - 1, self.C[l], self.xi[l]
        at = lambda g, slot: (tuple(sorted(((g, 0), (slot, 1)))), b)  # noqa: E731
        total = xi**2 * self.F(b, u, v, x, y)
        for q in self.labels(h):
            total += xi * C * self.slope(h, k, l, q) * self.Fh(b, u, at(q, y), x, y)
        for p in self.labels(f):
            total += xi * C * self.slope(f, m, l, p) * self.Fh(b, at(p, x), v, x, y)
            for q in self.labels(h):
                both = self.slope(f, m, l, p) * self.slope(h, k, l, q)
                total += C**2 * both * self.Fh(b, at(p, x), at(q, y), x, y)
        return total

    @cache
    def A(self, l, w, x, y, z):
        if l == 1:
            return 0.0
        b = l - 1
        first, second = self.chi(l, w, x), self.chi(l, y, z)
        return (
            first * second * self.A(b, w, x, y, z)
            + first * self.omega(b, y, z, lambda o: self.D(b, o, w, x))
            + second * self.omega(b, w, x, lambda o: self.D(b, o, y, z))
            + self.omega(b, w, x, lambda o: self.omega(b, y, z, lambda p: self.Ch(b, o, p)))
        )

    def Bh(self, l, u, v, w, x, y, z):
        (f, m), (h, _) = sorted((u, v), key=lambda t: -t[1])
        return self.Theta[l][w, x] * self.Theta[l][y, z] * self.bracket(f, m, h, l) + self.B(l, u, v, w, x, y, z)

    @cache
    def B(self, l, u, v, w, x, y, z):
        """H_wx H_yz: f has the slots w and y."""
        if l == 1:
            return 0.0
        (f, m), (h, k), b, C, xi = u, v, l - 1, self.C[l], self.xi[l]
        one, two = (tuple(sorted(((w, 1), (y, 1)))), b), (tuple(sorted(((x, 1), (z, 1)))), b)
        F, H = self.mean(f, m), self.mean(h, k)
        return (
            xi**4 * self.B(b, u, v, w, x, y, z)
            + xi**2 * C * H * self.Bh(b, u, two, w, x, y, z)
            + xi**2 * C * F * self.Bh(b, one, v, w, x, y, z)
            + C**2 * F * H * self.Bh(b, one, two, w, x, y, z)
        )

    @cache
    def dl(self, l, u):
        if l == 1:
            return 0.0
        (f, m), b, C = u, l - 1, self.C[l]
        a = self.product_of_skips(l, m)
        square = lambda x, y: (tuple(sorted(((x, 0), (y, 0)))), b)  # noqa: E731
        total = self.dl(b, u)
        for x, y in self.pairs(f):
            for own, number in differentiate(f, x, y).items():
                if own:
                    total += C / 2 * a**2 * number * self.Ch(b, (own, m), square(x, y))
            total += C / 2 * self.slope(f, m, l, x, y) * self.dl(b, square(x, y))
            for p, q in self.pairs(f):
                total += C**2 / 8 * self.slope(f, m, l, x, y, p, q) * self.Ch(b, square(x, y), square(p, q))
        return total

    @cache
    def E1(self, l, u, x, y):
        if l == 1:
            return 0.0
        (f, m), b, C, xi = u, l - 1, self.C[l], self.xi[l]
        a = self.product_of_skips(l, m)
        slopes = (tuple(sorted(((x, 1), (y, 1)))), b)
        chi = C * self.mean(slopes[0], b)
        total = xi**2 * self.E1(b, u, x, y)
        total += self.mean(f, m) * (self.omega(b, x, y, lambda o: self.dl(b, o)) + C * self.E1(b, slopes, x, y))
        if f:
            total += self.omega(b, x, y, lambda o: self.Ch(b, u, o)) + chi * self.D(b, u, x, y)
        at = lambda g, slot: (tuple(sorted(((g, 0), (slot, 1)))), b)  # noqa: E731
        for p, q in self.pairs(f):
            w, s = C / 2 * self.slope(f, m, l, p, q), (tuple(sorted(((p, 0), (q, 0)))), b)
            inner = self.omega(b, x, y, lambda o, s=s: self.Ch(b, s, o)) + (xi**2 + chi) * self.D(b, s, x, y)
            total += w * (inner + 2 * C * self.Fh(b, at(p, x), at(q, y), x, y))
        for g in self.labels(f):
            for own, number in differentiate(f, g).items():
                total += xi * C * a * number * self.Fh(b, (own, m), at(g, y), x, y)
                total += xi * C * a * number * self.Fh(b, at(g, x), (own, m), x, y)
        return total

    def tensor(self, name, l, *i):
        """The tensor at layer l, subscripts in its order."""
        z = lambda *labels: (tuple(sorted((x, -1) for x in labels)), l)  # noqa: E731
        one = ((), l)
        if name == "V":
            return self.C2(l, z(i[0], i[1]), z(i[2], i[3]))
        if name == "G1":
            return self.dl(l, z(*i))
        if name == "D":
            return self.D(l, z(i[0], i[1]), i[2], i[3])
        if name == "F":
            return self.F(l, z(i[0]), z(i[2]), i[1], i[3])
        if name == "A":
            return self.A(l, *i)
        if name == "B":
            return self.B(l, one, one, i[0], i[2], i[1], i[3])
        return self.E1(l, one, *i)
