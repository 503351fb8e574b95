"""`derive recursion`: the layer-to-layer recursion of a tensor, derived from a layer's definition."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import ask, print_json
from derive.cli.parameters import TENSOR

LAYER_NAMES = ("mlp", "two-matrices", "input-skip", "residual", "frozen-weights")


@click.command(
    epilog="Example: derive recursion R --single-input --latex. The sums in the other forms are over the labels that "
    "occur in the bracket after them."
)
@click.argument("tensor", type=TENSOR)
@click.option("--single-input", is_flag=True, help="All sample labels equal, sums carried out.")
@click.option("--equal-widths", is_flag=True, help="n_l = n_{l-1}.")
@click.option("--layer", type=click.Choice(LAYER_NAMES), default="mlp", help="The layer's definition.")
@click.option("--latex", is_flag=True, help="Only the equation, in LaTeX.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def command(tensor: str, single_input: bool, equal_widths: bool, layer: str, latex: bool, as_json: bool) -> None:
    """Derive the recursion of TENSOR: K Theta V G1 D F H1 A B P Q R S T U."""
    found = ask("recursion", tensor=tensor, single_input=single_input, equal_widths=equal_widths, layer=layer)
    if as_json:
        print_json(found)
    elif latex:
        click.echo(found["latex"])
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    if "functional" in found:
        _show_functional(found)
        return
    subscript = "".join(map(str, found["labels"]))
    click.echo(f"{found['tensor']}_{subscript} of layer l+1, from layer l, for {found['definition']}")
    click.echo("parameters are those of layer l+1; r = n_l/n_(l-1); <...> is over N(0, K); s1' = sigma'(z_1)\n")
    for number, term in enumerate(found["terms"]):
        click.echo(f"  {'=' if number == 0 else '+'} {term['expression']}")
    if not found["terms"]:
        click.echo("  = 0")
    click.echo(f"\ndepends on  {' '.join(found['depends_on']) or 'nothing of layer l'}")
    same = [f"{found['tensor']}_{''.join(map(str, labels))}" for labels in found["symmetries"]]
    if len(same) > 1 and len(set(subscript)) > 1:
        click.echo(f"symmetries  {' = '.join(same)}")


def _show_functional(found: dict[str, Any]) -> None:
    click.echo(f"{found['functional']} of layer l+1, from layer l, for {found['definition']}")
    click.echo("parameters are those of layer l+1; r = n_l/n_(l-1); <...> is over N(0, K); s1' = sigma'(z_1)")
    for note in found["notes"]:
        click.echo(note)
    click.echo("")
    for number, term in enumerate(found["terms"]):
        click.echo(f"  {'=' if number == 0 else '+'} {term['expression']}")
    click.echo("\nsums over g are over the labels of the function that they differentiate")
    click.echo(f"depends on  {' '.join(found['depends_on'])}")
