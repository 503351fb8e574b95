"""`derive criticality`: critical initializations of an activation with the steps; fixed points at given (C_b, C_W)."""

from __future__ import annotations

from typing import Any

import click

from derive.cache import recall
from derive.cli.output import number, print_json, terminal
from derive.cli.parameters import ACTIVATION
from derive.errors import DeriveError


def answer(activation: str) -> dict[str, Any]:
    """The JSON of one activation, from the disk cache when it was asked before by the same code."""

    def compute() -> dict[str, Any]:
        from derive.critical import criticality

        return criticality(activation).to_json()

    return recall("criticality", activation, compute)


def answer_off_critical(activation: str, bias: str, weight: str) -> dict[str, Any]:
    """The JSON of the fixed points at given hyperparameters."""

    def compute() -> dict[str, Any]:
        from derive.critical import fixed_points

        return fixed_points(activation, bias, weight).to_json()

    return recall("fixed points", [activation, bias, weight], compute)


@click.command(
    epilog="Examples: derive criticality tanh; derive criticality gelu --C-b 0.1 --C-W 2; "
    'derive criticality "z*(1+erf(z/sqrt(2)))/2" --json'
)
@click.argument("activation", type=ACTIVATION)
@click.option("--C-b", "bias", metavar="X", help="Bias variance: with --C-W, the fixed points there.")
@click.option("--C-W", "weight", metavar="Y", help="Weight variance: with --C-b, the fixed points there.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def command(activation: str, bias: str | None, weight: str | None, as_json: bool) -> None:
    """Find all critical points (K*, C_W, C_b) of ACTIVATION with chi_parallel = chi_perp = 1, and their class.

    ACTIVATION is a built-in name, a name with parameters such as leaky_relu(slope=1/10), or a formula in z. With --C-b
    and --C-W: the kernel's fixed points at these values, their stability and the correlation depths xi = 1/|log chi|.
    """
    if (bias is None) != (weight is None):
        raise DeriveError("Give both --C-b and --C-W, or neither.")
    if bias is not None and weight is not None:
        found = answer_off_critical(activation, bias, weight)
        show = _show_fixed_points
    else:
        found = answer(activation)
        show = _show
    if as_json:
        print_json(found)
    else:
        show(found)


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
    for index, step in enumerate(found["steps"], start=1):
        console.print(f"  {index}. {step}")


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
