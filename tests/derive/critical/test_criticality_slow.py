"""`make verify`: no sign change of <s s''> is missed on a dense grid, and every built-in answers in time from cold."""

import itertools
import os
import resource
import subprocess
import sys

import pytest
import sympy as sp

from derive.activations import BUILTIN, activation
from derive.critical import criticality
from derive.gaussian import parse_bracket, value

MORE = ["z*tanh(z)", "cos(z)-1+z", "tanh(z)+z^2/10", "3+z^2-z^4/20", "z^5-z^3+z", "softplus(z)*tanh(z)"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BUILTIN, *MORE])
def test_sign_changes_on_a_dense_grid(name: str) -> None:
    """`derive.gaussian.evaluation` (adaptive, 20 digits) shares no code with the scan's fixed grid."""
    sigma = activation(name)
    found = criticality(sigma)
    if found.universality_class == "scale-invariant":
        return
    top = 1000 if name != "exp" else 50
    kernels = [sp.Rational(10) ** sp.Rational(k, 10) for k in range(-60, 31) if 10 ** (k / 10) <= top]
    bracket = parse_bracket("s0 s0''")
    values = [value(bracket, sigma, sp.Rational(k.evalf(20)), 20) for k in kernels]
    changes = sum(1 for a, b in itertools.pairwise(values) if (a > 0) != (b > 0))
    positive = [p for p in found.points if p.K_star != 0]
    assert changes == len(positive) + len(found.inadmissible)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILTIN)
def test_cold_answers_take_less_than_five_seconds(name: str) -> None:
    """CPU seconds of a fresh process without a cache, so that other work on the machine does not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", "from derive.cli import main; main()", "criticality", name]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "DERIVE_CACHE_DIR": ""})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5
