"""`derive predict` on small tables: JSON as in INTERFACE.md, the table for people, errors in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from derive.cli.predict import command
from derive.errors import DeriveError

SETTING = json.loads((Path(__file__).parents[2] / "data" / "trained" / "tanh.json").read_text())["setting"]
OPTIONS = ["--depth", "3", "--C-b", "0.1", "--C-W", "1.5", "--lambda-b", "0.2", "--lambda-W", "1.0"]


@pytest.fixture
def tables(tmp_path):
    rows = ["a,b,c,u,v"]
    rows += [",".join(str(v) for v in [*SETTING["X"][k], *SETTING["y"][k]]) for k in SETTING["train"]]
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n")
    rows = ["c,a,b"] + [f"{x[2]},{x[0]},{x[1]}" for x in SETTING["X"][3:]]
    (tmp_path / "test.csv").write_text("\n".join(rows) + "\n")
    return [str(tmp_path / "data.csv"), "--test", str(tmp_path / "test.csv")]


def run(arguments):
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_json_is_what_python_predicts(tables):
    from numeric import GradientDescent, flow, predict

    answer = json.loads(
        run(
            [
                *tables,
                "--target",
                "u",
                "--target",
                "v",
                "--width",
                "40",
                "--algorithm",
                "descent",
                "--eta",
                "0.25",
                "--json",
                *OPTIONS,
            ]
        ).stdout
    )
    assert set(answer) == {"mean", "mean_infinite", "covariance_infinite", "parts", "notes"}
    f = flow("tanh", np.array(SETTING["X"]), 3, 40, 0.1, 1.5, 0.2, 1.0, tolerance=1e-8)
    p = predict(f, SETTING["y"], SETTING["train"], GradientDescent(0.25))
    assert np.abs(np.array(answer["mean"]) - p.mean).max() < 1e-12
    assert np.abs(np.array(answer["covariance_infinite"]) - p.covariance_infinite).max() < 1e-12
    assert set(answer["parts"]) == {"NTK", "H1", "NTK variance", "dNTK", "ddNTK-I", "ddNTK-II"}
    assert np.abs(sum(np.array(v) for v in answer["parts"].values()) - p.mean).max() < 1e-12


def test_infinite_width_of_any_activation(tables):
    columns = [*tables, "--target", "u", "--target", "v", "--activation", "relu", "--infinite"]
    answer = json.loads(run([*columns, "--json"]).stdout)
    assert answer["mean"] is None and set(answer["parts"]) == {"NTK"}
    assert np.shape(answer["mean_infinite"]) == (3, 2) and np.shape(answer["covariance_infinite"]) == (3, 3)
    shown = run(columns).stdout
    assert "C_W = 2" in shown and "u on" in shown and "v on" in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--target", "w"], "no column 'w'"),
        (["--target", "u", "--target", "v", "--algorithm", "descent"], "needs --eta"),
        (["--target", "u", "--activation", "relu", "--target", "v"], "ask for --infinite"),
        (["--target", "u"], "lacks the input columns v"),
    ],
)
def test_errors_are_one_sentence(tables, change, message):
    with pytest.raises(DeriveError, match=message):
        run([*tables, *change])


def test_bad_tables(tmp_path):
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n3,four\n")
    (tmp_path / "ragged.csv").write_text("x,y\n1,2\n3\n")
    (tmp_path / "good.csv").write_text("x,y\n1,2\n")
    for name, message in (("bad", "Row 3 of .*four"), ("ragged", "Row 3 .* has 1 cells"), ("none", "Cannot read")):
        with pytest.raises(DeriveError, match=message):
            run([str(tmp_path / f"{name}.csv"), "--test", str(tmp_path / "good.csv"), "--target", "y"])


def test_duplicate_rows_are_named_with_exit_code_2(tmp_path):
    (tmp_path / "data.csv").write_text("x,w,y\n1,2,1\n0,1,2\n1,2,1\n")
    (tmp_path / "test.csv").write_text("x,w\n0.5,1\n")
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "from derive.cli import main; main()",
            "predict",
            "data.csv",
            "--test",
            "test.csv",
            "--target",
            "y",
            "--infinite",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2
    assert "training inputs 0 and 2 are the same" in result.stderr and "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
