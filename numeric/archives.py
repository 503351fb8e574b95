"""Arrays of an npz file as this package wrote it, read with distrust: nothing runs, nothing blocks, nothing explodes.

An npz file is a zip archive of arrays. Pickled objects are refused, and so are pipes and devices, files that unpack to
more than a limit, and whatever else numpy and zipfile stumble over: each in one sentence.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from numeric.errors import NumericError

LARGEST = 64 << 30
"""Bytes that the arrays of one file may take: far above what a flow holds."""
PACKED = 1100
"""Deflate packs no more than 1032 to one: an entry that claims more lies about its size."""


def read_arrays(path: str | Path, what: str) -> dict[str, np.ndarray]:
    """All arrays of the file by name; `what` says what it should be: "a flow that `f.save` wrote"."""
    source = Path(path)
    refused = NumericError(f"{path} is not {what}.")
    try:
        if source.exists() and not source.is_file():
            raise refused
        with zipfile.ZipFile(source) as archive:
            entries = archive.infolist()
            size = source.stat().st_size
            if sum(entry.file_size for entry in entries) > min(LARGEST, PACKED * size):
                raise refused
        with np.load(source, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except zipfile.BadZipFile:
        raise refused from None
    except OSError as error:
        raise NumericError(f"Cannot read {path}: {error.strerror or 'it is no npz file'}.") from None
    except (ValueError, KeyError, TypeError, EOFError, RuntimeError, MemoryError, OverflowError, zlib.error):
        raise refused from None
