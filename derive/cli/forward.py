"""`derive forward`: the stochastic forward equation of z, the NTK, the dNTK or a ddNTK."""

from __future__ import annotations

import click

from derive.cli.output import ask, print_json
from derive.cli.recursion import LAYER_NAMES


@click.command(epilog="Example: derive forward ddI --latex")
@click.argument("object", metavar="OBJECT")
@click.option("--layer", type=click.Choice(LAYER_NAMES), default="mlp", help="The layer's definition.")
@click.option("--latex", is_flag=True, help="Only the equation, in LaTeX.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def command(object: str, layer: str, latex: bool, as_json: bool) -> None:
    """Derive how OBJECT (z, H, dH, ddI or ddII) of layer l+1 is made of objects of layer l, before any average."""
    found = ask("forward", object=object, layer=layer)
    if as_json:
        print_json(found)
    elif latex:
        click.echo(found["latex"])
    else:
        click.echo(f"{object} of layer l+1, from layer l, for {found['definition']}\n")
        for number, term in enumerate(found["terms"]):
            click.echo(f"{found['left'] + ' =' if number == 0 else ' ' * len(found['left']) + ' +'} {term['text']}")
        click.echo(
            "\nj1 is the inner neuron of vertex 1, (j1;2) its value on sample 2; all on the right is of layer l but"
        )
        click.echo("the parameters, which are of layer l+1; δ comes with a contraction with a parameter of layer l+1.")
