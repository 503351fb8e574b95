"""The slow, obviously right twin of `numeric.flow`: THEORY.md's recursions typed out, brackets by a plain grid.

Label by label, in NumPy, for two or three inputs: expectations over N(0, K) are sums over a product trapezoidal grid on
the whitened inputs; sums over g run over the slots of the integrand. It shares nothing with the engine, the generated
code or the bracket library.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np


class Integrand:
    """A sum of coefficient * product of sigma^(order) at slots: {((slot, order), ...): coefficient}."""

    def __init__(self, terms):
        self.terms = terms

    def __add__(self, other):
        terms = dict(self.terms)
        for key, value in other.terms.items():
            terms[key] = terms.get(key, 0.0) + value
        return Integrand(terms)

    def __rmul__(self, number):
        return Integrand({key: number * value for key, value in self.terms.items()})

    def __matmul__(self, other):
        """The product of two integrands."""
        terms = {}
        for (a, x), (b, y) in itertools.product(self.terms.items(), other.terms.items()):
            key = tuple(sorted(a + b))
            terms[key] = terms.get(key, 0.0) + x * y
        return Integrand(terms)

    def d(self, *slots):
        """Derivatives with respect to the preactivations in the slots."""
        out = self
        for slot in slots:
            terms = {}
            for key, value in out.terms.items():
                for i, (where, order) in enumerate(key):
                    if where == slot:
                        new = tuple(sorted([*key[:i], (where, order + 1), *key[i + 1 :]]))
                        terms[new] = terms.get(new, 0.0) + value
            out = Integrand(terms)
        return out


def s(slot, order=0):
    return Integrand({((slot, order),): 1.0})


class Twin:
    """All tensors of a network by direct use of THEORY.md, sections 4 and 5."""

    def __init__(self, sigma, X, widths, C_b, C_W, lambda_b, lambda_W, step=0.22, radius=8.6):
        """`sigma` is a JAX function of a scalar; hyperparameters are sequences, one value a layer."""
        self.derivatives = [sigma]
        for _ in range(5):
            self.derivatives.append(jax.grad(self.derivatives[-1]))
        self.N = len(X)
        line = np.arange(-round(radius / step), round(radius / step) + 1) * step
        self.grid = np.stack([g.ravel() for g in np.meshgrid(*[line] * self.N, indexing="ij")])
        self.weight = np.exp(-0.5 * (self.grid**2).sum(0)) * (step / np.sqrt(2 * np.pi)) ** self.N
        gram = np.asarray(X) @ np.asarray(X).T / np.shape(X)[1]
        n = [np.shape(X)[1], *widths]
        N = self.N
        t = {"K": C_b[0] + C_W[0] * gram, "Theta": lambda_b[0] + lambda_W[0] * gram}
        t |= {name: np.zeros((N, N)) for name in ("G1", "H1")}
        t |= {name: np.zeros((N,) * 4) for name in "VDFABPQRSTU"}
        self.layers = [t]
        for l in range(1, len(C_b)):
            t = self.advance(t, C_b[l], C_W[l], lambda_b[l], lambda_W[l], n[l] / n[l - 1])
            self.layers.append(t)

    def prepare(self, K):
        values, vectors = np.linalg.eigh(K)
        z = (vectors * np.sqrt(np.maximum(values, 0))) @ self.grid
        self.table = np.stack([np.asarray(jax.vmap(jax.vmap(f))(jnp.asarray(z))) for f in self.derivatives])
        self.memory = {}

    def mean(self, f, where):
        """<f> with the slots filled by the inputs `where`."""
        total = 0.0
        for key, value in f.terms.items():
            atoms = tuple(sorted((where[slot], order) for slot, order in key))
            if atoms not in self.memory:
                self.memory[atoms] = self.weight @ np.prod([self.table[order, a] for a, order in atoms], axis=0)
            total += value * self.memory[atoms]
        return total

    def advance(self, t, C_b, C_W, lambda_b, lambda_W, r):
        self.prepare(t["K"])
        N = self.N
        new = {name: np.zeros_like(x) for name, x in t.items()}
        Th, G1, H1 = t["Theta"], t["G1"], t["H1"]
        V, D, F = t["V"], t["D"], t["F"]
        for pair in itertools.product(range(N), repeat=2):
            w = dict(zip((1, 2), pair))
            a, b = pair

            def E(f, w=w):
                return self.mean(f, w)

            def dl(f, w=w):
                slots = (1, 2)
                first = sum(G1[w[g], w[h]] * self.mean(f.d(g, h), w) for g in slots for h in slots)
                second = sum(
                    V[w[g], w[h], w[i], w[j]] * self.mean(f.d(g, h, i, j), w)
                    for g, h, i, j in itertools.product(slots, repeat=4)
                )
                return first / 2 + second / 8

            ss, dd = s(1) @ s(2), s(1, 1) @ s(2, 1)
            new["K"][pair] = C_b + C_W * E(ss)
            new["Theta"][pair] = lambda_b + lambda_W * E(ss) + C_W * E(dd) * Th[pair]
            new["G1"][pair] = r * C_W * dl(ss)
            inner = sum(
                E(dd.d(g, h)) * (D[w[g], w[h], a, b] + F[w[g], a, w[h], b] + F[w[g], b, w[h], a])
                for g in (1, 2)
                for h in (1, 2)
            )
            new["H1"][pair] = r * (
                lambda_W * dl(ss) + C_W * Th[pair] * dl(dd) + C_W * E(dd) * H1[pair] + C_W / 2 * inner
            )
        for quad in itertools.product(range(N), repeat=4):
            self._four(quad, t, new, C_W, lambda_W, r)
        return new

    def _four(self, quad, t, new, C_W, lambda_W, r):
        Th = t["Theta"]
        V, D, F, A, B, P, Q, R, S, T, U = (t[name] for name in "VDFABPQRSTU")
        w = dict(zip((1, 2, 3, 4), quad))
        one, two, three, four = quad

        def E(f):
            return self.mean(f, w)

        def Omega(i, j):
            return lambda_W * (s(i) @ s(j)) + C_W * Th[w[i], w[j]] * (s(i, 1) @ s(j, 1))

        def omega(i, j):
            return lambda_W * (s(i, 1) @ s(j)) + C_W * Th[w[i], w[j]] * (s(i, 2) @ s(j, 1))

        def VV(f, left, h, right):
            return sum(
                V[w[g1], w[g2], w[g3], w[g4]] * E(f.d(g1, g2)) * E(h.d(g3, g4))
                for g1 in left
                for g2 in left
                for g3 in right
                for g4 in right
            )

        s12, s34 = s(1) @ s(2), s(3) @ s(4)
        d12, d34 = s(1, 1) @ s(2, 1), s(3, 1) @ s(4, 1)
        O12, O34 = Omega(1, 2), Omega(3, 4)
        new["V"][quad] = C_W**2 * (E(s12 @ s34) - E(s12) * E(s34)) + r * C_W**2 / 4 * VV(s12, (1, 2), s34, (3, 4))
        new["D"][quad] = (
            C_W * (E(s12 @ O34) - E(s12) * E(O34))
            + r * C_W / 4 * VV(s12, (1, 2), O34, (3, 4))
            + r * C_W**2 / 2 * E(d34) * sum(D[w[g], w[h], three, four] * E(s12.d(g, h)) for g in (1, 2) for h in (1, 2))
        )
        new["A"][quad] = (
            E(O12 @ O34)
            - E(O12) * E(O34)
            + r / 4 * VV(O12, (1, 2), O34, (3, 4))
            + r * C_W / 2 * E(d34) * sum(D[w[g], w[h], three, four] * E(O12.d(g, h)) for g in (1, 2) for h in (1, 2))
            + r * C_W / 2 * E(d12) * sum(D[w[g], w[h], one, two] * E(O34.d(g, h)) for g in (3, 4) for h in (3, 4))
            + r * C_W**2 * E(d12) * E(d34) * A[quad]
        )
        # F_1324 and B_1324: the array's axes are the labels 1, 3, 2, 4
        axes = (one, three, two, four)
        f13, f24 = s(1) @ s(3, 1), s(2) @ s(4, 1)
        new["F"][axes] = C_W**2 * E(s12 @ d34) * Th[three, four] + r * C_W**2 * sum(
            E(f13.d(g)) * E(f24.d(h)) * F[w[g], three, w[h], four] for g in (1, 3) for h in (2, 4)
        )
        new["B"][axes] = (
            C_W**2 * E(d12 @ d34) * Th[one, two] * Th[three, four]
            + r * C_W**2 * E(s(1, 1) @ s(3, 1)) * E(s(2, 1) @ s(4, 1)) * B[axes]
        )
        new["S"][quad] = (
            C_W * lambda_W * E(d12 @ d34) * Th[one, three] * Th[two, four]
            + C_W**2 * E(s(1, 2) @ s(2, 2) @ d34) * Th[one, two] * Th[one, three] * Th[two, four]
            + r * C_W * E(d34) * (lambda_W * E(d12) + C_W * Th[one, two] * E(s(1, 2) @ s(2, 2))) * B[quad]
            + r * C_W**2 * E(d12) * E(d34) * S[quad]
        )
        # T_1342
        axes = (one, three, four, two)
        w13, w24 = omega(1, 3), omega(2, 4)
        new["T"][axes] = (
            E(w13 @ w24) * Th[one, two]
            + r * sum(E(w13.d(g)) * E(w24.d(h)) * F[w[g], one, w[h], two] for g in (1, 3) for h in (2, 4))
            + r * C_W * E(s(2, 1) @ s(4, 1)) * sum(Q[two, four, one, w[g]] * E(w13.d(g)) for g in (1, 3))
            + r * C_W * E(s(1, 1) @ s(3, 1)) * sum(Q[one, three, two, w[g]] * E(w24.d(g)) for g in (2, 4))
            + r * C_W**2 * E(s(1, 1) @ s(3, 1)) * E(s(2, 1) @ s(4, 1)) * T[axes]
        )
        # U_1423
        axes = (one, four, two, three)
        new["U"][axes] = (
            C_W**2 * E(s(1, 2) @ s(2, 2) @ d34) * Th[one, two] * Th[one, three] * Th[two, four]
            + r * C_W**2 * E(s(1, 1) @ s(4, 1)) * E(s(2, 1) @ s(3, 1)) * U[axes]
        )
        # tensors with labels 0123: E and omega read the slots from here on so
        w = dict(zip((0, 1, 2, 3), quad))
        zero, one, two, three = quad
        d01, d03, d12, d23 = s(0, 1) @ s(1, 1), s(0, 1) @ s(3), s(1, 1) @ s(2, 1), s(2, 1) @ s(3, 1)
        new["P"][quad] = C_W**2 * E(s(0, 2) @ d12 @ s(3)) * Th[zero, one] * Th[zero, two] + r * C_W**2 * E(d12) * (
            E(s(0, 2) @ s(3)) * B[zero, zero, one, two] + sum(P[zero, one, two, w[g]] * E(d03.d(g)) for g in (0, 3))
        )
        w01, d2s3 = omega(0, 1), s(2, 1) @ s(3)
        new["Q"][quad] = (
            C_W * E(d2s3 @ w01) * Th[zero, two]
            + r * C_W * sum(E(w01.d(g)) * E(d2s3.d(h)) * F[w[g], zero, w[h], two] for g in (0, 1) for h in (2, 3))
            + r * C_W**2 * E(d01) * sum(Q[zero, one, two, w[g]] * E(d2s3.d(g)) for g in (2, 3))
        )
        B23 = B[zero, zero, two, three]
        sd, dd = s(0, 1) @ s(1), s(0, 2) @ s(1, 1)
        new["R"][quad] = (
            lambda_W * C_W * E(s(0, 2) @ s(1) @ d23) * Th[zero, two] * Th[zero, three]
            + C_W**2 * E(s(0, 3) @ s(1, 1) @ d23) * Th[zero, one] * Th[zero, two] * Th[zero, three]
            + r
            * C_W
            * E(d23)
            * (
                lambda_W * (E(s(0, 2) @ s(1)) * B23 + sum(P[zero, two, three, w[g]] * E(sd.d(g)) for g in (0, 1)))
                + C_W
                * Th[zero, one]
                * (E(s(0, 3) @ s(1, 1)) * B23 + sum(P[zero, two, three, w[g]] * E(dd.d(g)) for g in (0, 1)))
                + C_W * E(d01) * R[quad]
            )
        )
