"""Does what is stored still hold? A part of each stored data set is made afresh, by its own script, and compared.

    python tests/data/recheck.py            # the quick checks, about a minute
    python tests/data/recheck.py --long     # all of them
    python tests/data/recheck.py pairs      # one, by name

The inventory is stored.toml beside this file. Exit code 1 if anything no longer holds.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from types import ModuleType

import mpmath
import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def script(path: str) -> ModuleType:
    """One of the scripts that make the data, as a module."""
    spec = importlib.util.spec_from_file_location(f"stored_{Path(path).stem}", HERE / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def agree(name: str, old: object, new: object, tolerance: float) -> list[str]:
    """A complaint where two numbers differ by more than `tolerance`, relatively."""
    a, b = mpmath.mpf(str(old)), mpmath.mpf(str(new))
    return [] if abs(a - b) <= tolerance * abs(a) else [f"{name}: {old} is stored, {new} comes out"]


def iterations() -> list[str]:
    make, found = script("asymptotics/make_iterations.py"), []
    make.LAYERS, make.HERE = [1000], Path(tempfile.mkdtemp())
    for name in make.RUNS:
        make.run(name)
        new = json.loads((make.HERE / f"{name}.json").read_text())["layers"]["1000"]
        old = json.loads((HERE / "asymptotics" / f"{name}.json").read_text())["layers"]["1000"]
        for tensor, value in old.items():
            found += agree(f"{name} {tensor} at layer 1000", value, new[tensor], 1e-12)
    return found


def pairs() -> list[str]:
    from derive import activation
    from derive.gaussian import Sigma, expect, value

    rows = json.loads((HERE / "brackets" / "pairs.json").read_text())
    found = []
    for at in np.random.default_rng(0).choice(len(rows), 30, replace=False):
        name, a, c, b, j, k, stored = rows[at]
        kernel = {(0, 0): a, (0, 1): c, (1, 1): b}
        with mpmath.workdps(30):
            fresh = mpmath.nstr(value(expect(Sigma(0, j) * Sigma(1, k)), activation(name), kernel, 30), 25)
            found += agree(f"{name} <s0({j}) s1({k})> at {a}, {c}, {b}", stored, fresh, 1e-22)
    return found


def quadruples() -> list[str]:
    import sympy as sp

    from derive import activation
    from derive.gaussian import Sigma, expect, value

    rows = [r for r in json.loads((HERE / "brackets" / "quadruples.json").read_text()) if len(r[1]) == 2]
    found = []
    for at in np.random.default_rng(0).choice(len(rows), 6, replace=False):
        name, C, labels, orders, stored, _ = rows[at]
        kernel = {(0, 0): C[0][0], (0, 1): C[0][1], (1, 1): C[1][1]}
        bracket = expect(sp.prod([Sigma(x, k) for x, k in zip(labels, orders)]))
        with mpmath.workdps(30):
            fresh = mpmath.nstr(value(bracket, activation(name), kernel, 20), 17)
            found += agree(f"{name} {labels} {orders} at {C}", stored, fresh, 1e-15)
    return found


def nearby() -> list[str]:
    make, found = script("nearby/make.py"), []
    make.DEPTHS = (100, 300)
    for name, iterate in (("tanh", make.tanh), ("selu", make.selu)):
        stored = json.loads((HERE / "nearby" / f"{name}.json").read_text())
        for rule in stored:
            for depth, row in iterate(rule).items():
                for key, value in row.items():
                    found += agree(f"{name} {rule} {key} at {depth}", stored[rule][str(depth)][key], value, 1e-9)
    return found


def nearby_builtin() -> list[str]:
    make, found = script("nearby/make_builtin.py"), []
    stored = json.loads((HERE / "nearby" / "builtin.json").read_text())
    for name in ("gelu", "mish"):
        for rule, rows in make.iterate(name).items():
            for depth, row in rows.items():
                for key, value in row.items():
                    found += agree(f"{name} {rule} {key} at {depth}", stored[name][rule][str(depth)][key], value, 1e-9)
    return found


def _pulls(what: str, old: np.ndarray, old_error: np.ndarray, new: np.ndarray, new_error: np.ndarray) -> list[str]:
    """Do two estimates agree: root mean square and largest of their differences in standard errors."""
    scale = np.hypot(old_error, new_error)
    pulls = np.abs(old - new)[scale > 0] / scale[scale > 0]
    if pulls.size == 0 or (np.sqrt(np.mean(pulls**2)) < 2 and pulls.max() < 5):
        return []
    return [f"{what}: up to {pulls.max():.1f} standard errors apart"]


def sampled() -> list[str]:
    make, found = script("sampled/make.py"), []
    make.HERE = Path(tempfile.mkdtemp())
    make.make("mlp", 0.02)
    new, old = (json.loads((folder / "mlp.json").read_text())["tensors"] for folder in (make.HERE, HERE / "sampled"))
    for name, row in old.items():
        numbers = [np.array(r[key]) for r in (row, new[name]) for key in ("value", "standard_error")]
        found += _pulls(f"mlp {name}", *numbers)
    return found


def studies() -> list[str]:
    from numeric.studies.linearization import Study, run

    make, found = script("studies/make.py"), []
    for name, C_W in make.C_W.items():
        with (HERE / "studies" / f"ntk-study-{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        study = Study(name, C_W=C_W)
        width = int(rows[0]["width"])
        done = {(int(r["width"]), int(r["network"])) for r in rows}
        done -= {(width, network) for network in range(2)}
        for fresh in (row for chunk in run(study, done) for row in chunk):
            number = fresh.network
            stored = next(r for r in rows if (int(r["width"]), int(r["network"])) == (width, number))
            for key, value in stored.items():
                found += agree(f"{name} width {width} network {number} {key}", value, getattr(fresh, key), 1e-6)
    return found


def trained() -> list[str]:
    make, found = script("trained/make.py"), []
    stored = next(r for r in json.loads((HERE / "trained" / "tanh.json").read_text())["runs"] if r["width"] == 24)
    fresh = make.run(24, 400, 4000, 300, 1e-3)
    for name in ("interaction", "linearized", "mean", "covariance"):
        numbers = [np.array(r[name][key]) for r in (stored, fresh) for key in ("value", "error")]
        found += _pulls(f"width 24 {name}", *numbers)
    return found


def cross_entropy() -> list[str]:
    make, found = script("trained/make_cross_entropy.py"), []
    stored = json.loads((HERE / "trained" / "cross_entropy.json").read_text())["runs"]
    make.PAIRS = {32: 500}
    fresh = make.run("soft", 32)
    old = next(r for r in stored if r["name"] == "soft" and r["width"] == 32)
    for name in ("mean", "probabilities", "test loss"):
        numbers = [np.array(r[name][key]) for r in (old, fresh) for key in ("value", "error")]
        found += _pulls(f"cross-entropy, width 32, {name}", *numbers)
    return found


def test_losses() -> list[str]:
    make, found = script("trained/make_test_loss.py"), []
    stored = json.loads((HERE / "trained" / "test_loss.json").read_text())["runs"]
    for fresh in make.run(3, 32, 300, 3000):
        old = next(r for r in stored if [r[k] for k in ("depth", "width", "factor")] == [3, 32, fresh["factor"]])
        for name in ("interaction", "linear", "loss"):
            numbers = [np.array(r[name][key]) for r in (old, fresh) for key in ("value", "error")]
            found += _pulls(f"depth 3, width 32, targets times {fresh['factor']:.3g}, {name}", *numbers)
    return found


def check(entry: dict) -> list[str]:
    """The complaints of one entry's check."""
    if entry["check"].split()[0] in ("pytest", "python"):
        command = [sys.executable, *(["-m"] if entry["check"].startswith("pytest") else [])]
        words = shlex.split(entry["check"])
        command += words if words[0] == "pytest" else words[1:]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        return [] if done.returncode == 0 else (done.stdout + done.stderr).strip().splitlines()[-12:]
    return globals()[entry["check"]]()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", help="checks to run, by the name of the check or a part of the files' names"
    )
    parser.add_argument("--long", action="store_true", help="the long ones too")
    arguments = parser.parse_args()
    wrong = 0
    for entry in tomllib.loads((HERE / "stored.toml").read_text())["stored"]:
        named = any(name in " ".join([entry["check"], *entry["files"]]) for name in arguments.names)
        if named or (not arguments.names and (arguments.long or not entry.get("long"))):
            print(f"{entry['what']} ...", end=" ", flush=True)
            complaints = check(entry)
            wrong += bool(complaints)
            print("holds" if not complaints else "DOES NOT HOLD: " + entry["made_by"])
            print("".join(f"    {line}\n" for line in complaints), end="", flush=True)
    if wrong:
        raise SystemExit(f"{wrong} stored results no longer hold; the command behind each makes it anew.")


if __name__ == "__main__":
    main()
