"""Mutation testing itself: the stored result is above its bar, every survivor has a reason, and mutants are changes."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
import operators
import run

STORED = run.load()["mutants"]
SOURCE = '''
def f(a, b, *, c=2):
    """Words - and more words."""
    if a < 1 and not b:
        raise ValueError("a - b")
    total = np.einsum("ij,jk->ik", a, b.T) @ -a
    total += c
    return g(total, b, key=1e-9)
'''


def test_at_least_95_percent_are_killed():
    killed = [row for row in STORED.values() if row["outcome"] != "survived"]
    assert len(STORED) >= 0.98 * len(run.all_mutants())
    assert len(killed) >= 0.95 * len(STORED)


def test_the_sample_covers_nearly_every_module():
    modules = {m for m in run.modules() if not m.endswith("__init__.py")}
    assert len(modules - {row["file"] for row in STORED.values()}) <= 3


def test_every_sample_is_told_with_its_score_before_tests_were_written_for_it():
    page = run.DOCUMENT.read_text(encoding="utf-8")
    assert run._samples(run.load()) in page
    assert any("all" in row["first"] for row in STORED.values())
    for row in STORED.values():
        assert row["first"] and set(row["first"].values()) <= {"killed", "survived", "timeout"}


def test_changes_that_once_passed_all_tests_are_killed():
    from named import CHANGES

    found = run.load()["named"]
    assert {change.what for change in CHANGES} == set(found)
    assert all(row["outcome"] == "killed" for row in found.values())


def test_every_survivor_has_a_reason_in_the_docs():
    reasons = tomllib.loads(run.REASONS.read_text(encoding="utf-8"))
    survivors = {key for key, row in STORED.items() if row["outcome"] == "survived"}
    assert survivors == set(reasons) and all(len(reason) > 20 for reason in reasons.values())
    page = run.DOCUMENT.read_text(encoding="utf-8")
    assert all(reason in page for reason in reasons.values())
    assert f"{len(STORED)} were tried, and {len(STORED) - len(survivors)} are killed" in page


def test_mutants_are_single_changes_of_code_and_not_of_words():
    found = operators.mutants(SOURCE, "f.py")
    changes = {(m.operator, m.before, m.after) for m in found}
    assert {
        ("comparison", "a < 1", "a >= 1"),
        ("comparison", "a < 1", "a <= 1"),
        ("boolean", "a < 1 and (not b)", "a < 1 or not b"),
        ("boolean", "not b", "b"),
        ("transpose", "b.T", "b"),
        ("sign", "-a", "a"),
        ("arithmetic", "total += c", "total -= c"),
        ("number", "2", "3"),
        ("keyword", "g(total, b, key=1e-09)", "g(total, b)"),
        ("arguments", "g(total, b, key=1e-09)", "g(b, total, key=1e-09)"),
        ("einsum", "np.einsum('ij,jk->ik', a, b.T)", "np.einsum('ij,jk->ki', a, b.T)"),
        ("removal", "raise ValueError('a - b')", "pass"),
    } <= changes
    assert not any("words" in m.before or m.before == "1e-09" for m in found)
    plain = ast.unparse(ast.parse(SOURCE))
    texts = [operators.mutated(SOURCE, m.number) for m in found]
    assert plain not in texts and len(set(texts)) == len(texts) and all(map(ast.parse, texts))
    assert len({m.key for m in found}) == len(found)


@pytest.mark.slow
def test_a_known_change_is_killed():
    """The runner, end to end: the MSE loss without its metric does not live (docs/mutation.md)."""
    import subprocess

    (key,) = [k for k, m in run.all_mutants().items() if m.function == "MSE._metric" and m.operator == "boolean"]
    if not run.REACH.exists():
        pytest.skip("python tests/mutation/reach.py measures first which tests reach which lines")
    ran = subprocess.run([sys.executable, run.__file__, "--key", key], capture_output=True, text=True, check=True)
    assert "1/1 killed" in ran.stdout
