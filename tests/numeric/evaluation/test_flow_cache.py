"""Compiled programs are kept on disk where that is asked for: the next process finds them."""

import json
import os
import subprocess
import sys

import pytest

CODE = """
import collections, json
import jax
events = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **details: events.update([event.split("/")[-1]]))
import os, numeric
from numeric import flow
if "NUMERIC_CACHE_DIR" not in os.environ:
    numeric.keep_compiled()
f = flow("tanh", [[1.0, 0.2], [0.3, -0.8]], depth=3, width=5, tensors="B")
print(json.dumps({"folder": jax.config.jax_compilation_cache_dir, "hits": events["cache_hits"], "B": f.B.tolist()}))
"""


def run(**environment):
    own = {key: value for key, value in os.environ.items() if "CACHE" not in key} | environment
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=own)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_next_process_compiles_nothing_again(tmp_path):
    """Only the user's cache folder is moved: one process leaves the step's programs there, the next one finds them."""
    first = run(XDG_CACHE_HOME=str(tmp_path))
    assert first["folder"] == str(tmp_path / "effective-theory" / "jax-programs") and first["hits"] == 0
    programs = {path.name for path in (tmp_path / "effective-theory" / "jax-programs").glob("jit_*-cache")}
    steps = {name for name in programs if name.startswith(("jit_layer_brackets", "jit_recursions"))}
    assert len(steps) >= 2
    second = run(XDG_CACHE_HOME=str(tmp_path))
    assert second["hits"] >= len(steps)
    after = {path.name for path in (tmp_path / "effective-theory" / "jax-programs").glob("jit_*-cache")}
    assert {name for name in after if name.startswith(("jit_layer_brackets", "jit_recursions"))} == steps
    assert second["B"] == first["B"]


@pytest.mark.slow
def test_the_cache_can_be_moved_and_switched_off(tmp_path):
    moved = run(NUMERIC_CACHE_DIR=str(tmp_path / "own"))
    assert list((tmp_path / "own" / "jax-programs").glob("jit_*")) and moved["folder"] == str(
        tmp_path / "own" / "jax-programs"
    )
    assert run(NUMERIC_CACHE_DIR="")["folder"] is None
