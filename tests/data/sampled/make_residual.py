"""V, G1, D, F, H1, A, B of residual networks, estimated on sampled networks: writes residual-*.json.

    python tests/data/sampled/make_residual.py [SETUP ...] [--blocks N]

Adds N blocks of networks of each width to what is stored (N = 0: extrapolates again). residual_networks.py samples.

The tensors are covariances of two outputs, so products of two entries of the outputs' covariance given the hidden
layers: V of G and G, D of G and H, A of two H with different directions, F of Y and Y, B of Z and Z; G1 and H1 are
means.

What makes the estimates quiet is exact at every width. Each network comes with an infinitely wide one of the same
noise, whose neurons are independent. An entry G goes along with an average c = (1/n) sum_j f(j) of functions of those
neurons of mean zero, so G - c has G's mean. A product of two goes along with c c' - (1/n^2) sum_j f(j) f'(j), whose
mean is zero: a sum over pairs of different neurons. To second order G goes along with such sums, q, and with the wide
network's answers to its fluctuations, sums over pairs as well; c q has mean zero too. The functions and the weights of
the pairs are regressed on other networks first. Products are about the mean of those, which shifts V by the square of
its error, some 1e-5.

Widths 32, 64 and 128 are extrapolated to infinite width by a polynomial in 1/n of degree two.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from residual_networks import DIRECTIONS, SETUPS, UPPER, X, along, hyperparameters, limits, sample

from effective_theory.files import write_file

HERE = Path(__file__).parent
WIDTHS = {32: 500, 64: 1000, 128: 1000}
"""Networks in a block. 32 weighs 1/3 in the extrapolated value, 64 and 128 weigh -2 and 8/3."""
PILOT = 6000
TENSORS = ("V", "G1", "D", "F", "H1", "A", "B")


def batches(rng, setup, n, networks, limit, weights=None):
    size = 12_800 // n
    for done in range(0, networks, size):
        yield sample(rng, setup, n, min(size, networks - done), limit, weights)


def pairs(functions, answer):
    """What goes along with the means of G and H to second order: sums over pairs of different neurons, of mean zero.

    Products c_i c_j - (1/n^2) sum_j f_i(j) f_j(j), the averages c themselves, which the answers contain, the answers.
    """
    f = {k: np.concatenate([layer[k] for layer in functions], axis=-2) for k in "GHY"}
    c = {k: v.mean(-1, dtype=float) for k, v in f.items()}
    n = f["G"].shape[-1]

    def product(k, m):
        left, right = (np.expand_dims(v[k], 1) if v[k].ndim < v[m].ndim else v[k] for v in (f, c))
        both = right[..., :, None] * c[m][..., None, :] - left @ f[m].swapaxes(-1, -2) / n**2
        both = both.mean(1) if both.ndim == 4 else both
        return both[:, *np.triu_indices(both.shape[-1])] if k == m else both.reshape(len(both), -1)

    products = product("G", "G")
    own = np.concatenate([products, c["G"], *answer["G"]], axis=1)
    more = [product("G", "H"), product("Y", "Y"), c["H"].mean(1), *answer["H"]]
    return {"products": products, "G": own, "H": np.concatenate([own, *more], axis=1)}


def regress(y, x):
    flat = x.reshape(-1, x.shape[-1]).astype(float)
    y = y.reshape(len(flat), -1)
    flat, y = flat - flat.mean(0), y - y.mean(0)
    squares = flat.T @ flat
    size = np.sqrt(np.diag(squares))
    return np.linalg.lstsq(squares / np.outer(size, size), flat.T @ y / size[:, None], rcond=1e-10)[0] / size[:, None]


def first_order(y, x, layers):
    """The weights of the functions in G, H, Y, Z, a matrix a layer; `layers` of them matter."""
    x = {k: v[..., :layers, :].reshape(*v.shape[:-2], -1) for k, v in x.items()}
    x["H"] = np.concatenate([x["H"], np.repeat(x["G"][:, None], DIRECTIONS, axis=1)], axis=-1)
    weights = {k: regress(y[k], x[k]) for k in "GHYZ"}
    own, other = np.split(weights.pop("H"), 2)
    weights |= {"H": own, "HG": other}
    return {k: np.split(v.astype(np.float32), layers) for k, v in weights.items()}


def learn(rng, setup, n, limit):
    """Weights of the functions in each layer's covariances, of the pairs in the means, and means: by regression."""
    found, averages = [], []
    for covariances, functions, _ in batches(rng, setup, n, PILOT, limit):
        found.append(covariances)
        averages.append({k: np.stack([f[k].mean(-1) for f in functions], axis=-2) for k in "GHYZ"})
    x = {k: np.concatenate([a[k] for a in averages]) for k in "GHYZ"}
    weights = []
    for layer in range(setup[2] - 1):
        y = {k: np.concatenate([f[layer][k] for f in found]) for k in "GHYZ"}
        weights.append(first_order(y, x, layer + 1))
    left, both = {"G": [], "H": []}, {"products": [], "G": [], "H": []}
    for covariances, functions, answer in batches(rng, setup, n, PILOT, limit, weights):
        f, second = along(weights[-1], functions), pairs(functions, answer)
        left["G"].append(covariances[-1]["G"] - f["G"].mean(-1))
        left["H"].append((covariances[-1]["H"] - f["H"].mean(-1)).mean(1))
        for k, own in both.items():
            own.append(second[k])
    left, both = ({k: np.concatenate(v) for k, v in own.items()} for own in (left, both))
    second = {k: regress(left["H" if k == "H" else "G"], v) for k, v in both.items()}
    return weights, second, {k: left[k].mean(0) for k in "GH"}


