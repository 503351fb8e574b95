"""Whatever is stored is in the inventory, once, with a command that makes it and a check that can fail."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
import recheck

ROOT = Path(__file__).parents[2]
ENTRIES = tomllib.loads((Path(__file__).with_name("stored.toml")).read_text())["stored"]
PLACES = ["tests/data", "notebooks/*.ipynb", "numeric/generated", "bench/*.json"]


def test_every_stored_file_is_listed_once() -> None:
    tracked = subprocess.run(["git", "ls-files", *PLACES], cwd=ROOT, capture_output=True, text=True).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    made = [f for f in tracked if not (f.startswith("tests/") and f.endswith((".py", ".toml"))) and "__init__" not in f]
    listed = [str(path.relative_to(ROOT)) for entry in ENTRIES for glob in entry["files"] for path in ROOT.glob(glob)]
    listed = [f for f in listed if "__init__" not in f]
    assert len(listed) == len(set(listed))
    assert set(made) - set(listed) == set()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e["what"])
def test_makers_and_checks_exist(entry: dict) -> None:
    assert all(list(ROOT.glob(glob)) for glob in entry["files"])
    for word in entry["made_by"].split() + entry["check"].split():
        if word.endswith(".py"):
            assert (ROOT / word).exists()
    if " " not in entry["check"]:
        assert callable(getattr(recheck, entry["check"]))


@pytest.mark.slow
def test_a_changed_number_is_seen(monkeypatch, tmp_path) -> None:
    rows = json.loads((Path(__file__).parent / "brackets" / "pairs.json").read_text())
    changed = [[*row[:-1], row[-1][:-6] + "123456"] for row in rows]
    (tmp_path / "brackets").mkdir()
    (tmp_path / "brackets" / "pairs.json").write_text(json.dumps(changed))
    assert recheck.pairs() == []
    monkeypatch.setattr(recheck, "HERE", tmp_path)
    assert recheck.pairs()
