"""`derive.explore`: the explorer's page, served to this machine, or written as one HTML file."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as read
from derive.explorer.server import ExplorerServer
from derive.explorer.static import builtin_names, static_page
from derive.layout import Block, Text
from derive.results import Result
from derive.steps import Verbatim, said
from effective_theory.files import check_file, write_file

_SERVERS: dict[str, ExplorerServer] = {}
"""Those that run, by the address of their page."""


@dataclass(frozen=True)
class Explorer(Result):
    """A page at `url`, served in the background until `close()` or the end of the program; or the `file` written."""

    url: str | None = None
    file: Path | None = None

    def to_json(self) -> dict[str, object]:
        return {"url": self.url, "file": None if self.file is None else str(self.file)}

    def blocks(self) -> tuple[Block, ...]:
        return (Text(said("Explorer: {}", Verbatim(str(self.url or self.file)))),)

    def close(self) -> None:
        """End the server; an explorer that is a file has none."""
        server = _SERVERS.pop(self.url or "", None)
        if server is not None:
            server.close()


def explore(
    activation: str | sp.Expr | Activation | None = None,
    port: int | None = None,
    browser: bool = False,
    static: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Explorer:
    """A local page on which an activation is typed, its variances, depth and width are slid, and its theory is seen.

    The server listens to this machine only (127.0.0.1). `browser` opens the page. With `static` one HTML file is
    written instead, which needs no server and knows this activation, or all that are built in.
    """
    name = None if activation is None else read(activation).name
    if static is not None:
        target = check_file(Path(static))
        names = builtin_names() if name is None else [name]
        page = static_page(names, lambda own: None, progress or (lambda own: None))
        return Explorer(file=write_file(target, page))
    server = ExplorerServer(port)
    server.start()
    url = server.url + ("" if name is None else f"?{urlencode({'activation': name})}")
    _SERVERS[url] = server
    if browser:
        webbrowser.open(url)
    return Explorer(url=url)
