"""Turns notebooks/source/*.py (cells marked `# %%` and `# %% [markdown]`) into executed notebooks with outputs.

python notebooks/build.py              # all of them
python notebooks/build.py tanh         # those whose name holds "tanh"
python notebooks/build.py --check      # execute, write nothing: what the tests do
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
_MARKER = re.compile(r"^# %%(.*)$")


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


def execute(book: nbformat.NotebookNode, timeout: int = 240) -> nbformat.NotebookNode:
    """Run all cells in a fresh kernel; an error in a cell is raised."""
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    NotebookClient(book, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": str(HERE)}}).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)  # time stamps would change at every build
    return book


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
    for source in sorted((HERE / "source").glob("*.py")):
        if arguments.names and not any(name in source.stem for name in arguments.names):
            continue
        print(f"{source.stem} ...", flush=True)
        book = execute(read_source(source))
        if not arguments.check:
            write(book, HERE / f"{source.stem}.ipynb")


if __name__ == "__main__":
    main()
