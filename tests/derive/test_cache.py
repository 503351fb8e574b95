"""The disk cache: right after the first time, never stale, safe under processes, harmless when damaged."""

import json
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from derive import cache


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory = tmp_path / "cache"
    monkeypatch.setenv("DERIVE_CACHE_DIR", str(directory))
    monkeypatch.setattr(cache, "_edited_meanwhile", lambda: False)
    cache._prune.cache_clear()
    yield directory


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


@pytest.mark.parametrize("damage", [b"garbage", b"", b'{"key": "other", "answer": 1}', b"[" * 100000, b"NaN", b"\xff"])
def test_damage_costs_only_time(damage: bytes, own_directory: Path) -> None:
    calls, compute = counted({"right": True})
    cache.recall("q", None, compute)
    (entry,) = (own_directory / cache.FOLDER).glob("*.json")
    entry.write_bytes(damage)
    assert cache.recall("q", None, compute) == {"right": True}
    assert cache.recall("q", None, compute) == {"right": True}
    assert len(calls) == 2


def test_a_link_in_place_of_an_answer_is_not_followed(own_directory: Path, tmp_path: Path) -> None:
    calls, compute = counted(1)
    cache.recall("q", None, compute)
    (entry,) = (own_directory / cache.FOLDER).glob("*.json")
    other = tmp_path / "thesis.txt"
    other.write_bytes(entry.read_bytes())
    entry.unlink()
    entry.symlink_to(other)
    before = other.read_bytes()
    cache.recall("q", None, compute)
    assert len(calls) == 2 and entry.is_symlink() and other.read_bytes() == before


def test_only_old_answers_are_deleted(own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k in range(20):
        cache.recall("q", k, lambda: "x" * 1000)
    folder = own_directory / cache.FOLDER
    (folder / "notes.txt").write_text("mine" * 1000)
    monkeypatch.setattr(cache, "SIZE_LIMIT", 5000)
    cache._prune.cache_clear()
    cache.recall("q", "new", lambda: "y")
    assert (folder / "notes.txt").read_text() == "mine" * 1000
    assert 0 < sum(path.stat().st_size for path in folder.glob("*.json")) <= 5000


def test_errors_are_not_stored() -> None:
    def fails() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.recall("q", None, fails)
    assert cache.recall("q", None, lambda: 5) == 5


def test_answers_are_plain_json(own_directory: Path) -> None:
    cache.recall("q", None, lambda: {"a": [1, 2]})
    (entry,) = (own_directory / cache.FOLDER).glob("*.json")
    assert json.loads(entry.read_text())["answer"] == {"a": [1, 2]}


def _worker(index: int) -> str:
    cache._edited_meanwhile = lambda: False  # type: ignore[assignment]
    return json.dumps([cache.recall("shared", k % 7, lambda k=k: {"k": k % 7}) for k in range(index, index + 40)])


def test_two_processes_at_once() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(_worker, [0, 3])
    assert [json.loads(text) for text in results] == [[{"k": k % 7} for k in range(i, i + 40)] for i in (0, 3)]
