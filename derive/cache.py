"""The disk cache of derived results: JSON in, JSON out, keyed by what was asked and by the code that answers it.

A key holds the question, its arguments and a hash of all source files of `derive` and of the versions of SymPy and
mpmath, so an answer is never stale and nothing has to be deleted by hand. Writes are SQLite transactions (diskcache):
atomic and safe under several processes. A damaged or unwritable cache only costs time.

The directory is the user's cache directory, or DERIVE_CACHE_DIR; an empty DERIVE_CACHE_DIR switches the cache off.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.metadata
import json
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SIZE_LIMIT = 2**28
_STARTED = time.time()
_DAMAGE = (sqlite3.Error, OSError, ValueError, TypeError, KeyError, EOFError, zlib.error)


def _sources() -> list[Path]:
    return sorted(Path(__file__).parent.rglob("*.py"))


@functools.cache
def code_version() -> str:
    """A hash of every source file of the package and of the libraries that shape its answers."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for library in ("sympy", "mpmath"):
        digest.update(f"{library} {importlib.metadata.version(library)}\n".encode())
    return digest.hexdigest()


def _edited_meanwhile() -> bool:
    """Whether a source file changed after this process loaded it: then its answers are those of older code."""
    return any(path.stat().st_mtime > _STARTED for path in _sources())


def directory() -> Path | None:
    """Where the cache lives; None when it is switched off."""
    chosen = os.environ.get("DERIVE_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    import platformdirs

    return Path(platformdirs.user_cache_dir("effective-theory"))


_opened: dict[tuple[Path, int], Any] = {}
"""One cache object a process: SQLite connections must not cross a fork."""


def close() -> None:
    """Close this process's connections; the next question opens them again."""
    for (_, process), cache in list(_opened.items()):
        if cache is not None and process == os.getpid():
            cache.close()
    _opened.clear()


atexit.register(close)


def _open(path: Path) -> Any:
    """The cache in a directory; None where it cannot be had."""
    key = (path, os.getpid())
    if key not in _opened:
        _opened[key] = _connect(path)
    return _opened[key]


def _connect(path: Path) -> Any:
    import diskcache

    for _ in range(2):
        try:
            return diskcache.Cache(str(path), disk=diskcache.JSONDisk, size_limit=SIZE_LIMIT, timeout=10)
        except (sqlite3.DatabaseError, ValueError, TypeError, zlib.error):
            _set_aside(path)
        except OSError:
            return None
    return None


def _set_aside(path: Path) -> None:
    """Move a damaged cache out of the way, atomically, and delete it."""
    grave = path.with_name(f"{path.name}.damaged-{os.getpid()}")
    try:
        path.rename(grave)
    except OSError:
        return
    shutil.rmtree(grave, ignore_errors=True)


def recall(question: str, arguments: Any, compute: Callable[[], T]) -> T:
    """The stored answer to a question, or compute(), stored for the next time. Answers and arguments are JSON-able.

    What is returned has passed through JSON either way, so that the first answer equals the later ones.

    >>> recall("the answer", {"to": "everything"}, lambda: {"value": (4, 2)})
    {'value': [4, 2]}
    """
    path = directory()
    cache = _open(path) if path is not None else None
    key = hashlib.sha256(json.dumps([code_version(), question, arguments], sort_keys=True).encode()).hexdigest()
    if cache is not None:
        try:
            stored = cache.get(key)
            if stored is not None:
                return json.loads(stored["answer"])
        except sqlite3.DatabaseError:
            close()
            if path is not None:
                _set_aside(path)
                cache = _open(path)
        except _DAMAGE:
            pass
    text = json.dumps(compute())
    if cache is not None and not _edited_meanwhile():
        try:
            cache.set(key, {"answer": text})
        except _DAMAGE:
            pass
        except Exception as error:  # diskcache.Timeout: another process holds the cache; the answer is right anyway
            if type(error).__name__ != "Timeout":
                raise
    return json.loads(text)


def cached(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator for a function of JSON-able arguments with a JSON-able answer."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        question = f"{function.__module__}.{function.__qualname__}"
        return recall(question, [list(args), kwargs], lambda: function(*args, **kwargs))

    return wrapper
