"""`derive starpolation`: how a trained network interpolates and extrapolates between two nearby training inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from derive.cli.generalization import RULES, behaviour_line, show_plateau
from derive.cli.output import ask, print_json
from derive.cli.parameters import ACTIVATION, OUTPUT_FILE


@click.command(epilog="Example: derive starpolation gelu --depth 10 --angle 0.3 --plot curve.png")
@click.argument("activation", type=ACTIVATION)
@click.option("--learning-rates", type=click.Choice(RULES), default="equivalence")
@click.option("--point", default=0, help="Which critical point, numbered as `derive criticality` lists them.")
@click.option("--depth", type=int, help="Also the curve over s of trained networks with so many layers.")
@click.option("--angle", default=0.2, show_default=True, help="The curve: angle between the training inputs.")
@click.option("--y", "y", type=(float, float), default=(1.0, 1.0), show_default=True, help="The curve: y_+ and y_-.")
@click.option("-o", "--output", type=OUTPUT_FILE, help="Write the curve as a CSV file.")
@click.option("--plot", type=OUTPUT_FILE, help="Draw the curve into a PNG file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(
    activation: str,
    learning_rates: str,
    point: int,
    depth: int | None,
    angle: float,
    y: tuple[float, float],
    output: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """The mean prediction between two nearby training inputs of equal norm, and its curvature at large depth.

    With --depth, the curve over s of trained networks at infinite width, from extrapolation to extrapolation: their
    mean, their standard deviation, and the mean to second order in the angle.
    """
    rule: dict[str, Any] = {"activation": activation, "learning_rates": learning_rates, "point": point}
    asked: dict[str, Any] = {"depth": depth, "angle": angle, "y": y, "output": output, "plot": plot}
    plain = depth is None and output is None and plot is None
    found = ask("starpolation", keep=plain, **rule, **({} if plain else asked))
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
    if "curve" in found:
        click.echo(f"{'s':>6} {'mean':>12} {'± nets':>10} {'2nd order':>12}")
        for row in found["curve"][::4]:
            numbers = (row["mean"], row["standard_deviation"], row["mean_to_second_order"])
            click.echo(f"{row['s']:>6.2f} {numbers[0]:>12.6f} {numbers[1]:>10.3g} {numbers[2]:>12.6f}")
