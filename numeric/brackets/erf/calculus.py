"""sigma(z) = p(z) + q(z) Phi(scale z), as gelu and erf: the calculus, its plans and where it loses digits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
from jax import Array

from numeric.brackets.arrays import module_of
from numeric.brackets.calculus import (
    Calculus,
    Order,
    PairPlan,
    PairQuestion,
    QuadruplePlan,
    QuadrupleQuestion,
    Rectangle,
)
from numeric.brackets.close import ClosePairs, at_one_input, no_close_pairs, plan_close
from numeric.brackets.closed import elementwise
from numeric.brackets.erf.stein import Form, stein_brackets
from numeric.brackets.functions import Functions
from numeric.brackets.nested import affordable, plan_all
from numeric.brackets.patterns import Pattern
from numeric.brackets.rules import converged_step
from numeric.brackets.signrule import Rule, sign_rule
from numeric.brackets.storage import each_quadruple

LARGE = 50.0  # variance of scale z from which pairs with powers of z cancel
FEW = 256  # how many such pairs go another way
PARALLEL = 0.98  # correlation from which they cancel
CANCELLING = 30.0  # variance of scale z from which quadruples with powers of z cost too many digits


@dataclass(frozen=True)
class Erf(Calculus):
    """sigma(z) = p(z) + q(z) Phi(scale z), polynomials as tuples of coefficients, constant first.

    gelu: Erf((), (0, 1), 1.0); erf: Erf((-1,), (2,), sqrt(2)).
    """

    p: tuple[float, ...]
    q: tuple[float, ...]
    scale: float

    @property
    def form(self) -> Form:
        return self.p, self.q, self.scale

    def _powers(self) -> bool:
        """Whether powers of z stand beside Phi: they cancel at large variances."""
        return len(self.q) > 1

    def length(self) -> float:
        return 1 / self.scale

    def unplanned(self) -> float:
        return LARGE / self.scale**2 if self._powers() else float("inf")

    def plan_pairs(self, functions: Functions, question: PairQuestion) -> PairPlan:
        plan = ErfPairs(jnp.asarray(1e-15), no_close_pairs(), self.form)
        if question.variance <= self.unplanned():
            return plan
        # nearly parallel inputs of large variance: the diagonal and a few pairs by quadrature
        cancel = question.kernels.correlations > PARALLEL
        few = len(question.kernels.pairs(cancel)[0]) <= FEW
        step = converged_step(functions, [(k, k) for k in question.orders], question.variance, question.tolerance)
        close = plan_close(functions, question, cancel & few, step)
        return replace(plan, tail=jnp.asarray(1e-15 if few else 1e-10), close=close)

    def plan_quadruples(self, functions: Functions, question: QuadrupleQuestion) -> QuadruplePlan:
        sharpness = question.variance * self.scale**2
        if self._powers() and sharpness > CANCELLING and affordable(question.size):
            return plan_all(functions, question)
        rule, error = sign_rule(question.K, question.tolerance, self.scale**-2.0)
        if self._powers():
            error = jnp.maximum(error, 4e-14 * sharpness**3)
        return ErfQuadruples(rule, error, question.size, self.form)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ErfPairs(PairPlan):
    """The closed form; `close` are pairs that it would cost digits, and the rule for single inputs there."""

    tail: Array
    close: ClosePairs
    form: Form = field(metadata={"static": True})
    on_host = True

    def single(self, functions: Functions, orders: tuple[Order, ...], variances: Array) -> dict[Order, Array]:
        if self.close.nodes[0].shape[0] > 1:
            return at_one_input(functions, orders, variances, self.close.nodes[0], self.close.steps[0])
        none = module_of(variances).zeros(0, variances.dtype)
        return dict(zip(orders, stein_brackets(self.form, orders, [[variances] * 2] * 2, none, none)))

    def rectangle(
        self, functions: Functions, orders: tuple[Order, ...], pairs: Rectangle, symmetric: bool
    ) -> dict[Order, Array]:
        xp = module_of(pairs.c)
        none = xp.zeros(0, pairs.c.dtype)

        def closed(orders: tuple[Order, ...], a: Array, b: Array, c: Array, same: Array) -> list[Array]:
            c = xp.where(same, a, c)
            return stein_brackets(self.form, orders, [[a, c], [c, b]], none, none)

        found = elementwise(closed, orders, pairs, symmetric)
        if self.close.nodes[0].shape[0] == 1:
            return found
        single = at_one_input(functions, orders, pairs.a, self.close.nodes[0], self.close.steps[0])
        found = {order: xp.where(pairs.same, single[order][:, None], value) for order, value in found.items()}
        return self.close.put_in(functions, found, pairs, symmetric)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ErfQuadruples(QuadruplePlan):
    """The rule for the one integral that is left."""

    rule: Rule
    error: Array
    size: int = field(metadata={"static": True})
    form: Form = field(metadata={"static": True})
    on_host = True

    def unique(self, functions: Functions, components: tuple[Pattern, ...], K: Array) -> Array:
        rule = tuple(x.astype(K.dtype) for x in self.rule)
        return each_quadruple(
            lambda piece: module_of(K).stack(stein_brackets(self.form, components, piece, *rule)), K, self.size
        )

    def rounding(self, variance: float) -> float:
        return 1 + self.form[2] ** 2 * variance  # steep ones, of large inputs, are steps: their terms cancel
