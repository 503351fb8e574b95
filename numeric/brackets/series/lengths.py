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
    out = np.zeros((SPREADS.size, longest))
    for row, spread in enumerate(SPREADS):
        rest = np.sqrt(max(1 - spread**2, 0.0))
        x = np.linspace(-5, 5, 21) if rest > 0 else np.zeros(1)
        weight = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
        z = scale * (rest * x[:, None] + spread * y[None, :])
        for k in orders:
            c = evaluate(functions, k, z) @ table.T
            norm = max(
                (weight @ evaluate(functions, k, scale * np.linspace(-5, 5, x.size) if rest > 0 else x) ** 4), 1e-300
            )
            size = (weight @ c**4 / norm) ** 0.25 if rest > 0 else np.abs(c[0]) / max(np.abs(c[0]).max(), 1e-300)
            out[row] = np.maximum(out[row], size)
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
