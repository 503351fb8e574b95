"""How fine the quadratures and how long the series must be for a kernel and a tolerance, measured on the host.

Nothing is taken from a formula about poles: steps are halved until the integrals that matter stop moving, series are
cut where their own measured coefficients fall below the tolerance. Sizes are rounded up to a coarse ladder, so that
the layers of a network mostly share compiled code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from numeric.brackets.functions import Functions
from numeric.brackets.hermite import half_line
from numeric.errors import NumericError

LONGEST_SERIES = 1 << 12
MOST_CLOSE_PAIRS = 1 << 15
LARGE, FEW = 50.0, 256  # variance of scale z from which closed forms with powers cancel; how many pairs go another way
SECTORS, WIDE_SECTORS, FINER_SECTORS = 28, 52, 8  # angles on either side of a sector's middle
WIDE = 100.0  # variance from which sectors take more of them
FARTHEST = 38.0  # standard deviations: beyond, the Gaussian underflows
EXACT_EXPONENTIALS = 4.0  # variance above which sums of exponentials do not cancel


def ladder(number: float, ratio: float = 1.25) -> int:
    """The next size on the ladder of a few standard sizes, a multiple of 8."""
    size = 8
    while size < number:
        size = int(np.ceil(size * ratio / 8)) * 8
    return size


def check_kernel(K: np.ndarray) -> np.ndarray:
    """A stack (layers, N, N) of finite symmetric kernels with a non-negative diagonal, or one clear sentence."""
    return _checked(K)[0]


def _checked(K: np.ndarray) -> tuple[np.ndarray, float, float]:
    """`check_kernel`'s stack, its largest variance and its largest correlation."""
    K = np.asarray(K, dtype=float)
    if K.ndim not in (2, 3) or K.shape[-1] != K.shape[-2] or K.shape[-1] == 0:
        raise NumericError(f"A kernel has shape (N, N), or (layers, N, N) for several at once, not {K.shape}.")
    K = K.reshape(-1, *K.shape[-2:])
    size, variance, least, asymmetry, excess, rho = (float(x) for x in _summary(jnp.asarray(K)))
    if not np.isfinite(size):
        raise NumericError("The kernel holds NaN or infinity.")
    if asymmetry > 1e-8 * size:
        raise NumericError("The kernel is not symmetric.")
    if least < 0:
        raise NumericError("The kernel's diagonal holds a negative variance.")
    if excess > 1e-6 * size:
        raise NumericError("The kernel holds a covariance larger than the variances allow: it is no covariance matrix.")
    return K, variance, rho


@jax.jit
def _summary(K: jax.Array) -> tuple[jax.Array, ...]:
    """Of a stack of kernels: largest entry, largest and smallest variance, asymmetry, largest violation of
    |K_ab| <= sqrt(K_aa K_bb), largest correlation. One pass, since plans are made at every layer.
    """
    diagonal = jnp.diagonal(K, axis1=1, axis2=2)
    scale = jnp.sqrt(jnp.maximum(diagonal, 0))
    inverse = jnp.where(scale > 0, 1 / jnp.where(scale > 0, scale, 1), 0)
    size = jnp.abs(K)
    apart = ~jnp.eye(K.shape[-1], dtype=bool)
    rho = jnp.max(jnp.where(apart, size * (inverse[:, :, None] * inverse[:, None, :]), 0))
    asymmetry = jnp.max(jnp.abs(K - jnp.swapaxes(K, 1, 2)))
    excess = jnp.max(size - scale[:, :, None] * scale[:, None, :])
    return jnp.max(size), jnp.max(diagonal), jnp.min(diagonal), asymmetry, excess, jnp.minimum(rho, 1.0)


def correlations(K: np.ndarray) -> np.ndarray:
    """The largest |K_ab| / sqrt(K_aa K_bb) in a stack of kernels, (N, N); zero on the diagonal."""
    scale = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    product = scale[:, :, None] * scale[:, None, :]
    rho = np.abs(np.divide(K, product, out=np.zeros_like(K), where=product > 0))
    rho[:, np.eye(K.shape[-1], dtype=bool)] = 0
    return np.minimum(rho.max(axis=0), 1.0)


