r"""Four-point brackets of activations with a kink: two inputs by nodes of their plane, the others given those.

With the moments C^k_{c,n} of `moments` at the node's conditional mean, and r_cd, which depends on no node,

    <sigma^(i)_a sigma^(j)_b sigma^(k)_c sigma^(l)_d>
        = sum_q w_q sigma^(i)_a sigma^(j)_b sum_n r_cd^n C^k_{c,n} C^l_{d,n}.

Three inputs leave one label with its averages, two leave none; neither takes a series. Orders -k stand for z sigma^(k),
which is what is left of delta functions (`nested.deltas`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numeric.brackets.arrays import loop, module_of, sigma
from numeric.brackets.functions import Functions
from numeric.brackets.kinked.moments import Averages, Kind, Moments, Table, line, products, times_z
from numeric.brackets.kinked.plane import Nodes, Others, Rule, nodes, others, plane
from numeric.brackets.nested.deltas import Component

HOST, COMPILED = 2**20, 2**17  # numbers that a chunk of nodes makes at most, roughly
SHAPES = {3: ((0, 0, 1, 2), (0, 1, 1, 2), (0, 1, 2, 2)), 2: ((0, 0, 0, 1), (0, 0, 1, 1), (0, 1, 1, 1))}
LEFT = ((0, 1, 2), (0, 2, 1), (1, 2, 0))  # of three labels: the pair, and the one that is left


class Setting(NamedTuple):
    """What a job is evaluated with; `scale` is the length on which sigma changes."""

    rule: Rule
    reach: float
    scale: float
    table: Table | None = None


class Split(NamedTuple):
    """Kinds of factors at the pair (a row each) and at what is left (a column each), and where a component stands."""

    a: tuple[Kind, ...]
    b: tuple[Kind, ...]
    rows: tuple[tuple[int, int], ...]  # kinds at a and b
    columns: tuple[Any, ...]
    row: np.ndarray  # (cases, components)
    column: np.ndarray


def _split(cases: list[list[tuple[Kind, Kind, Any]]]) -> Split:
    every = [item for case in cases for item in case]
    a, b = (tuple(sorted({item[i] for item in every})) for i in (0, 1))
    rows = tuple(sorted({(a.index(item[0]), b.index(item[1])) for item in every}))
    columns = tuple(sorted({item[2] for item in every}))
    row = np.array([[rows.index((a.index(x), b.index(y))) for x, y, _ in case] for case in cases])
    return Split(a, b, rows, columns, row, np.array([[columns.index(c) for _, _, c in case] for case in cases]))


@lru_cache(maxsize=64)
def split_four(components: tuple[Component, ...]) -> Split:
    """One case: orders at a, b, c, d."""
    return _split([[((p[0],), (p[1],), (p[2], p[3])) for p in components]])


@lru_cache(maxsize=64)
def split_few(components: tuple[Component, ...], labels: int) -> Split:
    """Cases: three times the shape of the sorted quadruple plus the choice of LEFT; the shape alone for two labels."""

    def kinds(p: Component, shape: tuple[int, ...]) -> list[Kind]:
        return [tuple(sorted(k for k, label in zip(p, shape) if label == i)) for i in range(labels)]

    if labels == 2:
        return _split([[(kinds(p, shape)[0], kinds(p, shape)[1], 0) for p in components] for shape in SHAPES[2]])
    found = []
    for shape in SHAPES[3]:
        own = [kinds(p, shape) for p in components]
        found += [[(label[i], label[j], label[k]) for label in own] for i, j, k in LEFT]
    return _split(found)


class Job(NamedTuple):
    """A pair's plane and the labels given the pair; values of sigma^(k) at both and on the line of the tables."""

    found: Others
    node: Nodes
    line: Array
    values: tuple[dict[int, Array], ...] = ()


def prepared(functions: Functions, setting: Setting, K: Array, pair: Array, labels: Array) -> Job:
    """Where sigma is wanted; with no table there are no labels but the pair's."""
    half = functions.parity != 0
    if setting.table is None:
        own = plane(K, pair[0], pair[1], setting.scale)
        none = module_of(K).zeros((0, 0), K.dtype)
        return Job(Others(none, none, none), nodes(own, setting.rule, setting.reach, half), none)
    found = others(K, pair[0], pair[1], labels)
    own = plane(K, pair[0], pair[1], setting.scale, found)
    return Job(found, nodes(own, setting.rule, setting.reach, half), line(setting.table, found.s))


