"""K and Theta of the last layer block by block: many inputs within a memory budget, test against training inputs.

An entry (a, b) needs nothing but the variances of a and b on the way, which are run through the layers first; then each
block of rows and columns goes through all layers by itself. Cost grows as the number of entries; of a symmetric matrix
the blocks on and above the diagonal are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from numeric.activations import Definition, load
from numeric.brackets import Functions, Kernels, Order, PairPlan, Plan, Rectangle, needs_no_plan, plan_pairs_of
from numeric.errors import NumericError
from numeric.evaluation.bracket_tables import missing_tensors
from numeric.evaluation.close_inputs import CLOSE_KERNELS, ClosePairs, is_standard, pair_flows
from numeric.evaluation.compiled import Table
from numeric.evaluation.defaults import equivalent_rates, initialization, read_rates
from numeric.evaluation.host import SEVERAL, at_single_inputs, host_rectangle
from numeric.evaluation.inputs import (
    Inputs,
    Parameters,
    Values,
    read_depth,
    read_inputs,
    read_memory,
    read_parameters,
    read_widths,
)
from numeric.evaluation.kernel_tiles import Network, Side, kernel_tiles
from numeric.evaluation.layer import Tensors, combine_pairs, first_kernel, needed
from numeric.evaluation.layers import Run
from numeric.progress import progress_bar
from numeric.runtime import check_process
from numeric.subscripts import Values as LayerValues

MEMORY = 8e9
TOLERANCE = 1e-13
NAMES = ("K", "Theta")
SMALLEST, LARGEST = 128, 1024  # rows of a block
NUMBERS = 24  # that a block holds for each of its entries, at worst


@dataclass(frozen=True)
class KernelBlock:
    """K and Theta of the output layer between some of the rows and some of the columns, (rows, columns) each."""

    rows: slice
    columns: slice
    K: np.ndarray
    Theta: np.ndarray


class KernelMatrices(NamedTuple):
    """K and Theta of the output layer, axes (X, against)."""

    K: np.ndarray
    Theta: np.ndarray


def kernel_matrices(
    activation: Definition,
    X: Inputs,
    depth: int,
    C_b: Values | str | None = None,
    C_W: Values | str | None = None,
    lambda_b: Values | str | None = None,
    lambda_W: Values | str | None = None,
    *,
    against: Inputs | None = None,
    memory: float = MEMORY,
    progress: bool | None = None,
) -> KernelMatrices:
    """K and Theta of the output layer for all pairs of X, or for X against other inputs (test against training ones).

    The hyperparameters are those of `numeric.flow`; learning rates that are not given follow the equivalence principle
    on `against` (the training inputs), or on X where there is none. `memory` is a budget in bytes, the results
    included; where they alone exceed it, take them block by block from `kernel_blocks`.

    >>> train, test = [[1.0, 0.0], [0.6, 0.8]], [[0.0, 1.0]]
    >>> kernel_matrices("tanh", test, 2, against=train).Theta.shape
    (1, 2)
    """
    rows = read_inputs(X, jnp.float64)
    columns = rows if against is None else read_inputs(against, jnp.float64)
    results = 16.0 * len(rows) * len(columns)
    if results > 0.8 * read_memory(memory):
        raise NumericError(
            f"K and Theta of {len(rows)} x {len(columns)} inputs take {results / 1e9:.2g} GB, too much for "
            f"memory={memory / 1e9:.2g} GB: raise it, or take them block by block from numeric.kernel_blocks."
        )
    found = KernelMatrices(*(np.empty((len(rows), len(columns))) for _ in NAMES))
    blocks = kernel_blocks(
        activation, X, depth, C_b, C_W, lambda_b, lambda_W, against=against, memory=memory - results, progress=progress
    )
    for block in blocks:
        for whole, part in zip(found, (block.K, block.Theta)):
            whole[block.rows, block.columns] = part
            if against is None:
                whole[block.columns, block.rows] = part.T
    return found


def kernel_blocks(
    activation: Definition,
    X: Inputs,
    depth: int,
    C_b: Values | str | None = None,
    C_W: Values | str | None = None,
    lambda_b: Values | str | None = None,
    lambda_W: Values | str | None = None,
    *,
    against: Inputs | None = None,
    memory: float = MEMORY,
    progress: bool | None = None,
) -> Iterator[KernelBlock]:
    """The blocks of `kernel_matrices`, one after the other; without `against` those on and above the diagonal."""
    columns = X if against is None else against
    run = network_run(activation, columns, depth, C_b, C_W, lambda_b, lambda_W, tensors=NAMES)
    blocks = Blocks(run, X, against, memory)
    return (KernelBlock(own.rows, own.columns, **own.tensors) for own in blocks.each(progress))


def network_run(
    activation: Definition,
    X: Inputs,
    depth: int,
    C_b: Values | str | None = None,
    C_W: Values | str | None = None,
    lambda_b: Values | str | None = None,
    lambda_W: Values | str | None = None,
    *,
    tensors: tuple[str, ...],
) -> Run:
    """The network, with the hyperparameters that follow from X where they are not given: K, or K and Theta.

    Without Theta the learning rates that are not given are zero.
    """
    check_process()
    module = load(activation)
    functions, steps = module.FUNCTIONS, module.STEPS
    missing = missing_tensors(functions, steps)
    for name in tensors:
        if name in missing:
            raise NumericError(missing[name])
    inputs = read_inputs(X, jnp.float64)
    depth = read_depth(depth)
    widths = read_widths(1, depth, inputs.shape[1])
    given = read_rates({"lambda_b": lambda_b, "lambda_W": lambda_W})
    arrays = read_parameters(depth, jnp.float64, {**initialization(functions.name, C_b, C_W), **given})
    if len(given) < 2:
        found = (jnp.zeros(depth),) * 2
        if "Theta" in tensors:
            found = equivalent_rates(functions, steps, inputs, arrays["C_b"], arrays["C_W"], widths)
        arrays = dict(zip(("lambda_b", "lambda_W"), found)) | arrays
    return Run(functions, steps, tensors, widths, Parameters(**arrays), TOLERANCE)


class TensorBlock(NamedTuple):
    """Some rows and columns of the tensors that a run has."""

    rows: slice
    columns: slice
    tensors: dict[str, np.ndarray]


class Blocks:
    """All inputs with their variances at every layer, and the blocks made of them within `memory` bytes."""

    def __init__(self, run: Run, X: Inputs, against: Inputs | None, memory: float) -> None:
        rows = np.asarray(read_inputs(X, jnp.float64))
        columns = rows if against is None else np.asarray(read_inputs(against, jnp.float64))
        if rows.shape[1] != columns.shape[1]:
            raise NumericError(f"X has {rows.shape[1]} components an input, against has {columns.shape[1]}.")
        side = int(np.sqrt(read_memory(memory) / (8 * NUMBERS)))
        if side < min(SMALLEST, len(rows), len(columns)):
            raise NumericError(
                f"memory={memory / 1e6:.2g} MB is too little for a block of {SMALLEST} x {SMALLEST} inputs."
            )
        side, symmetric = min(side, LARGEST), against is None
        self.run, self.symmetric = run, symmetric
        self.table = _table(run)
        together = rows if symmetric else np.concatenate([rows, columns])
        _, names = np.unique(together, axis=0, return_inverse=True)
        variances = np.stack([layer["K"] for layer in _diagonals(run, together)])
        self.sides = []
        for inputs, own in ((rows, slice(0, len(rows))), (columns, slice(-len(columns), None))):
            self.sides.append(_Side(inputs, names.ravel()[own], variances[:, own], min(side, len(inputs))))

    def each(self, progress: bool | None) -> Iterator[TensorBlock]:
        row_slices, column_slices = (side.slices for side in self.sides)
        places = [
            (i, j)
            for i in range(len(row_slices))
            for j in range(i if self.symmetric and row_slices == column_slices else 0, len(column_slices))
        ]
        with progress_bar(len(places), progress, "blocks") as tick:
            for i, j in places:
                rows, columns = row_slices[i], column_slices[j]
                found = self.block(rows, columns)
                shape = rows.stop - rows.start, columns.stop - columns.start
                tick(1)
                yield TensorBlock(
                    rows, columns, {name: np.asarray(own)[: shape[0], : shape[1]] for name, own in found.items()}
                )

    def block(self, rows: slice, columns: slice) -> Tensors:
        """The last layer's tensors, padded."""
        run, functions = self.run, self.run.functions
        (x, names_x, a), (y, names_y, b) = (side.padded(own) for side, own in zip(self.sides, (rows, columns)))
        same = names_x[:, None] == names_y[None, :]
        limit = needs_no_plan(functions)
        if run.depth > 1 and limit and max(a.max(), b.max()) < limit and max(same.shape) > SEVERAL:
            closed = Plan(plan_pairs_of(functions, Kernels.alone(a[0]), 1, TOLERANCE), None)
            values = [run.numbers(layer) for layer in range(2, run.depth + 1)]
            network = Network(functions, self.table, run.names, closed, run.numbers(1), values)
            alike = self.symmetric and rows == columns
            left, right = Side(x, names_x, a), None if alike else Side(y, names_y, b)
            tensors, least = kernel_tiles(network, left, right)
            if not functions.kinked or least >= CLOSE_KERNELS:
                return tensors
            first = self.first(x, y, same)["K"]
            gaps = [_gaps(first, a[0], b[0])]
        else:
            tensors = self.first(x, y, same)
            gaps = [_gaps(tensors["K"], a[0], b[0])] if functions.kinked else []
            for layer in range(2, run.depth + 1):
                own = a[layer - 2], b[layer - 2]
                kernels = _kernels(own[0][None], own[1][None], tensors["K"], same)
                plan = plan_pairs_of(functions, kernels, 1, TOLERANCE)
                if plan.on_host and max(same.shape) <= SEVERAL:
                    tensors = self.on_host(plan, layer, *own, same, tensors)
                else:
                    step = _step(functions, self.table)
                    tensors = step(plan, run.values(layer), *map(jnp.asarray, (*own, same)), tensors)
                if functions.kinked and layer < run.depth:
                    gaps.append(_gaps(tensors["K"], a[layer - 1], b[layer - 1]))
        if functions.kinked and run.depth > 1 and is_standard(run.steps):
            gaps.append(_gaps(tensors["K"], a[-1], b[-1]))
            tensors = self.with_close_inputs(x, y, np.where(same, 1.0, np.min(gaps, axis=0)), a[-1], b[-1], tensors)
        return tensors

    def first(self, x: np.ndarray, y: np.ndarray, same: np.ndarray) -> Tensors:
        """The first layer's tensors."""
        return _first(self.table)(self.run.values(1), jnp.asarray(x), jnp.asarray(y), jnp.asarray(same))

    def on_host(self, plan: PairPlan, layer: int, a: Any, b: Any, same: Any, tensors: Tensors) -> Tensors:
        """One layer of a small block, without compiling anything."""
        below = {name: cast(Any, np.asarray(x)) for name, x in tensors.items()}
        wanted = _orders(self.table)
        with np.errstate(all="ignore"):
            found = host_rectangle(self.run.functions, plan, wanted, Rectangle(a, b, below["K"], same))
            return combine_pairs(self.table.steps, self.run.names, self.run.numbers(layer), below, found)

    def with_close_inputs(
        self, x: np.ndarray, y: np.ndarray, gap: np.ndarray, a: np.ndarray, b: np.ndarray, tensors: Tensors
    ) -> Tensors:
        """Nearly parallel inputs of kinked activations as their own flow has them."""
        rows, columns = np.nonzero(gap < CLOSE_KERNELS)
        if not rows.size:
            return tensors
        run, line = self.run, np.arange(rows.size)
        inputs = np.concatenate([x[rows], y[columns]])
        pairs = np.stack([line, line + rows.size], axis=1)
        close = ClosePairs(run.functions, inputs, np.asarray(run.parameters.C_b), pairs)
        if not len(close):
            return tensors
        values = [run.values(layer) for layer in range(1, run.depth + 1)]
        found = pair_flows(run.functions, run.names, inputs, values, close, {}, False)[-1]
        chosen = close.pairs[:, 0]
        out = dict(tensors)
        for name in run.names:
            host = np.array(tensors[name])
            host[rows[chosen], columns[chosen]] = found[name][:, 0, 1]
            out[name] = jnp.asarray(host)
        return out


