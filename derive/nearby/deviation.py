r"""Deviations: what a tensor on two nearby inputs x_0 ± delta x/2 adds, order by order in delta, to the tensor at x_0.

For two-index tensors they are taken in the gamma^[a] basis of (10.58)-(10.61), T_{±±} = T_[0] ± T_[1] + T_[2] and
T_{±∓} = T_[0] - T_[2]; exchanging the inputs sends delta to -delta, so that T_[0] and T_[2] are even, T_[1] odd. For
tensors with more indices they are kept on patterns of signs.

>>> Deviation("K", 2, "2"), Deviation("Theta", 1, "1")
(ddK_2, dTheta_1)
>>> on_signs("V", (-1, -1, -1, 1), 1)
-dV_+++-
>>> on_signs("V", (-1, 1, -1, 1), 2) == on_signs("V", (1, -1, 1, -1), 2)
True
"""

from __future__ import annotations

import sympy as sp

from derive.network.component import TENSOR_LATEX, Component, symmetries

MIDPOINT = 0
"""The label of the midpoint input x_0."""
TWO_INDEX = ("Gram", "K", "Theta", "G1", "H1")


class Deviation(Component):
    """delta^order of `tensor`: `part` is "0", "1", "2" in the gamma basis, or a pattern such as "++--"."""

    def __new__(cls, tensor: object, order: object, part: object) -> Deviation:
        return sp.Expr.__new__(cls, sp.Symbol(str(tensor)), sp.sympify(order, strict=True), sp.Symbol(str(part)))

    @property
    def name(self) -> str:
        return "d" * self.order + f"{self.tensor}_{self.part}"

    @property
    def labels(self) -> tuple[sp.Basic, ...]:
        return ()

    @property
    def tensor(self) -> str:
        return self.args[0].name

    @property
    def order(self) -> int:
        return int(self.args[1])

    @property
    def part(self) -> str:
        return self.args[2].name

    def _latex(self, printer: object) -> str:
        symbol, rank = TENSOR_LATEX.get(self.tensor, (self.tensor, ""))
        part = f"[{self.part}]" if self.part.isdigit() else self.part
        upper = f"^{{{rank}}}" if rank else ""
        return r"\delta " * self.order + f"{symbol}{upper}_{{{part}}}"

    def _sympystr(self, printer: object) -> str:
        return self.name


def parts(tensor: str, order: int) -> tuple[Deviation, ...]:
    """The deviations of a two-index tensor at one order of delta."""
    return tuple(Deviation(tensor, order, part) for part in ("02" if order % 2 == 0 else "1"))


def on_signs(tensor: str, signs: tuple[int, ...], order: int) -> sp.Expr:
    """delta^order of a component with its inputs at the given signs, in canonical form."""
    if order == 0:
        return Component(tensor, *([MIDPOINT] * len(signs)))
    if tensor in TWO_INDEX:
        equal = signs[0] == signs[1]
        if order % 2:
            return signs[0] * Deviation(tensor, order, "1") if equal else sp.S.Zero
        even, odd = parts(tensor, order)
        if tensor == "Gram":
            even = sp.S.Zero if order == 2 else even
        return even + odd if equal else even - odd
    orbit = [(tuple(signs[k] * flip for k in g), flip) for g in symmetries(tensor) for flip in (1, -1)]
    best = max(pattern for pattern, _ in orbit)
    flips = {flip for pattern, flip in orbit if pattern == best}
    if flips == {1, -1} and order % 2:
        return sp.S.Zero
    name = "".join("+" if s > 0 else "-" for s in best)
    return (flips.pop() if len(flips) == 1 else 1) ** order * Deviation(tensor, order, name)


def on_line(tensor: str, places: tuple[sp.Expr, ...], order: int) -> sp.Expr:
    """delta^order of a two-index component with inputs x_0 + p dx/2, the p any numbers: sum_{m+n=order} T_mn p^m q^n.

    >>> p, q = sp.symbols("p q")
    >>> on_line("Theta", (p, q), 2)
    p**2*ddTheta_20 + p*q*ddTheta_11 + q**2*ddTheta_20
    """
    if order == 0:
        return Component(tensor, MIDPOINT, MIDPOINT)
    first, second = places
    return sp.Add(
        *(
            Deviation(tensor, order, f"{max(m, order - m)}{min(m, order - m)}") * first**m * second ** (order - m)
            for m in range(order + 1)
        )
    )


def line_coefficients(tensor: str, order: int) -> dict[sp.Expr, sp.Expr]:
    """The coefficients on the line through x_± in the basis of signs, where those fix them (orders 1 and 2): (10.110).

    >>> line_coefficients("Theta", 2)
    {ddTheta_11: ddTheta_2, ddTheta_20: ddTheta_0/2}
    """
    pairs = [(sp.Integer(p), sp.Integer(q)) for p, q in ((1, 1), (1, -1))]
    conditions = [
        on_line(tensor, pair, order) - on_signs(tensor, (int(pair[0]), int(pair[1])), order) for pair in pairs
    ]
    unknown = sorted(on_line(tensor, sp.symbols("p q"), order).atoms(Deviation), key=str)
    names = {c: sp.Symbol(str(c)) for e in conditions for c in e.atoms(Deviation)}
    back = {name: c for c, name in names.items()}
    (found,) = sp.solve([e.xreplace(names) for e in conditions], [names[c] for c in unknown], dict=True)
    return {back[name]: value.xreplace(back) for name, value in found.items()}


def deviate(tensor: str, places: tuple[sp.Expr, ...], order: int) -> sp.Expr:
    """delta^order of a component: in the basis of signs where all inputs are x_±, on the line otherwise."""
    if all(place in (1, -1) for place in places):
        return on_signs(tensor, tuple(int(place) for place in places), order)
    return on_line(tensor, places, order)
