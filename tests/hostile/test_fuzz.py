"""Whatever is typed ends in an answer or in one sentence, within a minute of CPU time: counted and printed."""

from __future__ import annotations

import time
from pathlib import Path

import harness
import pytest
from grammar import any_text, command_lines, formulas
from hypothesis import given, settings

import derive
from derive.activations.parser import parse_number
from derive.codegen import activation_module
from derive.errors import DeriveError
from derive.gaussian.pattern import parse_bracket
from derive.lists import names, whole_numbers


def read(text: str) -> None:
    """The activation, and the same one from its own name."""
    sigma = derive.activation(text)
    again = derive.activation(sigma.name)
    if again.name != sigma.name and derive.activation(again.name).name != again.name:
        raise AssertionError(f"the name {sigma.name!r} reads as {again.name!r}")
    assert sigma.name.isascii() and not set(sigma.name) & set("#\"'\\`$;{}\n\r\t")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Data sets that are right, wrong or absurd, and places to write to."""
    texts = {
        "good": "x,w,y\n1,0,2\n2,1,3\n0.5,1,1\n",
        "test": "x,w,y\n1.5,0.2,2\n",
        "empty": "",
        "header": "x,y\n",
        "words": "x,y\na,b\n",
        "ragged": "x,y\n1\n1,2,3\n",
        "huge": "x,w,y\n1e200,1,1e300\n2,1,-1e300\n",
        "nan": "x,w,y\nnan,1,2\n1,inf,2\n",
        "same": "x,w,y\n1,1,1\n1,1,2\n",
        "[red]": "x,w,[red]\n1,0,2\n2,1,3\n",
        "zero": "x,w,y\n0,0,0\n0,0,1\n",
        "long": "x,y\n1," + "9" * 140_000 + "\n",
    }
    found = {}
    for name, text in texts.items():
        found[name] = str(tmp_path / f"{name}.csv")
        Path(found[name]).write_text(text)
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    return found | {
        "binary": str(tmp_path / "binary"),
        "missing": str(tmp_path / "missing"),
        "folder": str(tmp_path),
        "out": str(tmp_path / "out.py"),
        "study": str(tmp_path / "study"),
        "csv": str(tmp_path / "table.csv"),
        "png": str(tmp_path / "figure.png"),
    }


def judge(count: harness.Count, what: str) -> None:
    harness.note(f"{what}: {count}")
    assert not count.defects, count.defects[:10]
    assert not count.endless, count.endless[:10]


def test_some_formulas() -> None:
    count = harness.Count()
    start = time.process_time()
    for text in formulas(1, 400):
        if time.process_time() - start > 15:
            break
        count.ask(text, lambda text=text: read(text))  # type: ignore[misc]
    judge(count, "formulas, quick part")


def test_some_command_lines(files: dict[str, str]) -> None:
    count = harness.Count()
    start = time.process_time()
    for words in command_lines(2, 150, files):
        if time.process_time() - start > 20:
            break
        if words[0] in (
            "predict",
            "depth-study",
            "learnability",
            "ntk-study",
            "generate",
            "scale-study",
            "kernel",
            "projectors",
        ):
            continue  # these import jax and compile: the long part
        count.ask(" ".join(words), lambda words=words: harness.command_line(words))  # type: ignore[misc]
    judge(count, "command lines, quick part")


@settings(max_examples=150)
@given(any_text)
def test_any_text_in_any_place(text: str) -> None:
    for reader in (
        derive.activation,
        parse_number,
        parse_bracket,
        names,
        lambda t: whole_numbers(t, "--depths"),
        lambda t: derive.expect("s0 s0", "relu", K=t),
    ):
        try:
            reader(text)
        except DeriveError as error:
            assert str(error) and "\n" not in str(error).replace(text, "")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_formulas(part: int) -> None:
    """A tenth in each part, so that one part may be run again by itself."""
    count, deeper = harness.Count(), harness.Count()
    for place, text in enumerate(formulas(3, 10_000)[part::10]):
        before = count.answers
        count.ask(text, lambda text=text: read(text))  # type: ignore[misc]
        if count.answers > before and place % 40 == 0:
            deeper.ask(text, lambda text=text: activation_module(text, ["K"]))  # type: ignore[misc]
    harness.note(f"modules of formulas, part {part}: {deeper}")
    judge(count, f"formulas, part {part}")
    judge(deeper, f"modules, part {part}")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_command_lines(part: int, files: dict[str, str]) -> None:
    """A tenth in each part."""
    count, kept = harness.Count(), {path: Path(path).read_bytes() for path in files.values() if Path(path).is_file()}
    for place, words in enumerate(command_lines(4, 1000, files)[part::10]):
        if place % 20 == 19:
            harness.note(f"so far: {count}; {count.defects} {count.endless}")
        count.ask(" ".join(words), lambda words=words: harness.command_line(words))  # type: ignore[misc]
    assert {path: Path(path).read_bytes() for path in kept} == kept, "a file that we did not make has changed"
    judge(count, f"command lines, part {part}")