def block_mean(rng, setup, n, limit, learned):
    """The mean of every tensor's estimate over one block of networks; symmetric pairs of inputs stand once."""
    weights, second, centre = learned
    total = dict.fromkeys(TENSORS, 0.0)
    for covariances, functions, answer in batches(rng, setup, n, WIDTHS[n], limit, weights):
        outputs, f, q = covariances[-1], along(weights[-1], functions), pairs(functions, answer)
        c = {k: v.mean(-1, dtype=float) for k, v in f.items()}
        d = {"G": outputs["G"] - centre["G"], "H": outputs["H"] - centre["H"], "Y": outputs["Y"], "Z": outputs["Z"]}

        def product(k, m, d=d, c=c, f=f):
            """Of two entries, less the pairs of neurons."""
            same = f[k] @ f[m].swapaxes(-1, -2) / n**2
            return d[k][..., :, None] * d[m][..., None, :] - c[k][..., :, None] * c[m][..., None, :] + same

        for name in "dcf":  # sums over directions
            own = {"d": d, "c": c, "f": f}[name]
            own["sum"] = own["H"].sum(1)
        thrice = c["G"][:, :, None] * (q["products"] @ second["products"])[:, None, :]
        found = {
            "V": product("G", "G") - thrice - thrice.swapaxes(-1, -2),
            "G1": outputs["G"] - c["G"] - q["G"] @ second["G"] - limit["K"][-1][UPPER],
            "D": product("G", "sum") / DIRECTIONS,
            "F": product("Y", "Y").mean(1),
            "H1": (outputs["H"] - c["H"]).mean(1) - q["H"] @ second["H"] - limit["Theta"][-1][UPPER],
            "A": (product("sum", "sum") - product("H", "H").sum(1)) / (DIRECTIONS * (DIRECTIONS - 1)),
            "B": product("Z", "Z").mean(1),
        }
        for name, value in found.items():
            total[name] = total[name] + n * value.sum(0)
    return {name: full(name, value / WIDTHS[n]) for name, value in total.items()}