CHUNK = 8192
FINEST_STEPS = (1 / 480, 2e-4)


@partial(jax.jit, static_argnums=(0, 1))
def _chunk(functions: Functions, order: int, z: jax.Array) -> jax.Array:
    return functions.derivatives(z, order)


def evaluate(functions: Functions, order: int, z: np.ndarray) -> np.ndarray:
    """sigma^(order) on the host: in pieces of one size, so that one compiled program serves every plan."""
    flat = np.ravel(z)
    padded = np.pad(flat, (0, -flat.size % CHUNK)).reshape(-1, CHUNK)
    values = [np.asarray(_chunk(functions, order, jnp.asarray(row))) for row in padded]
    return np.concatenate(values)[: flat.size].reshape(z.shape)


def hermite_table(nodes: np.ndarray, n: int) -> np.ndarray:
    """Normalized Hermite polynomials h_0 ... h_{n-1} at the nodes, shape (n, nodes)."""
    table = np.ones((n, nodes.size))
    if n > 1:
        table[1] = nodes
    for m in range(2, n):
        table[m] = (nodes * table[m - 1] - np.sqrt(m - 1) * table[m - 2]) / np.sqrt(m)
    return table


def converged_step(
    functions: Functions, products: Iterable[tuple[int, ...]], variance: float, tolerance: float, shift: float = 0.0
) -> float:
    """The coarsest step at which all <product of sigma^(k)(z)> at one input of this variance have converged.

    Accuracy is relative to the integral of the absolute value. A `shift` of the mean (in standard deviations) keeps
    integrals of single odd functions from vanishing.
    """
    products = list(products)
    orders = sorted({k for product in products for k in product})
    scale, radius = np.sqrt(variance), reach(functions, products, variance, tolerance, shift)
    level = 200 * np.finfo(float).eps

    def integrals(step: float) -> tuple[np.ndarray, np.ndarray]:
        nodes = half_line(step, radius)
        nodes = np.concatenate([nodes, -nodes])
        weights = step / np.sqrt(2 * np.pi) * np.exp(-(nodes**2) / 2)
        values = {k: evaluate(functions, k, scale * (nodes + shift)) for k in orders}
        terms = np.array([weights * np.prod([values[k] for k in product], axis=0) for product in products])
        return terms.sum(axis=1), np.abs(terms).sum(axis=1)

    for finest in FINEST_STEPS:  # what coarse rules all miss, such as a sharp step at zero, a fine one does not
        (check, _), (exact, size) = integrals(1.7 * finest), integrals(finest)
        if not np.all(np.isfinite(exact)):
            raise NumericError(f"{functions.name}: its Gaussian integrals at variance {variance:.3g} overflow.")
        allowed = max(tolerance, level) * size
        if np.all(np.abs(check - exact) <= allowed):
            break
    else:
        raise NumericError(f"{functions.name}: the trapezoidal rule does not converge at variance {variance:.3g}.")
    step = 1.0
    while np.any(np.abs(integrals(step)[0] - exact) > allowed):
        step = max(0.85 * step, finest)
    return step


def gaussian_radius(tolerance: float) -> float:
    """Beyond this many standard deviations the Gaussian, polynomial growth included, is below the tolerance."""
    return float(np.sqrt(2 * np.log(1 / max(tolerance, 1e-17))) + 0.4)


