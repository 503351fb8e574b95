"""The recursions as products of two maps: what is proved, and that a recursion which is none is refused."""

import pytest

from derive import symbols
from derive.network import pair_factors
from derive.network.pair_factors import FOUR, NotAProduct, kinds, pair_maps, pairs


def test_kinds_follow_from_the_forests():
    assert {name: [str(kind) for kind in kinds(name)] for name in FOUR} == {
        "V": ["00", "00"],
        "D": ["00", "H00"],
        "F": ["10", "10"],
        "A": ["H00", "H00"],
        "B": ["11", "11"],
        "P": ["20", "11"],
        "Q": ["H10", "10"],
        "R": ["H20", "11"],
        "S": ["H11", "11"],
        "T": ["H10", "H10"],
        "U": ["21", "21"],
    }
    assert [name for name in FOUR if pairs(name).centered] == ["V", "D", "A"]


def test_the_pair_without_links_is_the_kernels_linear_response():
    """δK' = C_W (<s1's2'> δK_12 + <s1''s2> δK_11 / 2 + <s1 s2''> δK_22 / 2), and δΘ' likewise: nine terms in all."""
    kernel, ntk = kinds("D")
    assert [str(step) for step in pair_maps()[kernel].steps] == [
        "C_W/2 <s1'' s2> 00 at 11",
        "C_W <s1' s2'> 00 at 12",
        "C_W/2 <s1 s2''> 00 at 22",
    ]
    assert [str(s) for s in pair_maps()[ntk].sources] == ["lambda_W <s1 s2>", "C_W Theta_12 <s1' s2'>"]


def test_a_term_that_is_no_product_is_found(monkeypatch):
    """One coefficient changed in one recursion, and the proof fails."""
    honest = pair_factors._tables

    def wrong(name, layer):
        tables = honest(name, layer)
        if name == "T":
            key = next(iter(tables["step"]))
            tables["step"][key] += symbols.C_W
        return tables

    monkeypatch.setattr(pair_factors, "_tables", wrong)
    pair_maps.cache_clear()
    with pytest.raises(NotAProduct):
        pair_maps()
    pair_maps.cache_clear()
