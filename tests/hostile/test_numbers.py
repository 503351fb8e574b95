"""Numbers out of range are refused where they enter, and nothing that is not finite leaves silently."""

from __future__ import annotations

import os

import jax
import numpy as np
import pytest

import derive
import numeric
from derive.errors import DeriveError
from numeric.errors import NonFinitePrediction, NumericError
from numeric.given import finite, whole
from numeric.studies.linearization import Study
from numeric.trained import GradientDescent, Momentum
from numeric.trained.modes import modes_of

NAN, INF = float("nan"), float("inf")
X = [[1.0, 0.2], [-0.3, 0.9], [0.5, 0.5]]


@pytest.fixture(scope="module")
def flow() -> numeric.Flow:
    return numeric.flow("tanh", X, depth=2, width=10, tensors=["K", "Theta"])


@pytest.mark.parametrize("value", [NAN, INF, -INF, "1", None, True, 1j])
def test_only_finite_real_numbers(value: object) -> None:
    with pytest.raises(NumericError, match="finite real number"):
        finite(value, "x")
    with pytest.raises(NumericError, match="whole number"):
        whole(value, "x")


@pytest.mark.parametrize("rate", [NAN, INF, 0.0, -1.0])
def test_learning_rates(rate: float) -> None:
    for make in (GradientDescent, lambda eta: Momentum(eta, 0.9)):
        with pytest.raises(NumericError):
            make(rate)


@pytest.mark.parametrize("options", [{"rcond": 1.0}, {"rcond": NAN}, {"rcond": -1.0}, {"ridge": INF}, {"ridge": -1.0}])
def test_ridge_and_rcond(options: dict[str, float]) -> None:
    with pytest.raises(NumericError):
        modes_of(np.eye(2), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"seed": -1}, {"rate": NAN}, {"C_b": INF}, {"networks": 10**9}, {"depth": 10**6}])
def test_studies(options: dict[str, float]) -> None:
    with pytest.raises(NumericError):
        Study("tanh", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("y", [[1e308, -1e308], [1.7e308, 1e300]])
def test_a_prediction_that_overflows_says_so(flow: numeric.Flow, y: list[float]) -> None:
    """Either the exact numbers fit into floats, or it is said that they do not: never NaN."""
    with np.errstate(all="ignore"):
        try:
            mean = numeric.predict(flow, y, train=[0, 1]).mean_infinite
        except NonFinitePrediction as error:
            assert "range" in str(error)
        else:
            assert np.isfinite(mean).all()


def test_a_number_beyond_floats_keeps_its_digits() -> None:
    found = derive.expect("s0 s0", "exp", K=1000).to_json()
    assert found["value"] is None and str(found["digits"]).endswith("e+868")


@pytest.mark.parametrize("rates", ["power(1e99999999,0)", "power(1/0,1)", "power(nan,0)", "power(101,0)"])
def test_exponents_of_learning_rates(rates: str) -> None:
    with pytest.raises(DeriveError):
        derive.exponents("tanh", rates)


def test_switched_off_64_bit_numbers_are_named() -> None:
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(NumericError, match="jax_enable_x64"):
            numeric.flow("tanh", X, depth=2, width=10)
    finally:
        jax.config.update("jax_enable_x64", True)


@pytest.mark.filterwarnings("ignore")
def test_a_forked_child_is_refused_instead_of_hanging(flow: numeric.Flow) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b"nothing"
        try:
            numeric.flow("tanh", X, depth=2, width=10)
        except NumericError as error:
            answer = str(error).encode()
        finally:
            os.write(writing, answer)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert b"forked" in pipe.read()
    os.waitpid(child, 0)
