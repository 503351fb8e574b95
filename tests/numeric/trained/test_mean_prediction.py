"""Mean and covariance at order 1/n by brute force over full index arrays, and what the seed prints."""

from __future__ import annotations

import numpy as np
import pytest
from printed_equations import mean_as_printed, projectors
from random_statistics import joint, random_flow

from numeric.trained.algorithms import GradientDescent, GradientFlow
from numeric.trained.finite import FiniteWidth
from numeric.trained.infinite import kernel_prediction
from numeric.trained.projectors import Projectors

TRAIN = [3, 0, 1]


@pytest.fixture(scope="module")
def setting():
    flow = random_flow()
    y = np.random.default_rng(1).normal(size=(3, 2))
    kernel = kernel_prediction(flow.Theta, flow.K, y, TRAIN)
    eta = 0.7 / kernel.modes.h[-1]
    finite = FiniteWidth(flow, kernel, Projectors(GradientDescent(eta), kernel.modes.h))
    H = flow.Theta[np.ix_(TRAIN, TRAIN)]
    return flow, y, kernel, finite, H, projectors(H, eta)


def in_samples(kernel, Z):
    U = kernel.modes.U
    return (
        np.einsum("am,bn,mn,cm,dn->abcd", U, U, Z, U, U)
        if Z.ndim == 2
        else np.einsum("am,bn,co,mno,dm,en,fo->abcdef", U, U, U, Z, U, U, U, optimize=True)
    )


@pytest.mark.equation("infinity.107")
@pytest.mark.equation("infinity.110")
@pytest.mark.equation("infinity.135")
@pytest.mark.equation("infinity.138")
@pytest.mark.equation("infinity.139")
@pytest.mark.equation("infinity.140")
@pytest.mark.equation("infinity.142")
@pytest.mark.equation("infinity.143")
@pytest.mark.equation("infinity.144")
@pytest.mark.equation("infinity.145")
@pytest.mark.equation("infinity.146")
@pytest.mark.equation("infinity.147")
@pytest.mark.equation("infinity.152")
@pytest.mark.equation("infinity.153")
@pytest.mark.parametrize("algorithm", ["descent", "flow"])
def test_projectors_are_the_printed_ones(setting, algorithm):
    """The seed's sample-space tensors equal ours after the symmetrization that the contracted tensors permit."""
    _, _, kernel, finite, H, _ = setting
    eta = finite.projectors.algorithm.eta if algorithm == "descent" else 0.0
    printed = projectors(H, eta)
    ours = finite.projectors if algorithm == "descent" else Projectors(GradientFlow(), kernel.modes.h)
    symmetrize = {
        "Z_A": [(0, 1, 2, 3)],
        "Z_B": [(0, 1, 2, 3), (1, 0, 3, 2)],
        "Z_IA": [(0, 1, 2, 3, 4, 5), (0, 2, 1, 3, 5, 4)],
        "Z_IB": [(*o, *(3 + k for k in o)) for o in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]],
        "Z_IIA": [(0, 1, 2, 3, 4, 5)],
        "Z_IIB": [(0, 1, 2, 3, 4, 5)],
    }
    for name, orders in symmetrize.items():
        a, b = (
            np.mean([np.transpose(x, order) for order in orders], axis=0)
            for x in (printed[name], in_samples(kernel, getattr(ours, name)))
        )
        assert np.abs(a - b).max() < 1e-10 * np.abs(a).max(), name


