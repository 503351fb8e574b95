"""Shared by all tests: deterministic random formulas, a disk cache of the tests' own, arrays' shapes checked."""

import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

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
