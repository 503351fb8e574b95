"""The residual theory against tensors of sampled networks, stored with the script that made them.

Eight settings: tanh and gelu, skips of 1 and 0.8, 4 and 8 layers, two inputs. Every component of V, G1, D, F, H1, A, B
is compared with its own standard error. How well a tensor is known is one number: the largest standard error among its
components over its largest component, at most 2 per cent for V and G1 and 5 for the others. The theory's numbers are
stored (tests/data/sampled/summarize_residual.py) for the quick tests; slow ones compute them again. The truncated
theory, which knows the tensors only, is far off.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from numeric import flow

DATA = Path(__file__).parents[2] / "data" / "sampled"
DOCS = Path(__file__).parents[3] / "docs"
SETUPS = [f"{name}-{skip}-{depth}" for name in ("tanh", "gelu") for skip in ("1.0", "0.8") for depth in (4, 8)]
KNOWN = {"V": 0.02, "G1": 0.02, "D": 0.05, "F": 0.05, "H1": 0.05, "A": 0.05, "B": 0.05}
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


def computed(record, tensors=SEVEN):
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


def sampled(name):
    return read(DATA / f"residual-{name}.json")


def stored_theory(name):
    """What numeric.flow gave for the setting of these samples, and for no other."""
    record, known = sampled(name), read(DATA / "theory-residual.json")[name]
    assert known["setting"] == {key: record[key] for key in known["setting"]}
    return {tensor: np.array(value) for tensor, value in known["tensors"].items()}


@pytest.mark.parametrize("name", SETUPS)
def test_the_seven_tensors_of_sampled_networks(name):
    """Every component within 3 standard errors."""
    record, ours = sampled(name), stored_theory(name)
    for kernel in ("K", "Theta"):
        assert np.abs(ours[kernel] - record[kernel]).max() < 1e-7  # the script has a trapezoidal rule of its own
    for tensor in SEVEN:
        stored = record["tensors"][tensor]
        value, error = np.array(stored["value"]), np.array(stored["standard_error"])
        far = np.abs(value - ours[tensor]) / error
        assert far.max() < 3, (tensor, far.max())
        assert np.sqrt((far**2).mean()) < 2.2, tensor


@pytest.mark.parametrize("name", SETUPS)
def test_the_seven_tensors_are_known_well_enough_to_judge(name):
    record = sampled(name)
    assert set(record["networks"]) == {"32", "64", "128"}
    for tensor, limit in KNOWN.items():
        stored = record["tensors"][tensor]
        assert np.max(stored["standard_error"]) < limit * np.abs(stored["value"]).max(), tensor


def summary(name):
    """{tensor: (largest deviation in s.e., largest s.e. over the largest component in per cent)}."""
    record, ours, found = sampled(name), stored_theory(name), {}
    for tensor in SEVEN:
        value, error = (np.array(record["tensors"][tensor][key]) for key in ("value", "standard_error"))
        found[tensor] = np.abs((value - ours[tensor]) / error).max(), 100 * error.max() / np.abs(value).max()
    return found


def test_the_documents_show_these_numbers():
    """The table of docs/residual.md, and the ranges of the README."""
    page = (DOCS / "residual.md").read_text()
    for name in SETUPS:
        activation, skip, depth = name.split("-")
        (line,) = re.findall(
            rf"^\| {activation}, skip {float(skip):g}, L = {depth} \|(.* \(.*)\|$", page, re.MULTILINE
        )[-1:]
        shown = [tuple(map(float, re.findall(r"[\d.]+", cell))) for cell in line.split("|")]
        for (far, size), tensor in zip(shown, SEVEN, strict=True):
            assert abs(far - summary(name)[tensor][0]) < 0.06 and abs(size - summary(name)[tensor][1]) < 0.06, (
                name,
                tensor,
            )
    pattern = (
        r"V, G1 within ([\d.]+) s.e. \(([\d.]+) to ([\d.]+) %\), the others within ([\d.]+) \(([\d.]+) to ([\d.]+) %\)"
    )
    said = re.search(pattern, (DOCS.parent / "README.md").read_text())
    assert said
    groups = [[summary(n)[t] for n in SETUPS for t in tensors] for tensors in (("V", "G1"), ("D", "F", "H1", "A", "B"))]
    true = [x for rows in groups for x in (max(r[0] for r in rows), min(r[1] for r in rows), max(r[1] for r in rows))]
    assert np.abs(np.array(true) - np.array([float(x) for x in said.groups()])).max() < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("name", SETUPS)
def test_the_stored_theory_is_what_the_flow_computes(name):
    f = computed(sampled(name))
    for tensor, value in stored_theory(name).items():
        assert np.abs(np.asarray(getattr(f, tensor)) - value).max() < 1e-6 * np.abs(value).max(), tensor


@pytest.mark.slow
@pytest.mark.parametrize("path", DIFFERENTIALS, ids=lambda p: p.stem)
def test_dntk_and_ddntks(path):
    """P, Q, R, S, T, U, and with them V, D, A, F, B again, by samples that share nothing with those of the seven."""
    record = read(path)
    names = list(record["tensors"])
    assert set(WITH_DIFFERENTIALS) < set(names)
    compare(record, computed(record, names), names)


def test_dntk_and_ddntks_are_known_well_enough_to_judge():
    """Relative to the largest entry: at most 20 per cent."""
    assert DIFFERENTIALS
    for path in DIFFERENTIALS:
        for tensor in WITH_DIFFERENTIALS:
            stored = read(path)["tensors"][tensor]
            assert np.max(stored["standard_error"]) < 0.2 * np.abs(stored["value"]).max(), (path.stem, tensor)


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
