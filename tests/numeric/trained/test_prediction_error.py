"""p.error: the flow's errors carried through training; close training inputs are refused, not answered wrongly."""

import numpy as np
import pytest

from numeric import flow, predict
from numeric.errors import NumericError
from numeric.trained.algorithms import GradientDescent
from numeric.trained.error import UnreliablePrediction

NETWORK = {"depth": 2, "width": 30, "C_b": 0.1, "C_W": 1.4}


def prediction(distance, error=None, width=30, activation="erf", **options):
    """Two training inputs at a distance; `error` stands for the flow's own estimate, which takes longer."""
    X = [[1.0, 0.3], [1.0 - 0.3 * distance, 0.3 + distance], [0.2, 0.9]]
    f = flow(activation, X, **(NETWORK | {"width": width}), **options)
    if error is not None:
        f.known_error = dict.fromkeys(f.names, error)
    return predict(f, [1.0, 1.0 + distance], train=[0, 1])


def test_training_that_diverges_has_no_end_at_any_width():
    p = predict(
        flow("tanh", [[1.0, 0.3], [0.2, 0.9], [0.5, 0.5]], **NETWORK, tensors="Theta"),
        [1.0, 0.0],
        train=[0, 1],
        algorithm=GradientDescent(eta=50.0),
    )
    for ask in ("mean_infinite", "covariance_infinite"):
        with pytest.raises(NumericError, match="does not converge"):
            getattr(p, ask)


def test_close_training_inputs():
    """Far apart the error stays small; very close the correction is lost, and the answer is a sentence."""
    apart = prediction(0.3, 1e-12)
    assert apart.error["covariance"] < 1e-6 and apart.error["mean_infinite"] < 1e-9
    assert np.diagonal(apart.covariance).min() > 0
    close = prediction(1e-5, 1e-10)
    with pytest.raises(UnreliablePrediction, match="training inputs nearly coincide"):
        _ = close.covariance
    assert close.error["covariance"] > 1e-3
    assert prediction(0.3, 1e-6).error["mean"] > 1e4 * apart.error["mean"]


@pytest.mark.slow
def test_the_error_covers_what_a_finer_flow_changes():
    for distance in (1e-1, 1e-2, 1e-3):
        coarse, fine = (prediction(distance, activation="tanh", tolerance=t) for t in (1e-8, 1e-12))
        for name in ("mean", "covariance"):
            off = np.abs(coarse.plain(name) - fine.plain(name)).max()
            assert off <= 10 * coarse.error[name], (distance, name)


def test_a_negative_variance_never_leaves():
    """At width one the correction of order 1/n exceeds the variance: a sentence, not a number."""
    p = prediction(0.3, 1e-12, width=1)
    assert np.diagonal(p.plain("covariance")).min() < 0
    with pytest.raises(UnreliablePrediction, match="A variance comes out as -"):
        _ = p.covariance
