"""The commands criticality, activations and expect, as a user runs them: output, JSON, errors, speed, imports."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from derive.activations import BUILTIN


def run(*arguments: str, cache: Path | str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DERIVE_CACHE_DIR": str(cache), "COLUMNS": "100"}
    command = [sys.executable, "-c", "from derive.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def load(*arguments: str) -> Any:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_criticality_json() -> None:
    found = load("criticality", "z*(1+erf(z/sqrt(2)))/2")
    assert {"activation", "expression", "class", "points", "reason"} <= set(found)
    assert found["class"] == "half-stable"
    first = found["points"][0]
    assert first["K_star"] == {"exact": "3/2 + sqrt(17)/2", "value": pytest.approx(3.5615528128088303)}
    assert first["C_W"]["value"] == pytest.approx(1.98305826, abs=1e-8)
    assert first["stability"].startswith("half-stable")


def test_criticality_shows_the_steps() -> None:
    done = run("criticality", "tanh")
    assert done.returncode == 0
    for text in ("class: K*=0", "How it was found", "K' = K - 2*K**2 + ...", "Root isolation"):
        assert text in done.stdout


def test_off_criticality() -> None:
    found = load("criticality", "relu", "--C-b", "1", "--C-W", "1")
    assert found["fixed_points"][0]["K_star"] == {"exact": "2", "value": 2.0}
    assert found["fixed_points"][0]["xi_perp"]["exact"] == "1/log(2)"
    assert "333.07" in run("criticality", "tanh", "--C-b", "0.1", "--C-W", "2").stdout.replace("333.0665084", "333.07")


def test_activations_lists_every_builtin(tmp_path: Path) -> None:
    done = run("activations", "--json", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    entries = json.loads(done.stdout)
    assert [entry["name"] for entry in entries] == list(BUILTIN)
    assert all({"name", "expression", "class"} <= set(entry) for entry in entries)
    assert {e["name"]: e["class"] for e in entries}["softplus"] == "none"
    lines = run("activations", cache=tmp_path).stdout.splitlines()
    starts = [line.split()[0] for line in lines if line.strip()]  # numbers, then formulas
    assert starts[: 2 * len(BUILTIN) + 2] == ["name", *BUILTIN] * 2
    assert "silu = swish" in " ".join(lines)
    assert "1.98306" in next(line for line in lines if line.startswith("gelu "))


def test_expect() -> None:
    found = load("expect", "s0 s1", "relu", "--K", "1", "0.5", "1")
    # the arc-cosine kernel of degree one at 60 degrees: (sin t + (pi - t) cos t) / (2 pi), t = pi/3
    assert found["value"] == pytest.approx((3**0.5 / 2 + (2 * 3.141592653589793 / 3) / 2) / (2 * 3.141592653589793))
    assert found["latex"] == r"\left\langle \sigma_{0} \sigma_{1} \right\rangle"
    assert load("expect", "s0 s0", "sin")["exact"] == "1/2 - exp(-2*K)/2"
    assert load("expect", "s0 s0", "tanh")["exact"] is None
    assert load("expect", "s0 s0", "tanh", "--K", "1", "--digits", "30")["digits"] == "0.394294490397841174416459772444"
    assert "closed form" in run("expect", "s0 s0''", "gelu").stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("criticality", "z.__class__"), "not allowed in a formula"),
        (("criticality", "x+1"), "Unknown name"),
        (("criticality", "tanh", "--C-b", "1"), "both"),
        (("criticality", "tanh", "--C-b", "-1", "--C-W", "1"), "at least 0"),
        (("expect", "s0'' s0''", "relu"), "diverges"),
        (("expect", "s0 s1", "tanh", "--K", "1", "2"), "3 numbers"),
        (("expect", "s0 s1", "tanh", "--K", "1", "2", "1"), "."),
        (("expect", "q0", "tanh"), "Cannot read"),
        (("expect", "s0", "tanh", "3"), "What does"),
        (("nonsense",), "No such command"),
    ],
)
def test_errors_are_one_sentence_with_exit_code_two(arguments: tuple[str, ...], text: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert text in done.stderr and "Traceback" not in done.stderr


def test_help_has_an_example() -> None:
    for command in ("criticality", "activations", "expect"):
        assert f"derive {command}" in run(command, "--help").stdout


def test_cached_answers_need_no_sympy_and_importing_derive_no_jax() -> None:
    program = (
        "import sys, derive, derive.cli.output as c\n"
        "import derive.cache as k\n"
        "k._edited_meanwhile = lambda: False\n"
        "c.ask('criticality', activation='linear', C_b=None, C_W=None)\n"
        "print('sympy' in sys.modules, 'jax' in sys.modules)\n"
    )
    seen = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout]
    seen.append(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
    assert seen[1] == "False False\n"
    whole = "import sys, derive, derive.activations, derive.critical, derive.gaussian; print('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True).stdout == "False\n"
