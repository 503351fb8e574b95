"""The how-tos' Python runs as it stands, their commands and options exist, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from derive.cli import group

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "howto").glob("*.md")), DOCS / "troubleshooting.md", DOCS / "index.md", DOCS / "json.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_options_exist(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"derive ([a-z][a-z-]+)\b([^\n`;]*)", text):
        command = group.get_command(click.Context(group), name)
        if command is None:
            assert not rest.strip().startswith("-"), name  # words of a sentence, not a command
            continue
        known = {option for p in command.params for option in p.opts}
        assert {w for w in re.findall(r"(?<!\S)--[A-Za-z][\w-]*", rest)} <= known, (name, rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists() or "_collected" in target, target


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if "```python" in p.read_text(encoding="utf-8")], ids=lambda p: p.stem
)
def test_python_runs(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page.name, "exec"), {})
