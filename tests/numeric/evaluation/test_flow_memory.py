"""Memory within a budget: blocks of rows give what one go gives, and a process stays below what it was allowed."""

import json
import subprocess
import sys

import numpy as np
import pytest

from numeric import NumericError, flow
from numeric.evaluation.memory import needs, rows_within

X = np.random.default_rng(5).normal(size=(5, 4))
NETWORK = {"depth": 3, "width": [4, 6], "C_b": 0.1, "C_W": 1.3, "lambda_b": 0.2, "lambda_W": 0.7}


def test_blocks_of_rows_give_the_same_numbers(monkeypatch):
    """Five inputs, two rows at a time: the last block overlaps the one before."""
    import numeric.evaluation.host
    import numeric.evaluation.layers
    import numeric.evaluation.memory

    blocks = []

    def counting(*arguments):
        blocks.append(arguments[6])
        return real(*arguments)

    real = numeric.evaluation.layers.layer_step
    monkeypatch.setattr(numeric.evaluation.layers, "layer_step", counting)
    monkeypatch.setattr(numeric.evaluation.host, "FEW", 0)  # so few inputs are not compiled otherwise
    monkeypatch.setattr(numeric.evaluation.memory, "PROGRAMS", 0)
    monkeypatch.setattr(numeric.evaluation.memory, "PLANNING", 0)
    whole = flow("sin", X, tensors="P", layers="last", **NETWORK)
    assert set(blocks) == {5}
    layer = 8 * (2 * 5**2 + 2 * 5**4)  # K, Theta; B, P
    unique = 8 * 70 * 13  # of 70 sorted quadruples, all orderings of the patterns 0112 and 1111
    budget = 2 * layer + unique + 25 * 8 * 5**3  # 25 numbers for each entry of a row: two rows of 10 fit
    blocks.clear()
    few = flow("sin", X, tensors="P", layers="last", memory=budget, **NETWORK)
    assert 2 in blocks
    for name in whole.names:
        want = np.asarray(whole.layer(3)[name])
        np.testing.assert_allclose(few.layer(3)[name], want, rtol=0, atol=1e-14 * np.abs(want).max())


def test_what_is_counted():
    """By hand: 40 inputs, eight tensors of four labels, 6 components, two layers of three kept."""
    need = needs(40, [2, 2] + [4] * 8, 6, {1, 3}, 3, 8, 1)
    assert need.layers == 3 and need.layer == 8 * (2 * 40**2 + 8 * 40**4)
    assert need.quadruples == 8 * 6 * (40 * 41 * 42 * 43 // 24)
    assert rows_within(need, need.total(40)) == 40
    assert rows_within(need, need.total(40) - 1) < 40
    assert rows_within(need, need.total(7) + 10) == 7
    with pytest.raises(NumericError, match=r"40 inputs .* need about 0\.75 GB even row by row"):
        rows_within(need, need.total(1) - 1)


PEAK = """
import json, re, sys
from pathlib import Path
import numpy as np
from numeric import flow
budget = float(sys.argv[1])
# ru_maxrss would start from what the parent had: the kernel carries it over exec
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
options = dict(depth=3, width=64, C_b=0.1, C_W=1.2, tolerance=1e-6, layers="last", memory=budget)
X = 0.7 * np.random.default_rng(0).normal(size=(40, 8))
some = [3, 17, 18, 39]
few = flow("sin", X[some], **options)
before = peak()
f = flow("sin", X, **options)
wrong = {n: float(abs(np.asarray(f.layer(3)[n])[np.ix_(*[some] * few.layer(3)[n].ndim)] - few.layer(3)[n]).max()
                  / abs(few.layer(3)[n]).max()) for n in f.names}
print(json.dumps({"grown": peak() - before, "wrong": wrong}))
"""


@pytest.mark.slow
def test_peak_memory_of_a_process():
    """40 inputs, all tensors: 0.45 GB of tensors in two layers; 0.75 GB are allowed, one go would take 0.85."""
    allowed = 7.5e8
    need = needs(40, [2] * 4 + [4] * 11, 30, {3}, 3, 8, 1)
    assert rows_within(need, allowed) < 10
    done = subprocess.run([sys.executable, "-c", PEAK, str(allowed)], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert 4.5e8 < answer["grown"] < allowed
    assert max(answer["wrong"].values()) < 1e-5  # entries of four of the inputs, from a flow of these alone
