"""JAX as `numeric` uses it: float64 switched on, compiled programs kept on disk for the next process.

Importing `numeric` does this once. A compilation cache that the user has configured is left alone; setting the
environment variable NUMERIC_CACHE_DIR moves ours, and setting it to the empty string switches it off.
"""

from __future__ import annotations

import os
from pathlib import Path

import jax
import platformdirs


def configure() -> None:
    """Switch on 64-bit types and the on-disk compilation cache (idempotent)."""
    jax.config.update("jax_enable_x64", True)
    chosen = os.environ.get("NUMERIC_CACHE_DIR")
    if (
        getattr(jax.config, "jax_compilation_cache_dir", None)
        or os.environ.get("JAX_COMPILATION_CACHE_DIR")
        or chosen == ""
    ):
        return
    folder = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("effective-theory")) / "jax"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
