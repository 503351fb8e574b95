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
TARGETS = ["--target", "u", "--target", "v"]
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


def test_times_batches_covariance_loss_and_files(tables, tmp_path):
    """Everything the Python side has, by name; the CSV file holds what JSON says."""
    import csv

    from numeric import flow, predict
    from numeric.trained import Preconditioned, Schedule, StochasticDescent

    with_truth = tmp_path / "truth.csv"
    rows = [f"{x[0]},{x[1]},{x[2]},{0.3 * k},{1 - k}" for k, x in enumerate(SETTING["X"][3:])]
    with_truth.write_text("\n".join(["a,b,c,u,v", *rows]) + "\n")
    arguments = [tables[0], "--test", str(with_truth), "--target", "u", "--target", "v", *OPTIONS, "--width", "24"]
    csv_file, figure = tmp_path / "out.csv", tmp_path / "out.png"
    files = ["-o", str(csv_file), "--plot", str(figure)]
    several = run([*arguments, "--algorithm", "schedule", "--eta", "0.2,0.1", "--time", "0,3,8", *files, "--json"])
    answer = json.loads(several.output)
    f = flow("tanh", SETTING["X"], 3, 24, 0.1, 1.5, 0.2, 1.0, tolerance=1e-8)
    expected = predict(f, SETTING["y"], [0, 1, 2], Schedule([0.2, 0.1]), time=[0, 3, 8])
    assert answer["time"] == [0.0, 3.0, 8.0]
    assert np.abs(np.array(answer["mean"]) - expected.mean).max() < 1e-12
    assert np.shape(answer["covariance_infinite"]) == (3, 3, 3) and "covariance" not in answer
    table = list(csv.DictReader(csv_file.read_text().splitlines()))
    assert len(table) == 3 * 3 * 2 and float(table[7]["mean"]) == pytest.approx(answer["mean"][1][0][1], rel=1e-9)
    assert figure.read_bytes().startswith(b"\x89PNG")
    one = run([*arguments, "--algorithm", "two-step", "--time", "1", "--covariance", "--loss", "--ntk", "--json"])
    answer = json.loads(one.output)
    assert np.shape(answer["covariance"]) == (2, 2, 3, 3) and np.shape(answer["ntk_change"]) == (2, 2, 6, 6)
    losses = answer["test_loss"]
    assert losses["total"] == pytest.approx(losses["bias"] + losses["variance"])
    truth = np.array([[0.3 * k, 1 - k] for k in range(3)])
    gap = np.array(answer["mean_infinite"]) - truth
    assert losses["bias_infinite"] == pytest.approx(np.sum(gap**2) / 6)
    shift = np.array(answer["mean"]) - answer["mean_infinite"]
    assert losses["bias"] - losses["bias_infinite"] == pytest.approx(np.sum(gap * shift) / 3)
    (warning,) = (note for note in answer["notes"] if note.startswith("Warning"))  # 0.0885 becomes 0.1118
    assert "at width 24 the order 1/n of the covariance is 0.26 of" in warning
    batches = ["--algorithm", "stochastic", "--eta", "0.2", "--batches", "0,1;2", "--time", "4"]
    more = ["--covariance", "--ntk", "--ridge", "0.1", "--json"]
    answer = json.loads(run([*arguments, *batches[:-1], "0,4", "--width", "200", *more]).output)
    rule = StochasticDescent(0.2, [[0, 1], [2]])
    f = flow("tanh", SETTING["X"], 3, 200, 0.1, 1.5, 0.2, 1.0, tolerance=1e-8)
    expected = predict(f, SETTING["y"], [0, 1, 2], rule, time=[0, 4], ridge=0.1)
    for name in ("mean", "covariance", "ntk_change"):
        assert np.abs(np.array(answer[name]) - getattr(expected, name)).max() < 1e-12, name
    own = ["--algorithm", "preconditioned", "--eta", "0.1", "--kappa", "1 + h^2", "--time", "3", "--json"]
    answer = json.loads(run([*arguments, *own, "--width", "200"]).output)
    rule = Preconditioned(0.1, lambda h: 1 + h * h)
    expected = predict(f, SETTING["y"], [0, 1, 2], rule, time=3)
    assert np.abs(np.array(answer["mean"]) - expected.mean).max() < 1e-12
    assert any("kappa=1 + h^2) until step 3" in note for note in answer["notes"])
    shown = run([*arguments, *batches, "--width", "1"])
    assert "time" in shown.output and "StochasticDescent" in shown.output
    assert "Warning: at width 1 the order 1/n of the mean is" in shown.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--algorithm", "stochastic", "--eta", "0.1"], "needs --batches"),
        (["--algorithm", "descent", "--eta", "0.1,0.2"], "has one --eta"),
        (["--algorithm", "descent", "--eta", "x"], "numbers separated by commas"),
        (["--algorithm", "descent", "--eta", "0.1", "--time", "1.5"], "whole number"),
        (["--time", "1,inf"], "finite numbers"),
        (["--loss"], "lacks the column"),
        (["--infinite", "--covariance"], "leave out --infinite"),
        (["--memory", "0"], "positive number of gigabytes"),
        (["--ridge", "1", "--loss"], "lacks the column"),
        (["--method", "sampled", "--ntk"], "exact only"),
        (["--ridge", "1", "--algorithm", "newton"], "has no ridge"),
        (["--algorithm", "preconditioned", "--eta", "0.1"], "needs --kappa"),
        (["--algorithm", "preconditioned", "--eta", "0.1", "--kappa", "z"], "formula in h"),
        (["--algorithm", "preconditioned", "--eta", "0.1", "--kappa", "1 - 100*h"], "not positive on the eigenvalues"),
        (["--algorithm", "preconditioned", "--eta", "0.1", "--kappa", "h.real"], "not allowed"),
    ],
)
def test_wrong_options_get_one_sentence(tables, options, message):
    with pytest.raises((DeriveError, ValueError), match=message):
        run([*tables, "--target", "u", "--target", "v", *OPTIONS, "--width", "24", *options])


