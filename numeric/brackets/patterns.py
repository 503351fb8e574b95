"""The derivative orders of four-point brackets, their arrangements, and the sorted quadruples that store a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations_with_replacement, permutations

import numpy as np

Pattern = tuple[int, ...]
PATTERNS: tuple[Pattern, ...] = ((0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 1, 1), (0, 1, 1, 2), (1, 1, 1, 3), (1, 1, 2, 2))


def arrangements(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """All distinct orderings of the derivative orders, the components that are stored for a sorted quadruple."""
    return tuple(sorted({p for pattern in patterns for p in permutations(pattern)}))


@lru_cache(maxsize=8)
def sorted_quadruples(size: int) -> np.ndarray:
    """All a <= b <= c <= d below `size`, shape (U, 4), in lexicographic order."""
    return np.array(list(combinations_with_replacement(range(size), 4)), dtype=np.int32).reshape(-1, 4)
