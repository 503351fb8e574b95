"""Writes <name>.json: all tensors of the exact single-input recursions at chosen layers up to 100000, iterated in
extended precision by derive.depth.iterate (quadrature at every layer). Run: python make_iterations.py [name...]
One run takes about a minute; the quick tests compare series with the stored numbers.
"""

from __future__ import annotations

import json
import os
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

from derive.activations import activation
from derive.critical import criticality
from derive.depth.critical_solution import network_equations
from derive.depth.iterate import Real, iterate

HERE = Path(__file__).parent
LAYERS = [1000, 2000, 5000, 10000, 20000, 30000, 50000, 70000, 100000]
RUNS = {
    # name: (activation, K at layer 1, exponents of lambda_b and lambda_W)
    "tanh": ("tanh", "0.6", "1", "0"),
    "tanh_constant": ("tanh", "0.6", "0", "0"),
    "sin": ("sin", "0.5", "1", "0"),
    "non_odd": ("sin(z)+4/5*(1-cos(z))", "0.7", "9/13", "-4/13"),
    "softsign": ("softsign", "0.5", "2", "0"),
    "elu": ("elu", "0.5", "2", "0"),
    "gelu": ("gelu", "3.7", "0", "0"),
    "mish": ("mish", "1.5", "0", "0"),
}
BIAS, WEIGHT = "0.7", "1.3"


def rate(value: str, exponent: str):
    power = Fraction(exponent)
    number = Real(value)
    if power.denominator == 1:
        return lambda layer: number * Real(layer) ** int(-power)
    real = Real(power.numerator) / Real(power.denominator)
    return lambda layer: number * Real(layer) ** (-real)


def run(name: str) -> None:
    formula, start, p_b, p_W = RUNS[name]
    sigma = activation(formula)
    point = criticality(sigma).points[0]
    digits = {"C_b": str(point.C_b.evalf(30)), "C_W": str(point.C_W.evalf(30))}
    found = iterate(
        sigma,
        network_equations(),
        {"K": start, "Theta": "1.5"},
        digits,
        (rate(BIAS, p_b), rate(WEIGHT, p_W)),
        LAYERS,
    )
    data = {
        "made_by": "tests/data/asymptotics/make_iterations.py",
        "activation": formula,
        "start": {"K": start, "Theta": "1.5"},
        **digits,
        "lambda_b": BIAS,
        "lambda_W": WEIGHT,
        "learning_rates": f"power({p_b},{p_W})",
        "layers": {
            str(layer): {n: np.format_float_scientific(v, precision=20, unique=False) for n, v in state.items()}
            for layer, state in found.items()
        },
    }
    target = HERE / f"{name}.json"
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps(data, indent=1) + "\n")
    os.replace(partial, target)
    print("wrote", target.name, flush=True)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or RUNS:
        run(chosen)
