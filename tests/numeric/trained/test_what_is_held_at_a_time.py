"""Finite width in little memory: test inputs in portions, tensors kept or not, no answers at the end of training."""

from __future__ import annotations

import numpy as np
import pytest
from random_statistics import random_flow

from numeric.trained import GradientDescent, finite
from numeric.trained.finite import FiniteWidth
from numeric.trained.infinite import kernel_prediction
from numeric.trained.projectors import Projectors

SIZE, OUTPUTS, TRAIN = 4, 3, [3, 0]
F = random_flow(SIZE, seed=8)
KERNEL = kernel_prediction(F.Theta, F.K, np.random.default_rng(3).normal(size=(2, OUTPUTS)), TRAIN)


class NoAnswers(Projectors):
    """Projectors that have no answers, which are arrays of one mode more than the weights."""

    def answer(self, name, modes=None):
        raise AssertionError(f"an answer to {name} has been asked for")


def corrections(t, kind=Projectors) -> FiniteWidth:
    return FiniteWidth(F, KERNEL, kind(GradientDescent(0.1), KERNEL.modes.h, t))


def test_moments_of_a_few_test_inputs_at_a_time(monkeypatch):
    """The moments of one test input are outputs² N³ numbers at most: as many inputs as CHUNK allows, one at least."""
    whole, seen = corrections(2.0).covariance(), []
    slope = FiniteWidth._slope
    monkeypatch.setattr(FiniteWidth, "_slope", lambda self, v: seen.append(len(v) // OUTPUTS) or slope(self, v))
    one = OUTPUTS**2 * SIZE**3
    for held, portions in ((4 * one, [4]), (4 * one - 1, [3, 1]), (2 * one, [2, 2]), (1, [1, 1, 1, 1])):
        monkeypatch.setattr(finite, "CHUNK", held)
        seen.clear()
        assert np.abs(corrections(2.0).covariance() - whole).max() < 1e-11 * np.abs(whole).max()
        assert seen == portions
    seen.clear()
    corrections(None).covariance()
    assert seen == [1, 1]  # what training has undone is not computed


def test_small_tensors_are_turned_to_the_modes_once(monkeypatch):
    read = corrections(2.0)._read
    turned = read("F", "mxmm")
    U = KERNEL.modes.U
    block = F.F[np.ix_(TRAIN, range(SIZE), TRAIN, TRAIN)]
    assert turned == pytest.approx(np.einsum("axbc,am,bn,co->mxno", block, U, U, U))
    assert read("F", "mxmm") is turned and read("F", "xxxx") is F.F
    for held, kept in ((turned.size, True), (turned.size - 1, False)):
        monkeypatch.setattr(finite, "CHUNK", held)
        read = corrections(2.0)._read
        assert (read("F", "mxmm") is read("F", "mxmm")) == kept


def test_training_that_has_ended_needs_no_answers():
    """The end leaves nothing on the training inputs, so that answers are not made; at a time they are."""
    ended = corrections(None, NoAnswers)
    assert ended.ended and not corrections(2.0).ended
    assert np.abs(ended.covariance()[:, :, TRAIN]).max() < 1e-9
    assert max(np.abs(part[:, TRAIN]).max() for part in ended.mean_parts.values()) < 1e-9
    with pytest.raises(AssertionError, match="an answer to force"):
        _ = corrections(2.0, NoAnswers).mean_parts


def test_a_time_that_is_an_array_of_one_number():
    plain, zero, one = (corrections(t).mean_parts for t in (2.0, np.array(2.0), np.array([2.0])))
    for name, part in plain.items():
        assert zero[name].shape == (OUTPUTS, SIZE) and one[name].shape == (1, OUTPUTS, SIZE)
        assert zero[name] == pytest.approx(part) and one[name][0] == pytest.approx(part)
