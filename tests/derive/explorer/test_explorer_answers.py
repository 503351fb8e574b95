"""What the explorer shows, against things that share no code with it: sampled networks, refusals, the formulas' own."""

from __future__ import annotations

import json

import numpy as np
import pytest

import derive
from derive.critical.phase_diagram import CHAOTIC, ORDERED, UNBOUNDED, phase_diagram
from derive.explorer.answers import PARTS, Question, answer
from derive.explorer.guard import HEADER, refusal


def test_the_band_holds_what_sampled_networks_do():
    """Mean and s.d. over networks of a layer's mean square: K + G1/n and sqrt((V + 2 K^2)/n), the page's band."""
    n, networks, depth = 48, 6000, 5
    found = answer("depth", Question("tanh", depth, C_b=0.1, C_W=1.4, input_norm=0.8))
    rng = np.random.default_rng(2026)
    z = np.sqrt(0.1 + 1.4 * 0.8) * rng.standard_normal((networks, n))
    for layer in range(depth):
        if layer:
            weights = rng.standard_normal((networks, n, n), dtype=np.float32) * np.sqrt(1.4 / n)
            z = np.einsum("kij,kj->ki", weights, np.tanh(z)) + np.sqrt(0.1) * rng.standard_normal((networks, n))
        square = (z**2).mean(axis=1)
        K, G1, V = (found[name][layer] for name in ("K", "G1", "V"))
        deviation = square.std(ddof=1)
        predicted = np.sqrt((V + 2 * K**2) / n)
        assert abs(square.mean() - (K + G1 / n)) < 4 * deviation / np.sqrt(networks) + 2 * K / n**2
        kurtosis = ((square - square.mean()) ** 4).mean() / deviation**4
        error = np.sqrt((kurtosis - 1) / networks) / 2  # relative, of the standard deviation
        assert abs(deviation / predicted - 1) < 4 * error + 2 / n


def test_phases_are_what_the_kernel_does():
    """Iterating K' = C_b + C_W <ss> by Monte Carlo-free sums, at points of the diagram of tanh."""
    found = phase_diagram(derive.criticality("tanh"))
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    rng = np.random.default_rng(5)
    for _ in range(60):
        i, j = rng.integers(0, len(found.biases)), rng.integers(0, len(found.weights))
        K = 1.0
        for _ in range(3000):
            K = found.biases[i] + found.weights[j] * weights @ np.tanh(np.sqrt(K) * nodes) ** 2
        slope = found.weights[j] * weights @ np.cosh(np.sqrt(K) * nodes) ** -4.0
        if abs(slope - 1) > 0.03:
            assert found.phase[i, j] == (CHAOTIC if slope > 1 else ORDERED)
    relu = phase_diagram(derive.criticality("relu"))
    assert relu.phase[0, -1] == UNBOUNDED and relu.phase[0, 10] == ORDERED


def test_every_part_is_json_and_says_what_fails():
    for part in PARTS:
        if part != "report":
            json.dumps(answer(part, Question("relu", 8)), allow_nan=False)
    with pytest.raises(derive.DeriveError, match="no part"):
        answer("__import__", Question("relu"))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"activation": " "},
        {"activation": "tanh", "depth": "0"},
        {"activation": "tanh", "depth": "1e9"},
        {"activation": "tanh", "depth": "²"},
        {"activation": "tanh", "C_W": "1"},
        {"activation": "tanh", "C_W": "nan", "C_b": "0"},
        {"activation": "tanh", "C_W": "-1", "C_b": "0"},
        {"activation": "tanh", "C_W": "9e99", "C_b": "0"},
        {"activation": "tanh", "C_W": "__import__('os')", "C_b": "0"},
        {"activation": "tanh", "C_W": "1" * 100, "C_b": "0"},
    ],
)
def test_questions_that_cannot_be_meant(given):
    with pytest.raises(derive.DeriveError):
        Question.of(given)


@pytest.mark.parametrize(
    "text", ["__import__('os').getpid()", "tahn(z", "z.__class__", "<script>alert(1)</script>", "z+y"]
)
def test_formulas_go_through_the_whitelist(text):
    with pytest.raises(derive.DeriveError):
        answer("activation", Question(text))


OWN = {"Host": "127.0.0.1:8642", HEADER: "1"}


@pytest.mark.parametrize(
    ("headers", "asks", "allowed"),
    [
        (OWN, True, True),
        (
            {**OWN, "Host": "localhost:8642", "Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8642"},
            True,
            True,
        ),
        ({"Host": "127.0.0.1:8642", "Sec-Fetch-Site": "cross-site"}, False, True),  # a link to the page is harmless
        ({**OWN, "Host": "evil.example:8642"}, True, False),  # DNS rebinding
        ({**OWN, "Host": "evil.example:8642"}, False, False),
        ({**OWN, "Host": "127.0.0.1:80"}, True, False),
        ({**OWN, "Host": "127.0.0.1.evil.example:8642"}, True, False),
        ({HEADER: "1"}, True, False),
        ({**OWN, "Origin": "http://evil.example"}, True, False),
        ({**OWN, "Origin": "null"}, True, False),
        ({**OWN, "Sec-Fetch-Site": "cross-site"}, True, False),
        ({**OWN, "Sec-Fetch-Site": "same-site"}, True, False),
        ({"Host": "127.0.0.1:8642"}, True, False),
    ],
)
def test_who_may_ask(headers, asks, allowed):
    assert (refusal(headers, 8642, asks) is None) == allowed
