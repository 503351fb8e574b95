"""Several devices, several processes: the four-point engine's jobs are spread over them with jax.sharding.

A plan's conditioning jobs are independent, so they are split into one part a device (`split`), evaluated under one
`jit` whose leading axis is laid out over the mesh, and summed. Everything else is cheap and done on every device, so
that each process ends up with the whole result. With `jax.distributed` the mesh spans the processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from numeric.brackets import Functions, Plan, unique_quadruples
from numeric.brackets.series.quadruples import ConditionedQuadruples
from numeric.errors import NumericError

AXIS = "jobs"
PER_JOB = ("pairs", "labels", "targets", "options", "slots")


def make_mesh(devices: Sequence[jax.Device]) -> Mesh:
    """A line of devices; their order does not matter."""
    if not isinstance(devices, Sequence) or any(not isinstance(device, jax.Device) for device in devices):
        raise NumericError("devices is a list of some of jax.devices().")
    if not devices:
        raise NumericError("devices is empty: give some of jax.devices().")
    return Mesh(np.asarray(devices), (AXIS,))


def split(plan: Plan, parts: int) -> Plan:
    """The plan with every bucket's jobs arranged as (parts, jobs, ...), NumPy arrays that cost nothing to take apart.

    Idle jobs write to the slot that is dropped.
    """
    if not isinstance(plan.quadruples, ConditionedQuadruples) or not plan.quadruples.buckets:
        return plan
    buckets = []
    for bucket in plan.quadruples.buckets:
        missing = -bucket.pairs.shape[0] % parts
        arrays: dict[str, Any] = {}
        for name in PER_JOB:
            array = np.asarray(getattr(bucket, name))
            padding = np.repeat(array[:1], missing, axis=0)
            if name == "slots":
                padding = np.full_like(padding, _count(plan.quadruples.size))
            array = np.concatenate([array, padding])
            arrays[name] = array.reshape(parts, -1, *array.shape[1:])
        buckets.append(replace(bucket, **arrays))
    return replace(plan, quadruples=replace(plan.quadruples, buckets=tuple(buckets)))


def _count(size: int) -> int:
    """Sorted quadruples of `size` labels."""
    return size * (size + 1) * (size + 2) * (size + 3) // 24


def sharded_unique(
    functions: Functions, K: jax.Array, plan: Plan, patterns: Sequence[tuple[int, ...]], mesh: Mesh
) -> jax.Array:
    """`unique_quadruples` of a split plan, its parts laid out over the mesh."""
    quadruples = plan.quadruples
    assert quadruples is not None
    if not isinstance(quadruples, ConditionedQuadruples) or not quadruples.buckets:  # closed forms: no jobs to spread
        return unique_quadruples(functions, K, quadruples, patterns)
    spread = NamedSharding(mesh, PartitionSpec(AXIS))
    jobs = [{name: getattr(bucket, name) for name in PER_JOB} for bucket in quadruples.buckets]
    jobs = jax.tree_util.tree_map(lambda x: jax.lax.with_sharding_constraint(x, spread), jobs)

    def part(own: list[dict[str, Any]]) -> jax.Array:
        buckets = tuple(replace(b, **arrays) for b, arrays in zip(quadruples.buckets, own))
        return unique_quadruples(functions, K, replace(quadruples, buckets=buckets, nested=()), patterns)

    values = jax.lax.with_sharding_constraint(jax.vmap(part)(jobs), spread).sum(axis=0)
    if quadruples.nested:  # few, and done on every device
        values = values + unique_quadruples(functions, K, replace(quadruples, buckets=()), patterns)
    return values


def everywhere(tree: Any, mesh: Mesh) -> Any:
    """The same values on every device of the mesh, in every process."""
    whole = NamedSharding(mesh, PartitionSpec())
    return jax.tree_util.tree_map(lambda x: jax.device_put(np.asarray(x), whole), tree)


def local(tree: Any) -> Any:
    """This process's copy of replicated arrays, as ordinary arrays on its first device."""
    return jax.tree_util.tree_map(lambda x: jnp.asarray(x.addressable_data(0)), tree)
