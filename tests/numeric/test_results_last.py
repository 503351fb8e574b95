"""Flows and predictions last: pickles, npz files without pickles, tables."""

from __future__ import annotations

import csv
import io
import pickle
import zipfile

import numpy as np
import pytest

import numeric
from numeric import GradientDescent, flow, predict

X = [[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5]]
RATES = {"C_b": 0.1, "C_W": 1.3, "lambda_b": 0.2, "lambda_W": 0.7}


@pytest.fixture(scope="module")
def f():
    return flow("z*erf(z)", X, depth=3, width=[4, 6], tensors="V", **RATES)


def same(a, b):
    assert a.names == b.names and a.widths == b.widths and a.missing == b.missing
    for name in ("C_b", "C_W", "lambda_b", "lambda_W"):
        np.testing.assert_array_equal(getattr(a.parameters, name), getattr(b.parameters, name))
    for layer in range(1, a.depth + 1):
        for name in a.names:
            np.testing.assert_array_equal(a.layer(layer)[name], b.layer(layer)[name])


def test_a_flow_can_be_pickled_and_saved(f, tmp_path):
    same(f, pickle.loads(pickle.dumps(f)))
    path = f.save(tmp_path / "f.npz")
    back = numeric.load(path)
    same(f, back)
    assert back.activation.FUNCTIONS.name == f.activation.FUNCTIONS.name
    with zipfile.ZipFile(path) as file:  # numpy arrays of numbers and one text: nothing that runs when it is read
        heads = [file.open(name).read(128) for name in file.namelist()]
    assert all(b"|O" not in head for head in heads)
    infinite = flow("relu", X, depth=3, layers="last")
    infinite.save(tmp_path / "g.npz")
    assert numeric.load(tmp_path / "g.npz").widths == (2, None, None)
    with pytest.raises(numeric.MissingTensor, match="1/n"):
        _ = numeric.load(tmp_path / "g.npz").V


def test_a_known_error_is_kept(f, tmp_path):
    g = flow("erf", X, depth=2, **RATES)
    with pytest.raises(numeric.NumericError, match="before saving"):
        _ = pickle.loads(pickle.dumps(g)).error
    error = g.error
    assert numeric.load(g.save(tmp_path / "g.npz")).error == error


@pytest.mark.parametrize("content", [b"", b"no zip", pickle.dumps({"about": 1})])
def test_other_files_are_refused(content, tmp_path):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(numeric.NumericError, match=r"x\.npz"):
        numeric.load(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", a=np.ones(2))
    with pytest.raises(numeric.NumericError, match="is not a flow"):
        numeric.load(tmp_path / "y.npz")


def test_tables(f, tmp_path):
    rows = list(csv.DictReader(io.StringIO(f.to_csv(tmp_path / "f.csv"))))
    assert (tmp_path / "f.csv").read_text() == f.to_csv() and len(rows) == len(f.to_dataframe())
    one = next(r for r in rows if (r["layer"], r["tensor"], r["inputs"]) == ("3", "V", "0 1 2 1"))
    assert float(one["value"]) == float(f.V[0, 1, 2, 1])


def test_a_prediction_can_be_pickled_and_is_a_table(tmp_path):
    g = flow("erf", X, depth=2, **RATES)
    p = predict(g, [[1.0, 0.0], [-1.0, 2.0]], train=[0, 1])
    q = pickle.loads(pickle.dumps(p))
    np.testing.assert_array_equal(q.mean_infinite, p.mean_infinite)
    np.testing.assert_array_equal(q.covariance_infinite, p.covariance_infinite)
    table = p.to_dataframe()
    assert list(table["output"]) == [0, 1] and "mean" not in table
    np.testing.assert_allclose(table["mean_infinite"], p.mean_infinite[0])
    assert len(p.to_csv(tmp_path / "p.csv").splitlines()) == 3
    with pytest.raises(numeric.MissingTensor, match="1/n quantity"):
        _ = p.mean


def test_what_can_be_completed(f):
    assert {"K", "V", "layer", "save", "to_csv", "to_dataframe", "error", "widths"} <= set(dir(f))
    assert not any(name.startswith("_") for name in dir(f))
    assert {"K", "V", "number"} <= set(dir(f.layer(2)))
    assert all(getattr(f, name) is not None for name in f.names)


def test_notebooks_show_tables():
    """A flow by its largest components, a prediction by its rows; both say in one line what they are."""
    f = flow("erf", [[1.0, 0.2], [-0.3, 0.9], [0.4, 0.4]], 2, 32, 0.1, 1.2, 0.3, 1.0)
    p = predict(f, [0.5, -0.2], train=[0, 1], algorithm=GradientDescent(0.1))
    for shown in (f, p):
        assert len(repr(shown)) < 250 and "array" not in repr(shown)
    html = p._repr_html_()
    assert f"<td>{float(p.mean[0]):.6g}</td>" in html and "GradientDescent(eta=0.1)" in html
    assert f"<tr><td>V / 32</td><td>(3, 3, 3, 3)</td><td>{float(abs(f.V).max()) / 32:.6g}</td></tr>" in f._repr_html_()
