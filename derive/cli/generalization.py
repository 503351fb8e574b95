"""`derive generalization`: robustness and variance of a trained network on a nearby input, against depth."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import ask, ask_latex, number, print_json
from derive.cli.parameters import ACTIVATION

RULES = ("equivalence", "constant")


@click.command(epilog="Example: derive generalization tanh --learning-rates constant --json")
@click.argument("activation", type=ACTIVATION)
@click.option(
    "--learning-rates",
    type=click.Choice((*RULES, "last-layer")),
    default=None,
    help="last-layer is exact Bayesian inference. Default: the first two are shown.",
)
@click.option("--point", default=0, help="Which critical point, numbered as `derive criticality` lists them.")
@click.option("--unequal-norms", is_flag=True, help="Also inputs of unequal norm, through second order in delta.")
@click.option("--latex", is_flag=True, help="Tables for a paper (booktabs), in LaTeX.")
@click.option("--json", "as_json", is_flag=True, help="As JSON; for the equivalence principle unless told otherwise.")
def command(
    activation: str, learning_rates: str | None, point: int, unequal_norms: bool, latex: bool, as_json: bool
) -> None:
    """How the prediction on a nearby test input of equal norm behaves at large depth L, for ACTIVATION.

    Robustness is Theta(-+)/Theta(++) - 1, variance that of the trained output; delta^2 is the separation that survives
    to depth, ddK_[2] = delta^2 l^(-p_perp).
    """
    rules = [learning_rates] if learning_rates else list(RULES)
    if as_json:
        rules = rules[:1]
    options: dict[str, Any] = {"point": point, "unequal_norms": unequal_norms}
    if latex:
        for rule in rules:
            click.echo(ask_latex("generalization", activation=activation, learning_rates=rule, **options))
        return
    found = [ask("generalization", activation=activation, learning_rates=rule, **options) for rule in rules]
    if as_json:
        print_json(found[0])
        return
    power = f"p_perp = {number(found[0]['p_perp'])}"
    flat = "plateau" in found[0]
    click.echo(f"{activation}: {found[0]['class']}{'' if flat else f', {power}'}\n")
    for entry in found:
        rates = entry["learning_rates"]
        click.echo(
            f"learning rates: {rates['rule']}  (lambda_b^(l) = {rates['lambda_b']}, lambda_W^(l) = {rates['lambda_W']})"
        )
        if "plateau" in entry:
            show_plateau(entry["plateau"])
        for note in (*entry["notes"], *((power,) if flat else ())):
            click.echo(f"  {note}")
        for name in ("robustness", "variance"):
            click.echo(f"  {name:11}{behaviour_line(entry[name])}")
        for name, text in entry.get("unequal_norms", {}).items():
            if name != "deviations":
                click.echo(f"  unequal norms, {name}: {text}")
                continue
            for deviation, behaviour in text.items():
                over = "Theta" if "Theta" in deviation else "K"
                click.echo(f"    {deviation}/{over:7}{behaviour_line(behaviour)}")


def show_plateau(entry: dict) -> None:
    """Half-stable activations: what networks of practical depth show, before the limit of infinite depth."""
    click.echo(f"  {entry['where']}")
    for name in entry:
        if name not in ("where", "unit"):
            shown = entry[name].get("text") or number(entry[name])
            click.echo(f"  {name:11}({shown}) {entry['unit']}")


def behaviour_line(entry: dict) -> str:
    factors = [f"({number(entry['coefficient'])})"]
    if entry["unit"]:
        factors.append(entry["unit"])
    if entry["exponent"]["exact"] != "0":
        factors.append(f"L^-({number(entry['exponent'])})")
    if entry["log_power"]:
        factors.append(f"log(L)^{entry['log_power']}")
    return " ".join(factors)
