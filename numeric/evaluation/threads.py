"""The four-point engine's jobs on several threads: XLA runs a program of many small products on one core.

A plan's conditioning jobs are independent. They are split into parts of one shape (`devices.split`), one program
serves all of them, and threads of Python call it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax

from numeric.brackets import Functions, Pattern, Plan, QuadruplePlan, unique_quadruples
from numeric.brackets.series.quadruples import ConditionedQuadruples
from numeric.evaluation.devices import PER_JOB, split
from numeric.runtime import in_threads


def parts_of(plan: Plan, K: jax.Array, threads: int) -> int:
    """Into how many parts the plan's jobs are split: a thread for each; one where there is nothing to gain."""
    own = plan.quadruples
    if not isinstance(own, ConditionedQuadruples) or not own.buckets or isinstance(K, jax.core.Tracer):
        return 1
    if any(device.platform != "cpu" for device in K.devices()):
        return 1
    return max(1, min(threads, max(len(bucket.pairs) for bucket in own.buckets)))


def unique_in_threads(
    functions: Functions, plan: Plan, K: jax.Array, patterns: tuple[Pattern, ...], parts: int
) -> jax.Array:
    """`unique_quadruples`, the jobs of the series in `parts`."""
    quadruples = split(plan, parts).quadruples
    assert isinstance(quadruples, ConditionedQuadruples)
    program, (device,) = _part(functions, patterns), K.devices()

    def run(own: QuadruplePlan) -> jax.Array:
        with jax.default_device(device):  # a setting of each thread
            return jax.block_until_ready(program(own, K))

    several = [replace(quadruples, buckets=_buckets(quadruples, k), nested=()) for k in range(parts)]
    shape = (
        program,
        jax.tree_util.tree_structure(several[0]),
        *(x.shape for x in jax.tree_util.tree_leaves(several[0])),
    )
    found = []
    if shape not in _compiled:  # threads that begin together would all compile
        found.append(run(several.pop(0)))
        _compiled.add(shape)
    if quadruples.nested:
        found.append(run(replace(quadruples, buckets=())))
    found += in_threads(run, several)
    total = found[0]
    for other in found[1:]:
        total = total + other
    return total


_compiled: set[tuple[Any, ...]] = set()


def _buckets(quadruples: ConditionedQuadruples, part: int) -> tuple[Any, ...]:
    return tuple(
        replace(bucket, **{name: getattr(bucket, name)[part] for name in PER_JOB}) for bucket in quadruples.buckets
    )


@lru_cache(maxsize=256)
def _part(functions: Functions, patterns: tuple[Pattern, ...]) -> Callable[[QuadruplePlan, jax.Array], jax.Array]:
    def part(quadruples: QuadruplePlan, K: jax.Array) -> jax.Array:
        return unique_quadruples(functions, K, quadruples, patterns)

    return jax.jit(part)
