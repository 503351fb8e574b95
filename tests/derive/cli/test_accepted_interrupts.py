"""A run that ends at Ctrl-C with what it has is not ended from outside; one that says nothing is."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import os, signal, sys, time
from derive.cli import failures
from effective_theory.interrupts import accepted
failures.PATIENCE = 1.0
failures._Stop()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    if sys.argv[1] == "accepts":
        accepted()
end = time.monotonic() + 2.5
while time.monotonic() < end:
    try:
        time.sleep(0.1)
    except KeyboardInterrupt:
        pass
print("reported")
"""


@pytest.mark.parametrize(("run", "code", "words"), [("accepts", 0, "reported"), ("swallows", 130, "")])
def test_an_interrupt_that_is_accepted(run, code, words):
    done = subprocess.run([sys.executable, "-c", CODE, run], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (code, words)
