"""JAX as `numeric` uses it: float64 switched on, compiled programs kept on disk for the next process.

Importing `numeric` does this once. A compilation cache that the user has configured is left alone; setting the
environment variable NUMERIC_CACHE_DIR moves ours, and setting it to the empty string switches it off. JAX loads machine
code from there, so the folder must be one that we made and that only the user can write to; else there is no cache.
"""

from __future__ import annotations

import os
import warnings

import jax

from effective_theory.folders import own_folder, user_cache

FOLDER = "jax-programs"


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
    try:
        folder = own_folder(chosen or user_cache(), FOLDER)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        warnings.warn(f"Compiled programs are not kept: the cache cannot be used, {reason}.", stacklevel=3)
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
