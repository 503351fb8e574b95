"""The residual theory against tensors of sampled networks, stored with the script that made them.

V and G1 within 3 standard errors, the others too; the truncated theory, which knows the tensors only, is far off.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from numeric import flow

DATA = Path(__file__).parents[2] / "data" / "sampled"
STORED = sorted(p for p in DATA.glob("residual-*.json") if "differentials" not in p.stem)
DIFFERENTIALS = sorted(DATA.glob("residual-differentials-*.json"))
SEVEN = ["V", "G1", "D", "F", "H1", "A", "B"]
WITH_DIFFERENTIALS = ["P", "Q", "R", "S", "T", "U"]
ACTIVATIONS = {
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2, lambda z: -2 * np.tanh(z) / np.cosh(z) ** 2),
    "gelu": (
        lambda z: z * norm.cdf(z),
        lambda z: norm.cdf(z) + z * norm.pdf(z),
        lambda z: (2 - z**2) * norm.pdf(z),
    ),
}


def read(path):
    return json.loads(path.read_text())


def theory(record, tensors=SEVEN):
    """The tensors at the output."""
    return flow(
        record["activation"],
        record["X"],
        depth=record["depth"],
        width=64,
        skip=record["skip"],
        tensors=tensors,
        tolerance=1e-7,
        **record["hyperparameters"],
    )


def compare(record, f, tensors=SEVEN):
    if "K" in record:
        assert np.abs(np.asarray(f.K) - record["K"]).max() < 1e-10
        assert np.abs(np.asarray(f.Theta) - record["Theta"]).max() < 1e-10
    for name in tensors:
        stored = record["tensors"][name]
        value, error = np.array(stored["value"]), np.array(stored["standard_error"])
        ours = np.asarray(getattr(f, name))
        far = np.abs(value - ours) / error
        # sixteen entries, few of them independent: the mean square is 1, the largest deviation below 3.5
        assert np.sqrt((far**2).mean()) < 2.2 and far.max() < 3.5, (name, far.max())


@pytest.mark.slow
@pytest.mark.parametrize("path", STORED, ids=lambda p: p.stem)
def test_every_stored_network(path):
    record = read(path)
    compare(record, theory(record))


@pytest.mark.slow
@pytest.mark.parametrize("path", DIFFERENTIALS, ids=lambda p: p.stem)
def test_dntk_and_ddntks(path):
    """P, Q, R, S, T, U, and with them V, D, A, F, B again, by samples that share nothing with those of the seven."""
    record = read(path)
    names = list(record["tensors"])
    assert set(WITH_DIFFERENTIALS) < set(names)
    compare(record, theory(record, names), names)


def test_dntk_and_ddntks_are_known_well_enough_to_judge():
    """Relative to the largest entry: at most 20 per cent."""
    assert DIFFERENTIALS
    for path in DIFFERENTIALS:
        for tensor in WITH_DIFFERENTIALS:
            stored = read(path)["tensors"][tensor]
            assert np.max(stored["standard_error"]) < 0.2 * np.abs(stored["value"]).max(), (path.stem, tensor)


@pytest.mark.parametrize("name", ["tanh-0.8-4", "gelu-1.0-8"])
def test_stored_errors_are_small(name):
    """Relative to the largest entry: at most 2 per cent for V and G1, 5 for the others, 6.5 for an H1 that cancels."""
    for tensor, stored in read(DATA / f"residual-{name}.json")["tensors"].items():
        size = np.abs(stored["value"]).max()
        limit = {"V": 0.02, "G1": 0.02, "H1": 0.065}.get(tensor, 0.05)
        assert np.max(stored["standard_error"]) < limit * size, tensor


def truncated(record):
    """V of the first input at the output if V[f, h] were V <f''><h''>/4, as it is in plain networks; and K."""
    x = np.arange(-9000, 9001) * 1e-3
    w = np.exp(-(x**2) / 2) * 1e-3 / np.sqrt(2 * np.pi)
    f, df, ddf = ACTIVATIONS[record["activation"]]
    h, X = record["hyperparameters"], np.array(record["X"])
    K, V = h["C_b"][0] + h["C_W"][0] * X[0] @ X[0] / X.shape[1], 0.0
    for layer in range(1, record["depth"]):
        skip, C, z = record["skip"] if layer < record["depth"] - 1 else 0.0, h["C_W"][layer], np.sqrt(K) * x
        square, bent = w @ f(z) ** 2, w @ (2 * (df(z) ** 2 + f(z) * ddf(z)))
        both = w @ f(z) ** 4 - square**2 + V * bent**2 / 4
        V = skip**4 * V + 2 * C * skip**2 * (K**2 * bent + V * bent / 2) + C**2 * both
        K = skip**2 * K + h["C_b"][layer] + C * square
    return V, K


@pytest.mark.parametrize(("name", "low", "high"), [("tanh-0.8-4", 0.03, 0.05), ("gelu-1.0-8", 0.35, 0.45)])
def test_the_truncated_theory_is_far_off(name, low, high):
    """Four per cent too small after two skips, forty after six: many standard errors."""
    record = read(DATA / f"residual-{name}.json")
    V, K = truncated(record)
    stored = record["tensors"]["V"]
    value, error = stored["value"][0][0][0][0], stored["standard_error"][0][0][0][0]
    assert abs(K - record["K"][0][0]) < 1e-8
    assert low < 1 - V / value < high and value - V > 5 * error
