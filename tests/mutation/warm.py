"""A warm process that tries mutants: everything is imported once, each mutant gets a fork of it.

The fork happens before JAX starts its backend. In the child the mutated module and all that import it are forgotten
and imported again from the changed text; pytest then runs the given tests and stops at the first that fails. No file
of the checkout is written.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import os
import pkgutil
import resource
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("derive", "numeric", "effective_theory")
MEMORY = 10 * 2**30
BROKEN = 99
"""The exit code of a child that could not run its tests for a reason of its own."""
REWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"  # of what was imported before pytest began
OPTIONS = (
    "-x",
    "--tb=no",
    "--assert=plain",
    "-p",
    "no:unraisableexception",
    "--no-header",
    "-m",
    "slow or not slow",
    "-W",
    REWRITTEN,
)


def warm_up() -> None:
    """Import what tests need; nothing here may start JAX's backend."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path.insert(0, str(ROOT))
    for name in ("jax", "scipy.linalg", "hypothesis", "beartype", "jaxtyping", "pandas", "matplotlib.pyplot", "pytest"):
        importlib.import_module(name)
    for package in PACKAGES:
        parent = importlib.import_module(package)
        for found in pkgutil.walk_packages(parent.__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                with contextlib.suppress(ImportError):
                    importlib.import_module(found.name)
    from jax._src import xla_bridge

    if xla_bridge._backends:
        raise RuntimeError("an import has started JAX's backend: a fork of this process may hang")
    gc.collect()
    gc.freeze()


def importers(name: str) -> set[str]:
    """The loaded modules of ours that import module `name`, directly or through others, and itself."""
    users = defaultdict(set)
    for module, path in _loaded():
        for used in _imported(ast.parse(path.read_text(encoding="utf-8"))):
            users[used].add(module)
    found, new = {name}, {name}
    while new:
        new = {user for used in new for user in users[used]} - found
        found |= new
    return found


def _loaded() -> list[tuple[str, Path]]:
    ours = [(name, m) for name, m in sys.modules.items() if name.split(".")[0] in PACKAGES]
    return [(name, Path(m.__file__)) for name, m in ours if isinstance(m, ModuleType) and m.__file__]


def _imported(tree: ast.Module) -> set[str]:
    """What a module imports when it is imported: not what its functions import when they run, nor for types alone."""
    found, waiting = set(), list[ast.AST](tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Try | ast.With | ast.ClassDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test)
        ):
            waiting += ast.iter_child_nodes(node)
    return found


def _put_in(path: Path, text: str) -> None:
    """From now on the module at `path` is imported from `text`."""
    read, stats = SourceFileLoader.get_data, SourceFileLoader.path_stats

    def get_data(self: SourceFileLoader, wanted: str) -> bytes:
        return text.encode() if wanted == str(path) else read(self, wanted)

    def path_stats(self: SourceFileLoader, wanted: str) -> dict:
        if wanted == str(path):
            raise OSError("compiled afresh")
        return dict(stats(self, wanted))

    SourceFileLoader.get_data = get_data  # type: ignore[method-assign]
    SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign]


def _forget(names: set[str]) -> None:
    """Drop modules, import the packages among them again and give them back those of their parts that were kept."""
    for name in names:
        sys.modules.pop(name, None)
        parent, _, part = name.rpartition(".")
        if parent in sys.modules and part in vars(sys.modules[parent]):
            delattr(sys.modules[parent], part)
    ours = {name: m for name, m in sys.modules.items() if name.split(".")[0] in PACKAGES}
    for name in sorted(names, key=len):
        if any(other.startswith(f"{name}.") for other in ours):
            package = importlib.import_module(name)
            for other, module in ours.items():
                parent, _, part = other.rpartition(".")
                if parent == name and not hasattr(package, part):
                    setattr(package, part, module)


class _Plugin:
    """Puts the mutant in once the tests' conftest is there, and tells of failures."""

    def __init__(self, file: str, text: str | None, forgotten: set[str], report: int) -> None:
        self.file, self.text, self.forgotten, self.report = file, text, forgotten, report

    def pytest_sessionstart(self) -> None:
        if self.text is None:
            return
        _put_in(ROOT / self.file, self.text)
        try:
            _forget(self.forgotten)
        except Exception as reason:
            self._say(f"import: {type(reason).__name__}")
            os._exit(1)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._say(report.nodeid)

    def _say(self, text: str) -> None:
        os.write(self.report, f"{text}\n".encode())


def _child(file: str, text: str | None, forgotten: set[str], tests: Sequence[str], report: int, seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 3))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os._exit(int(pytest.main([*OPTIONS, *tests], plugins=[_Plugin(file, text, forgotten, report)])))


def attempt(
    file: str, text: str | None, forgotten: set[str], tests: Sequence[str], seconds: float
) -> tuple[str, str, float]:
    """("killed" | "survived" | "timeout", the test that failed, CPU seconds) of a module's changed text."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            os.setsid()
            _child(file, text, forgotten, tests, write, seconds)
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(BROKEN)
    os.close(write)
    deadline, status, used = time.monotonic() + 12 * seconds + 60, None, None
    while status is None:
        done, code, used = os.wait4(pid, os.WNOHANG)
        if done:
            status = code
        elif time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            deadline = float("inf")
        else:
            time.sleep(0.02)
    with os.fdopen(read) as pipe:
        failed = pipe.read().splitlines()
    assert used is not None
    cost = round(used.ru_utime + used.ru_stime, 2)
    if os.WIFSIGNALED(status):
        over = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return ("timeout" if over else "killed"), f"signal {os.WTERMSIG(status)}", cost
    code = os.WEXITSTATUS(status)
    cases = code == pytest.ExitCode.USAGE_ERROR and text is not None  # of tests that take them from the module
    if cases and attempt(file, None, set(), tests, seconds)[0] == "survived":
        return "killed", "the tests' cases are others", cost
    if code in (BROKEN, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"a child came to nothing (code {code}) with {list(tests)[:3]}:\n" + "\n".join(failed))
    return ("survived" if code == 0 else "killed"), (failed[0] if failed else f"exit code {code}"), cost
