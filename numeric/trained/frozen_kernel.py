"""Training with a frozen kernel, in closed form: descent (Lee et al. 2019) and gradient flow (Jacot et al. 2018).

With the loss (1/2) sum |f - y|^2 (their learning rate over N is our eta) and in the eigenbasis of the training
kernel, the weights of the representer sum at time t are g_t(h) (y - f_0), where

    gradient flow and descent   g_t(h) of `numeric.trained.spectral_weights`
    both, t -> infinity         1/h: kernel ridgeless regression.

A penalty (ridge/2) |w - w_0|^2 shifts h to h + ridge, and the limit is kernel ridge regression. For other losses the
representer weights follow an ODE (or, for gradient descent, a recursion) of their own. Kernels of several outputs
carry components first, H[i1, i2, 1, 2], as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from numeric.errors import NumericError
from numeric.given import finite, whole
from numeric.trained.algorithms import Algorithm
from numeric.trained.modes import SingularKernel, modes_of, smallest
from numeric.trained.ode import solve
from numeric.trained.operators import checked_kernel
from numeric.trained.signals import position_signal
from numeric.trained.spectral_weights import descent_weights, flow_weights

Array = np.ndarray
Loss = Callable[[jax.Array, jax.Array], jax.Array]


def squared_loss(f: jax.Array, y: jax.Array) -> jax.Array:
    """(1/2) sum |f - y|^2."""
    return 0.5 * jnp.sum((f - y) ** 2)


def cross_entropy(f: jax.Array, y: jax.Array) -> jax.Array:
    """- sum over samples of y . log softmax(f): f and y of shape (N, classes), y one-hot or probabilities."""
    return -jnp.sum(y * jax.nn.log_softmax(f))


@dataclass(frozen=True)
class FrozenKernelTraining:
    """Training of f on N samples with the kernel K held fixed.

    K has shape (N, N) for one output or for all outputs alike, or (O, O, N, N); y and f0 have shape (N,) or (N, O).
    Test rows k have shape (N_test, N) or (O, O, N_test, N). Times may be scalars or arrays; an array of T times adds
    a leading axis of length T to the answer.
    """

    K: Array
    y: Array
    f0: Array
    ridge: float = 0.0

    def __post_init__(self) -> None:
        for name in ("K", "y", "f0"):
            value = np.asarray(getattr(self, name), float)
            if not np.all(np.isfinite(value)):
                raise NumericError(f"{name} has entries that are not finite numbers")
            object.__setattr__(self, name, value)
        n = len(self.y)
        shapes = {(n, n), (*self.y.shape[1:], *self.y.shape[1:], n, n)}
        if self.K.shape not in shapes or self.f0.shape != self.y.shape:
            raise NumericError(f"K {self.K.shape}, y {self.y.shape} and f0 {self.f0.shape} do not belong together")
        checked_kernel(self.K if self.output_blind else self._flat())
        finite(self.ridge, "The ridge", least=0)

    @property
    def output_blind(self) -> bool:
        """Whether K acts on samples only, the same for every output."""
        return self.K.ndim == 2

    @cached_property
    def _modes(self) -> tuple[Array, Array]:
        modes = modes_of(self.K if self.output_blind else self._flat(), ridge=self.ridge, singular=True)
        return modes.h, modes.U

    @property
    def eigenvalues(self) -> Array:
        """Of the training kernel, ridge included, in ascending order."""
        return self._modes[0]

    @property
    def critical_rate(self) -> float:
        """The learning rate beyond which gradient descent diverges: 2 / h_max."""
        largest = float(self.eigenvalues[-1])
        return 2 / largest if largest > 0 else float("inf")

    def flow_weights(self, time: float | Array, eta: float = 1.0) -> Array:
        """Representer weights alpha of gradient flow at `time`: f(x) = f_0(x) + k(x) alpha."""
        return self._apply(flow_weights(self.eigenvalues, time, eta))

    def descent_weights(self, steps: int | Array, eta: float) -> Array:
        """Representer weights alpha of gradient descent after a whole number of steps."""
        alpha = self._apply(descent_weights(self.eigenvalues, steps, eta))
        if not np.all(np.isfinite(alpha)):
            raise NumericError(f"gradient descent diverges at eta = {eta:g}: it needs eta < {self.critical_rate:.6g}")
        return alpha

    def weights(self, algorithm: Algorithm, t: float) -> Array:
        """Representer weights of any algorithm of `numeric.trained` after t steps (or at time t)."""
        return self._apply(position_signal(algorithm, self.eigenvalues).at(t))

    def limit_weights(self) -> Array:
        """Representer weights at t -> infinity: kernel ridge regression, or ridgeless without ridge."""
        h = self.eigenvalues
        if h[0] <= smallest(h):
            raise SingularKernel("the training kernel is singular to rounding: use a ridge or a finite time")
        return self._apply(1 / h)

    def loss_flow_weights(self, time: float, loss: Loss, eta: float = 1.0, tolerance: float = 1e-11) -> Array:
        """Representer weights of gradient flow of any loss(f, y), by an eighth-order Runge-Kutta solver.

        `loss` is a JAX function of f and y in the shape of y. The solver's local error is kept below `tolerance`.
        """
        finite(time, "The time", least=0)
        finite(eta, "The learning rate", least=0)
        slope = self._slope(loss)
        return solve(lambda alpha: -eta * slope(alpha), np.zeros(self.y.size), time, tolerance).reshape(self.y.shape)

    def loss_descent_weights(self, steps: int, loss: Loss, eta: float) -> Array:
        """Representer weights after gradient descent steps of any loss(f, y)."""
        return self.loss_descent_path(steps, loss, eta)[-1]

    def loss_descent_path(self, steps: int, loss: Loss, eta: float) -> Array:
        """The same after 0, 1, ..., `steps` steps, along the first axis."""
        slope, path = self._slope(loss), [np.zeros(self.y.size)]
        finite(eta, "The learning rate", least=0)
        with np.errstate(over="ignore", invalid="ignore"):  # told below
            for _ in range(whole(steps, "The number of steps")):
                path.append(path[-1] - eta * slope(path[-1]))
        if not np.all(np.isfinite(path[-1])):
            raise NumericError(f"gradient descent diverges at eta = {eta:g}")
        return np.stack(path).reshape(-1, *self.y.shape)

    def predict(self, k: Array, alpha: Array, f0: Array | float = 0.0) -> Array:
        """f_0(x) + k(x) alpha for test rows k, and any leading time axis of alpha."""
        k = np.asarray(k, float)
        outputs = self.y.shape[1:]
        if k.ndim == 2:
            return np.einsum("qn,...n->...q" if not outputs else "qn,...no->...qo", k, alpha) + f0
        return np.einsum("ijqn,...nj->...qi", k, alpha) + f0

    def _flat(self) -> Array:
        """K as a matrix over (sample, output)."""
        if self.output_blind:
            return np.kron(self.K, np.eye(self.y.size // len(self.y)))
        return self.K.transpose(2, 0, 3, 1).reshape(self.y.size, self.y.size)

    def _apply(self, g: Array) -> Array:
        """g(K) (y - f_0) for spectral functions g of shape (..., modes)."""
        _, Q = self._modes
        error = (self.y - self.f0).reshape(len(Q), -1)
        answer = np.einsum("am,...m,mo->...ao", Q, g, Q.T @ error)
        return answer.reshape(*g.shape[:-1], *self.y.shape)

    def _slope(self, loss: Loss) -> Callable[[Array], Array]:
        kernel, y, f0, shape = (
            jnp.asarray(self._flat()),
            jnp.asarray(self.y),
            jnp.asarray(self.f0).reshape(-1),
            self.y.shape,
        )

        @jax.jit
        def slope(alpha: jax.Array) -> jax.Array:
            f = (f0 + kernel @ alpha).reshape(shape)
            return jax.grad(loss)(f, y).reshape(-1) + self.ridge * alpha

        return lambda alpha: np.asarray(slope(jnp.asarray(alpha)))
