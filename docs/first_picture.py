"""Writes docs/static/first-picture.svg, which the README and the site's first page show.

python docs/first_picture.py
"""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

import derive
from effective_theory.files import write_file
from numeric import flow

TARGET = Path(__file__).parent / "static" / "first-picture.svg"


def draw() -> Figure:
    """Phases of tanh; K of two inputs at criticality with its 1/n band."""
    figure = Figure(figsize=(9.2, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2)
    derive.criticality("tanh").plot(left)
    left.legend(*left.get_legend_handles_labels(), fontsize=7, loc="upper left")
    flow("tanh", [[1.0, 1.0], [1.6, 1.6]], depth=16, width=64).plot(axes=right)
    right.set_yscale("log")
    return figure


if __name__ == "__main__":
    with matplotlib.rc_context({"svg.hashsalt": "first", "svg.fonttype": "path", "font.size": 9}):
        text = io.StringIO()
        draw().savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    write_file(TARGET, text.getvalue())
