"""The disk cache of derived results: JSON in, JSON out, keyed by what was asked and by the code that answers it.

A key holds the question, its arguments and a hash of all source files of `derive` and of the versions of SymPy and
mpmath, so an answer is never stale and nothing has to be deleted by hand. An answer is one small JSON file in a folder
that we made and marked ourselves and that only the user can write to; it is written atomically, read as data and never
unpickled. A damaged answer is computed again. Whatever else is found where the cache should be is left alone: then
there is no cache, and one warning says why.

The folder is in the user's cache directory, or in DERIVE_CACHE_DIR; an empty DERIVE_CACHE_DIR switches the cache off.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import re
import stat
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from effective_theory.files import write_file
from effective_theory.folders import own_folder, user_cache

T = TypeVar("T")

FOLDER = "derive-answers"
SIZE_LIMIT = 2**28
LARGEST_ANSWER = 2**26
_STARTED = time.time()
_ENTRY = re.compile(r"[0-9a-f]{64}\.json|\.[0-9a-f]{12}\.tmp")


class CacheWarning(UserWarning):
    """The cache is off, with the reason; every answer is computed."""


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


@functools.cache
def _folder(chosen: str | None) -> Path | None:
    """The checked folder, made where it does not exist; None, after one warning, where it is not ours."""
    try:
        return own_folder(user_cache() if chosen is None else Path(chosen), FOLDER)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", None) or str(error)
        where = f" ({chosen})" if chosen else ""
        warnings.warn(f"Answers are not kept: the cache{where} cannot be used, {reason}.", CacheWarning, stacklevel=3)
        return None


def directory() -> Path | None:
    """Where the answers are kept; None when the cache is off."""
    chosen = os.environ.get("DERIVE_CACHE_DIR")
    return None if chosen == "" else _folder(chosen)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _stored(path: Path, key: str) -> tuple[Any] | None:
    """The answer in a file of ours, in a tuple; None where there is none, or not a whole one."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            if not (ours and stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_ANSWER):
                return None
            data = json.loads(file.read(), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError, MemoryError):
        return None
    return (data["answer"],) if isinstance(data, dict) and data.get("key") == key and "answer" in data else None


def _keep(folder: Path, key: str, text: str) -> None:
    """Write an answer; a full disk, or a file that is not ours in its place, only means that it is not kept."""
    path = folder / f"{key}.json"
    try:
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            return
        write_file(path, f'{{"key": "{key}", "answer": {text}}}')
        _prune(folder)
    except OSError:
        pass


@functools.cache
def _prune(folder: Path) -> None:
    """Once a process: the oldest answers go where they exceed the limit, and what stopped writers left behind."""
    entries = []
    for name in filter(_ENTRY.fullmatch, os.listdir(folder)):
        status = os.lstat(folder / name)
        if stat.S_ISREG(status.st_mode):
            stale = name.endswith(".tmp") and status.st_mtime < _STARTED - 3600
            entries.append((0.0 if stale else status.st_mtime, status.st_size, folder / name))
    room = SIZE_LIMIT - sum(size for _, size, _ in entries)
    for moment, size, path in sorted(entries):
        if moment and room >= 0:
            break
        os.unlink(path)
        room += size


def recall(question: str, arguments: Any, compute: Callable[[], T]) -> T:
    """The stored answer to a question, or compute(), stored for the next time. Answers and arguments are JSON-able.

    What is returned has passed through JSON either way, so that the first answer equals the later ones.

    >>> recall("the answer", {"to": "everything"}, lambda: {"value": (4, 2)})
    {'value': [4, 2]}
    """
    folder = directory()
    key = hashlib.sha256(json.dumps([code_version(), question, arguments], sort_keys=True).encode()).hexdigest()
    if folder is not None:
        stored = _stored(folder / f"{key}.json", key)
        if stored is not None:
            return stored[0]
    text = json.dumps(compute())
    if folder is not None and not _edited_meanwhile():
        _keep(folder, key, text)
    return json.loads(text)