class _Side:
    """The inputs of the rows or of the columns, cut into slices of one size."""

    def __init__(self, inputs: np.ndarray, names: np.ndarray, variances: np.ndarray, size: int) -> None:
        self.inputs, self.names, self.variances, self.size = inputs, names, variances, size
        count = -(-len(inputs) // size)
        self.size = -(-len(inputs) // count)
        self.slices = [slice(i, min(i + self.size, len(inputs))) for i in range(0, len(inputs), self.size)]

    def padded(self, own: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, names and variances (layers, size) of a slice; the last input again where it is short."""
        labels = np.minimum(np.arange(own.start, own.start + self.size), own.stop - 1)
        return self.inputs[labels], self.names[labels], self.variances[:, labels]


def _gaps(K: jax.Array, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """1 - rho^2; one where an input vanishes."""
    size = np.sqrt(a)[:, None] * np.sqrt(b)[None, :]
    rho = np.divide(np.asarray(K), size, out=np.zeros(K.shape), where=size > 0)
    return np.maximum((1 - rho) * (1 + rho), 0)


def _kernels(a: np.ndarray, b: np.ndarray, K: jax.Array, same: np.ndarray) -> Kernels:
    return Kernels(a, b, np.asarray(K)[None], np.asarray(same), symmetric=False)


def at_each_input(run: Run, X: Inputs) -> dict[str, np.ndarray]:
    """The diagonals of the tensors at the last layer, N numbers each."""
    return _diagonals(run, np.asarray(read_inputs(X, jnp.float64)))[-1]


def _diagonals(run: Run, X: np.ndarray) -> list[dict[str, np.ndarray]]:
    """The diagonals at every layer, N numbers each; each layer is checked."""
    table, values = _table(run), run.numbers(1)
    with np.errstate(all="ignore"):
        line: Any = np.sum(X * X, axis=1)[:, None] / X.shape[1]
        now: Any = {name: first_kernel(run.steps, name, values, line) for name in run.names}
    run.check(now, 1)
    layers, wanted = [now], _orders(table)
    for layer in range(2, run.depth + 1):
        variances = layers[-1]["K"][:, 0]
        plan = plan_pairs_of(run.functions, Kernels.alone(variances), 1, TOLERANCE)
        found: Any = at_single_inputs(run.functions, plan, wanted, variances)
        own = {order: value[:, None] for order, value in found.items()}
        with np.errstate(all="ignore"):
            now = combine_pairs(run.steps, run.names, run.numbers(layer), now, own)
        run.check(now, layer)
        layers.append(now)
    return [{name: np.asarray(x)[:, 0] for name, x in own.items()} for own in layers]


def _table(run: Run) -> Table:
    return Table({name: run.steps[name] for name in run.names})


def _orders(table: Table) -> tuple[Order, ...]:
    return needed(table.steps, tuple(table.steps))[0]


@lru_cache(maxsize=64)
def _first(table: Table) -> Callable[..., Tensors]:
    def first(values: LayerValues, x: jax.Array, y: jax.Array, same: jax.Array) -> Tensors:
        own = jnp.sum(x * x, axis=1)[:, None]
        gram = jnp.where(same, own, x @ y.T) / x.shape[1]
        return {name: first_kernel(table.steps, name, values, gram) for name in table.steps}

    return jax.jit(first)


@lru_cache(maxsize=64)
def _step(functions: Functions, table: Table) -> Callable[..., Tensors]:
    wanted, names = _orders(table), tuple(table.steps)

    def step(
        plan: PairPlan, values: LayerValues, a: jax.Array, b: jax.Array, same: jax.Array, tensors: Tensors
    ) -> Tensors:
        pairs = Rectangle(a, b, tensors["K"], same)
        return combine_pairs(table.steps, names, values, tensors, plan.rectangle(functions, wanted, pairs, False))

    return jax.jit(step)
