"""The examples of docs/extending.md run as they stand, each part in a program of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
PARTS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("title", PARTS)
def test_part_runs(title, monkeypatch):
    import sys
    import types

    blocks = re.findall(r"```python\n(.*?)```", PARTS[title], re.DOTALL)
    assert blocks, f"{title} has no example"
    module = types.ModuleType("extending_example")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    for block in blocks:
        exec(compile(block, f"extending.md: {title}", "exec"), module.__dict__)


def test_all_kinds_are_there():
    assert {"An activation", "A layer", "A training algorithm", "A calculus"} <= set(PARTS)
