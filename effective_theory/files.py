"""The one home for writing files.

A regular file is replaced atomically: a stopped run leaves the old file or the new one, never a part. Its permissions
stay; a new file gets what the umask allows. Symbolic links are followed, and what is not a regular file (a pipe, a
device, /dev/stdout) is written to directly and never replaced. `check_file` and `check_folder` say before the work
begins whether its result can be written.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from pathlib import Path

_LIVE = ("/dev/", "/proc/")
"""Files under these are streams that somebody holds open: they are written to, never replaced."""
LONGEST = 80


class OutputError(OSError):
    """A place that cannot be written, in one sentence."""


def explain(error: OSError | ValueError, path: str | os.PathLike[str]) -> OutputError:
    """The sentence of an operating system's error; a name that no system can hold is a ValueError of Python's."""
    if isinstance(error, OSError):
        number, reason = error.errno, error.strerror or type(error).__name__
    else:
        number, reason = errno.EINVAL, str(error)
    return OutputError(number, f"Cannot write {os.fspath(path)}: {reason[:1].lower()}{reason[1:]}.")


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_stream(path: Path, status: os.stat_result) -> bool:
    if not stat.S_ISREG(status.st_mode):
        return True
    return str(path.absolute()).startswith(_LIVE) or os.path.realpath(path).startswith(_LIVE)


def check_file(path: str | os.PathLike[str]) -> Path:
    """The path, or an OutputError where a file cannot be written to it; nothing of it is created."""
    target = Path(path)
    try:
        status = _status(target)
        if status is None:
            real = Path(os.path.realpath(target))
            check_folder(real.parent)
            return target
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not _is_stream(target, status):
            check_folder(Path(os.path.realpath(target)).parent)
        return target
    except OutputError:
        raise
    except (OSError, ValueError) as error:
        raise explain(error, path) from None


def check_folder(path: str | os.PathLike[str]) -> Path:
    """The path, or an OutputError where files cannot be written into that folder; it may have yet to be made."""
    folder = Path(path)
    try:
        existing = folder.absolute()
        while _status(existing) is None:
            if os.path.islink(existing):
                raise FileNotFoundError(errno.ENOENT, "a link points nowhere")
            existing = existing.parent
        if not stat.S_ISDIR(existing.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, f"{existing} is not a folder")
        probe = existing / f".{secrets.token_hex(6)}.tmp"  # the only way to know: root, read-only disks, quotas
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        probe.unlink()
        return folder
    except (OSError, ValueError) as error:
        raise explain(error, path) from None


def write_file(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a whole file; missing folders are made. Any failure is an OutputError and leaves what was there."""
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        status = _status(target)
        if status is not None and _is_stream(target, status):
            _stream(target, data)
        else:
            real = Path(os.path.realpath(target))
            real.parent.mkdir(parents=True, exist_ok=True)
            _replace(real, data, status)
        return target
    except OutputError:
        raise
    except (OSError, ValueError) as error:
        raise explain(error, path) from None


def _stream(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY)
    with os.fdopen(handle, "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) or 0 :]


def _replace(path: Path, data: bytes, before: os.stat_result | None) -> None:
    """Write beside the target and rename."""
    if before is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    beside = path.with_name(f".{secrets.token_hex(6)}.tmp")
    mode = 0o666 if before is None else 0o600
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                if hasattr(os, "fchown") and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                    with contextlib.suppress(OSError):  # only root may give files away
                        os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def file_stem(name: str, question: object = None) -> str:
    """A file name for an activation: words stay as they are, anything else gets a tag, so that no two names meet.

    `question` is whatever else the file depends on: files of different questions differ in their tags.

    >>> file_stem("leaky_relu"), file_stem("z+1"), file_stem("z-1")
    ('leaky_relu', 'z_1-ddfaccf6', 'z_1-94ec840d')
    """
    words = "_".join(re.findall(r"[A-Za-z0-9]+", name))[:LONGEST] or "activation"
    if question is None and re.fullmatch(r"[a-z][a-z0-9_]*", name) and len(name) <= LONGEST:
        return name
    tag = hashlib.sha256(repr((name, question) if question is not None else name).encode()).hexdigest()[:8]
    return f"{words}-{tag}"
