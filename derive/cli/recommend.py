"""`derive recommend`: initialization, learning rates, width and aspect ratio for a depth, or code that has them."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from derive.cache import recall
from derive.cli.output import ask, number, print_json, terminal
from derive.cli.parameters import ACTIVATION, DEPTH
from derive.errors import DeriveError

FRAMEWORKS = ("torch", "flax", "equinox", "keras")


@click.command("recommend")
@click.argument("activation", type=ACTIVATION)
@click.option("--depth", type=DEPTH, required=True, help="Number of weight layers L.")
@click.option(
    "--width", type=int, default=None, help="Hidden width of a network you plan (default: the recommended one)."
)
@click.option("--outputs", type=int, default=1, show_default=True, help="Number of outputs n_L.")
@click.option(
    "--input-norm", type=float, default=None, help="x.x/n_0 of your inputs (default: the recommended one, or 1)."
)
@click.option("--inputs", type=int, default=None, help="Dimension n_0 of an input (default: the width).")
@click.option(
    "--targets", type=float, default=None, help="Mean square of the targets (default: rescaled as the notes say)."
)
@click.option("--s", type=float, default=0.0, show_default=True, help="0: NTK, 1: maximal update parametrization.")
@click.option("--data", default=None, help="CSV file of inputs: the largest stable learning rate for this data set.")
@click.option(
    "--point", default=0, show_default=True, help="Which critical point, as `derive criticality` numbers them."
)
@click.option("--layer", type=click.Choice(("mlp", "residual")), default="mlp", show_default=True)
@click.option("--skip", metavar="XI", help="With --layer residual: z' = XI z + b + W sigma(z) between hidden layers.")
@click.option("--format", "form", metavar="FRAMEWORK", help="Print code instead: torch, flax, equinox, keras; or json.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def command(activation: str, depth: int, form: str | None, as_json: bool, data: str | None, **options: Any) -> None:
    """How to initialize and train a network of depth L with ACTIVATION, and how wide it should be.

    All numbers are exact at this depth, from the recursions of one input; none is a large-depth formula.

    \b
    Examples:
        derive recommend gelu --depth 16
        derive recommend "z*tanh(z)" --depth 8 --width 512 --outputs 10
        derive recommend tanh --depth 50 --width 256 --inputs 784 --format torch
        derive recommend relu --depth 6 --width 1024 --s 1 --format flax
        derive recommend gelu --depth 24 --layer residual --skip 1
        derive recommend tanh --depth 8 --data inputs.csv --format torch
    """
    if form not in (None, "json", *FRAMEWORKS):
        raise DeriveError(f"--format is one of {', '.join(FRAMEWORKS)}, json, not {form!r}.")
    question = {"activation": activation, "depth": depth, "data": data, **options}
    if form in FRAMEWORKS:
        code = partial(_code, form, question)
        click.echo(code() if data is not None else recall("recommend code", [form, question], code), nl=False)
        return
    found = ask("recommend", keep=data is None, refusals=True, **question)
    if as_json or form == "json":
        print_json(found)
    else:
        _show(found)


def _code(framework: str, question: dict[str, Any]) -> str:
    import derive

    return derive.recommend(**question).code(framework)


def _show(found: dict[str, Any]) -> None:
    from rich.table import Table

    console = terminal()
    console.print(f"{found['activation']}, depth {found['depth']}: {found['class']}", style="bold")
    bias, weight = (number(found[name], 8) for name in ("C_b", "C_W"))
    if found["skip"] is not None:
        console.print(f"residual layers, skip {number(found['skip'], 8)}; C_b and C_W are those of layers with a skip")
    console.print(f"C_b = {bias}   C_W = {weight}   inputs x.x/n_0 = {found['input_norm']:.6g}")
    aspect = "-" if found["aspect_ratio"] is None else f"{found['aspect_ratio']:.4g}"
    console.print(
        f"width for 10 %: {found['width']}   best L/n: {aspect}   largest stable eta: {found['eta_max']:.6g}\n"
    )
    table = Table("layer", "K", "lambda_b", "lambda_W", "weight s.d.")
    depth = found["depth"]
    shown = range(depth) if depth <= 16 else sorted({*range(4), *range(0, depth, max(1, depth // 8)), depth - 1})
    for l in shown:
        row = (found[name][l] for name in ("K", "lambda_b", "lambda_W", "weight_std"))
        table.add_row(str(l + 1), *(f"{value:.6g}" for value in row))
    console.print(table)
    ratios = Table("ratio", "n times its value")
    for name, value in found["corrections"].items():
        ratios.add_row(name, f"{value:.5g}")
    console.print(ratios)
    for note in found["notes"]:
        console.print(f"- {note}")
