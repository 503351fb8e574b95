"""Who may ask: pages of this server in a browser of this machine, nobody else.

The server listens on 127.0.0.1, but any web page can make a browser send requests there, and a name that is pointed at
127.0.0.1 (DNS rebinding) makes them look like the page's own. So the Host header must be an address of this machine
with our port; a request for answers must not come from another site (Origin, Sec-Fetch-Site) and carries a header that
other sites cannot send without being asked first.
"""

from __future__ import annotations

from collections.abc import Mapping

HEADER = "X-Derive-Explorer"
"""Sent by our page with every question: for another site's script it needs a permission that we never give."""


def refusal(headers: Mapping[str, str], port: int, asks: bool) -> str | None:
    """Why a request is refused, or None; `asks` where it wants an answer and not a file of the page.

    >>> refusal({"Host": "127.0.0.1:8642"}, 8642, asks=False) is None
    True
    >>> refusal({"Host": "evil.example:8642"}, 8642, asks=False)
    'This server answers only to 127.0.0.1 and localhost.'
    """
    given = {name.lower(): value.strip().lower() for name, value in headers.items()}
    own = [f"127.0.0.1:{port}", f"localhost:{port}"]
    if given.get("host") not in own:
        return "This server answers only to 127.0.0.1 and localhost."
    if not asks:
        return None
    if given.get("origin", f"http://{own[0]}") not in [f"http://{host}" for host in own]:
        return "Another site's page asked; only this server's own page may."
    if given.get("sec-fetch-site", "same-origin") != "same-origin":
        return "Another site's page asked; only this server's own page may."
    if HEADER.lower() not in given:
        return f"A question needs the header {HEADER}, which this server's own page sends."
    return None
