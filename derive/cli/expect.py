"""`derive expect`: one Gaussian expectation, in LaTeX, in closed form where there is one, and as a number."""

from __future__ import annotations

import math
from typing import Any

import click

from derive.cache import recall
from derive.cli.output import print_json
from derive.cli.parameters import ACTIVATION
from derive.errors import DeriveError

LONGEST_SHOWN = 1000


def answer(pattern: str, activation: str, kernel: list[str], digits: int) -> dict[str, Any]:
    """The JSON of one expectation; `kernel` holds the upper triangle of K, row by row, or nothing (symbols)."""

    def compute() -> dict[str, Any]:
        return _derive(pattern, activation, kernel, digits)

    return recall("expect", [pattern, activation, kernel, digits], compute)


def _derive(pattern: str, activation: str, kernel: list[str], digits: int) -> dict[str, Any]:
    import mpmath
    import sympy as sp

    from derive.activations import activation as make_activation
    from derive.gaussian import evaluate, exact, parse_bracket

    bracket, sigma = parse_bracket(pattern), make_activation(activation)
    covariance = _covariance(sorted(bracket.labels, key=int), kernel)
    form = exact(bracket, sigma, covariance)
    found: dict[str, Any] = {
        "latex": sp.latex(bracket),
        "activation": sigma.name,
        "exact": None if form is None else str(form),
        "exact_latex": None if form is None else sp.latex(form),
        "value": None,
        "digits": None,
        "error": None,
    }
    if covariance is not None:
        number = evaluate(bracket, sigma, covariance, digits)
        with mpmath.workdps(digits + 10):
            found["digits"] = mpmath.nstr(number.value, digits)
            found["value"] = float(number.value)
            found["error"] = float(number.error)
    return found


def _covariance(labels: list[Any], kernel: list[str]) -> dict[tuple[Any, Any], Any] | None:
    from derive.activations import parse_number

    if not kernel:
        return None
    pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i:]]
    if len(kernel) != len(pairs):
        order = " ".join(f"K_{a}{b}" for a, b in pairs)
        raise DeriveError(f"--K needs {len(pairs)} number{'s' * (len(pairs) > 1)} here, in the order {order}.")
    entries = {pair: parse_number(text) for pair, text in zip(pairs, kernel)}
    return entries | {(b, a): value for (a, b), value in entries.items()}


@click.command(
    epilog="Examples: derive expect \"s0 s1'' s2' s2'\" gelu; derive expect \"s0 s0\" tanh --K 1 --digits 30; "
    'derive expect "s0 s1" relu --K 1 0.5 2',
)
@click.argument("pattern")
@click.argument("activation", type=ACTIVATION)
@click.option("--K", "first", metavar="VALUE...", help="The upper triangle of K, row by row: K_00 K_01 K_11.")
@click.argument("more", nargs=-1, metavar="")
@click.option("--digits", default=15, show_default=True, help="Significant digits of the number.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def command(
    pattern: str, activation: str, first: str | None, more: tuple[str, ...], digits: int, as_json: bool
) -> None:
    """Evaluate <PATTERN> for ACTIVATION: "s0 s1'' z1" is sigma(z_0) sigma''(z_1) z_1.

    Without --K: LaTeX and the closed form in K, if there is one. With it also the number.
    """
    if more and first is None:
        raise DeriveError(f"What does {more[0]!r} mean? The entries of K follow --K.")
    texts = [] if first is None else [t for text in (first, *more) for t in text.split(",") if t.strip()]
    found = answer(pattern, activation, texts, digits)
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
