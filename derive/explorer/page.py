"""The page's files, and the page put together: served in pieces, or as one HTML file that needs no server."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from derive import __version__
from derive.activations.builtin import ALIASES, BUILTIN

FILES = {
    "style.css": "text/css",
    "charts.js": "text/javascript",
    "sources.js": "text/javascript",
    "page.js": "text/javascript",
}
"""What is served besides the page itself."""


@cache
def read_file(name: str) -> str:
    return files("derive.explorer").joinpath("page", name).read_text(encoding="utf-8")


def _filled(head: str, scripts: str, names: list[str]) -> str:
    choices = "".join(f'<option value="{escape(name)}">' for name in names)
    marks = {"<!--head-->": head, "<!--scripts-->": scripts, "<!--choices-->": choices, "<!--version-->": __version__}
    text = read_file("index.html")
    for mark, filling in marks.items():
        text = text.replace(mark, filling)
    return text


def live_page() -> str:
    """The page that asks this machine's server."""
    scripts = "".join(f'<script defer src="{name}"></script>' for name in FILES if name.endswith(".js"))
    return _filled('<link rel="stylesheet" href="style.css">', scripts, [*BUILTIN, *ALIASES])


def whole_page(data: dict[str, Any], recursions: str) -> str:
    """One file that needs no server: style, scripts and the answers for some activations inside."""
    safe = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    inside = [f"const STORED = {safe};", recursions, *(read_file(n) for n in FILES if n.endswith(".js"))]
    scripts = "".join(f"<script>{text}</script>" for text in inside)
    return _filled(f"<style>{read_file('style.css')}</style>", scripts, list(data["activations"]))
