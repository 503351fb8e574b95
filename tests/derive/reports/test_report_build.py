"""Whole reports: what they hold, that their Python runs and gives their numbers, that no half-written file is left."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

import derive
from derive.cli.report import command
from derive.reports.build import comparison, report
from derive.reports.document import Gallery, Table
from derive.reports.flow_check import flow_check
from derive.reports.markdown import write_markdown
from effective_theory.files import file_stem, write_file


@pytest.fixture(scope="module")
def tanh():
    steps = []
    return report(derive.activation("tanh"), steps.append), steps


def test_sections_and_progress(tanh):
    document, steps = tanh
    titles = [section.title for section in document.sections]
    assert titles == [
        "Recommendation",
        "The activation",
        "Gaussian calculus",
        "Criticality",
        "The recursions",
        "Exponents, coefficients, ratios",
        "Large depth: the solution, step by step",
        "Generalization to a nearby input",
        "How it was checked",
    ]
    assert len(steps) >= 6 and steps[0] == "activation and Gaussian calculus"


def test_the_table_holds_the_books_coefficients(tanh):
    text = write_markdown(tanh[0], "f/")
    assert "| $V$ | $1$ | 0 | $\\frac{1}{6}$ |" in text  # V = 1/(6 l)
    assert "| $\\frac{V}{n K^{2}}$ | $-1$ | 0 | $\\frac{2}{3}$ |" in text  # V/(n K^2) = (2/3) l/n


def test_every_tensor_is_plotted_and_compared(tanh):
    section = tanh[0].sections[-1]
    gallery = next(block for block in section.blocks if isinstance(block, Gallery))
    table = next(block for block in section.blocks if isinstance(block, Table))
    assert len(gallery.panels) == len(table.rows) == 15
    for _, leading, series in table.rows:
        assert float(leading) < 0.02 and float(series) < 0.005


def test_the_python_of_the_report_runs_and_prints_its_numbers(tanh):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec("\n".join(tanh[0].code()), {})
    assert "V/(n K^2): 2/3" in shown.getvalue()
    assert "robustness -4*lambda_W/(lambda_W + 2*lambda_b) * delta^2" in shown.getvalue()


def test_half_stable_is_compared_on_its_plateau():
    check = flow_check(derive.activation("gelu"), depth=200)
    assert check is not None and check.plateau
    assert max(check.series_deviation.values()) < 1e-11


def test_tensors_that_do_not_exist_are_named_with_the_reason():
    text = write_markdown(report(derive.activation("relu")), "f/")
    assert "Without a solution: $R$, $S$, $T$, $U$. The expectation diverges" in text
    assert "This is exact at every layer." in text


def test_no_critical_point_is_said():
    document = report(derive.activation("softplus"))
    assert document.sections[-1].title == "Large depth"
    assert "No critical point" in write_markdown(document, "f/")


def test_long_rationals_are_readable():
    """selu's scale and slope are rationals of thirty digits: no run of twelve digits reaches the reader."""
    import re

    from derive.reports.sections import activation_section, criticality_section

    selu = derive.activation("selu")
    from derive.reports.document import Document

    sections = (activation_section(selu), criticality_section(selu, selu.criticality()))
    assert not re.search(r"\d{12}", write_markdown(Document("selu", "", sections), "f/"))


def test_comparison_has_a_row_for_each_activation():
    document = comparison([derive.activation(name) for name in ("tanh", "relu", "softplus")])
    first, second = document.sections
    table = next(block for block in first.blocks if isinstance(block, Table))
    assert [row[0] for row in table.rows] == ["tanh", "relu", "softplus"]
    tensors = [block for block in second.blocks if isinstance(block, Table)]
    assert len(tensors) == 15 and [row[0] for row in tensors[0].rows] == ["tanh", "relu"]


def test_command_lists_its_files(tmp_path):
    result = CliRunner().invoke(command, ["softplus", "-o", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    files = json.loads(result.stdout)["files"]
    assert {f"{tmp_path}/softplus.{kind}" for kind in ("html", "md", "tex")} <= set(files)
    assert all((tmp_path / file).exists() for file in files)
    shown = CliRunner().invoke(command, ["softplus", "-o", str(tmp_path)]).stdout.split()
    assert shown[0] == f"{tmp_path}/softplus.html" and not any("_files/" in word for word in shown)


def test_a_stopped_write_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    write_file(target, "old")

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("effective_theory.files.os.replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_file(target, "new")
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_interrupt_ends_the_command_with_a_line_and_no_half_written_file(tmp_path):
    """The real program, stopped by the signal of Ctrl-C as soon as it shows that it works."""
    program = [sys.executable, "-c", "from derive.cli import main; main()", "report", "softplus", "gelu", "-o", "out"]
    environment = os.environ | {"DERIVE_CACHE_DIR": "", "FORCE_COLOR": "1"}
    with subprocess.Popen(
        program, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        seen = b""
        while b"gelu" not in seen:  # softplus is written by then
            piece = os.read(running.stderr.fileno(), 4096)
            assert piece, seen
            seen += piece
        running.send_signal(signal.SIGINT)
        output, error = running.communicate(timeout=60)
    assert running.returncode == 130 and output == b""
    assert error.decode().strip().splitlines()[-1].endswith("derive: stopped") and b"Traceback" not in error
    left = [path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.name for path in left if path.parts[0] != "softplus_files"} == {
        "softplus.html",
        "softplus.md",
        "softplus.tex",
    }
    assert all(path.suffix in (".svg", ".pdf") for path in left if path.parts[0] == "softplus_files")
    assert (tmp_path / "out" / "softplus.html").read_text(encoding="utf-8").endswith("</html>\n")


def test_file_names_are_tame():
    assert re.fullmatch(r"etc_passwd-[0-9a-f]{8}", file_stem("../../etc/passwd"))
    assert re.fullmatch(r"activation-[0-9a-f]{8}", file_stem("***"))
    assert len({file_stem(name) for name in ("z+1", "z-1", "z*1", "z_1", "z - 1", "Z_1")}) == 6
    assert len(file_stem("z+" * 300)) < 100