def test_what_cannot_be_sampled_is_refused_before_the_work(tables, monkeypatch):
    """elu's third derivative is a delta function, which no draw meets; its kernels took twenty seconds to know that."""
    import numeric

    monkeypatch.setattr(numeric, "flow", lambda *_, **__: pytest.fail("kernels were computed"))
    with pytest.raises(ValueError, match="Sampled predictions are for smooth activations, and a derivative of elu"):
        run([*tables, *TARGETS, *OPTIONS, "--width", "24", "--method", "sampled", "--activation", "elu"])


def test_a_file_after_loss_is_no_loss(tables):
    """`--loss` alone is the MSE loss, wherever it stands; a word that is neither a file nor a loss is refused."""
    rest = [*tables[1:], "--target", "u", "--target", "v", *OPTIONS, "--width", "24"]
    with pytest.raises(DeriveError, match=r"test\.csv lacks the column 'u': the loss needs"):  # both files were read
        run(["--loss", tables[0], *rest])
    with pytest.raises(DeriveError, match="lacks the column 'u': the loss needs"):
        run([*rest, "--loss", tables[0]])
    refused = run([*tables, *rest[2:], "--loss", "hinge"])
    assert refused.exit_code == 2 and "'hinge' is not one of 'mse', 'cross-entropy'" in refused.stderr


@pytest.mark.parametrize("more", [[], pytest.param(["--covariance"], marks=pytest.mark.slow)])
def test_sampled_corrections_of_a_table(tables, tmp_path, more):
    """End to end: standard errors in JSON and CSV, the error asked for in the notes."""
    checkpoint, table = tmp_path / "run.npz", tmp_path / "out.csv"
    options = [
        *OPTIONS,
        "--depth",
        "2",
        "--width",
        "24",
        "--ridge",
        "0.5",
        "--relative-error",
        "0.9",
        "--method",
        "sampled",
    ]
    files = ["--checkpoint", str(checkpoint), "-o", str(table), "--json"]
    answer = json.loads(run([*tables, "--target", "u", "--target", "v", *options, *files, *more]).stdout)
    parts = {"NTK", "H1", "NTK variance", "dNTK", "ddNTK-I", "ddNTK-II"}
    assert set(answer["standard_error"]) == {"mean", *parts, *(["variance"] if more else [])}
    assert np.shape(answer["mean"]) == np.shape(answer["standard_error"]["mean"])
    total = sum(np.array(answer["parts"][part]) for part in parts)
    np.testing.assert_allclose(answer["mean"], total, rtol=1e-12)
    assert any("the relative error was reached" in note for note in answer["notes"])
    assert checkpoint.exists() and "standard_error" in table.read_text().splitlines()[0]
    if more:
        assert np.shape(answer["variance"]) == np.shape(answer["mean"])
        assert np.min(answer["variance"]) > -4 * np.max(answer["standard_error"]["variance"])


