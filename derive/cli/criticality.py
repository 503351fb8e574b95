"""`derive criticality`: critical initializations of an activation with the steps; fixed points at given (C_b, C_W)."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import ask, ask_latex, number, print_json, print_steps, terminal
from derive.cli.parameters import ACTIVATION


@click.command(
    epilog="Examples: derive criticality tanh; derive criticality gelu --C-b 0.1 --C-W 2; "
    "derive criticality tanh --layer residual --skip 4/5; "
    'derive criticality "z*(1+erf(z/sqrt(2)))/2" --json'
)
@click.argument("activation", type=ACTIVATION)
@click.option("--C-b", "C_b", metavar="X", help="Bias variance: with --C-W, the fixed points there.")
@click.option("--C-W", "C_W", metavar="Y", help="Weight variance: with --C-b, the fixed points there.")
@click.option("--layer", type=click.Choice(("mlp", "residual")), default="mlp", help="The layer's definition.")
@click.option("--skip", metavar="XI", help="With --layer residual: z' = XI z + b + W sigma(z).")
@click.option("--latex", is_flag=True, help="The points as a table for a paper (booktabs), in LaTeX.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def command(
    activation: str, C_b: str | None, C_W: str | None, layer: str, skip: str | None, latex: bool, as_json: bool
) -> None:
    """Find all critical points (K*, C_W, C_b) of ACTIVATION with chi_parallel = chi_perp = 1, and their class.

    ACTIVATION is a built-in name, a name with parameters such as leaky_relu(slope=1/10), or a formula in z. With --C-b
    and --C-W: the kernel's fixed points at these values, their stability and the correlation depths xi = 1/|log chi|.
    """
    question: dict[str, Any] = {"activation": activation, "C_b": C_b, "C_W": C_W, "layer": layer, "skip": skip}
    if latex:
        click.echo(ask_latex("criticality", **question))
        return
    found = ask("criticality", **question)
    if as_json:
        print_json(found)
    elif "fixed_points" in found:
        _show_fixed_points(found)
    else:
        _show(found)


def _table(rows: list[list[str]], *columns: str) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _heading(found: dict[str, Any]) -> str:
    same = found["activation"].replace(" ", "") == found["expression"].replace(" ", "")
    return f"sigma(z) = {found['expression']}" if same else f"{found['activation']}:  sigma(z) = {found['expression']}"


def _show(found: dict[str, Any]) -> None:
    console = terminal()
    console.print(_heading(found))
    console.print(f"class: {found['class']}\n")
    if found["points"]:
        rows = []
        for index, point in enumerate(found["points"]):
            kernel = "any K" if point["K_star"]["exact"] == "K" else number(point["K_star"])
            rows.append([str(index), kernel, number(point["C_W"]), number(point["C_b"]), point["stability"]])
        console.print(_table(rows, "point", "K*", "C_W", "C_b", "stability"))
        console.print()
    console.print(found["reason"] + "\n")
    console.print("How it was found")
    print_steps(console, [step["text"] for step in found["steps"]])


def _show_fixed_points(found: dict[str, Any]) -> None:
    console = terminal()
    console.print(_heading(found))
    console.print(f"C_b = {number(found['C_b'])}, C_W = {number(found['C_W'])}\n")
    keys = ("K_star", "chi_parallel", "chi_perp", "xi_parallel", "xi_perp")
    for point in found["fixed_points"]:
        rows = [[key.replace("_star", "*"), number(point[key]) if point[key] else "infinite"] for key in keys]
        console.print(_table(rows, f"{point['stability']}, {point['phase']}", ""))
        console.print()
    console.print(found["reason"])
