"""What joined strings leave in TeX, found: the reader that report tests share."""

from __future__ import annotations

import re

_MATH = re.compile(r"\$\$\n(.*?)\n\$\$|\$([^$\n]+)\$", re.S)
RESIDUE = {
    "a name without its backslash": (
        r"(?<![\\A-Za-z])(?:Theta|ell|lambda|chi|kappa|sigma|delta|perp|parallel|psi)(?![a-z])"
    ),
    "SymPy's or Python's text": r"\*\*|\d[eE][+-]?\d|sqrt\(|log\(",
    "two signs": r"[+-]\s+[+-]|\^-\(|\^\{--",
    "a factor or an exponent of one": (
        r"(?<![\d.])1/1(?!\d)|\\frac\{[^{}]*\}\{1\}|(?<![\d.^{])1 (?:[a-zA-Z]_|\\lambda|\\ell)"
    ),
    "a whole number with a point": r"(?<![\d.])\d+\.0(?!\d)",
    "rounding as a term": r"10\^\{-(?:2[2-9]|[3-9]\d|\d{3,})\}",
    "a constant over itself": r"\\frac\{[^{}]*(c_\{[^{}]*\})[^{}]*\}\{[^{}]*\1",
    "a number as the order of a term": r"\\right\|_\{[\d.]+\}",
}


def residue(markdown: str) -> list[str]:
    """Each finding with its surroundings; Python listings are not read."""
    text = re.sub(r"```.*?```", "", markdown, flags=re.S)
    found = []
    for piece in _MATH.finditer(text):
        tex = re.sub(r"\\(?:text|mathrm|operatorname)\{[^{}]*\}", "", piece[1] or piece[2])
        for what, pattern in RESIDUE.items():
            if hit := re.search(pattern, tex):
                found.append(f"{what}: {tex[max(0, hit.start() - 60) : hit.end() + 60]}")
        powers = [int(p) for p in re.findall(r"10\^\{(-?\d+)\}", tex)] + (
            [0] if re.search(r"\d\.\d+ (?!\\cdot)", tex) else []
        )
        if powers and max(powers) - min(powers) >= 16:
            found.append(f"rounding as a term: {tex[:160]}")
    return found
