"""The recursions as tables of terms, sums over sample labels not carried out: what a change of basis among the inputs
needs, where sum_g X_g <d_g f> stays as it is while the layer step spells out every label.

A term is (coefficient, components, averages): the coefficient a number and powers of the layer's parameters, a
component (tensor, labels), an average (atoms (label, order), derivatives). Summed labels are "g1", "g2", ....
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy as sp

from derive.codegen.layer import PARAMETERS
from derive.errors import DeriveError
from derive.network import recursion
from derive.network.terms import Average


def terms_source(tensors: Sequence[str]) -> str:
    """The table TERMS: {tensor: (labels, terms)}."""
    lines = ["TERMS: Recursions = {"]
    for name in tensors:
        rule = recursion(name)
        lines += [f'    "{name}": (', f"        {_tuple(rule.labels)},", "        ("]
        for term in rule.terms:
            lines += ["            (", f"                {coefficient_source(term.coefficient)},"]
            lines.append(f"                {_tuple(_quoted(n, labels) for n, labels in term.components)},")
            averages = [_average(average) for average in term.averages]
            line = f"                {_tuple(averages)},"
            if len(line) > 120:
                lines += ["                (", *(f"                    {average}," for average in averages)]
                line = "                ),"
            lines += [line, "            ),"]
        lines += ["        ),", "    ),"]
    return "\n".join([*lines, "}", '"""What each tensor of the next layer is made of."""']) + "\n"


def coefficient_source(coefficient: sp.Expr) -> str:
    """(number, ((parameter, power), ...))."""
    number, rest = coefficient.as_coeff_Mul()
    powers = rest.as_powers_dict() if rest != 1 else {}
    if any(base not in PARAMETERS or not power.is_Integer for base, power in powers.items()):
        raise DeriveError(f"The coefficient {coefficient} is no product of the layer's parameters.")
    names = sorted((str(base), int(power)) for base, power in powers.items())
    shown = [f'("{name}", {power})' for name, power in names]
    return f"({float(sp.Rational(number))!r}, {_tuple(shown)})"


def _average(average: Average) -> str:
    atoms = _tuple(f"({_label(label)}, {order})" for label, order, _ in average.atoms)
    return f"({atoms}, {_tuple(_label(g) for g in average.derivatives)})"


def _quoted(name: str, labels: Sequence[int | str]) -> str:
    return f'("{name}", {_tuple(_label(x) for x in labels)})'


def _label(label: int | str) -> str:
    return f'"{label}"' if isinstance(label, str) else str(label)


def _tuple(items: Iterable[object]) -> str:
    texts = [str(item) for item in items]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
