"""Files that we read back (flows, checkpoints, records of studies) may be anybody's: one sentence, and nothing runs."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import numeric
from derive.errors import DeriveError
from numeric.errors import NumericError
from numeric.studies.resume import earlier_rows
from numeric.trained.sampled.estimate import Sums
from numeric.trained.sampled.run import _read, _write

State = dict[str, np.ndarray]


class _Runs:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, ("OWNED",)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> State:
    """The arrays of a flow that is right."""
    path = numeric.flow("erf", [[1.0, 0.2], [-0.3, 0.9]], depth=2, C_b=0.1, C_W=1.3, lambda_b=0.2, lambda_W=0.7).save(
        tmp_path_factory.mktemp("flow") / "f.npz"
    )
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


def _about(state: State, **changes: object) -> State:
    return state | {"about": np.array(json.dumps({**json.loads(str(state["about"])), **changes}))}


CHANGED: dict[str, Callable[[State], State]] = {
    "a formula that is none": lambda s: _about(s, activation="__import__('os').mkdir('OWNED')"),
    "an activation that is no text": lambda s: _about(s, activation=["erf"]),
    "unknown tensors": lambda s: _about(s, names=["K", "__class__"]),
    "widths": lambda s: _about(s, widths=[2, -5]),
    "no layers": lambda s: _about(s, widths=[]),
    "errors that are no numbers": lambda s: _about(s, error={"K": "0"}),
    "no JSON": lambda s: s | {"about": np.array("{")},
    "nested JSON": lambda s: s | {"about": np.array("[" * 100_000)},
    "a number for a text": lambda s: s | {"about": np.array(1.0)},
    "NaN": lambda s: s | {"layer/2/K": np.full((2, 2), np.nan)},
    "other shapes": lambda s: s | {"layer/2/K": np.ones((2, 3))},
    "other sizes": lambda s: s | {"layer/2/K": np.ones((7, 7))},
    "a layer beyond the last": lambda s: s | {"layer/9/K": np.ones((2, 2))},
    "a layer that is no number": lambda s: s | {"layer/../K": np.ones((2, 2))},
    "whole numbers": lambda s: s | {"layer/2/K": np.ones((2, 2), dtype=np.int8)},
    "texts": lambda s: s | {"parameters/C_W": np.array(["a", "b"])},
    "a parameter missing": lambda s: {k: v for k, v in s.items() if k != "parameters/C_W"},
    "another length": lambda s: s | {"parameters/C_W": np.ones(7)},
}


@pytest.mark.parametrize("change", CHANGED)
def test_flows_that_were_changed(change: str, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "f.npz", **CHANGED[change](state))
    with pytest.raises((NumericError, DeriveError)) as caught:
        numeric.load(tmp_path / "f.npz")
    assert "\n" not in str(caught.value)
    assert not Path("OWNED").exists()


def _zipped(entries: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return out.getvalue()


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _claims(shape: str) -> bytes:
    """An array whose header claims a shape that its data do not have."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()


WHOLE = _zipped({"about.npy": _npy(np.ones(3)), "identity.npy": _npy(np.ones(3))})
FOREIGN: dict[str, bytes] = {
    "nothing": b"",
    "text": b"x,y\n1,2\n",
    "an array": _npy(np.ones(3)),
    "a zip file of other things": _zipped({"a.txt": b"hello"}),
    "half a zip file": WHOLE[: len(WHOLE) // 2],
    "the beginning of one": b"PK\x03\x04" + bytes(100),
    "damaged": WHOLE.replace(b"NUMPY", b"NUMPZ").replace(WHOLE[60:80], bytes(20)),
    "a pickle": pickle.dumps(_Runs()),
    "pickles in a zip file": _zipped({"about.npy": _npy(np.array([_Runs()], dtype=object))}),
    "an array of 10^15": _zipped({"about.npy": _claims("(1000000000000000,)"), "identity.npy": _claims("(3,)")}),
    "a negative shape": _zipped({"about.npy": _claims("(-3,)"), "identity.npy": _claims("(-3,)")}),
    "a shape that is code": _zipped({"about.npy": _claims("__import__('os').mkdir('OWNED')")}),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_that_are_not_ours(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.npz"
    path.write_bytes(FOREIGN[name])
    for read in (numeric.load, lambda p: _read(p, Sums(2), b"0")):
        with pytest.raises(NumericError) as caught:
            read(path)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == FOREIGN[name] and not Path("OWNED").exists()


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    for path in (tmp_path / "pipe.npz", tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(NumericError):
            numeric.load(path)


def test_checkpoints_that_were_changed(tmp_path: Path) -> None:
    sums, path = Sums(2), tmp_path / "c.npz"
    sums.add(0, (np.ones((2, 1, 1)), np.ones((2, 1, 1))))
    _write(path, sums, b"identity")
    found = Sums(2)
    _read(path, found, b"identity")
    assert list(found.batches) == [0]
    with pytest.raises(NumericError, match="another problem"):
        _read(path, Sums(2), b"other")
    with np.load(path) as file:
        right = {key: file[key] for key in file.files}
    for change in (
        {"numbers": np.array([-1])},
        {"numbers": np.array([0.5])},
        {"numbers": np.array([], dtype=int)},
        {"sums": np.full_like(right["sums"], np.nan)},
        {"sums": np.ones((5, 2, 2, 1, 1))},
        {"sums": np.array(["x"])},
    ):
        np.savez(path, **(right | change))
        with pytest.raises(NumericError, match="changed"):
            _read(path, Sums(2), b"identity")


def test_a_record_that_is_a_pipe(tmp_path: Path) -> None:
    table, settings, figure = (tmp_path / name for name in ("t.csv", "t.json", "t.png"))
    settings.write_text("{}")
    os.mkfifo(table)
    with pytest.raises(NumericError, match="not a study of ours"):
        earlier_rows(table, settings, figure, {}, dict)
