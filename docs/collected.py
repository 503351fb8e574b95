"""Sphinx extension: writes what the site collects from the code before pages are read.

The MathJax bundle, the reports of all built-in activations, the stored notebooks, the equation ledger and the list of
errata go to docs/_collected/ and docs/_build/static/, which git ignores.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from ledger import write_ledger
from sphinx.application import Sphinx
from sphinx.util import logging

HERE = Path(__file__).parent
ROOT = HERE.parent
COLLECTED = HERE / "_collected"
logger = logging.getLogger(__name__)


def _mathjax() -> None:
    from derive.reports.html import mathjax_bundle

    static = HERE / "_build" / "static"
    static.mkdir(parents=True, exist_ok=True)
    (static / "mathjax.js").write_text(mathjax_bundle(), encoding="utf-8")


def _report(name: str) -> None:
    from derive.reports.build import build_reports

    build_reports([name], COLLECTED / "reports", formats=("md",))


def _reports() -> None:
    from derive.activations import activation
    from derive.activations.builtin import BUILTIN
    from derive.reports.build import comparison, write_document
    from effective_theory.files import file_stem

    names = os.environ.get("DOCS_REPORTS", " ".join(BUILTIN)).split()
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("spawn")) as workers:
        list(workers.map(_report, names))
    write_document(comparison([activation(name) for name in names]), "comparison", COLLECTED / "reports", ("md",))
    pages = ["comparison", *(file_stem(name) for name in names)]
    index = "# Reports of the built-in activations\n\n```{toctree}\n" + "\n".join(pages) + "\n```\n"
    (COLLECTED / "reports" / "index.md").write_text(index, encoding="utf-8")


def _notebooks() -> None:
    target = COLLECTED / "notebooks"
    shutil.copytree(
        ROOT / "notebooks", target, ignore=shutil.ignore_patterns("*.py", "__pycache__"), dirs_exist_ok=True
    )
    pages = sorted(p.stem for p in target.glob("*.ipynb"))
    text = "# Notebooks\n\n```{toctree}\n" + "\n".join(pages) + "\n```\n"
    (target / "index.md").write_text(text, encoding="utf-8")


def _errata() -> None:
    pages = sorted(p.stem for p in (HERE / "errata").glob("*.md") if p.stem != "index")
    text = (
        "# Errata\n\nPlaces where a publication's print is wrong, the right result, and the evidence.\n\n"
        "```{toctree}\n" + "\n".join(f"/errata/{page}" for page in pages) + "\n```\n"
    )
    (COLLECTED / "errata.md").write_text(text, encoding="utf-8")


def _commands() -> None:
    """Every command's own help."""
    import click

    from derive.cli import COMMANDS, group

    text = "# The command line\n\nEvery command has `--json`, and is a function of the package `derive`.\n"
    context = click.Context(group, info_name="derive", terminal_width=100)
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        help_text = command.get_help(click.Context(command, info_name=f"derive {name}", terminal_width=100))
        text += f"\n## {name}\n\n```text\n{help_text}\n```\n"
    (COLLECTED / "commands.md").write_text(text, encoding="utf-8")


def collect(app: Sphinx) -> None:
    """Write all collected pages, each step announced."""
    shutil.rmtree(COLLECTED, ignore_errors=True)
    COLLECTED.mkdir(parents=True)
    for name, step in {
        "mathjax": _mathjax,
        "reports": _reports,
        "notebooks": _notebooks,
        "errata": _errata,
        "commands": _commands,
        "ledger": lambda: write_ledger(COLLECTED / "ledger.md"),
    }.items():
        logger.info("collecting %s", name)
        step()


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", lambda app, config: collect(app))
    return {"parallel_read_safe": True}
