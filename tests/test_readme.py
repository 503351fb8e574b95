"""The README's Python examples are run, and its commands exist."""

import doctest
import re
from pathlib import Path

from derive.cli import COMMANDS

README = Path(__file__).parents[1] / "README.md"


def test_python_examples() -> None:
    result = doctest.testfile(str(README), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0 and result.failed == 0


def test_commands_exist() -> None:
    used = set(re.findall(r"^\s*derive ([a-z][a-z-]*)", README.read_text(), re.MULTILINE))
    assert used and used <= set(COMMANDS)
