"""The 300 random cases on which `f.error` is judged, with their references.

python tests/data/error/make.py             # writes cases.json beside this file; what is there is kept (10 CPU min)
python tests/data/error/make.py --seconds 200   # for so long; the next run goes on
python tests/data/error/make.py --check 40  # every 40th again, by other rules
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from reference import Sigma, flow

from effective_theory.files import write_file

FILE = Path(__file__).with_name("cases.json")
COUNT = 300
PI = float(np.pi)
CDF = "(1+erf(z/sqrt(2)))/2"
L, A = (
    "10507009873554804934193349852946/10000000000000000000000000000000",
    ("16732632423543772848170429916717/10000000000000000000000000000000"),
)

SMOOTH = {
    "tanh": Sigma(("tanh(z)",), width=PI / 2),
    "erf": Sigma(("erf(z)",), bell=8),
    "gelu": Sigma((f"z*{CDF}",), bell=4),
    "swish": Sigma(("z*sigmoid(z)",), width=PI),
    "softplus": Sigma(("softplus(z)",), width=PI),
    "sigmoid": Sigma(("sigmoid(z)",), width=PI),
    "arctan": Sigma(("atan(z)",), scale=0.7, width=1.0),
    "mish": Sigma(("z*tanh(softplus(z))",), width=2.3),
    "z/(1+z^2)": Sigma(("z/(1+z^2)",), scale=0.7, width=1.0),
    "z^3/(1+z^2)": Sigma(("z^3/(1+z^2)",), scale=0.7, width=1.0),
    "z*sqrt(1+z^2)": Sigma(("z*sqrt(1+z^2)",), scale=0.7, width=1.0),
    "z*exp(-z^2)": Sigma(("z*exp(-z^2)",), bell=8),
    "tanh(3*z)+z/10": Sigma(("tanh(3*z)+z/10",), scale=1 / 3, width=PI / 6),
    "z*(1+erf(5*z))/2": Sigma(("z*(1+erf(5*z))/2",), scale=0.2, bell=200),
    "tanh(z)-z/3": Sigma(("tanh(z)-z/3",), width=PI / 2),
}
BOUNDED = {  # oscillations and growth: inputs of order one, and few layers
    "sin": Sigma(("sin(z)",), waves=4),
    "exp": Sigma(("exp(z)",), growth=4),
    "sinh(z)": Sigma(("sinh(z)",), growth=4),
    "exp(z)*tanh(z)": Sigma(("exp(z)*tanh(z)",), width=PI / 2, growth=4),
    "z^3*tanh(z)": Sigma(("z^3*tanh(z)",), width=PI / 2),
    "softplus(z)^4": Sigma(("softplus(z)^4",), width=PI),
    "sin(z)+z/2": Sigma(("sin(z)+z/2",), waves=4),
    "z+z^2/4": Sigma(("z+z^2/4",)),
}
NARROW = {  # one input
    "tanh(z)+exp(-10000*z^2)": Sigma(("tanh(z)+exp(-10000*z^2)",), scale=0.003),
    "erf(20*z)": Sigma(("erf(20*z)",), scale=0.03),
    "where(z<0,tanh(5*z),z)": Sigma(("tanh(5*z)", "z"), kinks=(0.0,), scale=0.2),
    "relu(z)+tanh(4*z)/4": Sigma(("tanh(4*z)/4", "z+tanh(4*z)/4"), kinks=(0.0,), scale=0.25),
    "where(z<0,erf(30*z),erf(60*z))": Sigma(("erf(30*z)", "erf(60*z)"), kinks=(0.0,), scale=0.01),
}
LINEAR = {
    "relu": Sigma(("0*z", "z"), kinks=(0.0,), scale=1e9),
    "leaky_relu": Sigma(("z/100", "z"), kinks=(0.0,), scale=1e9),
    "abs(z)": Sigma(("-z", "z"), kinks=(0.0,), scale=1e9),
    "max(z,z/3)": Sigma(("z/3", "z"), kinks=(0.0,), scale=1e9),
}
CURVED = {
    "elu": Sigma(("exp(z)-1", "z"), kinks=(0.0,)),
    "softsign": Sigma(("z/(1-z)", "z/(1+z)"), kinks=(0.0,)),
    "where(z<0,tanh(z),z)": Sigma(("tanh(z)", "z"), kinks=(0.0,)),
    "relu(z)*tanh(z)": Sigma(("0*z", "z*tanh(z)"), kinks=(0.0,)),
}
ALL = SMOOTH | BOUNDED | NARROW | LINEAR | CURVED
GROWING = ("exp", "sinh(z)", "exp(z)*tanh(z)", "z^3*tanh(z)", "softplus(z)^4", "z+z^2/4", "z*sqrt(1+z^2)")
SHARES = {"smooth": (150, 25), "bounded": (30, 8), "narrow": (25, 0), "linear": (18, 16), "curved": (24, 4)}
KINDS = {"smooth": SMOOTH, "bounded": BOUNDED, "narrow": NARROW, "linear": LINEAR, "curved": CURVED}


def cases() -> list[dict]:
    random = np.random.default_rng(14)
    found = []
    for kind, (ones, twos) in SHARES.items():
        names = list(KINDS[kind])
        for number in range(ones + twos):
            inputs = 1 if number < ones else 2
            wide = [name for name in names if KINDS[kind][name].scale > 0.5]  # two inputs: a plane of nodes
            name = names[number % len(names)] if inputs == 1 else wide[number % len(wide)]
            tame = kind == "bounded"
            top = 0.0 if tame else {1: 3.0, 2: 0.5}[inputs]
            low = -1.0 if tame else -5.0
            norm = 10 ** random.uniform(low, top)
            depth = int(random.choice([2, 3, 4, 6, 9] if inputs == 1 and not tame else [2, 3]))
            if (kind == "curved" and inputs == 2) or (norm > 5 and inputs == 2):
                depth = 2
            size = int(random.choice([2, 3]))
            x = random.normal(size=(inputs, size))
            near = inputs == 2 and random.uniform() < 0.4
            if near:
                distance = 10 ** (random.uniform(-4, -1) if kind != "curved" else random.uniform(-2, -1))
                x[1] = x[0] * random.choice([1.0, 1.3]) + distance * x[1]
            x *= norm / np.sqrt(np.mean(x[0] ** 2))
            growing = name in GROWING
            if growing:
                x, depth = x * min(1.0, 1 / norm), min(depth, 3)
            C_W = random.uniform(0.3, 0.8) if growing else random.uniform(0.5, 2.5)
            C_b = float(random.choice([0.0, random.uniform(0.01, 0.5)]))
            rates = {"lambda_b": random.uniform(0.1, 3.0), "lambda_W": random.uniform(0.1, 3.0)}
            case = {
                "activation": name,
                "X": np.round(x, 12 if norm > 1e-3 else 17).tolist(),
                "depth": depth,
                "width": [int(w) for w in random.integers(4, 200, depth - 1)],
                "C_b": C_b,
                "C_W": C_W,
                **rates,
                "tolerance": float(10 ** random.uniform(-12, -4)) if random.uniform() < 0.5 else None,
                "near": bool(near),
            }
            if random.uniform() < 0.3:
                case["C_W"] = [float(C_W * random.uniform(0.8, 1.2)) for _ in range(depth)]
            found.append(case)
    assert len(found) == COUNT
    return found


def accuracy(case: dict) -> tuple[int, int]:
    """Nodes a panel and digits."""
    sigma = ALL[case["activation"]]
    if len(case["X"]) == 1:
        return 28, 80
    if not sigma.kinks:
        return 16, 60
    linear = sigma.scale > 1e6
    return (36 if linear else 20) if case["near"] else (24 if linear else 16), 90


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=int, metavar="N", help="every Nth again by other rules; nothing is written")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="CPU seconds after which to stop")
    arguments = parser.parse_args()
    every = arguments.check
    stored = json.loads(FILE.read_text()) if FILE.exists() else []
    wrong = 0
    if every:
        for row in stored[::every]:
            n, digits = accuracy(row)
            again = flow(ALL[row["activation"]], row, n + 4, digits + 10)
            for name, old in row["tensors"].items():
                floor = 1e-16 * float(np.abs(old).max()) + 1e-30  # what is zero comes out as a quadrature's rest
                if not np.allclose(again[name], old, rtol=0, atol=floor):
                    wrong += 1
                    print(
                        row["activation"],
                        row["X"],
                        name,
                        np.abs(np.subtract(again[name], old)).max() / np.abs(old).max(),
                    )
        raise SystemExit(f"{wrong} tensors differ" if wrong else 0)
    known = {json.dumps({k: v for k, v in row.items() if k != "tensors"}): row for row in stored}
    rows: list[dict] = []
    for number, case in enumerate(cases()):
        row = known.get(json.dumps(case))
        if row is None and time.process_time() < arguments.seconds:
            row = case | {"tensors": flow(ALL[case["activation"]], case, *accuracy(case))}
            print(number, case["activation"], f"{time.process_time():.0f} s", flush=True)
        rows += [row] if row else []
    write_file(FILE, "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
