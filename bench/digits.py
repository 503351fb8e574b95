"""scikit-learn's digits as tables for `derive predict`: inputs of norm x.x/n_0 = 1, ten targets of mean zero.

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


def digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images in a random order, the mean image taken off, and their labels."""
    found = load_digits()
    if count > len(found.data):
        raise SystemExit(f"There are {len(found.data)} digits, not {count}.")
    order = np.random.default_rng(0).permutation(len(found.data))[:count]
    X = found.data[order] - found.data.mean(axis=0)
    return X / np.sqrt(np.mean(X**2, axis=1, keepdims=True)), found.target[order]


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
    X, labels = digits(chosen.train + chosen.test)
    for name, part in (("train", slice(chosen.train)), ("test", slice(chosen.train, None))):
        print(write_file(chosen.folder / f"{name}.csv", table(X[part], labels[part])))


if __name__ == "__main__":
    main()