def test_auto_is_exact_where_the_tensors_fit():
    from numeric.evaluation.flow import fits

    assert fits("tanh", 20, 3, 4e9) and not fits("tanh", 200, 3, 4e9)


@pytest.fixture
def labelled(tmp_path):
    """Three training rows and one test row, with labels and with probabilities."""
    X, more = SETTING["X"][:3], SETTING["X"][3]
    labels, soft = [0, 1, 1], [[0.8, 0.2], [0.3, 0.7], [0.1, 0.9]]
    for name, heads, rows, last in (
        ("hard", "k", [[k] for k in labels], [1]),
        ("soft", "p,q", soft, [0.4, 0.6]),
    ):
        for file, body in (("data", [[*x, *r] for x, r in zip(X, rows)]), ("test", [[*more, *last]])):
            lines = [f"a,b,c,{heads}", *(",".join(map(str, row)) for row in body)]
            (tmp_path / f"{name}-{file}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def of_classes(folder, name, *options):
    targets = {"hard": ["--target", "k"], "soft": ["--target", "p", "--target", "q"]}[name]
    files = [str(folder / f"{name}-data.csv"), "--test", str(folder / f"{name}-test.csv")]
    own = ["--depth", "2", "--C-b", "0.1", "--C-W", "1.5", "--lambda-b", "0.2", "--lambda-W", "1.0", "--width", "64"]
    return run([*files, *targets, *own, "--loss", "cross-entropy", "--algorithm", "descent", "--eta", "0.5", *options])


def test_cross_entropy_at_finite_width(labelled, tmp_path):
    """What the command prints is what `predict_loss` finds for these rows, hard labels as zeros and ones."""
    from numeric import GradientDescent, flow
    from numeric.trained.any_loss import predict_loss
    from numeric.trained.losses import CrossEntropy

    out, plot = tmp_path / "out.csv", tmp_path / "plot.png"
    found = of_classes(labelled, "hard", "--time", "3", "--covariance", "--json", "-o", str(out), "--plot", str(plot))
    answer = json.loads(found.stdout)
    f = flow("tanh", np.array(SETTING["X"][:4]), 2, 64, 0.1, 1.5, 0.2, 1.0, tolerance=1e-8)
    loss, tested = CrossEntropy(np.eye(2)[[0, 1, 1]]), CrossEntropy(np.eye(2)[[1]])
    p = predict_loss(f, loss, [0, 1, 2], GradientDescent(0.5), time=3, test_loss=tested)
    assert np.abs(np.array(answer["probabilities"]) - p.probabilities).max() < 1e-12
    assert np.abs(sum(np.array(x) for x in answer["parts"].values()) - p.mean).max() < 1e-12
    assert np.abs(np.array(answer["covariance"]) - p.covariance).max() < 1e-12
    assert answer["test_loss"]["total"] == pytest.approx(p.test_loss)
    rows = out.read_text().splitlines()
    assert rows[0].startswith("row,class,probability") and rows[1].split(",")[1] == "k=0" and len(rows) == 3
    assert float(rows[1].split(",")[2]) == pytest.approx(p.probabilities[0, 0])
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("hard", [], "give --time"),
        ("hard", ["--time", "3", "--ntk"], "leave out"),
        ("hard", ["--time", "3", "--infinite"], "leave out"),
        ("hard", ["--time", "3", "--algorithm", "momentum"], "without memory"),
        ("soft", ["--target", "c"], "probabilities"),
    ],
)
def test_what_the_cross_entropy_cannot_do(labelled, name, options, message):
    with pytest.raises(DeriveError, match=message):
        of_classes(labelled, name, *options)