def full(name, value):
    """All components, in the order of the tensor's subscripts."""
    if name in ("F", "B"):
        return value.reshape(2, 2, 2, 2)
    place = np.array([[0, 1], [1, 2]])
    return value[place] if value.ndim == 1 else value[place][:, :, place]


def fit(points, degree):
    """Weighted least squares of a polynomial in 1/n: (value at 1/n = 0, its standard error)."""
    n = np.array([p[0] for p in points], float)
    y, s = np.stack([p[1] for p in points]), np.stack([p[2] for p in points])
    value, error = np.empty(y.shape[1:]), np.empty(y.shape[1:])
    for index in np.ndindex(*y.shape[1:]):
        target, scatter = y[(slice(None), *index)], s[(slice(None), *index)]
        basis = np.stack([n**-k for k in range(degree + 1)], axis=1) / scatter[:, None]
        inverse = np.linalg.inv(basis.T @ basis)
        value[index], error[index] = (inverse @ basis.T @ (target / scatter))[0], np.sqrt(inverse[0, 0])
    return value, error


def merged(stored, blocks):
    """Mean and standard error of the blocks behind `stored` and of new ones."""
    new = np.stack(blocks)
    if stored is None:
        return new.mean(0), new.std(0, ddof=1) / np.sqrt(len(new))
    old, mean = stored["blocks"], np.asarray(stored["value"])
    squares = np.asarray(stored["standard_error"]) ** 2 * old * (old - 1) + old * mean**2 + (new**2).sum(0)
    count = old + len(new)
    mean = (old * mean + new.sum(0)) / count
    return mean, np.sqrt(np.maximum(squares / count - mean**2, 0.0) / (count - 1))


def make(setup, blocks):
    path = HERE / f"residual-{setup}.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    name, xi, L, seed = SETUPS[setup]
    limit, started = limits(name, xi, L), time.process_time()
    if record.get("hyperparameters") != hyperparameters(L) or "X" not in record or "networks" not in record:
        record = {"activation": name, "skip": xi, "depth": L, "seed": seed, "X": X.tolist()}
        record |= {"hyperparameters": hyperparameters(L), "K": limit["K"][-1].tolist()}
        record |= {"Theta": limit["Theta"][-1].tolist(), "networks": {}, "tensors": {}}
    for n, each in WIDTHS.items() if blocks else ():
        learned = learn(np.random.default_rng([seed, n, 0]), SETUPS[setup], n, limit)
        done = record["networks"].get(str(n), 0) // each
        rngs = [np.random.default_rng([seed, n, 1 + done + k]) for k in range(blocks)]
        found = [block_mean(rng, SETUPS[setup], n, limit, learned) for rng in rngs]
        for tensor in TENSORS:
            own = record["tensors"].setdefault(tensor, {"by_width": {}})["by_width"]
            value, error = merged(own.get(str(n)), [f[tensor] for f in found])
            own[str(n)] = {"value": value.tolist(), "standard_error": error.tolist(), "blocks": done + blocks}
        record["networks"][str(n)] = (done + blocks) * each
        print(
            f"{setup} n={n}: {record['networks'][str(n)]} networks, {time.process_time() - started:.0f} s", flush=True
        )
    for tensor, own in record["tensors"].items():
        points = [(int(n), np.array(p["value"]), np.array(p["standard_error"])) for n, p in own["by_width"].items()]
        (value, error), (line, line_error) = fit(points, 2), fit(points[1:], 1)
        own |= {"value": value.tolist(), "standard_error": error.tolist()}
        own |= {"linear": line.tolist(), "linear_error": line_error.tolist()}
        size = abs(value).max()
        print(f"  {tensor:3s} size {size:9.4f}  worst error {error.max() / size:.4f}", flush=True)
    write_file(path, json.dumps(record) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setups", nargs="*", default=list(SETUPS), metavar="SETUP")
    parser.add_argument("--blocks", type=int, default=50, help="of networks, added at each width")
    arguments = parser.parse_args()
    for own in arguments.setups:
        make(own, arguments.blocks)
