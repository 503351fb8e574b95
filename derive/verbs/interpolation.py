"""`derive.starpolation`: between two nearby training inputs, as a formula at large depth and as a curve at a given one.

The curve needs numbers, so it imports `numeric` (and with it jax) when it is asked for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import sympy as sp

from derive import nearby
from derive.activations import activation as read_activation
from derive.design.recommendation import plan
from derive.errors import DeriveError
from derive.nearby import Starpolation
from derive.nearby.interpolation import THETA, ZEROTH, CurvePoint, interpolation_mean, s, y_minus, y_plus
from derive.tables import csv_text
from derive.verbs.depth import Given
from effective_theory.files import check_file, write_file

FIRST, LAST, POINTS = -0.5, 1.5, 41
"""The curve goes from extrapolation beyond x_- to extrapolation beyond x_+."""
CLOSEST = 1e-3
"""At smaller angles the difference of the two inputs drowns in rounding."""


def starpolation(
    activation: Given,
    learning_rates: str = "equivalence",
    point: int = 0,
    depth: int | None = None,
    angle: float = 0.2,
    y: tuple[float, float] = (1.0, 1.0),
    output: str | Path | None = None,
    plot: str | Path | None = None,
) -> Starpolation:
    """The mean prediction between two nearby training inputs of equal norm, and its curvature at large depth.

    With a `depth`, also the curve over s of trained networks of that depth at infinite width: two training inputs with
    x.x = n_0 at this `angle` and the targets y = (y_+, y_-), the exact mean and standard deviation of the ensemble at
    s x_+ + (1-s) x_-, and the mean to second order in the angle. `output` writes it as CSV, `plot` draws it.

    >>> len(starpolation("relu", depth=3).curve)
    41
    """
    found = nearby.starpolation(activation, learning_rates, point)
    if depth is None:
        if output is not None or plot is not None:
            raise DeriveError("A curve over s is that of a network: give --depth with -o or --plot.")
        return found
    for place in (output, plot):
        if place is not None:
            check_file(place)
    if depth < 1:
        raise DeriveError("The depth is a whole number of layers, at least 1.")
    if learning_rates not in ("equivalence", "constant"):
        raise DeriveError("The curve over s is for learning rates by the equivalence principle, or constant ones.")
    if not CLOSEST <= angle <= math.pi / 2:
        raise DeriveError(f"The angle between the training inputs is from {CLOSEST:g} to pi/2.")
    if len(y) != 2 or not all(math.isfinite(value) for value in y):
        raise DeriveError("The targets y are two finite numbers, y_+ and y_-.")
    result = replace(found, curve=_curve(activation, learning_rates, point, depth, angle, y))
    if output is not None:
        write_file(Path(output), csv_text(result.rows()))
    if plot is not None:
        from numeric.studies.figures import interpolation_figure

        rows = [(p.s, p.mean, p.deviation, p.second_order) for p in result.curve]
        interpolation_figure(rows, y, f"{found.activation}, depth {depth}, angle {angle:g}", Path(plot))
    return result


def _curve(
    activation: Given, learning_rates: str, point: int, depth: int, angle: float, y: tuple[float, float]
) -> tuple[CurvePoint, ...]:
    import numpy as np

    import numeric
    from numeric.trained.infinite import kernel_prediction

    sigma = read_activation(activation)
    own, _ = plan(sigma, depth, learning_rates, 1.0, point=point)
    ends = math.sqrt(2) * np.array([[math.cos(angle / 2), e * math.sin(angle / 2)] for e in (1, -1)])
    places = np.linspace(FIRST, LAST, POINTS)  # s = 0, 1/2 and 1 are among them
    X = np.concatenate([ends, places[:, None] * ends[0] + (1 - places[:, None]) * ends[1]])
    f = numeric.flow(sigma.name, X, depth, None, own.C_b, own.C_W, own.lambda_b, own.lambda_W, layers="last")
    theta, K = np.asarray(f.Theta), np.asarray(f.K)
    p = kernel_prediction(theta, K, np.array(y), [0, 1])
    rows = range(2, len(X))
    mean = p.mean(inputs=rows)
    variance = np.diagonal(p.covariance(inputs=rows))
    middle = 2 + int(np.argmin(np.abs(places - 0.5)))
    curvature = (theta[0, 0] + theta[0, 1]) / 2 - theta[middle, middle]
    formula = interpolation_mean(True).xreplace({ZEROTH: sp.Symbol("Z"), THETA: sp.Symbol("T")})
    second = sp.lambdify((s, y_plus, y_minus, sp.Symbol("Z"), sp.Symbol("T")), formula, "numpy")
    near = second(places, *y, curvature, theta[middle, middle])
    return tuple(
        CurvePoint(float(a), float(b), float(math.sqrt(max(c, 0.0))), float(d))
        for a, b, c, d in zip(places, mean, variance, near)
    )
