"""The theory of the sampled residual networks: all seven tensors; V of the first input by tensors alone, too.

    python tests/data/sampled/summarize_residual.py

Writes theory-residual.json, numeric.flow on the settings of residual-*.json, which a quick test compares with the
samples (a slow one computes it again); what is there already for a setting is kept. And
derive/reports/residual_samples.json, which reports show: V of the first input as sampled, by the functionals, by
tensors alone. These evolve by the recursion that the engine derives and cuts (derive.network.truncation), brackets by a
trapezoidal rule.
"""

import json
from pathlib import Path

import numpy as np
import sympy as sp

from derive.activations import activation
from derive.gaussian import Bracket
from derive.network import Component
from derive.network.truncation import truncated_recursions
from derive.symbols import C_W, C_b, z
from effective_theory.files import write_file

HERE = Path(__file__).parent
THEORY = HERE / "theory-residual.json"
SEVEN = ("V", "G1", "D", "F", "H1", "A", "B")
SETTING = ("activation", "skip", "depth", "X", "hyperparameters")
TARGET = HERE.parents[2] / "derive" / "reports" / "residual_samples.json"
XI = sp.Symbol("xi", real=True)
NODES = np.arange(-9000, 9001) * 1e-3
WEIGHTS = np.exp(-(NODES**2) / 2) * 1e-3 / np.sqrt(2 * np.pi)


def tensors_alone(record):
    """(K, V) of the first input at the output."""
    sigma = activation(record["activation"])
    derivatives = [sp.lambdify(z, sigma.derivative(k), "scipy") for k in range(3)]
    h, x = record["hyperparameters"], np.array(record["X"][0])
    equations = {name: truncated_recursions()[name] for name in ("K", "V")}
    state = {"K": h["C_b"][0] + h["C_W"][0] * x @ x / len(x), "V": 0.0}
    for layer in range(1, record["depth"]):
        skip = record["skip"] if layer < record["depth"] - 1 else 0.0
        at = np.sqrt(state["K"]) * NODES
        factors = [f(at) for f in derivatives]
        known = {C_b: h["C_b"][layer], C_W: h["C_W"][layer], XI: skip}
        for equation in equations.values():
            for bracket in equation.atoms(Bracket):
                known[bracket] = float(WEIGHTS @ np.prod([factors[a.order] for a in bracket.args], axis=0))
        known |= {Component("K", 0, 0): state["K"], Component("V", 0, 0, 0, 0): state["V"]}
        state = {
            name: float(e.xreplace({k: sp.Float(v, 17) for k, v in known.items()})) for name, e in equations.items()
        }
    return state["K"], state["V"]


def setting(record):
    return {name: record[name] for name in SETTING}


def theory(record):
    """K, Theta and the seven tensors at the output."""
    from numeric import flow

    own = {"depth": record["depth"], "width": 64, "skip": record["skip"], **record["hyperparameters"]}
    f = flow(record["activation"], record["X"], tensors=list(SEVEN), tolerance=1e-7, **own)
    return {name: np.asarray(getattr(f, name)).tolist() for name in ("K", "Theta", *SEVEN)}


def summary(record, functionals):
    stored = record["tensors"]["V"]
    return {
        "activation": record["activation"],
        "skip": record["skip"],
        "depth": record["depth"],
        "sampled": stored["value"][0][0][0][0],
        "standard_error": stored["standard_error"][0][0][0][0],
        "functionals": functionals["V"][0][0][0][0],
        "tensors": tensors_alone(record)[1],
    }


def main():
    known = json.loads(THEORY.read_text()) if THEORY.exists() else {}
    rows = []
    for path in sorted(HERE.glob("residual-[tg]*.json")):
        record = json.loads(path.read_text())
        name = path.stem.removeprefix("residual-")
        if known.get(name, {}).get("setting") != setting(record):
            known[name] = {"setting": setting(record), "tensors": theory(record)}
            write_file(THEORY, json.dumps(known) + "\n")
        rows.append(summary(record, known[name]["tensors"]))
    write_file(TARGET, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
