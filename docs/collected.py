"""Sphinx extension: writes what the site collects from the code before pages are read.

The MathJax bundle, the reports of all built-in activations, the explorer, the gallery, the stored notebooks, the
equation ledger and the list of errata go to docs/_collected/ and docs/_build/static/, which git ignores.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from ledger import write_ledger
from pictures import write_gallery
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
    text = (
        "# Reports of the built-in activations\n\n| activation | class | p_perp | report |\n| --- | --- | --- | --- |\n"
    )
    text += "".join(_row(name) for name in names)
    text += "\n[All of them side by side](comparison.md).\n\n```{toctree}\n:hidden:\n\n"
    text += "\n".join(["comparison", *(file_stem(name) for name in names)]) + "\n```\n"
    (COLLECTED / "reports" / "index.md").write_text(text, encoding="utf-8")


def _row(name: str) -> str:
    """An activation's line of the table: class, p_perp, the report."""
    from derive import DeriveError, criticality, exponents
    from derive.critical.points import class_name
    from derive.notation import latex
    from derive.steps import words
    from effective_theory.files import file_stem

    found = criticality(name)
    power = "–"
    if found.points:
        with contextlib.suppress(DeriveError):
            exponent = exponents(name).p_perp
            power = "–" if exponent is None else f"${latex(exponent, 6)}$"
    kind = words(class_name(found.universality_class)).render(str, str, lambda tex: f"${tex}$")
    return f"| `{name}` | {kind} | {power} | [derivation]({file_stem(name)}.md) |\n"


def _explorer() -> None:
    """The explorer's page for the built-in activations, beside the site's pages."""
    from derive.activations.builtin import BUILTIN
    from derive.explorer.static import static_page
    from effective_theory.files import file_stem

    names = os.environ.get("DOCS_REPORTS", " ".join(BUILTIN)).split()
    page = static_page(names, lambda name: f"_collected/reports/{file_stem(name)}.html")
    target = HERE / "_build" / "extra" / "explorer.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")


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

    text = (
        "# The command line\n\nEvery command has `--json` ([which numbers it holds](../json.md)), and is a function of "
        "the package `derive`. `derive --completion bash` (zsh, fish) prints a completion script.\n"
    )
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
        "explorer": _explorer,
        "gallery": lambda: write_gallery(COLLECTED),
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
