"""`derive recursion`: the layer-to-layer recursion of a tensor, derived from a layer's definition."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import ask, print_json, print_sum, terminal
from derive.cli.parameters import TENSOR

CONVENTIONS = "parameters are those of layer l+1; r = n_l/n_(l-1); <...> is over N(0, K); s1' = sigma'(z_1)"
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
    console = terminal()
    subscript = "".join(map(str, found["labels"]))
    console.print(f"{found['tensor']}_{subscript} of layer l+1, from layer l, for {found['definition']}")
    console.print(f"{CONVENTIONS}\n")
    print_sum(console, [term["expression"] for term in found["terms"]])
    console.print(f"\ndepends on  {' '.join(found['depends_on']) or 'nothing of layer l'}")
    same = [f"{found['tensor']}_{''.join(map(str, labels))}" for labels in found["symmetries"]]
    if len(same) > 1 and len(set(subscript)) > 1:
        console.print(f"symmetries  {' = '.join(same)}")


def _show_functional(found: dict[str, Any]) -> None:
    console = terminal()
    console.print(f"{found['functional']} of layer l+1, from layer l, for {found['definition']}")
    console.print(CONVENTIONS)
    for note in found["notes"]:
        console.print(note)
    console.print("")
    print_sum(console, [term["expression"] for term in found["terms"]])
    console.print("\nsums over g are over the labels of the function that they differentiate")
    console.print(f"depends on  {' '.join(found['depends_on'])}")
