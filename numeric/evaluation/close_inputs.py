"""Nearly parallel inputs of kinked activations: the flow of each such pair in difference variables.

Second derivatives of brackets with respect to K diverge one by one as two inputs approach each other, and cancel in the
recursions; in the variables (p, m) of `numeric.brackets.differences` each divergent bracket multiplies components that
vanish as fast, and those are carried to full accuracy from the first layer on, where x_b - x_a is known. The recursions
close on any two inputs, so that every entry of a tensor with no more than two labels is found this way; they are taken
from the generated table of terms, in which the sums over sample labels are still sums and so know no basis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets import Functions, PiecewiseLinear
from numeric.brackets.kinked.differences import CURVED, CURVED_FINER, LINEAR, LINEAR_FINER, Nodes, Rule, pair_nodes
from numeric.generated.layer import STEPS
from numeric.generated.terms import TERMS
from numeric.subscripts import Label, Steps, Term, Values, View

CLOSE = 1e-2  # 1 - rho^2 below which divergent brackets are summed in difference variables
CLOSE_KERNELS = 1e-9  # the same, where only K and Theta are asked for
SAME = 1e-28  # 1 - rho^2 below which inputs are parallel for good, if the activation is scale invariant
BATCH = 16
Pair = dict[str, np.ndarray]


def is_standard(steps: Steps) -> bool:
    """Whether these are the recursions that the table of terms holds."""
    return all(
        name in STEPS
        and (step.pairs, step.quads, step.tensors) == (STEPS[name].pairs, STEPS[name].quads, STEPS[name].tensors)
        for name, step in steps.items()
    )


def gaps(K: np.ndarray) -> np.ndarray:
    """1 - rho^2 of all pairs; one where an input vanishes."""
    scale = np.sqrt(np.maximum(np.diagonal(K), 0))
    size = scale[:, None] * scale[None, :]
    safe = np.where(size > 0, size, 1)
    return np.where(size > 0, np.maximum((1 - K / safe) * (1 + K / safe), 0), 1.0)


class ClosePairs:
    """Which pairs of inputs are nearly parallel somewhere in the flow, and how they are looked at."""

    def __init__(self, functions: Functions, X: np.ndarray, C_b: np.ndarray, candidates: np.ndarray) -> None:
        """`candidates` (J, 2) are the pairs whose smallest 1 - rho^2 over the layers is below CLOSE."""
        found = []
        for a, b in candidates:
            look = _look(functions, X[a], X[b], C_b)
            if look is not None:
                found.append((int(a), int(b), *look))
        self.pairs = np.array([f[:2] for f in found], dtype=int).reshape(-1, 2)
        self.beta = np.array([f[2] for f in found])
        self.sign = np.array([f[3] for f in found])

    def __len__(self) -> int:
        return len(self.pairs)


def _look(functions: Functions, x: np.ndarray, y: np.ndarray, C_b: np.ndarray) -> tuple[float, float] | None:
    """(beta, sign): the pair is (x, sign y), compared as z_b - beta z_a; None where it is exact as it stands."""
    if not x.any() or not y.any() or np.array_equal(x, y):
        return None
    sign = 1.0
    if x @ y < 0 and functions.parity and not (C_b[0] if functions.parity > 0 else C_b.any()):
        sign, y = -1.0, -y
        if np.array_equal(x, y):
            return None
    if not isinstance(functions.calculus, PiecewiseLinear) or C_b.any():
        return 1.0, sign
    beta = float(np.linalg.norm(y) / np.linalg.norm(x))
    rest = y - beta * x
    rest = rest - x * (x @ rest) / (x @ x)
    return None if rest @ rest <= SAME * (y @ y) else (beta, sign)


def _basis_labels(name: str) -> frozenset[Label]:
    """The labels that stand for preactivations, in which the tensor is linear: they may change their basis."""
    labels, terms = TERMS[name]
    orders: dict[Label, set[int]] = {label: set() for label in labels}
    for _, _, averages in terms:
        for atoms, _ in averages:
            for label, order in atoms:
                orders[label].add(order)
    return frozenset(label for label, found in orders.items() if found == {0} and name not in ("Theta", "H1", "A", "B"))


BASIS = {name: _basis_labels(name) for name in TERMS}


def _hermite(x: Array, order: int) -> Array:
    """He of the given order as a tensor over the variables: (2, ..., 2, n)."""
    one = jnp.eye(2, dtype=x.dtype)
    if order == 1:
        return x
    two = x[:, None] * x[None, :]
    if order == 2:
        return two - one[:, :, None]
    four = two[:, :, None, None] * two[None, None]
    for i, j, k, l in ("ijkl", "ikjl", "iljk", "jkil", "jlik", "klij"):
        four = four - jnp.einsum(f"{i}{j},{k}{l}n->ijkln", one, two)
    threes = [jnp.einsum(f"{i}{j},{k}{l}->ijkl", one, one) for i, j, k, l in ("ijkl", "ikjl", "iljk")]
    return four + jnp.stack(threes).sum(axis=0)[..., None]


Kind = tuple[bool, int]  # of an atom: whether its label is one of the basis, and its order
Request = tuple[tuple[Kind, ...], int]  # the atoms' kinds, and how many derivatives


def _request(name: str, atoms: tuple[tuple[Label, int], ...], derivatives: tuple[str, ...]) -> Request:
    return tuple((label in BASIS[name], order) for label, order in atoms), len(derivatives)


def _average(nodes: Nodes, polynomials: Mapping[int, Array], request: Request) -> Array:
    """<product of the atoms, differentiated>, one axis an atom, then one a derivative."""
    kinds, derivatives = request
    table = [nodes.slope if order else nodes.basis if basis else nodes.own for basis, order in kinds]
    first = nodes.w[None, None] * table[0][:, None] * table[1][None, :]
    if len(table) == 4:
        return jnp.einsum("abn,cdn->abcd", first, table[2][:, None] * table[3][None, :])
    if derivatives:
        return jnp.tensordot(first, polynomials[derivatives], axes=(2, derivatives))
    return first.sum(axis=2)


@lru_cache(maxsize=64)
def _averages(functions: Functions, requests: tuple[Request, ...], rule: Rule):
    def one(pair: tuple[Array, Array]) -> tuple[list[Array], Array]:
        nodes = pair_nodes(functions, *pair, rule)
        polynomials = {k: _hermite(nodes.x, k) for k in sorted({count for _, count in requests if count})}
        return [_average(nodes, polynomials, request) for request in requests], nodes.whitening

    return jax.jit(lambda K, beta: jax.lax.map(one, (K, beta)))


class _Layer:
    """One step of all pairs: the averages of the layer below, and the terms made of them."""

    def __init__(
        self, functions: Functions, names: tuple[str, ...], rule: Rule, values: Values, state: Pair, beta: np.ndarray
    ) -> None:
        needed = {_request(name, *average) for name in names for term in TERMS[name][1] for average in term[2]}
        requests = tuple(sorted(needed))
        found, whitening = _averages(functions, requests, rule)(jnp.asarray(state["K"]), jnp.asarray(beta))
        self.averages = {request: np.asarray(value) for request, value in zip(requests, found)}
        self.whitening, self.state = np.asarray(whitening), state
        self.values = {key: float(value) for key, value in values.items()}
        self.constant = {True: np.stack([np.ones_like(beta), 1 - beta], axis=1), False: np.ones((len(beta), 2))}
        self.new = {name: np.sum([self.term(name, term) for term in TERMS[name][1]], axis=0) for name in names}

    def component(self, name: str, labels: tuple[Label, ...]) -> np.ndarray:
        """A tensor of the layer below, with the labels of derivatives in whitened variables."""
        x = self.state[name]
        for axis, label in enumerate(labels, start=1):
            if isinstance(label, str):
                x = np.moveaxis(np.einsum("kij,kj...->ki...", self.whitening, np.moveaxis(x, axis, 1)), 1, axis)
        return x

    def term(self, name: str, term: Term) -> np.ndarray:
        (number, powers), components, averages = term
        letters: dict[Label, str] = {}

        def spelled(labels: Sequence[Label]) -> str:
            return "k" + "".join(letters.setdefault(label, "abcdefghij"[len(letters)]) for label in labels)

        out = spelled(TERMS[name][0])
        operands, inputs, seen = [], [], set()
        for tensor, labels in components:
            operands.append(self.component(tensor, labels))
            inputs.append(spelled(labels))
            seen |= set(labels)
        for atoms, derivatives in averages:
            operands.append(self.averages[_request(name, atoms, derivatives)])
            inputs.append(spelled([label for label, _ in atoms] + list(derivatives)))
            seen |= {label for label, _ in atoms}
        for label in TERMS[name][0]:
            if label not in seen:
                operands.append(self.constant[label in BASIS[name]])
                inputs.append(spelled([label]))
        coefficient = math.prod((self.values[key] ** power for key, power in powers), start=number)
        return coefficient * np.einsum(f"{','.join(inputs)}->{out}", *operands)


def _first(names: tuple[str, ...], values: Values, x: np.ndarray, y: np.ndarray, beta: float) -> dict[str, np.ndarray]:
    """The first layer in the variables (p, m) of the inputs x, y."""
    constant = {True: np.array([1.0, 1.0 - beta]), False: np.ones(2)}
    state = {}
    for name in names:
        first = STEPS[name].first
        state[name] = np.zeros((2,) * STEPS[name].rank)
        if first is not None:
            basis = name in ("K",)
            rows = np.stack([x, y - beta * x if basis else y])
            gram, c = rows @ rows.T / len(x), constant[basis]
            plain = dict(values) | dict.fromkeys(("C_b", "lambda_b"), jnp.zeros(()))
            bias = np.asarray(first(values, View(jnp.zeros((2, 2)), 2)))
            state[name] = np.asarray(first(plain, View(jnp.asarray(gram), 2))) + bias * np.outer(c, c)
    return state


def pair_flows(
    functions: Functions,
    names: tuple[str, ...],
    X: np.ndarray,
    values: Sequence[Values],
    close: ClosePairs,
    known: Mapping[int, Mapping[str, Array]],
    finer: bool,
) -> list[dict[str, np.ndarray]]:
    """Tensors of the layers 1, 2, ... of each close pair, axes (pair, a or b, ...), one entry for each of `values`.

    What is `known` of layers gives the entries of single inputs, where nothing diverges.
    """
    names = tuple(name for name in TERMS if name in _closure(names))
    linear = isinstance(functions.calculus, PiecewiseLinear)
    rule = (LINEAR_FINER if finer else LINEAR) if linear else (CURVED_FINER if finer else CURVED)
    start = [
        _first(names, values[0], X[a], sign * X[b], beta)
        for (a, b), beta, sign in zip(close.pairs, close.beta, close.sign)
    ]
    pad = -len(start) % BATCH if len(start) > 1 else 0
    state = {name: np.stack([s[name] for s in [*start, *start[:1] * pad]]) for name in names}
    beta = np.concatenate([close.beta, np.full(pad, close.beta[0])])
    out = [_in_labels(state, close, functions, {}, first=True)]
    for layer, own in enumerate(values[1:], start=2):
        state = _Layer(functions, names, rule, own, state, beta).new
        single = {name: _single(known[layer][name]) for name in names if name in known.get(layer, {})}
        for name, x in single.items():
            state[name].reshape(len(beta), -1)[: len(close), 0] = x[close.pairs[:, 0]]
        out.append(_in_labels(state, close, functions, single, first=False))
    return out


def _single(x: Array) -> np.ndarray:
    """x_aa..., (N,)."""
    line = np.arange(x.shape[0])
    return np.asarray(x, dtype=float)[(line,) * x.ndim]


def _closure(names: Sequence[str]) -> set[str]:
    wanted, queue = {"K"}, [name for name in names if name in TERMS]
    while queue:
        name = queue.pop()
        if name not in wanted or name == "K":
            wanted.add(name)
            queue += [other for other in STEPS[name].tensors if other not in wanted]
    return wanted


def _in_labels(
    state: Pair, close: ClosePairs, functions: Functions, single: Mapping[str, np.ndarray], first: bool
) -> dict[str, np.ndarray]:
    """From (p, m) to (z_a, z_b), and back from -z_b where the second input was reflected."""
    count = len(close)
    back = np.zeros((count, 2, 2))
    back[:, 0, 0], back[:, 1, 0], back[:, 1, 1] = 1.0, close.beta, 1.0
    reflected = (close.sign < 0) & (first or functions.parity < 0)
    mirror = np.where(reflected[:, None], np.array([1.0, -1.0]), np.ones(2))
    out = {}
    for name, array in state.items():
        x = array[:count]
        difference = x[:, 1, 1] if x.ndim == 3 else None
        for axis, label in enumerate(TERMS[name][0]):
            x = np.moveaxis(x, axis + 1, 1)
            if label in BASIS[name]:
                x = np.einsum("kij,kj...->ki...", back, x)
            if axis == 1 and difference is not None and label in BASIS[name] and name in single:
                a, b = (single[name][close.pairs[:, i]] for i in (0, 1))
                x[:, 0, 1] = x[:, 1, 0] = (b + close.beta**2 * a - difference) / (2 * close.beta)
            x = np.moveaxis(x, 1, axis + 1)
        for axis in range(1, x.ndim):
            x = x * mirror.reshape(count, *[2 if i == axis else 1 for i in range(1, x.ndim)])
        out[name] = (x + x.swapaxes(1, 2)) / 2 if x.ndim == 3 else x
    return out


def put_in(tensors: Mapping[str, Array], flows: Mapping[str, np.ndarray], close: ClosePairs) -> dict[str, Array]:
    """The tensors with every entry of two different labels that is known from a pair's own flow."""
    out = dict(tensors)
    for name, x in flows.items():
        if name not in out:
            continue
        host = np.array(out[name])
        for place in product((0, 1), repeat=host.ndim):
            if len(set(place)) == 2:
                column = int(np.ravel_multi_index(place, (2,) * host.ndim))
                host[tuple(close.pairs[:, k] for k in place)] = x.reshape(len(x), -1)[:, column]
        out[name] = jnp.asarray(host, tensors[name].dtype)
    return out


__all__ = ["ClosePairs", "gaps", "is_standard", "pair_flows", "put_in"]
