"""Turns notebooks/source/*.py (cells marked `# %%` and `# %% [markdown]`) into executed notebooks with outputs.

python notebooks/build.py              # all of them
python notebooks/build.py tanh         # those whose name holds "tanh"
python notebooks/build.py --check      # execute afresh, write nothing, say which stored numbers no longer hold

Beside its picture, every figure is stored with the numbers that it shows (a MIME type of our own, which viewers skip),
so that a check compares figures too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
_MARKER = re.compile(r"^# %%(.*)$")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
FIGURE = "application/vnd.effective-theory.figure+json"
FIGURE_NUMBERS = f"""
def _register():
    from IPython.core.formatters import BaseFormatter
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    import numpy

    class Numbers(BaseFormatter):
        format_type = {FIGURE!r}
        _return_type = dict

        def __call__(self, shown):
            return numbers(shown) if isinstance(shown, Figure) else None

    def rounded(values):
        flat = numpy.ravel(numpy.ma.filled(numpy.ma.asarray(values, float), numpy.nan))
        return [float(f"{{v:.9g}}") for v in flat[:400]]

    def numbers(figure):
        found = []
        for axes in figure.axes:
            found.append({{
                "lines": [rounded(line.get_ydata()) for line in axes.lines],
                "points": [rounded(c.get_offsets()) for c in axes.collections if isinstance(c, PathCollection)],
                "bars": rounded([patch.get_height() for patch in axes.patches if hasattr(patch, "get_height")]),
            }})
        return {{"axes": found}}

    shell = get_ipython().display_formatter
    shell.formatters[{FIGURE!r}] = Numbers(parent=shell)
_register()
del _register
"""
"""Run in the kernel before the first cell: figures are displayed with their numbers beside the picture."""


def read_source(path: Path) -> nbformat.NotebookNode:
    """The notebook that a percent-format source describes, not executed; cell ids follow the position."""
    cells: list[tuple[str, list[str]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if marker := _MARKER.match(line):
            cells.append(("markdown" if "[markdown]" in marker[1] else "code", []))
        elif cells:
            cells[-1][1].append(line)
    book = nbformat.v4.new_notebook()
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for position, (kind, lines) in enumerate(cells):
        if kind == "markdown":
            text = "\n".join(re.sub(r"^# ?", "", line) for line in lines).strip()
            cell = nbformat.v4.new_markdown_cell(text)
        else:
            cell = nbformat.v4.new_code_cell("\n".join(lines).strip())
        cell["id"] = f"cell-{position}"
        book.cells.append(cell)
    return book


def execute(book: nbformat.NotebookNode, timeout: int = 600) -> nbformat.NotebookNode:
    """Run all cells in a fresh kernel; an error in a cell is raised."""
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    client = NotebookClient(book, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": str(HERE)}})
    with client.setup_kernel():
        cells = list(book.cells)
        client.execute_cell(nbformat.v4.new_code_cell(FIGURE_NUMBERS), 0, store_history=False)
        for position, cell in enumerate(cells):
            client.execute_cell(cell, position)
        book.cells = cells
    for cell in book.cells:
        cell.metadata.pop("execution", None)  # time stamps would change at every build
    return book


def shown(book: nbformat.NotebookNode) -> list[tuple[int, str, bool]]:
    """What a reader sees of each code cell: its texts, and the numbers of its figures; are they rounded for reading?"""
    found: list[tuple[int, str, bool]] = []
    for position, cell in enumerate(book.cells):
        printed = None  # what is printed arrives in pieces, which are the kernel's own
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream" and printed == output["name"]:
                found[-1] = (position, found[-1][1] + output["text"], True)
                continue
            printed = output["name"] if output["output_type"] == "stream" else None
            data = output.get("data", {})
            if FIGURE in data:
                found.append((position, json.dumps(data[FIGURE], sort_keys=True), False))
            elif text := output.get("text", data.get("text/plain")):
                found.append((position, text, True))
    return found


def _last_digit(number: str) -> float:
    """One and a half units of the last digit that is printed; whole numbers are meant as they stand."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 1.5 * 10.0 ** (int(exponent or 0) - decimals) if "." in mantissa else 0.0


def differences(stored: nbformat.NotebookNode, fresh: nbformat.NotebookNode, tolerance: float = 1e-6) -> list[str]:
    """Where the outputs of two executions differ: words to the letter, numbers to `tolerance` or their last digit."""
    old, new = shown(stored), shown(fresh)
    if [position for position, *_ in old] != [position for position, *_ in new]:
        return ["other cells have an output"]
    found = []
    for (position, before, rounded), (_, after, _) in zip(old, new):
        if _NUMBER.sub("#", before) != _NUMBER.sub("#", after):
            found.append(f"cell {position}: the words differ")
            continue
        for a, b in zip(_NUMBER.findall(before), _NUMBER.findall(after)):
            allowed = max(_last_digit(a) if rounded else 1e-12, tolerance * abs(float(a)))
            if abs(float(a) - float(b)) > allowed:
                found.append(f"cell {position}: {a} is stored, {b} comes out")
    return found


def write(book: nbformat.NotebookNode, target: Path) -> None:
    """Write atomically: a stopped build leaves the old notebook."""
    with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False, encoding="utf-8") as file:
        nbformat.write(book, file)
    os.chmod(file.name, 0o644)
    os.replace(file.name, target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    wrong = 0
    for source in sorted((HERE / "source").glob("*.py")):
        if arguments.names and not any(name in source.stem for name in arguments.names):
            continue
        print(f"{source.stem} ...", flush=True)
        book = execute(read_source(source))
        target = HERE / f"{source.stem}.ipynb"
        if not arguments.check:
            write(book, target)
        elif found := differences(nbformat.read(target, as_version=4), book):
            print("\n".join(f"  {line}" for line in found))
            wrong += 1
        else:
            print("  holds")
    if wrong:
        raise SystemExit(f"{wrong} notebooks show numbers that a fresh execution does not: python notebooks/build.py")


if __name__ == "__main__":
    main()
