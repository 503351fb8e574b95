"""`derive certify`: intervals that are proved to hold the critical points, and intervals proved to hold none."""

from __future__ import annotations

import click

from derive.cli.output import ask, print_json, terminal
from derive.cli.parameters import ACTIVATION


@click.command(epilog="Examples: derive certify gelu; derive certify tanh --digits 50 --json")
@click.argument("activation", type=ACTIVATION)
@click.option("--digits", default=30, show_default=True, help="Significant digits of the intervals.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def command(activation: str, digits: int, as_json: bool) -> None:
    """Prove the critical points of ACTIVATION: each in an interval with exactly one, and none elsewhere up to K = 1000.

    Ball arithmetic (FLINT) with bounds on every truncation. The ends of the intervals are rounded outward.
    """
    found = ask("certify", activation=activation, digits=digits)
    if as_json:
        print_json(found)
        return
    console = terminal()
    console.print(f"{found['activation']}: {'proved' if found['proved'] else 'proved in part'}\n")
    for index, point in enumerate(found["points"]):
        console.print(f"point {index} ({point['class']})")
        for key, name in (("K_star", "K*"), ("C_W", "C_W"), ("C_b", "C_b")):
            low, high = point[key]
            console.print(f"  {name:4}in [{low}, {high}]" if low != high else f"  {name:4}= {low}")
    for low, high in found["none_between"]:
        console.print(f"no other for {low} < K < {high}")
    console.print("\n" + found["reason"])
