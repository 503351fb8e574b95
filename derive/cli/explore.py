"""`derive explore`: the explorer's page in a browser of this machine, or as one HTML file."""

from __future__ import annotations

import threading
from pathlib import Path

import click

import derive
from derive.cli.output import print_json, terminal
from derive.cli.parameters import ACTIVATION, OUTPUT_FILE


@click.command("explore")
@click.argument("activation", type=ACTIVATION, required=False)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=None, help="Of 127.0.0.1 (default: 8642, or a free one)."
)
@click.option("--browser", is_flag=True, help="Open the page in the default browser.")
@click.option("--static", type=OUTPUT_FILE, default=None, help="Write one HTML file that needs no server, and end.")
@click.option("--json", "as_json", is_flag=True, help="{url, file} as JSON.")
def command(activation: str | None, port: int | None, browser: bool, static: Path | None, as_json: bool) -> None:
    """A local page: type an activation, slide C_W, C_b, depth and width, and see phases, K, 1/n corrections, exponents
    and what is recommended.

    The server listens to this machine only, fetches nothing from outside and ends with Ctrl-C. The page's address holds
    the question, so that it can be kept and shared.

    \b
    Examples:
        derive explore
        derive explore "z*tanh(z)" --browser
        derive explore --static explorer.html
    """
    notes = terminal(stderr=True)
    found = derive.explore(activation, port, browser, static, progress=lambda name: notes.print(f"{name} …"))
    if as_json:
        print_json(found.to_json())
    elif found.file is not None:
        click.echo(f"{found.file}")
    else:
        click.echo(f"{found.url}\nCtrl-C ends it.")
    if found.url is None:
        return
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    finally:
        found.close()
