"""scikit-learn's digits as tables for `derive predict`: inputs of norm x.x/n_0 = 1, ten targets of mean zero.

There are 1797 images; a larger training set has them shifted by one pixel too (up to 8985 less five times the tests).

    pip install -e .[data]
    python bench/digits.py DIR [--train 1000] [--test 100]
    derive predict DIR/train.csv --test DIR/test.csv --width 100 --ridge 10 --method sampled \
        $(for k in 0 1 2 3 4 5 6 7 8 9; do echo --target digit$k; done)
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from effective_theory.files import write_file

SHIFTS = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))


def digits(train: int, test: int) -> tuple[np.ndarray, np.ndarray]:
    """Images in a random order, tests last, the mean image taken off, and their labels; tests are never shifted."""
    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.images))
    own = order[: -test or None] if train + test > len(order) else order[:train]
    tests = order[len(order) - test :] if train + test > len(order) else order[train : train + test]
    if train > len(SHIFTS) * len(own):
        raise SystemExit(f"There are {len(SHIFTS) * len(own)} training images beside {test} tests, not {train}.")
    moved = np.concatenate([np.roll(found.images[own], shift, axis=(1, 2)) for shift in SHIFTS])[:train]
    X = np.concatenate([moved, found.images[tests]]).reshape(train + test, -1) - found.data.mean(axis=0)
    labels = np.concatenate([np.tile(found.target[own], len(SHIFTS))[:train], found.target[tests]])
    return X / np.sqrt(np.mean(X**2, axis=1, keepdims=True)), labels


def table(X: np.ndarray, labels: np.ndarray) -> str:
    names = [f"x{k}" for k in range(X.shape[1])] + [f"digit{k}" for k in range(10)]
    rows = np.concatenate([X, np.eye(10)[labels] - 0.1], axis=1)
    return "\n".join([",".join(names), *(",".join(f"{x:.8g}" for x in row) for row in rows)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--test", type=int, default=100)
    chosen = parser.parse_args()
    X, labels = digits(chosen.train, chosen.test)
    for name, part in (("train", slice(chosen.train)), ("test", slice(chosen.train, None))):
        print(write_file(chosen.folder / f"{name}.csv", table(X[part], labels[part])))


if __name__ == "__main__":
    main()
