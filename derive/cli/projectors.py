"""`derive projectors`: the six algorithm projectors of a training algorithm, as a table and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from derive.cli.output import ask, print_json
from derive.cli.parameters import OUTPUT_FILE
from derive.cli.predict import ALGORITHMS

WITH_MODES = tuple(name for name in ALGORITHMS if name != "stochastic")


@click.command(epilog="Example: derive projectors --algorithm descent --eta 0.3 --eigenvalues 0.5,1,2 --plot Z.png")
@click.option("--algorithm", type=click.Choice(WITH_MODES), default="descent", show_default=True)
@click.option("--eta", help="Learning rate; for a schedule several, separated by commas, of which the last stays.")
@click.option("--eigenvalues", default="1", show_default=True, help="Of the training NTK, separated by commas.")
@click.option("--momentum", default=0.9, show_default=True)
@click.option("--kappa", help='Newton tensor of preconditioned descent, in the eigenvalue of the NTK, e.g. "1 + h^2".')
@click.option("--time", type=float, help="Steps (or time of the flow) after which training stops.")
@click.option("--plot", type=OUTPUT_FILE, help="Draw the projectors against the eigenvalue into a PNG file.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(
    algorithm: str,
    eta: str | None,
    eigenvalues: str,
    momentum: float,
    kappa: str | None,
    time: float | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """The projectors Z_A ... Z_IIB: what of an algorithm is left in the trained network at order 1/n.

    Modes are eigenvalues of the training NTK; a table has equal modes, the JSON all tuples of them.
    """
    found: dict[str, Any] = ask(
        "projectors",
        keep=False,
        algorithm=algorithm,
        eta=eta,
        eigenvalues=eigenvalues,
        momentum=momentum,
        kappa=kappa,
        time=time,
        plot=None if plot is None else str(plot),
    )
    if as_json:
        print_json(found)
        return
    names = list(found["projectors"])
    click.echo(f"{'h':>10}" + "".join(f"{name:>13}" for name in names))
    for k, value in enumerate(found["eigenvalues"]):
        cells = []
        for name in names:
            entry = found["projectors"][name]
            while isinstance(entry, list):
                entry = entry[k]
            cells.append(f"{entry:13.5g}")
        click.echo(f"{value:10.4g}" + "".join(cells))
    if found["single_input"]:
        click.echo("\none training input, x = eta h, in units of h:")
        for name, text in found["single_input"].items():
            edge = found["edge_of_stability"].get(name)
            click.echo(f"  {name:6}{text}" + (f"     eta -> 2/h: {edge}" if edge is not None else ""))
    for note in found["notes"]:
        click.echo(note)