def reach(
    functions: Functions, products: Iterable[tuple[int, ...]], variance: float, tolerance: float, shift: float = 0.0
) -> float:
    """Beyond this many standard deviations the products of sigma^(k), Gaussian included, are below the tolerance.

    Where they grow, farther out than the Gaussian alone.
    """
    x = np.arange(0.0, FARTHEST, 0.125)
    gaussian = np.exp(-(x**2) / 2)
    products = list(products)
    orders = sorted({k for product in products for k in product})
    last = 0.0
    for sign in (1, -1):
        with np.errstate(all="ignore"):
            values = {k: np.abs(evaluate(functions, k, np.sqrt(variance) * (sign * x + shift))) for k in orders}
            for product in products:
                size = gaussian * np.prod([values[k] for k in product], axis=0)
                large = np.flatnonzero(~(size <= 0.01 * max(tolerance, 1e-17) * np.nansum(size)))
                last = max(last, float(x[large[-1]]) if large.size and np.isfinite(size).all() else 0.0)
    return max(gaussian_radius(tolerance), last + 0.4)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PairPlan:
    """Nodes and length of the Mehler series; made by `make_pair_plan`. `tail` estimates the relative error.

    `close` lists the pairs a < b, shape (J, 2), that are too nearly parallel for the series; `close_nodes` and
    `close_steps` are the rules of `numeric.brackets.close` for them.
    """

    nodes: jax.Array
    step: jax.Array
    tail: jax.Array
    close: jax.Array
    close_nodes: tuple[jax.Array, jax.Array]
    close_steps: tuple[jax.Array, jax.Array]
    n: int = field(metadata={"static": True})
    route: str = field(metadata={"static": True})  # "mehler", "stein", "linear", "exponential" or "sectors"


def needs_no_plan(functions: Functions) -> float:
    """The variance up to which pair brackets are a closed form whatever the kernel; zero: there is none."""
    if functions.family == "piecewise-linear":
        return float("inf")
    if functions.family == "gaussian-erf":
        _, factor, scale = functions.erf_form  # type: ignore[misc]
        return LARGE / scale**2 if len(factor) > 1 else float("inf")
    return 0.0


def make_pair_plan(
    functions: Functions, K: np.ndarray, highest_order: int = 1, tolerance: float = 1e-13, margin: float = 1.0
) -> PairPlan:
    """Plan the pair brackets with derivatives up to `highest_order` for a concrete kernel, or a stack of kernels.

    The plan stays valid for kernels with a smaller diagonal and smaller correlations. `margin` >= 1 widens the
    largest variance, for kernels that will move (differentiation needs no margin).
    """
    K, variance, rho = _checked(K)
    variance = max(variance * margin, 1e-300)
    closed = {"gaussian-erf": "stein", "piecewise-linear": "linear", "piecewise-smooth": "sectors"}
    route = closed.get(functions.family, "mehler")
    if functions.family == "exponential" and variance > EXACT_EXPONENTIALS:
        route = "exponential"
    if route == "stein" and variance > needs_no_plan(functions):
        # powers of z cancel for nearly parallel inputs of large variance: the diagonal and a few pairs by quadrature
        cancel = correlations(K) > 0.98
        few = np.triu(cancel).sum() <= FEW
        orders = range(highest_order + 1)
        step = converged_step(functions, [(k, k) for k in orders], variance, tolerance)
        some = _close(functions, K, cancel & few, orders, step, tolerance)
        return PairPlan(jnp.zeros(1), jnp.ones(()), jnp.asarray(1e-15 if few else 1e-10), *some, 0, route)
    if route != "mehler":
        n = (SECTORS if variance < WIDE else WIDE_SECTORS) if route == "sectors" else 0
        return PairPlan(jnp.zeros(1), jnp.ones(()), jnp.asarray(1e-15), *NO_CLOSE_PAIRS, n, route)
    orders = range(highest_order + 1)
    step = converged_step(functions, [(k, k) for k in orders], variance, tolerance)
    n, close = 64, NO_CLOSE_PAIRS
    radius = reach(functions, [(k, k) for k in orders], variance, tolerance * 1e-2)
    while True:
        fine = 2 * np.pi / (2 * np.pi / step + np.sqrt(n))
        nodes = half_line(fine, radius)
        nodes = half_line(fine, fine * ladder(nodes.size))
        weights = fine / np.sqrt(2 * np.pi) * np.exp(-(nodes**2) / 2)
        table = hermite_table(nodes, n) * weights
        squares = []
        for k in orders:
            plus, minus = (evaluate(functions, k, sign * np.sqrt(variance) * nodes) for sign in (1, -1))
            c = table @ plus
            squares.append((c + np.where(np.arange(n) % 2, -1, 1) * (table @ minus)) ** 2)
        tail = _tail(squares, rho)
        if n == LONGEST_SERIES and not _enough(tail, tolerance):
            rho = _longest_correlation(squares, tolerance)
            table_of_rho = correlations(K)
            close = _close(functions, K, table_of_rho > rho, orders, step, tolerance)
            rho = float(table_of_rho[table_of_rho <= rho].max())
            tail = _tail(squares, rho)
        length = _enough(tail, tolerance)
        if length:
            size = min(ladder(length + 1), n)
            return PairPlan(
                jnp.asarray(nodes), jnp.asarray(fine), jnp.asarray(tail[length - 1]), *close, size, "mehler"
            )
        n *= 2


