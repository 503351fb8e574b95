"""A user's Newton tensor: a formula in the eigenvalue h of the training NTK, read by the whitelist, never evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from derive.activations.parser import parse_formula
from derive.errors import DeriveError
from derive.symbols import z

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Metric:
    """κ as a function of eigenvalues that shows itself as its formula."""

    formula: str
    function: Callable[[np.ndarray], np.ndarray]

    def __call__(self, h: np.ndarray) -> np.ndarray:
        import numpy as np

        with np.errstate(all="ignore"):
            values = np.asarray(self.function(np.asarray(h, dtype=float)), dtype=float)
        if not (np.isfinite(values) & (values > 0)).all():
            raise DeriveError(f"--kappa {self.formula!r} is not positive on the eigenvalues {np.ravel(h).tolist()}.")
        return values

    def __repr__(self) -> str:
        return self.formula


def metric(formula: str) -> Metric:
    """κ(h) of (10.22) as a function of eigenvalues.

    >>> kappa = metric("1 + h^2")
    >>> kappa, float(kappa(2.0))
    (1 + h^2, 5.0)
    """
    import numpy as np

    from derive.activations.syntax import tokens

    names = tokens(formula)
    if "z" in names or "h" not in names:
        raise DeriveError(
            f"--kappa is a formula in h, the eigenvalue of the training NTK, e.g. '1 + h^2'; not {formula!r}."
        )
    expression = parse_formula(" ".join("z" if name == "h" else name for name in names))
    try:
        function = sp.lambdify(z, sp.N(expression, 17), modules=["numpy", "scipy"])
        probe = np.asarray(function(np.array([0.5, 1.0, 2.0])), dtype=float)
    except (TypeError, NameError, ValueError, NotImplementedError):
        raise DeriveError(f"--kappa {formula!r} has no numerical form here: take simpler functions of h.") from None
    if probe.shape != (3,):
        raise DeriveError(f"--kappa {formula!r} does not depend on h.")

    return Metric(formula, function)
