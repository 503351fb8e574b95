"""The NTK parametrization with beta (Jacot et al. 2018) in terms of C_b, C_W, lambda_b and lambda_W.

There every parameter is drawn from N(0, 1), all learn with one rate, and the layer reads
z = (sigma_W / sqrt(n_in)) W a + beta b. The physical weights are W sigma_W / sqrt(n_in) and the physical biases beta b,
so their variances are C_W = sigma_W^2 and C_b = beta^2, and one gradient step moves them with
lambda_W = sigma_W^2 and lambda_b = beta^2.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hyperparameters:
    """What `flow` and every formula of the theory take."""

    C_b: float
    C_W: float
    lambda_b: float
    lambda_W: float


@dataclass(frozen=True)
class NTKParametrization:
    """beta and the weights' scale sigma_W (1 there).

    >>> NTKParametrization(beta=0.5).hyperparameters()
    Hyperparameters(C_b=0.25, C_W=1.0, lambda_b=0.25, lambda_W=1.0)
    """

    beta: float = 0.1
    sigma_W: float = 1.0

    def hyperparameters(self) -> Hyperparameters:
        """The translation; the NTK, its fluctuations and the training dynamics are the same on both sides."""
        return Hyperparameters(C_b=self.beta**2, C_W=self.sigma_W**2, lambda_b=self.beta**2, lambda_W=self.sigma_W**2)
