"""JAX as `numeric` uses it: float64 switched on by the import, and nothing else that lasts.

Compiled programs can be kept on disk for the next process: call `keep_compiled()`, or set the environment variable
NUMERIC_CACHE_DIR to a folder before the import. The command line does so in the user's cache folder. JAX loads machine
code from there, so the folder must be one that we made and that only the user can write to; else there is no cache.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import jax

from effective_theory.folders import own_folder, user_cache
from numeric.errors import NumericError

FOLDER = "jax-programs"

J = TypeVar("J")
R = TypeVar("R")

_state = {"ran": False, "forked": False}


def _after_fork() -> None:
    _state["forked"] = _state["ran"]
    _pool.cache_clear()  # its threads stayed behind


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_process(wide: bool = True) -> None:
    """Refuse what would hang or mislead: a child forked after JAX has run, 64-bit numbers switched off since."""
    if _state["forked"]:
        raise NumericError(
            "This process was forked after JAX had run in its parent, which JAX does not survive: start processes with "
            "multiprocessing.get_context('spawn')."
        )
    if wide and not jax.config.read("jax_enable_x64"):
        raise NumericError(
            "64-bit numbers have been switched off since numeric was imported (jax_enable_x64): switch them on, or "
            "ask for dtype='float32'."
        )
    _state["ran"] = True


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(function: Callable[[J], R], jobs: Sequence[J]) -> list[R]:
    """What the function says of each job, in their order; as many at once as there are cores."""
    return list(_pool().map(function, jobs)) if len(jobs) > 1 else [function(job) for job in jobs]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), thread_name_prefix="numeric")


class one_thread(ContextDecorator):  # a context and a decorator, named as such
    """NumPy's matrix products on one thread, while any thread of ours is inside: for many small ones.

    Products of a few hundred rows take longer on two threads that wait for each other, and ten times as long where the
    machine has something else to do. XLA has threads of its own.
    """

    _lock, _inside, _limits = threading.Lock(), 0, None

    def __enter__(self) -> None:
        with one_thread._lock:
            one_thread._inside += 1
            if one_thread._inside == 1:
                one_thread._limits = _pools().limit(limits=1, user_api="blas")

    def __exit__(self, *failure: object) -> None:
        with one_thread._lock:
            one_thread._inside -= 1
            if not one_thread._inside and one_thread._limits is not None:
                one_thread._limits.restore_original_limits()


@cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def configure() -> None:
    """Switch on 64-bit types; keep compiled programs where NUMERIC_CACHE_DIR asks for it (idempotent)."""
    jax.config.update("jax_enable_x64", True)
    chosen = os.environ.get("NUMERIC_CACHE_DIR")
    if chosen:
        keep_compiled(chosen)


def keep_compiled(folder: str | Path | None = None) -> None:
    """Keep compiled programs in a folder (the user's cache folder by default): the next process starts faster.

    A compilation cache that JAX was told about before is left alone.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    try:
        chosen = own_folder(folder or user_cache(), FOLDER)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        warnings.warn(f"Compiled programs are not kept: the cache cannot be used, {reason}.", stacklevel=3)
        return
    jax.config.update("jax_compilation_cache_dir", str(chosen))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
