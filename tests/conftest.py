"""Shared by all tests: deterministic formulas, a disk cache of their own, arrays' shapes checked, long tests marked."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from beartype import BeartypeConf, beartype
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

os.environ["DERIVE_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"derive-tests-{os.getuid()}")

settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("deterministic")

SHAPES_CHECKED = [
    "numeric.evaluation.results",
    "numeric.trained.prediction",
    "numeric.empirical.ntk",
    "numeric.spectra.selfconsistent",
]
"""Modules whose public arrays have shapes in their types: beartype looks at every call while tests run."""
sys.modules["numbers_are_numbers"] = SimpleNamespace(check=beartype(conf=BeartypeConf(is_pep484_tower=True)))  # type: ignore[assignment]
install_import_hook(SHAPES_CHECKED, "numbers_are_numbers.check")


sys.path.append(str(Path(__file__).parent))
from long_tests import long_tests  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that were measured to be long are slow ones (tests/long_tests.py)."""
    long = long_tests()
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """With COSTS=file, the CPU seconds of each test are written there, fixtures and children included."""
    start = sum(os.times()[:4])
    yield
    if os.environ.get("COSTS"):
        with open(os.environ["COSTS"], "a") as file:
            file.write(json.dumps([item.nodeid, round(sum(os.times()[:4]) - start, 2)]) + "\n")
