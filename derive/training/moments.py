r"""Gaussian moments of training errors, as they meet the Kronecker deltas of a cumulant: Wick's theorem with labels.

An initial error ε = z - y has mean -y and covariance δ_ij K_ab; a `leg` is a slot of a cumulant that takes a z (or the
fluctuation of an NTK) from it, so that it pairs with an error or with another leg by δ_ij δ_ab and has no mean. In a
cumulant of four slots one pairing joins the external slot to one of the three others, the `carrier` of its component,
and the other two to each other: a sum over their component.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ERROR, LEG = "error", "leg"


@dataclass(frozen=True)
class WickTerm:
    """sign × n^loops × Π y[component, mode] × Π K[mode, mode] × Π δ[mode, mode] × Π δ[component, component]."""

    sign: int
    loops: int
    targets: tuple[tuple[str, str], ...]
    kernels: tuple[str, ...]
    deltas: tuple[str, ...]
    components: tuple[str, ...] = ()


def matchings(slots: tuple[int, ...], single: frozenset[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All ways to leave slots of `single` alone and to pair the others."""
    if not slots:
        yield ()
        return
    first, rest = slots[0], slots[1:]
    if first in single:
        for tail in matchings(rest, single):
            yield ((first,), *tail)
    for k, other in enumerate(rest):
        for tail in matchings((*rest[:k], *rest[k + 1 :]), single):
            yield ((first, other), *tail)


def wick(kinds: tuple[str, ...], components: str, modes: str = "abcd") -> list[WickTerm]:
    """E of a product of errors and legs whose components are named by letters; a repeated letter is summed.

    >>> [(t.sign, t.loops, t.targets, t.kernels) for t in wick((ERROR, ERROR), "jk")]
    [(1, 0, (('j', 'a'), ('k', 'b')), ()), (1, 0, (), ('ab',))]
    >>> sorted((t.loops, t.targets) for t in wick((ERROR, ERROR, ERROR), "ijj") if t.kernels)
    [(0, (('i', 'b'),)), (0, (('i', 'c'),)), (1, (('i', 'a'),))]
    """
    found = []
    errors = frozenset(k for k, kind in enumerate(kinds) if kind == ERROR)
    for matching in matchings(tuple(range(len(kinds))), errors):
        names = list(components)
        pairs = [pair for pair in matching if len(pair) == 2]
        joined = [{i, j} for i, j in pairs] + [
            {k for k, letter in enumerate(components) if letter == name} for name in dict.fromkeys(components)
        ]
        groups: list[set[int]] = []
        for group in joined:
            touching = [g for g in groups if g & group]
            groups = [g for g in groups if not g & group] + [set().union(group, *touching)]
        loops, same = 0, []
        for group in groups:
            free = [components[k] for k in sorted(group) if components.count(components[k]) == 1]
            alone = [k for k in group if (k,) in matching]
            name = free[0] if free else components[min(group)]
            loops += not free and not alone
            same += [name + other for other in free[1:]]
            for k in group:
                names[k] = name
        singles = [pair[0] for pair in matching if len(pair) == 1]
        both = [(pair, LEG in (kinds[pair[0]], kinds[pair[1]])) for pair in pairs]
        found.append(
            WickTerm(
                (-1) ** len(singles),
                loops,
                tuple((names[k], modes[k]) for k in singles),
                tuple(modes[i] + modes[j] for (i, j), leg in both if not leg),
                tuple(modes[i] + modes[j] for (i, j), leg in both if leg),
                tuple(same),
            )
        )
    return found


def carried(kinds: tuple[str, ...], carrier: int) -> list[WickTerm]:
    """`wick` of three slots, the component i in slot `carrier`, the other two summed together."""
    return wick(kinds, "".join("i" if slot == carrier else "j" for slot in range(len(kinds))))
