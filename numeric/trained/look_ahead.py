"""Which unlabelled point to ask for next: how much the predictions would move if it were labelled (look-ahead).

Mohamadi, Bae, Sutherland (2022): the network that is trained on one more point is approximated by kernel regression
with its NTK around the present function, by block inversion for all candidates at once. The label is not known: with
the kernel as the covariance of a Gaussian process the expected square of the change is k~(x, x+)^2 / (k~(x+, x+) +
ridge), the variance that the label would remove; with classes and their present probabilities it is a mean over them.
"""

from __future__ import annotations

import numpy as np

from numeric.errors import NumericError
from numeric.trained.kernel_regression import KernelRegression

Array = np.ndarray


def expected_change(
    fit: KernelRegression,
    k_new: Array,
    k_self: Array,
    k_test: Array,
    k_test_new: Array,
    probabilities: Array | None = None,
) -> Array:
    """The root of the mean square change over test inputs (and outputs), expected over the label: (candidates,).

    Arrays as in `KernelRegression.look_ahead`. `probabilities` (candidates, classes) are those of one-hot labels; the
    fit then has one output a class and no f_0 besides what the labels were reduced by.
    """
    outputs = fit.y.shape[1:]
    zero = np.zeros((len(k_new), *outputs))
    present = fit.predict(k_new)
    unit = fit.look_ahead(k_new, k_self, present + 1.0, k_test, k_test_new)
    per_surprise = unit if not outputs else unit[..., 0]  # the change for a label one above the prediction
    if probabilities is None:
        solved = fit.inverse @ np.asarray(k_new, float).T
        variance = np.asarray(k_self, float) - np.einsum("cn,nc->c", np.asarray(k_new, float), solved) + fit.ridge
        return np.sqrt(np.mean(per_surprise**2, axis=1) * variance)
    p = np.asarray(probabilities, float)
    if not outputs or p.shape != zero.shape or (p < 0).any() or not np.allclose(p.sum(axis=1), 1):
        raise NumericError("probabilities have one row a candidate and one column a class, and rows that sum to 1")
    surprise = np.eye(outputs[0])[None] - present[:, None]  # [candidate, class that the label names, output]
    square = np.einsum("cl,clo->c", p, surprise**2) / outputs[0]
    return np.sqrt(np.mean(per_surprise**2, axis=1) * square)