def refined(plan: PairPlan) -> PairPlan:
    """The same plan with a smaller step, a longer series and a finer rule in the sectors of kinked activations."""
    if plan.route == "sectors":
        return replace(plan, n=plan.n + FINER_SECTORS)
    if plan.route != "mehler":
        return plan
    step = 0.8 * float(plan.step)
    nodes = half_line(step, 1.05 * float(plan.nodes[-1]))
    nodes = half_line(step, step * ladder(nodes.size))
    return replace(plan, nodes=jnp.asarray(nodes), step=jnp.asarray(step), n=ladder(1.15 * plan.n + 16))


def _tail(squares: list[np.ndarray], rho: float) -> np.ndarray:
    """What the series still holds from the term n on, relative to the whole: the largest over the orders."""
    terms = [rho ** np.arange(c.size) * c for c in squares]
    return np.max([np.cumsum(t[::-1])[::-1] / max(t.sum(), 1e-300) for t in terms], axis=0)


def _enough(tail: np.ndarray, tolerance: float) -> int:
    """Number of terms that suffice, or 0 if that is (nearly) the end of the table: then the cut would mean nothing."""
    enough = np.flatnonzero(tail <= 0.01 * tolerance)
    return int(enough[0]) + 1 if enough.size and enough[0] <= 0.8 * tail.size else 0


def _longest_correlation(squares: list[np.ndarray], tolerance: float) -> float:
    """The largest correlation at which the longest series is long enough."""
    low, high = 0.5, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _enough(_tail(squares, middle), tolerance) else (low, middle)
    return low


Close = tuple[jax.Array, tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
NO_CLOSE_PAIRS: Close = (
    jnp.zeros((0, 2), jnp.int32),
    (jnp.zeros(1), jnp.zeros(1)),
    (jnp.ones(()), jnp.ones(())),
)


def _close(
    functions: Functions, K: np.ndarray, which: np.ndarray, orders: range, step: float, tolerance: float
) -> Close:
    """The pairs that the series cannot do, and the two rules for them."""
    a, b = np.nonzero(np.triu(which))
    if a.size > MOST_CLOSE_PAIRS:
        raise NumericError(
            f"{functions.name}: {a.size} pairs of inputs are nearly parallel at variances up to "
            f"{np.max(np.abs(K)):.3g}; at most {MOST_CLOSE_PAIRS} such pairs can be done: scale the inputs down."
        )
    variance = K[:, a, a]
    left = K[:, b, b] - K[:, a, b] ** 2 / np.where(variance > 0, variance, 1)
    spread = float(np.max(left, initial=0.0))
    fine = converged_step(functions, [(k,) for k in orders], max(spread, 1e-12), tolerance, shift=0.4)
    rules = []
    for h in (step, min(fine, 0.7)):
        line = half_line(h, gaussian_radius(tolerance * 1e-2))
        line = half_line(h, h * ladder(line.size))
        rules.append((jnp.asarray(np.concatenate([-line[::-1], line])), jnp.asarray(h)))
    return jnp.asarray(np.stack([a, b], axis=1), jnp.int32), (rules[0][0], rules[1][0]), (rules[0][1], rules[1][1])
