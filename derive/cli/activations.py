"""`derive activations`: what is built in, with class and recommended critical point."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import ask, number, print_json, terminal

WIDE = 120
"""Columns from which the formulas have room beside the numbers; below, they are a table of their own."""


@click.command(epilog="Example: derive activations --json")
@click.option("--json", "as_json", is_flag=True, help="The list, as JSON.")
def command(as_json: bool) -> None:
    """List the built-in activations with their universality class and recommended critical initialization."""
    entries = ask("activations")
    if as_json:
        print_json(entries)
        return
    from rich.table import Column, Table

    console = terminal()
    formulas = Table("name", Column("sigma(z)", overflow="fold"), box=None, pad_edge=False)
    headings = ["name", "class", "K*", "C_W", "C_b", "attracts"]
    wide = console.width >= WIDE
    last = [Column("sigma(z)", overflow="fold")] if wide else []
    table = Table(*headings, *last, box=None, pad_edge=False)
    for entry in entries:
        kernel = "any K" if entry["class"] == "scale-invariant" else _brief(entry["K_star"])
        numbers = (kernel, _brief(entry["C_W"]), _brief(entry["C_b"]))
        table.add_row(entry["name"], entry["class"], *numbers, _attracts(entry), *[entry["text"]] * wide)
        formulas.add_row(entry["name"], entry["text"])
    console.print(table)
    if not wide:
        console.print()
        console.print(formulas)
    others = [f"{', '.join(entry['aliases'])} = {entry['name']}" for entry in entries if entry["aliases"]]
    notes = f"Other names: {'; '.join(others)}. Names are read in any case, parameters as in leaky_relu(0.1)."
    console.print("\n" + notes)


def _attracts(entry: dict[str, Any]) -> str:
    """From where K flows to K*."""
    stability = entry["stability"] or ""
    return {"stable": "yes", "unstable": "no", "": "-"}.get(stability, stability.removeprefix("half-stable: attracts "))


def _brief(entry: dict[str, Any] | None) -> str:
    """At most ten characters of exact form, else six digits."""
    text = number(entry, 6)
    return text if len(text) <= 10 or entry is None or entry["value"] is None else f"{entry['value']:.6g}"
