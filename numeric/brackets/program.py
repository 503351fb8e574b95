"""A straight-line program of multiply-adds, built in Python and run by a loop: long recursions, small compiled code.

A recursion over thousands of memoized intermediate expectations would unroll into a graph that takes minutes to
compile. Here each intermediate is a row of a register file; an instruction adds number * coefficient * row to a row.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

SHORT = 96  # programs of so few instructions are unrolled: the compiler fuses them

Key = tuple  # what a state or a coefficient is called: its kind first
Term = tuple[float, Key | None, Key]  # number, key of a coefficient (None: one), key of a state


class Program:
    """Collects states on demand: `rule(key)` gives a list of terms, or None if the state is a base value."""

    def __init__(self, rule: Callable[[Key], list[Term] | None]) -> None:
        self.rule = rule
        self.states: dict[Key, int] = {}
        self.coefficients: dict[Key | None, int] = {None: 0}
        self.bases: list[Key] = []
        self.code: list[tuple[int, int, float, int]] = []

    def state(self, key: Key) -> int:
        """The row of a state; emits the code that computes it when it is seen first."""
        if key in self.states:
            return self.states[key]
        terms = self.rule(key)
        if terms is None:
            self.bases.append(key)
            self.states[key] = len(self.states)
            return self.states[key]
        emitted = [(number, self._coefficient(c), self.state(k)) for number, c, k in terms if number]
        row = self.states[key] = len(self.states)
        self.code += [(row, source, number, c) for number, c, source in emitted]
        return row

    def _coefficient(self, key: Key | None) -> int:
        return self.coefficients.setdefault(key, len(self.coefficients))

    def run(self, given: list[Array], values: list[Array], outputs: list[int]) -> list[Array]:
        """The rows `outputs`, from the coefficients (without the leading one) and the base values, whose shapes
        broadcast.
        """
        if len(self.code) <= SHORT or isinstance(values[0], np.ndarray):
            return self._unrolled(given, values, outputs)
        shape = jnp.broadcast_shapes(*(x.shape for x in (*values, *given)))
        bases = jnp.stack([jnp.broadcast_to(x, shape) for x in values])
        start = jnp.zeros((len(self.states), *bases.shape[1:]), bases.dtype)
        start = start.at[np.array([self.states[k] for k in self.bases])].set(bases)
        coefficients = jnp.stack([jnp.ones_like(bases[0]), *(jnp.broadcast_to(x, shape) for x in given)])
        rows, sources, numbers, which = (np.array(column) for column in zip(*self.code))
        code = (
            jnp.asarray(rows.astype(np.int32)),
            jnp.asarray(sources.astype(np.int32)),
            jnp.asarray(numbers, bases.dtype),
            jnp.asarray(which.astype(np.int32)),
        )

        def step(registers: Array, instruction: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
            row, source, number, c = instruction
            return registers.at[row].add(number * coefficients[c] * registers[source]), None

        return list(jax.lax.scan(step, start, code)[0][np.array(outputs)])

    def _unrolled(self, given: list[Array], values: list[Array], outputs: list[int]) -> list[Array]:
        rows = {self.states[key]: values[i] for i, key in enumerate(self.bases)}
        for row, source, number, c in self.code:
            term = number * (rows[source] if c == 0 else given[c - 1] * rows[source])
            rows[row] = rows[row] + term if row in rows else term
        return [rows.get(row, 0 * values[0]) for row in outputs]
