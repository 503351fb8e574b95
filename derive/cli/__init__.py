"""The `derive` command. Each command is a module of this folder with one `command`, imported only when it runs."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from difflib import get_close_matches

import click

from derive import __version__
from derive.cli.failures import guarded
from effective_theory.folders import user_cache

COMMANDS = {
    "activations": "what is built in, with class and criticality at a glance",
    "criticality": "critical initializations and universality class of an activation",
    "certify": "critical points as proved intervals, and where there are none",
    "expect": "a Gaussian expectation of sigma and its derivatives at labelled inputs",
    "forward": "the stochastic forward equation of the NTK, dNTK or a ddNTK",
    "recursion": "the layer-to-layer recursion of a tensor",
    "exponents": "critical exponents and coefficients of every tensor",
    "asymptotics": "the large-depth series of a tensor, with the steps",
    "recommend": "initialization, learning rates, width and depth of a network, ready to paste",
    "generate": "write a JAX module for an activation",
    "predict": "predictions of trained networks on a data set",
    "kernel": "kernel regression on a data set: risks, spectrum, what to label next",
    "projectors": "what of a training algorithm is left in the trained network at order 1/n",
    "generalization": "robustness and variance on a nearby input, against depth",
    "starpolation": "interpolation and extrapolation between two training inputs",
    "depth-study": "test loss of a data set against depth, as bias and variance",
    "explore": "a local page: type an activation, slide variances, depth and width",
    "report": "derivation reports: self-contained HTML, Markdown, LaTeX",
    "scale-study": "the best learning rate and a coordinate check against width, on real networks",
    "ntk-study": "trained networks against their linearization, over widths",
    "learnability": "eigenvalues of a network's kernel and what n samples learn of each mode",
}


class LazyCommands(click.Group):
    """Loads derive.cli.<name> when the command is asked for, so that `--help` and cached answers start fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"derive.cli.{name.replace('-', '_')}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = get_close_matches(args[0], COMMANDS, 1, 0.6) if args[0] not in COMMANDS else []
        if close:
            ctx.fail(f"No such command {args[0]!r}: did you mean {close[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


SHELLS = ("bash", "zsh", "fish")


def _completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    """Print the shell's own script, which asks this program what can follow."""
    if shell is None or ctx.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(group, {}, "derive", "_DERIVE_COMPLETE").source())
    ctx.exit()


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="derive")
@click.option(
    "--completion",
    type=click.Choice(SHELLS),
    expose_value=False,
    is_eager=True,
    callback=_completion,
    help="Print a script that completes commands, options, activations and tensors; eval it when your shell starts.",
)
def group() -> None:
    """The effective theory of deep learning: exact Gaussian calculus, recursions, exponents, predictions."""


def _run() -> int:
    if "NUMERIC_CACHE_DIR" not in os.environ:  # this process is ours: compiled programs are kept for the next one
        with suppress(OSError, ValueError):
            os.environ["NUMERIC_CACHE_DIR"] = str(user_cache())
    return group.main(prog_name="derive", standalone_mode=False) or 0


def main() -> None:
    """Run the command line: an answer, or one sentence on standard error (see `derive.cli.failures`)."""
    guarded(_run)
