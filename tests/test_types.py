"""Types that users see: no `Any` in the signatures of public names, few places where the checker is overruled."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import derive
import numeric

ROOT = Path(__file__).parents[1]


def signatures(package):
    for name in package.__all__:
        found = getattr(package, name)
        if inspect.isclass(found):
            for key, member in vars(found).items():
                function = member.fget if isinstance(member, property) else getattr(member, "func", member)
                if inspect.isfunction(function) and not key.startswith("_"):
                    yield f"{name}.{key}", function
        elif inspect.isfunction(found):
            yield name, found


@pytest.mark.parametrize("package", [derive, numeric])
def test_no_any_in_public_signatures(package):
    seen = {name: str(function.__annotations__) for name, function in signatures(package)}
    assert len(seen) > 15
    assert [name for name, text in seen.items() if "Any" in text] == []


@pytest.mark.parametrize("package", [derive, numeric])
def test_options_are_named(package):
    """No public function or method hides its options in a dictionary."""
    seen = {name: inspect.signature(function).parameters.values() for name, function in signatures(package)}
    assert [name for name, own in seen.items() if any(p.kind is p.VAR_KEYWORD for p in own)] == []


def test_the_checker_is_seldom_overruled():
    sources = [*ROOT.glob("derive/**/*.py"), *ROOT.glob("numeric/**/*.py"), *ROOT.glob("effective_theory/**/*.py")]
    found = {p.name: p.read_text().count("type: " + "ignore") for p in sources}
    assert sum(found.values()) < 10, {name: count for name, count in found.items() if count}
