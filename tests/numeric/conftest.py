"""Numeric tests: float64, and a compilation cache that the tests share among themselves."""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("NUMERIC_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"numeric-tests-{os.getuid()}"))

import numeric  # noqa: F401  (its import configures JAX)
