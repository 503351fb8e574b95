"""The picture of docs/residual.md: n V/(n K^2) at the last hidden layer of residual tanh networks against depth.

python docs/residual_depth.py          # draws docs/static/residual-depth.svg from residual-depth.json
python docs/residual_depth.py --again  # computes the numbers again first (some minutes)
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent / "static"
DEPTHS = (4, 8, 16, 32)
BRANCHES = {"1": lambda L: 1.0, "1/sqrt L": lambda L: L**-0.5, "1/L": lambda L: 1.0 / L}


def numbers():
    """{branch: [[L, K, V], ...]}, one input of norm one, C_b = 0, C_W = 1 at the first layer."""
    from numeric import flow

    found = {}
    for name, branch in BRANCHES.items():
        found[name] = []
        for L in DEPTHS:
            C_W = [1.0] + [branch(L)] * (L - 2) + [1.0]
            f = flow("tanh", [[1.0]], depth=L, width=1, C_b=0.0, C_W=C_W, skip=1.0, tensors="V", tolerance=1e-8)
            last = f.layer(L - 1)
            found[name].append([L, float(last.K[0, 0]), float(last.V[0, 0, 0, 0])])
    f = flow("tanh", [[1.0]], depth=max(DEPTHS), width=1, C_b=0.0, C_W=1.0, tensors="V")
    found["plain"] = [[L, float(f.layer(L - 1).K[0, 0]), float(f.layer(L - 1).V[0, 0, 0, 0])] for L in DEPTHS]
    return found


def draw(found):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "residual"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    shown = {
        "plain": "plain, critical",
        "1": "skip 1, branch 1",
        "1/sqrt L": "skip 1, branch 1/√L",
        "1/L": "skip 1, branch 1/L",
    }
    for name, label in shown.items():
        axes.loglog([L for L, _, _ in found[name]], [V / K**2 for _, K, V in found[name]], "o-", label=label)
    axes.set_xlabel("depth L")
    axes.set_ylabel("V / K² at the last hidden layer (times 1/n)")
    axes.set_xticks(DEPTHS, [str(L) for L in DEPTHS])
    axes.legend()
    figure.tight_layout()
    figure.savefig(HERE / "residual-depth.svg", metadata={"Date": None})


if __name__ == "__main__":
    path = HERE / "residual-depth.json"
    if "--again" in sys.argv:
        path.write_text(json.dumps(numbers(), indent=1) + "\n")
    draw(json.loads(path.read_text()))
