"""Imports flow one way, no name hides a module, importing is cheap and changes nothing but JAX's 64-bit mode."""

from __future__ import annotations

import functools
import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import derive
import numeric

ROOT = Path(__file__).parents[1]


def modules() -> list[str]:
    found = []
    for package in (derive, numeric):
        found += [info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [name for name in found if not name.endswith(".__main__")]


def test_no_module_is_hidden_by_a_name():
    """Every submodule, reached by its dotted path, is the module."""
    hidden = []
    for name in modules():
        module = importlib.import_module(name)
        head, *rest = name.split(".")
        if functools.reduce(getattr, rest, importlib.import_module(head)) is not module:
            hidden.append(name)
    assert len(modules()) > 150 and hidden == []


def test_layers():
    """The contracts of pyproject.toml, by import-linter."""
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def run(program: str) -> str:
    environment = {key: value for key, value in os.environ.items() if "CACHE_DIR" not in key}
    call = [sys.executable, "-c", program]
    return subprocess.run(call, capture_output=True, text=True, check=True, env=environment).stdout


def test_importing_derive_is_cheap_and_loads_no_jax():
    timed = "import time; a = time.process_time(); import {}; print(time.process_time() - a)"
    own, sympy = (min(float(run(timed.format(name))) for _ in range(3)) for name in ("derive", "sympy"))
    assert own < 2 * sympy
    every = "import sys, importlib\nfor m in {}: importlib.import_module(m)\nprint('jax' in sys.modules)"
    assert run(every.format([m for m in modules() if m.startswith("derive.")])) == "False\n"


def test_importing_numeric_switches_x64_on_and_nothing_else():
    program = (
        "import json, os, threading, jax\n"
        "before = dict(jax.config.values), dict(os.environ), threading.active_count()\n"
        "import numeric\n"
        "after = dict(jax.config.values), dict(os.environ), threading.active_count()\n"
        "changed = {k: str(v) for k, v in after[0].items() if before[0].get(k) != v}\n"
        "print(json.dumps([changed, before[1:] == after[1:]]))"
    )
    assert json.loads(run(program)) == [{"jax_enable_x64": "True"}, True]


def test_importing_numeric_loads_little_beside_jax():
    """A promise about time, told by what is loaded: a few of ours, and no SciPy even for predictions."""
    count = "import sys, jax; a = set(sys.modules); {}; print(*sorted(set(sys.modules) - a))"
    assert len(run(count.format("import numeric")).split()) < 15
    later = run(count.format("from numeric import flow, predict")).split()
    assert not [name for name in later if name.split(".")[0] in ("scipy", "sympy", "matplotlib", "rich", "click")]


@pytest.mark.parametrize("package", [derive, numeric])
def test_what_can_be_completed(package):
    names = dir(package)
    assert "__version__" in names and names == sorted(set(names))
    assert all(hasattr(package, name) for name in names)
    assert derive.__version__ == numeric.__version__
