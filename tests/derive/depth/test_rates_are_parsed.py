"""Numbers that a user types go through the whitelist parser too: text is never evaluated."""

import pytest

from derive.depth import exponents
from derive.depth.off_critical import off_criticality
from derive.errors import DeriveError


def test_learning_rates_and_hyperparameters_are_not_evaluated(tmp_path):
    mark = tmp_path / "mark"
    attack = f"__import__('pathlib').Path('{mark}').touch()"
    with pytest.raises(DeriveError):
        exponents("tanh", lambda_b=attack)
    with pytest.raises(DeriveError):
        off_criticality("tanh", attack, 1)
    assert not mark.exists()
    with pytest.raises(DeriveError, match="not negative"):
        exponents("tanh", lambda_W=-1)
