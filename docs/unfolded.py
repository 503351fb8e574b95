"""API pages show the equation beside the function that computes it, unfolded from the objects at the build."""

from __future__ import annotations

from collections.abc import Callable

from sphinx.application import Sphinx

Lines = list[str]


def equations() -> dict[str, Callable[[], Lines]]:
    """TeX of what a function computes, by the function's full name."""
    from derive.critical import chi_parallel, chi_perp, kernel_step
    from derive.network import recursion
    from derive.network.trees import TENSORS
    from derive.notation import CHI_PARALLEL, CHI_PERP, K_NEXT
    from derive.steps import equal

    found: dict[str, Callable[[], Lines]] = {
        "derive.critical.kernel_step": lambda: [equal(K_NEXT, kernel_step()).latex()],
        "derive.critical.chi_perp": lambda: [equal(CHI_PERP, chi_perp()).latex()],
        "derive.critical.chi_parallel": lambda: [equal(CHI_PARALLEL, chi_parallel()).latex()],
    }
    for name in TENSORS:
        found[f"numeric.generated.layer.step_{name}"] = lambda name=name: [recursion(name).line_latex()]  # type: ignore[misc]
    return found


def append(app: Sphinx, what: str, name: str, obj: object, options: object, lines: Lines) -> None:
    """Sphinx's hook: a displayed equation after the docstring."""
    for equation in app.unfolded.get(name, lambda: [])():  # type: ignore[attr-defined]
        lines += ["", ".. math::", "", *(f"   {line}" for line in equation.splitlines()), ""]


def setup(app: Sphinx) -> dict[str, bool]:
    app.unfolded = equations()  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", append)
    return {"parallel_read_safe": True}
