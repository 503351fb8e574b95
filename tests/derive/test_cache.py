"""The disk cache: right after the first time, never stale, safe under processes, harmless when damaged."""

import gc
import json
import multiprocessing
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from derive import cache


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory = tmp_path / "cache"
    monkeypatch.setenv("DERIVE_CACHE_DIR", str(directory))
    monkeypatch.setattr(cache, "_edited_meanwhile", lambda: False)
    cache.close()
    yield directory
    cache.close()


def counted(answer: object) -> tuple[list[int], object]:
    calls: list[int] = []

    def compute() -> object:
        calls.append(1)
        return answer

    return calls, compute


def test_computed_once_and_by_arguments() -> None:
    calls, compute = counted({"x": [1, 2.5, None, "é"]})
    assert cache.recall("q", [1], compute) == cache.recall("q", [1], compute) == {"x": [1, 2.5, None, "é"]}
    assert len(calls) == 1
    cache.recall("q", [2], compute)
    cache.recall("other", [1], compute)
    assert len(calls) == 3


def test_another_version_of_the_code_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, compute = counted(1)
    cache.recall("q", None, compute)
    monkeypatch.setattr(cache, "code_version", lambda: "edited")
    cache.recall("q", None, compute)
    assert len(calls) == 2


def test_the_version_knows_every_source_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "derive"
    package.mkdir()
    (package / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(cache, "__file__", str(package / "cache.py"))
    versions = set()
    for text in ("x = 1\n", "x = 2\n"):
        (package / "a.py").write_text(text)
        cache.code_version.cache_clear()
        versions.add(cache.code_version())
    cache.code_version.cache_clear()
    assert len(versions) == 2


def test_answers_of_edited_code_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_edited_meanwhile", lambda: True)
    calls, compute = counted(1)
    cache.recall("q", None, compute)
    cache.recall("q", None, compute)
    assert len(calls) == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # diskcache fails with an open handle
@pytest.mark.parametrize("damage", ["garbage", "truncate", "entry"])
def test_damage_costs_only_time(damage: str, own_directory: Path) -> None:
    calls, compute = counted({"right": True})
    cache.recall("q", None, compute)
    cache.close()
    database = own_directory / "cache.db"
    if damage == "garbage":
        database.write_bytes(b"this is not a database" * 100)
    elif damage == "truncate":
        database.write_bytes(database.read_bytes()[:700])
    else:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE Cache SET value = ?", (b"not zlib",))
    for side in ("cache.db-wal", "cache.db-shm"):
        (own_directory / side).unlink(missing_ok=True)
    assert cache.recall("q", None, compute) == {"right": True}
    assert cache.recall("q", None, compute) == {"right": True}
    assert len(calls) <= 3
    gc.collect()


def test_unwritable_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DERIVE_CACHE_DIR", "/proc/nowhere/cache")
    assert cache.recall("q", None, lambda: 3) == 3
    monkeypatch.setenv("DERIVE_CACHE_DIR", "")
    assert cache.directory() is None and cache.recall("q", None, lambda: 4) == 4


def test_errors_are_not_stored() -> None:
    def fails() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.recall("q", None, fails)
    assert cache.recall("q", None, lambda: 5) == 5


def test_nothing_is_pickled(own_directory: Path) -> None:
    cache.recall("q", None, lambda: {"a": list(range(2000))})
    with closing(sqlite3.connect(own_directory / "cache.db")) as connection:
        modes = {mode for (mode,) in connection.execute("SELECT mode FROM Cache")}
    assert 4 not in modes  # diskcache's MODE_PICKLE


def _worker(index: int) -> str:
    cache._edited_meanwhile = lambda: False  # type: ignore[assignment]
    return json.dumps([cache.recall("shared", k % 7, lambda k=k: {"k": k % 7}) for k in range(index, index + 40)])


def test_two_processes_at_once() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(_worker, [0, 3])
    assert [json.loads(text) for text in results] == [[{"k": k % 7} for k in range(i, i + 40)] for i in (0, 3)]


def test_decorator() -> None:
    calls = []

    @cache.cached
    def square(x: int, *, sign: int = 1) -> int:
        calls.append(x)
        return sign * x * x

    assert [square(3), square(3), square(3, sign=-1)] == [9, 9, -9]
    assert len(calls) == 2
