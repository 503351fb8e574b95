"""Shared by all tests: deterministic random formulas, and a disk cache of the tests' own."""

import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

os.environ["DERIVE_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"derive-tests-{os.getuid()}")

settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("deterministic")
