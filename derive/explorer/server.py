"""The local server: Python's own, bound to 127.0.0.1; it serves the page's few files and streams answers.

/ask?parts=depth,phase&activation=gelu&… answers with JSON lines as a worker finds them; when the page closes the
connection (because its input changed, or its tab was closed) the question is cancelled.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from derive.errors import DeriveError
from derive.explorer.answers import PARTS
from derive.explorer.guard import refusal
from derive.explorer.page import FILES, live_page, read_file
from derive.explorer.pool import WORKERS, Pool

ADDRESS = "127.0.0.1"
PORT = 8642
LONGEST_ADDRESS = 8000
"""Letters of a request's address."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "derive-explorer", ""
    timeout = 60

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asks = parts.path == "/ask"
        if len(self.path) > LONGEST_ADDRESS:
            self._send(414, "The address is too long.")
        elif (why := refusal(dict(self.headers.items()), self.server.server_port, asks)) is not None:
            self._send(403, why)
        elif asks:
            self._ask(dict(parse_qsl(parts.query, max_num_fields=20)))
        elif parts.path in ("/", "/index.html"):
            self._send(200, _page(), "text/html")
        elif parts.path.removeprefix("/") in FILES:
            name = parts.path.removeprefix("/")
            self._send(200, read_file(name), FILES[name])
        else:
            self._send(404, "There is nothing here.")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, code: int, text: str, kind: str = "text/plain") -> None:
        data = text.encode()
        self.send_response(code)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _ask(self, given: dict[str, str]) -> None:
        wanted = given.pop("parts", "").split(",")
        if not set(wanted) <= set(PARTS):
            self._send(400, f"The parts of an answer are {', '.join(PARTS)}.")
            return
        self.send_response(200)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/x-ndjson; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if self.command == "HEAD":
            return
        answers = self.server.pool.ask(wanted, given)
        with contextlib.suppress(OSError), contextlib.closing(answers):
            for message in answers:
                if self._gone():
                    return
                if message:
                    self.wfile.write(json.dumps(message).encode() + b"\n")
                    self.wfile.flush()
            self.wfile.write(b'{"done": true}\n')

    def _gone(self) -> bool:
        """Whether the page has closed its end of the connection."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a terminal is no place for every slide of a slider."""


class ExplorerServer(ThreadingHTTPServer):
    """The server with its workers; `start` serves in the background until `close`."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int | None = None, workers: int = WORKERS) -> None:
        """At `port`; without one at PORT, or where that is taken at any that is free."""
        try:
            super().__init__((ADDRESS, PORT if port is None else port), _Handler)
        except OSError as error:
            if port is not None:
                raise DeriveError(f"Port {port} of {ADDRESS} cannot be used: {error.strerror}.") from None
            super().__init__((ADDRESS, 0), _Handler)
        self.pool = Pool(workers)

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, name="explorer", daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self.pool.close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke: nothing to say."""


@cache
def _page() -> str:
    return live_page()
