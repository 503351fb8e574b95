"""`derive expect`: one Gaussian expectation, in LaTeX, in closed form where there is one, and as a number."""

from __future__ import annotations

import math
from typing import Any

import click

from derive.cli.output import ask, ask_latex, print_json
from derive.cli.parameters import ACTIVATION, NumbersCommand
from derive.errors import DeriveError

LONGEST_SHOWN = 1000


@click.command(
    cls=NumbersCommand,
    epilog="Examples: derive expect \"s0 s1'' s2' s2'\" gelu; derive expect \"s0 s0\" tanh --K 1 --certify; "
    'derive expect "s0 s1" relu --K 1 0.5 2',
)
@click.argument("pattern")
@click.argument("activation", type=ACTIVATION)
@click.option("--K", "K", metavar="VALUE...", help="The upper triangle of K, row by row: K_00 K_01 K_11.")
@click.argument("more", nargs=-1, metavar="")
@click.option("--digits", default=15, show_default=True, help="Significant digits of the number.")
@click.option("--certify", is_flag=True, help="Add an interval that is proved to hold the number.")
@click.option("--latex", is_flag=True, help="The expectation as an equation, in LaTeX.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def command(
    pattern: str,
    activation: str,
    K: str | None,
    more: tuple[str, ...],
    digits: int,
    certify: bool,
    latex: bool,
    as_json: bool,
) -> None:
    """Evaluate <PATTERN> for ACTIVATION: "s0 s1'' z1" is sigma(z_0) sigma''(z_1) z_1.

    Without --K: LaTeX and the closed form in K, if there is one. With it also the number.
    """
    if more and K is None:
        raise DeriveError(f"What does {more[0]!r} mean? The entries of K follow --K.")
    entries = None if K is None else [t.strip() for text in (K, *more) for t in text.split(",") if t.strip()]
    question: dict[str, Any] = {
        "pattern": pattern,
        "activation": activation,
        "K": entries,
        "digits": digits,
        "certify": certify,
    }
    if latex:
        click.echo(ask_latex("expect", **question))
        return
    found = ask("expect", **question)
    if as_json:
        print_json(found)
        return
    click.echo(found["latex"])
    form = found["exact"] or "none known"
    shown = form if len(form) <= LONGEST_SHOWN else f"known, {len(form)} characters long: ask for it with --json"
    click.echo(f"closed form: {shown}")
    if found["value"] is not None:
        click.echo(f"value: {found['digits']}")
        if math.isfinite(found["error"]) and found["error"] > 0:
            click.echo(f"error: below {found['error']:.1e}")
    if "ball" in found:
        click.echo(f"proved: between {found['ball'][0]} and {found['ball'][1]}")
