"""One layer step, compiled: brackets first, then the recursions, in one go or block by block over rows of the tensors.

Brackets and recursions are separate programs: the recursions' one knows nothing of the activation, so that it is
compiled once for a number of inputs. In blocks only a few rows' temporaries exist beside the tensors of the two layers
and the unique quadruples; the new tensors are written in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from numeric.brackets import Functions, Order, Pattern, Plan
from numeric.evaluation.bracket_tables import brackets as all_brackets
from numeric.evaluation.bracket_tables import rounded_pairs
from numeric.evaluation.devices import everywhere, local, split
from numeric.evaluation.host import host_is_faster, host_pairs, host_unique
from numeric.evaluation.layer import Tensors, combine, combine_rows, needed
from numeric.evaluation.threads import parts_of, unique_in_threads
from numeric.subscripts import Rows, Steps, Values

Pairs = dict[Order, jax.Array]
Tick = Callable[[float], None]


class Table:
    """A generated table of steps as a static argument of compiled functions: compared by the functions in it."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.key = tuple((name, step.advance) for name, step in steps.items())

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.key == other.key


def layer_step(
    functions: Functions,
    table: Table,
    names: tuple[str, ...],
    plan: Plan,
    values: Values,
    tensors: Tensors,
    rows: int,
    mesh: Mesh | None = None,
    tick: Tick = lambda part: None,
    roundings: Sequence[Callable[[jax.Array], jax.Array]] = (),
    brackets: dict[str, Any] | None = None,
    smallest: bool = False,
    threads: int = 1,
) -> Tensors:
    """All tensors of the next layer, `rows` rows of the four-point ones at a time; `tick` hears of each part done.

    With `roundings` of the brackets, the largest (or smallest) value of each entry that they lead to (where
    all rows are computed at once; in blocks, of the first). `brackets` keeps what was integrated, for another step from
    the same kernel. `threads` of Python share the four-point brackets.
    """
    pairs, quads = needed(table.steps, names)
    kept = {} if brackets is None else brackets
    if not kept:
        if mesh is None and quads and host_is_faster(plan, tensors["K"]):
            K = np.asarray(tensors["K"])
            if len(K) <= plan.pairs.most_on_host:
                kept["two"] = host_pairs(functions, plan, K, pairs)
            else:
                kept["two"], _ = _brackets(functions, pairs, (), None)(replace(plan, quadruples=None), tensors["K"])
            kept["four"] = jnp.asarray(host_unique(functions, plan, K, quads))
        elif mesh is None and quads and (parts := parts_of(plan, tensors["K"], threads)) > 1:
            kept["two"], _ = _brackets(functions, pairs, (), None)(replace(plan, quadruples=None), tensors["K"])
            kept["four"] = unique_in_threads(functions, plan, tensors["K"], quads, parts)
        elif mesh is None:
            kept["two"], kept["four"] = _brackets(functions, pairs, quads, mesh)(plan, tensors["K"])
        else:
            program = _brackets(functions, pairs, quads, mesh)
            whole_plan = everywhere((split(plan, mesh.size), tensors["K"]), mesh)
            kept["two"], kept["four"] = local(program(*whole_plan))
    two, four = kept["two"], kept["four"]
    size = tensors["K"].shape[0]
    moved = [(two, four)]
    if four is not None and roundings:
        moved = [(rounded_pairs(two, rounded), rounded(four)) for rounded in roundings]
    if four is None or rows >= size:
        whole = _whole(table, names, quads)
        found = [whole(values, tensors, *variant) for variant in moved]
        tick(1.0)
        pick = jnp.min if smallest else jnp.max
        return {n: pick(jnp.stack([new[n] for new in found]), axis=0) for n in names} if found[1:] else found[0]
    two, four = moved[0]
    flat = tuple(name for name in names if table.steps[name].rank != 4)
    large = tuple(name for name in names if table.steps[name].rank == 4)
    out = {name: jnp.zeros_like(tensors[name]) for name in large}
    block = _block(table, large, quads, rows)
    starts = [*range(0, size - rows, rows), size - rows]
    for start in starts:
        out = jax.block_until_ready(block(out, values, tensors, two, four, jnp.asarray(start)))
        tick(1 / len(starts))
    every = out | _whole(table, flat, quads)(values, tensors, two, four)
    return {name: every[name] for name in names}


@lru_cache(maxsize=256)
def _brackets(
    functions: Functions, pairs: tuple[Order, ...], quads: tuple[Pattern, ...], mesh: Mesh | None
) -> Callable[[Plan, jax.Array], tuple[Pairs, jax.Array | None]]:
    def layer_brackets(plan: Plan, K: jax.Array) -> tuple[Pairs, jax.Array | None]:
        return all_brackets(functions, plan, K, pairs, quads, mesh)

    return jax.jit(layer_brackets, out_shardings=NamedSharding(mesh, PartitionSpec()) if mesh is not None else None)


@lru_cache(maxsize=256)
def _whole(table: Table, names: tuple[str, ...], quads: tuple[Pattern, ...]) -> Callable[..., Tensors]:
    def recursions(values: Values, tensors: Tensors, pairs: Pairs, unique: jax.Array | None) -> Tensors:
        return combine(table.steps, names, values, tensors, pairs, unique, quads)

    return jax.jit(recursions)


@lru_cache(maxsize=256)
def _block(table: Table, names: tuple[str, ...], quads: tuple[Pattern, ...], count: int) -> Callable[..., Tensors]:
    def recursions_on_rows(
        out: Tensors, values: Values, tensors: Tensors, pairs: Pairs, unique: jax.Array, start: jax.Array
    ) -> Tensors:
        new = combine_rows(table.steps, names, values, tensors, pairs, unique, quads, Rows(start, count))
        return {name: jax.lax.dynamic_update_slice_in_dim(out[name], new[name], start, 0) for name in names}

    return jax.jit(recursions_on_rows, donate_argnums=0)