def evaluated(functions: Functions, components: tuple[Component, ...], jobs: list[Job]) -> list[Job]:
    """The jobs with their values: sigma is called once an order, since every call costs something."""
    orders = {k for p in components for k in p}
    where = [(job.node.a, job.node.b, job.line) for job in jobs]
    xp = module_of(jobs[0].node.w)
    flat = xp.concatenate([z.ravel() for three in where for z in three])
    ends = np.cumsum([z.size for three in where for z in three])[:-1]
    every = range(min(abs(k) for k in orders), max(abs(k) for k in orders) + 1)  # moments follow from order to order
    parts = {k: xp.split(sigma(functions, flat, k), ends) for k in every}
    out = []
    for i, (job, three) in enumerate(zip(jobs, where)):
        values = []
        for j, z in enumerate(three):
            own = {k: part[3 * i + j].reshape(z.shape) for k, part in parts.items()}
            values.append(own | {k: z * own[-k] for k in orders if k < 0})
        out.append(job._replace(values=tuple(values)))
    return out


def _summed(job: Job, split: Split, per_node: int, body: Callable[[Array, Array], Array]) -> Array:
    """The sum of body(what the pair contributes (rows, Q), whitened coordinates (2, Q)) over chunks of the nodes."""
    xp, node = module_of(job.node.w), job.node
    f, g = products(split.a, job.values[0]), products(split.b, job.values[1])
    f = [node.w * value for value in f]
    outer = xp.stack([f[i] * g[j] for i, j in split.rows])
    count = node.w.shape[0]
    most = max((HOST if xp is np else COMPILED) // max(per_node, 1), 64)
    if xp is np:
        size = -(-count // -(-count // most))
        parts = [slice(start, start + size) for start in range(0, count, size)]
        return cast(Array, sum(body(outer[:, part], node.x[:, part]) for part in parts))
    chunks = next(c for c in range(1, count + 1) if count % c == 0 and count // c <= most)
    items = tuple(xp.moveaxis(v.reshape(v.shape[0], chunks, -1), 1, 0) for v in (outer, node.x))
    first = body(items[0][0], items[1][0])
    if chunks == 1:
        return first
    return loop(lambda total, item: (total + body(*item), None), first, tuple(item[1:] for item in items))[0]


def four(components: tuple[Component, ...], setting: Setting, job: Job, targets: Array) -> Array:
    """(T, components) for orders at (a, b, c, d): `targets` (T, 3) are c and d among the job's labels, and the terms
    of their series, which all have those of the table where programs are compiled.
    """
    xp, found = module_of(job.node.w), job.found
    assert setting.table is not None
    split, n = split_four(components), setting.table.n - 1
    orders = sorted({k for column in split.columns for k in column})
    table = Moments(setting.table, max(abs(k) for k in orders), found.s, job.values[2])
    powers = found.r[targets[:, 0], targets[:, 1]][:, None] ** xp.arange(n, dtype=found.r.dtype)[None]
    first, every_order = {k for k, _ in split.columns}, slice(None)

    def body(outer: Array, x: Array) -> Array:
        means = found.loadings.T @ x
        moments = table.at(means)
        every = {k: moments[k][:, :n] if k >= 0 else times_z(moments[-k], means, found.s) for k in orders}

        def one(item: tuple[Array, Array]) -> Array:
            (c, d, length), power = item
            some = slice(int(length)) if xp is np else every_order
            left = {k: power[some, None] * every[k][c][some] for k in first}
            series = [xp.einsum("nq,nq->q", left[k], every[l][d][some]) for k, l in split.columns]
            return outer @ xp.stack(series).T

        if xp is np:
            return cast(Array, np.stack([one(item) for item in zip(targets, powers)]))
        return jax.lax.map(one, (jnp.asarray(targets), powers))

    per_node = len(found.s) * max(setting.table.terms, 4 * n)
    values = _summed(job, split, per_node, body)  # (T, rows, columns)
    return values[:, split.row[0], split.column[0]]


def three(components: tuple[Component, ...], setting: Setting, job: Job, targets: Array) -> Array:
    """(T, components) at the sorted quadruples of three labels, `targets` (T, 3): the label that is left, the case."""
    xp, found = module_of(job.node.w), job.found
    assert setting.table is not None
    split = split_few(components, 3)
    table = Averages(setting.table, split.columns, found.s, job.values[2])

    def body(outer: Array, x: Array) -> Array:
        return outer @ xp.swapaxes(table.at(found.loadings.T @ x), 1, 2)

    per_node = len(found.s) * (setting.table.terms + len(split.columns))
    values = _summed(job, split, per_node, body)  # (M, rows, columns)
    where, case = targets[:, 0], targets[:, 1]
    return values[where[:, None], xp.asarray(split.row)[case], xp.asarray(split.column)[case]]


def two(components: tuple[Component, ...], setting: Setting, job: Job, targets: Array) -> Array:
    """(T, components) at the sorted quadruples of two labels, `targets` (T, 3): nothing, and the case."""
    split = split_few(components, 2)
    values = _summed(job, split, len(split.rows), lambda outer, x: outer.sum(axis=-1))
    return values[module_of(values).asarray(split.row)[targets[:, 1]]]