def brute_force_mean(setting, outputs):
    """E of (infinity.154) with every index written out."""
    flow, y, _, _, H, Z = setting
    y = y[:, :outputs]
    E = joint(flow, outputs)
    t, Hi = TRAIN, np.linalg.inv(H)
    K = flow.K[np.ix_(t, t)]
    d = np.eye(outputs)

    def cut(x, *slots):
        for slot in slots:
            x = np.take(x, t, axis=4 + slot)
        return x

    parts = {"H1": np.einsum("xa,ab,bi->ix", flow.H1[:, t], Hi, y)}
    parts["NTK variance"] = -np.einsum("ijjkxabc,ab,ce,ek->ix", cut(E["HH"], 1, 2, 3), Hi, Hi, y)
    A, B = cut(E["dHz"], 0, 2, 3), cut(E["dHz"], 1, 2, 3)
    parts["dNTK"] = -(
        np.einsum("jikjaxbc,abcd,dk->ix", A, Z["Z_A"], y)
        + np.einsum("jikkaxbd,abcd,cj->ix", A, Z["Z_A"], y)
        + np.einsum("ijkjxabc,abcd,dk->ix", B, Z["Z_B"], y)
        + np.einsum("ijkkxabd,abcd,cj->ix", B, Z["Z_B"], y)
    )
    e3 = -np.einsum("dj,ek,fl->jkldef", y, y, y)
    e3 -= np.einsum("jk,de,fl->jkldef", d, K, y) + np.einsum("jl,df,ek->jkldef", d, K, y)
    e3 -= np.einsum("kl,ef,dj->jkldef", d, K, y)
    ddI, ddII = E["ddI"], E["ddII"]
    parts["ddNTK-I"] = np.einsum(
        "jiklaxbc,abcdef,jkldef->ix", cut(ddI, 0, 2, 3), Z["Z_IA"], e3, optimize=True
    ) + np.einsum("ijklxabc,abcdef,jkldef->ix", cut(ddI, 1, 2, 3), Z["Z_IB"], e3, optimize=True)
    parts["ddNTK-II"] = np.einsum(
        "jkilabxc,abcdef,jkldef->ix", cut(ddII, 0, 1, 3), Z["Z_IIA"], e3, optimize=True
    ) + np.einsum("ijklxabc,abcdef,jkldef->ix", cut(ddII, 1, 2, 3), Z["Z_IIB"], e3, optimize=True)
    return parts


@pytest.mark.equation("infinity.160")
@pytest.mark.equation("infinity.161")
@pytest.mark.parametrize("outputs", [1, 2])
def test_mean_is_the_brute_force_contraction(setting, outputs):
    flow, y, _, finite, _, _ = setting
    one = kernel_prediction(flow.Theta, flow.K, y[:, :outputs], TRAIN)
    ours = FiniteWidth(flow, one, finite.projectors).mean_parts
    brute = brute_force_mean(setting, outputs)
    assert set(ours) == set(brute)
    for name, part in brute.items():
        assert np.abs(ours[name] - one.residual(part.T).T).max() < 1e-10 * np.abs(part).max(), name
        assert np.abs(ours[name][:, TRAIN]).max() < 1e-10 * np.abs(part).max()


@pytest.mark.equation("infinity.162")
@pytest.mark.equation("infinity.163")
@pytest.mark.equation("infinity.164")
@pytest.mark.equation("infinity.165")
def test_what_the_seed_prints(setting):
    """(162) has the wrong sign, (163) and (165) wrong index placements; (164) is right as printed."""
    flow, y, _, _, H, Z = setting
    K = flow.K[np.ix_(TRAIN, TRAIN)]
    printed = mean_as_printed(flow, Z, np.linalg.inv(H), K, y, TRAIN)
    brute = brute_force_mean(setting, 2)
    gap = {name: np.abs(printed[name] - brute[name]).max() / np.abs(brute[name]).max() for name in printed}
    assert np.abs(printed["NTK variance"] + brute["NTK variance"]).max() < 1e-10
    assert gap["ddNTK-I"] < 1e-10
    assert gap["NTK variance"] > 0.1 and gap["dNTK"] > 0.1 and gap["ddNTK-II"] > 0.1
    corrected = mean_as_printed(flow, Z, np.linalg.inv(H), K, y, TRAIN, corrected=True)
    for name, part in corrected.items():
        assert np.abs(part - brute[name]).max() < 1e-10 * np.abs(part).max(), name
