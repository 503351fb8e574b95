"""Cache folders of our own: made by us, marked, owned by the user alone; anything else is left exactly as it is.

>>> import tempfile
>>> own_folder(tempfile.mkdtemp(), "answers").name
'answers'
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

MARK = "made-by-effective-theory"
_TEXT = "This folder holds answers that can be computed again. It may be deleted at any time.\n"


class ForeignFolder(OSError):
    """A place that we did not make, or that others could write to: it is not used."""


def user_cache() -> Path:
    """Where this user's caches live; a ForeignFolder error where the system knows no such place."""
    import platformdirs

    try:
        return Path(platformdirs.user_cache_dir("effective-theory"))
    except (RuntimeError, KeyError) as error:  # no home directory
        raise ForeignFolder(f"there is no home directory ({error})") from None


def own_folder(parent: str | os.PathLike[str], name: str) -> Path:
    """The folder `name` under `parent`, made and marked where it does not exist; an OSError where it is not ours."""
    above = Path(parent)
    above.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = above / name
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise ForeignFolder(f"{folder} is not a folder")
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise ForeignFolder(f"{folder} belongs to somebody else")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ForeignFolder(f"others may write to {folder}")
    mark = folder / MARK
    if not os.path.lexists(mark):
        if os.listdir(folder) and not os.path.lexists(mark):
            raise ForeignFolder(f"{folder} holds files that are not a cache of ours")
        with contextlib.suppress(FileExistsError), open(mark, "x", encoding="ascii") as file:
            file.write(_TEXT)
    if not stat.S_ISREG(mark.lstat().st_mode):
        raise ForeignFolder(f"{folder} holds files that are not a cache of ours")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ForeignFolder(f"{folder} cannot be written")
    return folder
