"""Notebooks: stored outputs belong to their sources, no cell failed, and they run; all of them in `make verify`."""

import importlib.util
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
_spec = importlib.util.spec_from_file_location("build_notebooks", NOTEBOOKS / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)
SOURCES = sorted((NOTEBOOKS / "source").glob("*.py"))


QUICK = ("02_relu_and_angles", "03_half_stable")


def test_each_source_has_its_notebook_and_a_number():
    assert [p.stem[:2] for p in SOURCES] == [f"{n:02}" for n in range(1, len(SOURCES) + 1)] and len(SOURCES) >= 7
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
    shown = [str(output.get("data", {}).get("text/plain", "")) for output in outputs]
    assert not [text for text in shown if text.startswith("<matplotlib.")], "an object's address"


def holds(source):
    """Executed in a fresh kernel, texts and figures' numbers are those that are stored."""
    if "sklearn" in source.read_text(encoding="utf-8"):
        pytest.importorskip("sklearn", reason="pip install .[notebooks] brings scikit-learn's digits")
    fresh = build.execute(build.read_source(source))
    assert build.differences(nbformat.read(NOTEBOOKS / f"{source.stem}.ipynb", as_version=4), fresh) == []


@pytest.mark.parametrize("name", QUICK)
def test_stored_numbers_hold(name):
    holds(NOTEBOOKS / "source" / f"{name}.py")


@pytest.mark.slow
@pytest.mark.parametrize("source", [p for p in SOURCES if p.stem not in QUICK], ids=lambda p: p.stem)
def test_all_stored_numbers_hold(source):
    holds(source)


def notebook(text, figure):
    cell = nbformat.v4.new_code_cell("")
    data = {build.FIGURE: figure, "text/plain": "<Figure>"}
    cell.outputs = [nbformat.v4.new_output("stream", text=text), nbformat.v4.new_output("display_data", data=data)]
    return nbformat.v4.new_notebook(cells=[cell])


def test_the_comparison_sees_numbers_words_and_figures():
    figure = {"axes": [{"lines": [[1.0, 2.5]]}]}
    stored = notebook("theory -0.2403 ± 0.0021\n", figure)
    assert build.differences(stored, notebook("theory -0.2404 ± 0.0021\n", figure)) == []  # the last digit
    assert build.differences(stored, notebook("theory 2493.2016 ± 0.0021\n", figure)) == [
        "cell 0: -0.2403 is stored, 2493.2016 comes out"
    ]
    assert build.differences(stored, notebook("theory none\n", figure)) == ["cell 0: the words differ"]
    moved = notebook("theory -0.2403 ± 0.0021\n", {"axes": [{"lines": [[1.0, 2.501]]}]})
    assert build.differences(stored, moved) == ["cell 0: 2.5 is stored, 2.501 comes out"]
