"""`derive exponents`: critical exponents, leading coefficients and dimensionless ratios of every tensor."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import ask, ask_latex, print_json, terminal
from derive.cli.parameters import ACTIVATION_OR_GENERIC


@click.command("exponents")
@click.argument("activation", type=ACTIVATION_OR_GENERIC)
@click.option(
    "--learning-rates",
    default="equivalence",
    show_default=True,
    help="equivalence, constant, or power(p_b,p_W) for lambda_b ~ l^(-p_b), lambda_W ~ l^(-p_W).",
)
@click.option(
    "--point", default=0, show_default=True, help="Which critical point, as `derive criticality` numbers them."
)
@click.option("--lambda-b", default=None, help="A number instead of the symbol lambda_b, e.g. 0.")
@click.option("--lambda-W", "lambda_W", default=None, help="A number instead of the symbol lambda_W.")
@click.option("--plateau", is_flag=True, help="Half-stable activations: K stays at K*, exact polynomials in l.")
@click.option("--C-b", "C_b", default=None, help="With --C-W: the exponential behaviour off criticality instead.")
@click.option("--C-W", "C_W", default=None, help="With --C-b: the exponential behaviour off criticality instead.")
@click.option("--layer", type=click.Choice(("mlp", "residual")), default="mlp", help="The layer's definition.")
@click.option("--skip", metavar="XI", help="With --layer residual: z' = XI z + b + W sigma(z).")
@click.option("--latex", is_flag=True, help="Tables for a paper (booktabs), in LaTeX.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    activation: str,
    learning_rates: str,
    point: int,
    lambda_b: str | None,
    lambda_W: str | None,
    plateau: bool,
    C_b: str | None,
    C_W: str | None,
    layer: str,
    skip: str | None,
    latex: bool,
    as_json: bool,
) -> None:
    """How every tensor behaves at large depth: coefficient * l^(-exponent) * log(l)^log_power.

    ACTIVATION is a built-in name, a name with parameters, a formula in z, or "generic" or "generic odd" for formulas in
    sigma_1, sigma_2, ... of any smooth activation with sigma(0) = 0.

    \b
    Examples:
        derive exponents tanh
        derive exponents "sin(z)+4/5*(1-cos(z))" --json
        derive exponents gelu --learning-rates constant
        derive exponents tanh --lambda-b 0
        derive exponents gelu --plateau
        derive exponents tanh --C-b 0.1 --C-W 1.5
        derive exponents tanh --layer residual --skip 4/5
    """
    question: dict[str, Any] = {
        "activation": activation,
        "learning_rates": learning_rates,
        "point": point,
        "lambda_b": lambda_b,
        "lambda_W": lambda_W,
        "plateau": plateau,
        "C_b": C_b,
        "C_W": C_W,
        "layer": layer,
        "skip": skip,
    }
    if latex:
        click.echo(ask_latex("exponents", **question))
        return
    data = ask("exponents", **question)
    if as_json:
        print_json(data)
    elif "text" in data:
        click.echo(data["text"])
    else:
        _show(data)


def _show(data: dict[str, Any]) -> None:
    console = terminal()
    console.print(f"{data['activation']}: {data['class']}", style="bold")
    if "plateau" in data:
        console.print("\nAt the depths of real networks", style="bold")
        _show_table(console, data["plateau"])
        if "finite_depth" in data:
            _show_finite(console, data["finite_depth"])
        console.print("\nAt infinite depth", style="bold")
    _show_table(console, data)
    if "finite_depth" in data and "plateau" not in data:
        _show_finite(console, data["finite_depth"])


def _show_table(console: Any, data: dict[str, Any]) -> None:
    """One regime: what is known of where it holds, then its exponents."""
    from rich.table import Column, Table

    for note in data["notes"]:
        console.print(note)
    rates = data["learning_rates"]
    powers = [f"{name} = {_number(data[name])}" for name in ("p_0", "p_perp", "p_parallel")]
    console.print(", ".join(powers))
    console.print(
        f"learning rates ({rates['rule']}): lambda_b^(l) = {rates['lambda_b']}, lambda_W^(l) = {rates['lambda_W']}",
    )
    table = Table("tensor", "exponent", "log power", Column("coefficient", overflow="fold"))
    for name, entry in data["tensors"].items():
        if entry["exists"]:
            logs = str(entry["log_power"]) if entry["exponent"] else "-"
            table.add_row(name, _number(entry["exponent"]), logs, _number(entry["coefficient"]))
        else:
            table.add_row(name, "-", "-", f"does not exist: {entry['reason']}")
    console.print(table)
    ratios = Table("times n", "exponent", "log power", Column("coefficient", overflow="fold"))
    for entry in data["ratios"].values():
        logs = str(entry["log_power"]) if entry["exponent"] else "-"
        cells = (_number(entry["exponent"]), logs, _number(entry["coefficient"]))
        ratios.add_row(entry["ratio"].replace("n ", "").replace("(n)", "1"), *cells)
    if data["ratios"]:
        console.print("Dimensionless ratios:")
        console.print(ratios)
    console.print("A tensor behaves as coefficient * l^(-exponent) * log(l)^(log power).")


def _show_finite(console: Any, data: dict[str, Any]) -> None:
    """The exact recursions at the layers of real networks."""
    from rich.table import Column, Table

    console.print(
        f"Exact at finite depth, n times each ratio: the recursions iterated from x.x/n_0 = {data['input_norm']:.6g}, "
        "with lambda_b = lambda_W = 1 in every layer:"
    )
    table = Table("ratio", *(Column(f"l = {layer}", justify="right") for layer in data["layers"]))
    for entry in data["ratios"].values():
        table.add_row(entry["ratio"], *(f"{value:.4g}" for value in entry["n_times"]))
    console.print(table)


def _number(entry: dict[str, Any] | None) -> str:
    """Exact expressions as they are, floating-point ones rounded for reading."""
    return "-" if entry is None else entry.get("text", entry["exact"])
