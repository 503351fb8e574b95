"""How long a conditioned series must be: measured sizes of its terms, tables over correlation and spread."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from numeric.brackets.functions import Functions
from numeric.brackets.rules import evaluate, half_line, hermite_table

LONGEST = 512
ENOUGH = 0.75  # the part of the terms looked at that a series may need: the others show that what follows is small
CORRELATIONS = np.concatenate([np.linspace(0, 0.9, 19), [0.925, 0.95, 0.97, 0.99, 1.0]])
SPREADS = np.concatenate([[0.0, 1e-3, 0.01, 0.03], np.linspace(0.1, 1, 10)])


def term_sizes(functions: Functions, orders: Iterable[int], variance: float, step: float, longest: int) -> np.ndarray:
    """t_n(s): fourth-moment size of C^k_n at conditional spread s (in units of sqrt(variance)), relative to sigma^(k).

    The largest over the orders k; shape (spreads, longest).
    """
    scale = np.sqrt(variance)
    fine = 2 * np.pi / (2 * np.pi / step + np.sqrt(longest))
    y = half_line(fine, 9.0 + np.sqrt(longest) / 2)
    y = np.concatenate([-y[::-1], y])
    table = hermite_table(y, longest) * (fine / np.sqrt(2 * np.pi) * np.exp(-(y**2) / 2))
    x = np.linspace(-5, 5, 21)
    weight = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    rest = np.sqrt(1 - SPREADS**2)[:-1]  # the last spread is one: no mean is left
    z = rest[:, None, None] * x[:, None] + SPREADS[:-1, None, None] * y
    every = scale * np.concatenate([z.ravel(), x, y])  # sigma is called once an order
    out = np.zeros((SPREADS.size, longest))
    for k in orders:
        inside, own, alone = np.split(evaluate(functions, k, every), [z.size, z.size + x.size])
        c = inside.reshape(z.shape) @ table.T
        norm = max(weight @ own**4, 1e-300)
        last = np.abs(table @ alone)
        sizes = (np.einsum("x,sxn->sn", weight, c**4) / norm) ** 0.25
        out = np.maximum(out, np.concatenate([sizes, last[None] / max(last.max(), 1e-300)]))
    return out


def series_lengths(sizes: np.ndarray, tolerance: float) -> np.ndarray:
    """Terms needed for each |r| of CORRELATIONS and each spread of SPREADS; LONGEST + 1 where the table ends first."""
    n = np.arange(sizes.shape[1])
    lengths = np.zeros((CORRELATIONS.size, sizes.shape[0]), dtype=int)
    for i, r in enumerate(CORRELATIONS):
        tails = np.cumsum((r**n * sizes**2)[:, ::-1], axis=1)[:, ::-1]
        short = tails <= tolerance
        lengths[i] = np.where(short.any(axis=1), np.argmax(short, axis=1), LONGEST + 1)
    return np.maximum.accumulate(np.maximum.accumulate(lengths, axis=0), axis=1)
