"""What users type after a command, read and checked in one place before any work begins."""

from __future__ import annotations

import re
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from derive.cache import recall
from derive.cli.limits import READING, cpu_limit
from derive.errors import DeriveError
from derive.lists import names

GENERIC = ("generic", "generic odd")


_NEGATIVE = re.compile(r"-\.?\d")


class ActivationName(click.ParamType):
    """A built-in name or a formula: becomes the canonical print of what was read, never the text itself."""

    name = "activation"

    def __init__(self, generic: bool = False) -> None:
        self.generic = generic

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if self.generic and value in GENERIC:
            return value
        return recall("activation", value, lambda: _name(value))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from derive.activations.builtin import ALIASES, BUILTIN

        names = [*BUILTIN, *ALIASES, *(GENERIC if self.generic else ())]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _name(text: str) -> str:
    from derive.activations import activation

    with cpu_limit(READING, f"This formula takes more than {READING:g} s to read: write a simpler one."):
        return activation(text).name


class TensorName(click.ParamType):
    """One of the fifteen, in any case; the verb that is asked says which there are."""

    name = "tensor"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from derive.network.trees import TENSORS

        return next((name for name in TENSORS if name.lower() == value.lower()), value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from derive.network.trees import TENSORS

        return [CompletionItem(name) for name in TENSORS if name.startswith(incomplete)]


TENSOR = TensorName()
ACTIVATION = ActivationName()
ACTIVATION_OR_GENERIC = ActivationName(generic=True)


LONG_DEPTH = 10_000
"""Layers from which a command says at once that it will take long: a millisecond or more for each."""


class Depth(click.ParamType):
    """A number of weight layers; very many are said to take long before the work begins."""

    name = "integer"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            found = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid integer.", param, ctx)
        if found >= LONG_DEPTH:
            click.echo(
                f"derive: {found} layers are computed one after the other, which takes minutes; Ctrl-C stops it, "
                "nothing is lost",
                err=True,
            )
        return found


DEPTH = Depth()


class ActivationNames(click.ParamType):
    """Activations separated by commas; commas inside brackets belong to a formula."""

    name = "activations"

    def convert(self, value: str | list[str], param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if not isinstance(value, str):
            return value
        return [ACTIVATION.convert(part, param, ctx) for part in names(value)]


ACTIVATIONS = ActivationNames()


class NumbersCommand(click.Command):
    """A command among whose words negative numbers may stand: -0.8 is a number, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f" {word}" if _NEGATIVE.match(word) else word for word in args])


class OutputFile(click.ParamType):
    """A file to be written: checked before the work begins."""

    name = "file"

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from effective_theory.files import check_file

        return check_file(_path(value))


class OutputFolder(click.ParamType):
    """A folder to be written into: checked before the work begins, made where it is missing."""

    name = "folder"

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from effective_theory.files import check_folder

        return check_folder(_path(value))


def _path(value: str | Path) -> Path:
    if not str(value):
        raise DeriveError("The output's name is empty.")
    return Path(value)


OUTPUT_FILE, OUTPUT_FOLDER = OutputFile(), OutputFolder()
