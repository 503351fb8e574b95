"""Gaussian brackets of an activation in JAX, for all pairs and all quadruples of inputs.

    functions = Functions("tanh", derivatives, parity=-1)           # what a generated module provides
    plan = make_plan(functions, K, tolerance=1e-10, highest_order=5)   # on the host, from concrete numbers
    pair_brackets(functions, K, [(0, 0), (1, 1)], plan.pairs)       # {(j, k): (N, N)}
    quadruple_brackets(functions, K, plan.quadruples)               # {pattern: (N, N, N, N)}
    u = unique_quadruples(functions, K, plan.quadruples)            # the stored form, a few thousand times smaller
    block(u, PATTERNS, (0, 0, 1, 1), N, a, b)                       # (P, N, N): rows of a tensor for label pairs

Plans are pytrees: pass them to jitted functions as ordinary arguments (same sizes, same compiled code). Everything
but making a plan can be jitted, mapped over K and differentiated with respect to K, also where K is singular.

Each calculus is a class in a file or folder of its own (`series`, `erf`, `linear`, `exponential`, `polynomial`,
`kinked`, `nested`) with its plans, whose methods evaluate; `choose` asks them in turn.
"""

from __future__ import annotations

from numeric.brackets.calculus import (
    Calculus,
    Order,
    PairPlan,
    PairQuestion,
    QuadruplePlan,
    QuadrupleQuestion,
    Rectangle,
)
from numeric.brackets.choose import (
    Plan,
    better_alone,
    make_pair_plan,
    make_plan,
    make_quadruple_plan,
    needs_no_plan,
    plan_pairs_of,
    second_route,
)
from numeric.brackets.closed import elementwise
from numeric.brackets.erf import Erf
from numeric.brackets.exponential import Exponentials
from numeric.brackets.functions import Functions
from numeric.brackets.kernels import Kernels
from numeric.brackets.kinked import Kinked
from numeric.brackets.linear import PiecewiseLinear
from numeric.brackets.pairs import pair_brackets
from numeric.brackets.patterns import PATTERNS, Pattern, arrangements, sorted_quadruples
from numeric.brackets.polynomial import Polynomial
from numeric.brackets.quadruples import quadruple_brackets, unique_quadruples
from numeric.brackets.storage import block, each_quadruple, entries, quadruple_slots, tensor

__all__ = [
    "PATTERNS",
    "Calculus",
    "Erf",
    "Exponentials",
    "Functions",
    "Kernels",
    "Kinked",
    "Order",
    "PairPlan",
    "PairQuestion",
    "Pattern",
    "PiecewiseLinear",
    "Plan",
    "Polynomial",
    "QuadruplePlan",
    "QuadrupleQuestion",
    "Rectangle",
    "arrangements",
    "better_alone",
    "block",
    "each_quadruple",
    "elementwise",
    "entries",
    "make_pair_plan",
    "make_plan",
    "make_quadruple_plan",
    "needs_no_plan",
    "pair_brackets",
    "plan_pairs_of",
    "quadruple_brackets",
    "quadruple_slots",
    "second_route",
    "sorted_quadruples",
    "tensor",
    "unique_quadruples",
]
