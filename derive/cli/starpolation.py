"""`derive starpolation`: how a trained network interpolates and extrapolates between two nearby training inputs."""

from __future__ import annotations

import click

from derive.cli.generalization import RULES, behaviour_line, show_plateau
from derive.cli.output import ask, print_json
from derive.cli.parameters import ACTIVATION


@click.command(epilog="Example: derive starpolation gelu")
@click.argument("activation", type=ACTIVATION)
@click.option("--learning-rates", type=click.Choice(RULES), default="equivalence")
@click.option("--point", default=0, help="Which critical point, numbered as `derive criticality` lists them.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(activation: str, learning_rates: str, point: int, as_json: bool) -> None:
    """The mean prediction between two nearby training inputs of equal norm, and its curvature at large depth."""
    found = ask("starpolation", activation=activation, learning_rates=learning_rates, point=point)
    if as_json:
        print_json(found)
        return
    click.echo(f"{activation}: {found['class']}")
    click.echo(f"mean at s x_+ + (1-s) x_-:  {found['mean']}")
    if found["variance"] is not None:
        click.echo(f"variance there:  {found['variance']}")
    if "plateau" in found:
        show_plateau(found["plateau"])
    if found["curvature"] is not None:
        click.echo(f"curvature ddTheta_[0]/Theta_00 at depth L:  {behaviour_line(found['curvature'])}")
    for note in found["notes"]:
        click.echo(note)
