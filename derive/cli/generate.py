"""`derive generate`: an activation's theory as a JAX module."""

from __future__ import annotations

from pathlib import Path

import click

import derive
from derive.cli.output import print_json
from derive.cli.parameters import ACTIVATION, OUTPUT_FILE


@click.command("generate")
@click.argument("activation", type=ACTIVATION)
@click.option("-o", "--output", required=True, type=OUTPUT_FILE, help="The file to write.")
@click.option("--tensors", default=None, help="Only these tensors and what they need, e.g. V,D (default: all fifteen).")
@click.option("--standalone", is_flag=True, help="One input, all tensors, and no import but JAX.")
@click.option("--json", "as_json", is_flag=True, help="Print {file, hash} as JSON.")
def command(activation: str, output: Path, tensors: str | None, standalone: bool, as_json: bool) -> None:
    """Write a Python module that evaluates the theory of ACTIVATION with JAX.

    ACTIVATION is a built-in name, a name with parameters, or a formula in z. The module imports only jax and the
    `numeric` runtime; pass it to numeric.flow instead of a name.

    \b
    Examples:
        derive generate gelu -o gelu_alone.py --standalone && python gelu_alone.py
        derive generate gelu -o gelu_theory.py
        python -c "import gelu_theory, numeric; print(numeric.flow(gelu_theory, [[1, 2]], depth=3, width=64).K)"
    """
    found = derive.generate(activation, output, tensors, standalone)
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(f"{found.file} ({len(found.source.splitlines())} lines, hash {found.hash})")
