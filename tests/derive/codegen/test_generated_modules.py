"""Generated modules: committed ones are up to date, source is deterministic, formatted, and says what it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sympy as sp

from derive.cli import group
from derive.codegen import activation_module, closure, content_hash, layer_module, write
from derive.codegen.builtin import builtin_modules
from derive.codegen.layer import needs, step_source
from derive.errors import DeriveError
from derive.network import TENSORS, recursion

FOLDER = Path(__file__).resolve().parents[3] / "numeric" / "generated"


@pytest.fixture(scope="module")
def modules():
    return builtin_modules()


def test_committed_modules_are_up_to_date(modules):
    """If this fails: `make generate`."""
    committed = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py") if path.stem != "__init__"}
    assert sorted(committed) == sorted(modules)
    for name, source in modules.items():
        assert committed[name] == source, f"numeric/generated/{name}.py is out of date: run `make generate`"


def test_generated_source_is_formatted(modules, tmp_path):
    for name, source in modules.items():
        (tmp_path / f"{name}.py").write_text(source)
    (tmp_path / "own.py").write_text(activation_module("sin(z)+z*tanh(z)^3", ["T"]))
    config = ["--config", str(FOLDER.parents[1] / "pyproject.toml")]
    for check in (["format", "--check"], ["check", "--ignore", "I001"]):
        done = subprocess.run([sys.executable, "-m", "ruff", *check, *config, str(tmp_path)], capture_output=True)
        assert done.returncode == 0, done.stdout.decode()


def test_source_does_not_depend_on_the_hash_seed():
    code = (
        "from derive.codegen import *; print(layer_module()); print(training_module());"
        "print(activation_module('mish'));"
        "print(activation_module('sin(z)+z*tanh(z)'))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_header_states_definition_and_a_hash_of_the_code(modules):
    for source in modules.values():
        assert "do not edit" in source.split('"""')[1]
        assert content_hash(source) in source
        if "FUNCTIONS = " in source:
            assert "definition: sigma(z) = " in source
    assert len({content_hash(source) for source in modules.values()}) == len(modules)


def test_imports_only_jax_and_the_runtime(modules):
    for source in modules.values():
        imports = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
        known = ("__future__", "collections", "typing", "jax", "numpy", "numeric")
        assert all(line.split()[1].split(".")[0] in known for line in imports)


def test_only_what_is_asked_for_is_generated():
    assert closure(["F"]) == ("K", "Theta", "F")
    assert closure(["R"]) == ("K", "Theta", "B", "P", "R")
    source = activation_module("tanh", ["F"])
    assert "def step_F" in source and "def step_V" not in source and "m0000" not in source
    assert needs(recursion("F")).quads == ((0, 0, 1, 1),)
    with pytest.raises(DeriveError, match="there is no tensor 'W'"):
        closure(["W"])


@pytest.mark.parametrize("tensor", ["V", "F", "A", "H1", "T"])
def test_printed_step_equals_the_recursion(tensor):
    """The printed code, run on symbols, gives back the recursion's own expression (grouping and factoring undone)."""
    rule = recursion(tensor)
    letters = {"abcd"[i]: label for i, label in enumerate(rule.labels)}

    class Symbols:
        def __init__(self, kind, name):
            self.kind, self.name = kind, name

        def __getitem__(self, subscript):
            from derive.gaussian.bracket import Bracket, Sigma
            from derive.network import Component

            labels = [letters[x] for x in subscript]
            if self.kind == "tensor":
                return Component(self.name, *labels)
            return Bracket(*(Sigma(label, int(order)) for label, order in zip(labels, self.name)))

    class Table:
        def __init__(self, kind):
            self.kind = kind

        def __getitem__(self, name):
            return Symbols(self.kind, name)

    from derive import symbols

    names = {"Values": None, "Pairs": None, "Quadruples": None, "Views": None, "jax": type("jax", (), {"Array": None})}
    exec(step_source(tensor), names)
    values = {name: getattr(symbols, name) for name in ("C_b", "C_W", "lambda_b", "lambda_W", "r")}
    result = names[f"step_{tensor}"](values, Table("pair"), Table("quad"), Table("tensor"))
    assert sp.expand(sp.nsimplify(result) - rule.expression) == 0


def test_command_writes_the_file_and_says_its_hash(tmp_path):
    from click.testing import CliRunner

    target = tmp_path / "own.py"
    done = CliRunner().invoke(group, ["generate", "z*tanh(z)", "-o", str(target), "--tensors", "B", "--json"])
    assert done.exit_code == 0
    answer = json.loads(done.output)
    assert answer == {"file": str(target), "hash": content_hash(target.read_text())}
    assert "Example" in CliRunner().invoke(group, ["generate", "--help"]).output


def test_writing_leaves_no_half_file(tmp_path):
    with pytest.raises(DeriveError, match="does not exist"):
        write("x", tmp_path / "nowhere" / "a.py")
    write("one", tmp_path / "a.py")
    write("two", tmp_path / "a.py")
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"] and (tmp_path / "a.py").read_text() == "two"


def test_layer_module_holds_every_tensor():
    source = layer_module()
    assert all(f"def step_{name}(" in source for name in TENSORS)
