"""A generated module that stands alone runs where this package does not exist, and is right."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import derive
from derive.design.one_input import one_input

ASK = """
import json, runpy, sys
for name in ("derive", "numeric", "effective_theory"):
    sys.modules[name] = None  # importing one of these is an error
flow = runpy.run_path(sys.argv[1])["flow"]
found = flow(depth=6, C_b=0.2, C_W=1.3, lambda_b=0.4, lambda_W=[1, 2, 1, 0.5, 1, 1], input_norm=0.7)
print(json.dumps({name: [float(v) for v in values] for name, values in found.items()}))
"""


@pytest.mark.parametrize("name", ["swish", pytest.param("where(z<1/2,z/5,z-2/5)", marks=pytest.mark.slow)])
def test_alone_and_right(name, tmp_path):
    made = derive.generate(name, tmp_path / "alone.py", standalone=True)
    done = subprocess.run([sys.executable, "-c", ASK, str(made.file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wanted = one_input(name, 6, 0.2, 1.3, 0.7, 0.4, [1, 2, 1, 0.5, 1, 1])
    assert set(found) == set(wanted.tensors)
    for tensor, values in wanted.tensors.items():
        assert found[tensor] == pytest.approx(list(values), rel=1e-9, abs=1e-12), tensor


def test_its_example_prints_relu_by_hand(tmp_path):
    """K' = C_b + C_W K/2 and V' = C_W^2 (5 K^2/4 + V/4), from C_b = 0.1, C_W = 1.5, x.x/n_0 = 1."""
    made = derive.generate("relu", tmp_path / "alone.py", standalone=True)
    done = subprocess.run([sys.executable, str(made.file)], capture_output=True, text=True, check=True)
    rows = {line.split()[0]: [float(v) for v in line.split()[1:]] for line in done.stdout.splitlines()}
    K, V = [1.6], [0.0]
    for _ in range(4):
        V.append(1.5**2 * (5 * K[-1] ** 2 / 4 + V[-1] / 4))
        K.append(0.1 + 1.5 * K[-1] / 2)
    assert rows["K"] == pytest.approx(K, rel=1e-7) and rows["V"] == pytest.approx(V, rel=1e-7)
    assert not {"R", "S", "T", "U"} & set(rows)
    with pytest.raises(derive.DeriveError, match="all tensors"):
        derive.generate("relu", tmp_path / "alone.py", tensors="V", standalone=True)
