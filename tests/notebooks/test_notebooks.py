"""Notebooks: stored outputs belong to their sources, no cell failed, and they run; all of them in `make verify`."""

import importlib.util
import time
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
_spec = importlib.util.spec_from_file_location("build_notebooks", NOTEBOOKS / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)
SOURCES = sorted((NOTEBOOKS / "source").glob("*.py"))


def test_all_seven_are_there():
    assert [p.stem[:2] for p in SOURCES] == [f"{n:02}" for n in range(1, 8)]
    assert {p.stem for p in NOTEBOOKS.glob("*.ipynb")} == {p.stem for p in SOURCES}


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_stored_notebook_is_the_executed_source(source):
    stored = nbformat.read(NOTEBOOKS / f"{source.stem}.ipynb", as_version=4)
    fresh = build.read_source(source)
    assert [(c.cell_type, c.source) for c in stored.cells] == [(c.cell_type, c.source) for c in fresh.cells]
    code = [c for c in stored.cells if c.cell_type == "code"]
    assert [c.execution_count for c in code] == list(range(1, len(code) + 1))
    outputs = [output for c in code for output in c.outputs]
    assert outputs and not any(output.output_type == "error" for output in outputs)
    assert any("image/png" in o.get("data", {}) for o in outputs), "a story without a plot"


def test_one_runs(monkeypatch):
    """The shortest story, in a fresh kernel, gives what is stored."""
    source = NOTEBOOKS / "source" / "02_relu_and_angles.py"
    book = build.execute(build.read_source(source))
    stored = nbformat.read(NOTEBOOKS / f"{source.stem}.ipynb", as_version=4)

    def text(notebook):
        return [o.text for c in notebook.cells for o in c.get("outputs", []) if o.output_type == "stream"]

    assert text(book) == text(stored)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_each_runs_in_two_minutes(source):
    start = time.monotonic()
    build.execute(build.read_source(source))
    assert time.monotonic() - start < 120
