"""Random output-layer tensors of the right symmetries, and brute-force expectations with full index arrays."""

from __future__ import annotations

import numpy as np

from numeric.evaluation.results import Flow


class Tensors(Flow):
    """What predictions ask of a flow."""

    def __init__(self, **tensors):
        self.__dict__.update(tensors)
        self.names = tuple(name for name in tensors if name[:1].isupper())

    @property
    def width(self):
        return self.widths[-1]


def random_flow(samples: int = 5, seed: int = 0) -> Tensors:
    """K, Theta positive definite; four-point tensors symmetric as their definitions demand."""
    rng = np.random.default_rng(seed)

    def positive():
        x = rng.normal(size=(samples, samples + 2))
        return x @ x.T / samples + 0.5 * np.eye(samples)

    def four(*symmetries):
        x = rng.normal(size=(samples,) * 4)
        for order in symmetries:
            x = x + x.transpose(order)
        return x / 2 ** len(symmetries)

    def symmetric():
        x = rng.normal(size=(samples, samples))
        return x + x.T

    swap_pairs = (2, 3, 0, 1)
    return Tensors(
        K=positive(),
        Theta=positive(),
        G1=symmetric(),
        H1=symmetric(),
        V=four((1, 0, 2, 3), (0, 1, 3, 2), swap_pairs),
        D=four((1, 0, 2, 3), (0, 1, 3, 2)),
        F=four((2, 3, 0, 1)),
        A=four((1, 0, 2, 3), (0, 1, 3, 2), swap_pairs),
        B=four(swap_pairs, (1, 0, 3, 2)),
        P=four((0, 2, 1, 3)),
        Q=four(),
        R=four((0, 1, 3, 2)),
        S=four((1, 0, 3, 2)),
        T=four((3, 2, 1, 0)),
        U=four((2, 3, 0, 1)),
        widths=(1.0, 1.0),
    )


def joint(flow, outputs: int) -> dict[str, np.ndarray]:
    """THEORY section 3 with all indices: arrays [i,j,k,l, samples...], n = 1."""
    d = np.eye(outputs)

    def add(*terms):
        return sum(np.einsum(f"{deltas},{sub}->ijklabcd", d, d, x) for deltas, sub, x in terms)

    f = flow
    return {
        "zzH": add(("ij,kl", "abcd", f.D), ("ik,jl", "acbd", f.F), ("il,jk", "adbc", f.F)),
        "HH": add(("ij,kl", "abcd", f.A), ("ik,jl", "acbd", f.B), ("il,jk", "adbc", f.B)),
        "dHz": add(("il,jk", "abcd", f.P), ("ij,kl", "abcd", f.Q), ("ik,jl", "acbd", f.Q)),
        "ddI": add(("ij,kl", "abcd", f.R), ("ik,lj", "acdb", f.R), ("il,jk", "adbc", f.R)),
        "ddII": add(("ij,kl", "abcd", f.S), ("ik,lj", "acdb", f.T), ("il,jk", "adbc", f.U)),
    }
