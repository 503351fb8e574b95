"""Numeric tests: float64, strict promotion, and a compilation cache that the tests share among themselves."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

os.environ.setdefault("NUMERIC_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"numeric-tests-{os.getuid()}"))

import numeric  # noqa: F401  (its import configures JAX)


@pytest.fixture(autouse=True, scope="module")
def strict_promotion() -> Iterator[None]:
    """No silent promotion: types meet only their like, and axes are put in where arrays of unlike rank meet."""
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield
