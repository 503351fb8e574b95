"""Which quick tests execute which lines of the mutated modules, and what they cost: measured once, used by `run.py`.

    python tests/mutation/reach.py      # writes tests/mutation/_reach.json (not stored in git)

A pytest plugin that switches coverage.py's context with every test. What a fixture executes belongs to all tests that
use the fixture, not only to the first one. Code that is executed once a process (a cache, a compiled program) is seen
with the first test only: `run.py` therefore goes on to the other tests of the file.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REACH = HERE / "_reach.json"
MODULES = ("numeric/trained", "derive/training", "numeric/ensemble/training.py")
WITHOUT = ("numeric/trained/sampled/",)
"""Left out: estimates with a random error, whose tests judge by standard errors; they have tests of their own."""
TESTS = (
    "tests/numeric/trained",
    "tests/derive/training",
    "tests/derive/codegen/test_generated_training.py",
    "tests/derive/cli/test_predict_command.py",
    "tests/numeric/ensemble",
    "tests/numeric/empirical/test_linearized.py",
    "tests/numeric/studies/test_data_kernel.py",
    "tests/numeric/studies/test_depth_study.py",
    "tests/numeric/studies/test_kernel_commands.py",
    "tests/derive/nearby/test_interpolation.py",
    "tests/derive/test_verbs.py",
    "tests/hostile/test_numbers.py",
    "tests/test_plots.py",
    "numeric/trained",
    "derive/training",
    "numeric/ensemble/training.py",
)
UNUSED = ("tests/numeric/trained/sampled",)
LONG = (
    "tests/numeric/trained/test_hidden_layers.py",
    "tests/numeric/trained/test_any_loss.py",
    "tests/numeric/trained/test_infinite_width.py",
    "tests/numeric/trained/test_random_features.py",
    "tests/numeric/trained/test_prediction_in_time.py",
    "tests/numeric/ensemble/test_steps_by_hand.py",
    "tests/numeric/ensemble/test_sampled_networks.py",
)
"""Files whose long tests (`make verify`) are used besides: what they check has no quick test of its own."""


def modules() -> list[str]:
    """The mutated modules, as paths from the repository's root."""
    found = [p for name in MODULES for p in ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py"))]
    names = sorted(str(p.relative_to(ROOT)) for p in found)
    return [name for name in names if not name.startswith(WITHOUT)]


class Contexts:
    """The plugin: a context for each test and for each fixture, CPU seconds of each test."""

    def __init__(self, cover: coverage.Coverage) -> None:
        self.cover = cover
        self.cost: dict[str, float] = {}
        self.users: dict[str, list[str]] = defaultdict(list)
        self.failed: set[str] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for name in getattr(item, "fixturenames", ()):
            self.users[self._fixture(name, item)].append(item.nodeid)
        self.cover.switch_context(item.nodeid)
        start = sum(os.times()[:4])
        yield
        self.cost[item.nodeid] = round(sum(os.times()[:4]) - start, 2)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest) -> Iterator[None]:
        item = request._pyfuncitem
        self.cover.switch_context(self._fixture(fixturedef.argname, item))
        yield
        self.cover.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    @staticmethod
    def _fixture(name: str, item: pytest.Item) -> str:
        return f"fixture {name} {item.nodeid.split('::')[0]}"


def main() -> None:
    """Run the tests under coverage, store {module: {line: [tests]}} and costs; `--add FILE ...` adds those of files."""
    os.chdir(ROOT)
    cover = coverage.Coverage(data_file=None, include=[str(ROOT / m) for m in modules()], branch=False)
    cover.start()
    plugin, start = Contexts(cover), time.process_time()
    ignored = [f"--ignore={name}" for name in UNUSED]
    added = [name for name in sys.argv[1:] if name != "--add"]
    quick = [("not slow", name) for name in TESTS] + [("slow", name) for name in LONG]
    for kind, tests in [("slow or not slow", name) for name in added] or quick:
        pytest.main(["-m", kind, "-p", "no:xdist", *ignored, "-k", "not networks_trained_on", tests], plugins=[plugin])
        store(plugin, bool(added))
        print(f"{tests}: {len(plugin.cost)} tests, {time.process_time() - start:.0f} CPU seconds", flush=True)
    if plugin.failed:
        print("these fail without a mutation and are left out:", *sorted(plugin.failed), sep="\n", file=sys.stderr)


def store(plugin: Contexts, add: bool) -> None:
    """Write {module: {line: [tests]}} and the tests' costs, or add to what is there."""
    data, lines = plugin.cover.get_data(), {}
    before = json.loads(REACH.read_text()) if add else {"cost": {}, "lines": {}}
    for module in modules():
        by_line = data.contexts_by_lineno(str(ROOT / module))
        old = before["lines"].get(module, {})
        lines[module] = {
            line: sorted(
                {test for context in by_line.get(line, ()) for test in plugin.users.get(context, [context]) if test}
                | set(old.get(str(line), ()))
            )
            for line in {*by_line, *map(int, old)}
        }
    cost = {test: seconds for test, seconds in plugin.cost.items() if test not in plugin.failed}
    REACH.write_text(json.dumps({"cost": before["cost"] | cost, "lines": lines}))


if __name__ == "__main__":
    main()
