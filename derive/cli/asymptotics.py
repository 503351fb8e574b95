"""`derive asymptotics`: one tensor's series in 1/l and log(l), with the steps that lead to it."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import ask, ask_latex, print_json, print_steps, terminal
from derive.cli.parameters import ACTIVATION_OR_GENERIC, TENSOR
from derive.depth.result import BEYOND, ON_PLATEAU


@click.command("asymptotics")
@click.argument("activation", type=ACTIVATION_OR_GENERIC)
@click.argument("tensor", type=TENSOR)
@click.option("--order", default=2, show_default=True, help="Powers of 1/l to keep, the leading one included.")
@click.option("--learning-rates", default="equivalence", show_default=True, help="As in `derive exponents`.")
@click.option(
    "--point", default=0, show_default=True, help="Which critical point, as `derive criticality` numbers them."
)
@click.option("--lambda-b", default=None, help="A number instead of the symbol lambda_b, e.g. 0.")
@click.option("--lambda-W", "lambda_W", default=None, help="A number instead of the symbol lambda_W.")
@click.option("--plateau", is_flag=True, help="Half-stable activations: K stays at K*, exact polynomials in l.")
@click.option("--latex", is_flag=True, help="The series as an equation, in LaTeX.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    activation: str,
    tensor: str,
    order: int,
    learning_rates: str,
    point: int,
    lambda_b: str | None,
    lambda_W: str | None,
    plateau: bool,
    latex: bool,
    as_json: bool,
) -> None:
    """The large-depth series of TENSOR (K Theta V G1 D F H1 A B P Q R S T U) at criticality.

    \b
    Examples:
        derive asymptotics tanh R --order 3
        derive asymptotics relu A --json
    """
    question: dict[str, Any] = {
        "activation": activation,
        "tensor": tensor,
        "order": order,
        "learning_rates": learning_rates,
        "point": point,
        "lambda_b": lambda_b,
        "lambda_W": lambda_W,
        "plateau": plateau,
    }
    if latex:
        click.echo(ask_latex("asymptotics", **question))
        return
    data = ask("asymptotics", **question)
    if as_json:
        print_json(data)
        return

    console = terminal()
    if "plateau" in data:
        first = data["plateau"]
        console.print(ON_PLATEAU)
        console.print(
            f"{tensor} = {first['series']}" if first["exists"] else f"{tensor}: {first['reason']}", style="bold"
        )
        console.print(f"{BEYOND} the steps.")
    print_steps(console, [step["text"] for step in data["steps"]])
    if not data["exists"]:
        console.print(f"{tensor} does not exist: {data['reason']}")
        return
    console.print(f"{tensor} = {data['series']}", style="bold")
    console.print(f"remainder: {data['remainder']}")
    for name, text in data["free_constant_meanings"].items():
        console.print(f"{name}: {text}")
