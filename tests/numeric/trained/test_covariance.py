"""The covariance (infinity.166) at order 1/n by brute force: Isserlis' theorem over full index arrays."""

from __future__ import annotations

import numpy as np
import pytest
from printed_equations import projectors
from random_statistics import joint, random_flow

from numeric.generated.training import CROSS, MOMENTS
from numeric.trained.algorithms import GradientDescent
from numeric.trained.finite import FiniteWidth
from numeric.trained.infinite import kernel_prediction
from numeric.trained.projectors import Projectors
from numeric.trained.statistics import contract_two

TRAIN, OUTPUTS = [3, 0, 1], 2


@pytest.fixture(scope="module")
def setting():
    flow = random_flow(seed=4)
    y = np.random.default_rng(2).normal(size=(3, OUTPUTS))
    kernel = kernel_prediction(flow.Theta, flow.K, y, TRAIN)
    eta = 0.7 / kernel.modes.h[-1]
    finite = FiniteWidth(flow, kernel, Projectors(GradientDescent(eta), kernel.modes.h))
    return flow, y, finite, projectors(flow.Theta[np.ix_(TRAIN, TRAIN)], eta)


def residual_matrix(theta):
    matrix = np.eye(len(theta), dtype=theta.dtype)
    matrix[:, TRAIN] -= theta[:, TRAIN] @ np.linalg.inv(theta[np.ix_(TRAIN, TRAIN)])
    return matrix


def isserlis(covariances, y, singles):
    """E of ε's with full indices: sum over ways to pair or leave a factor -y; `singles` may be left unpaired.

    covariances[(p, q)] is [component p, component q, sample p, sample q]; y[p] is [component, sample].
    Yields (pairs, singles, sign) patterns.
    """
    if not covariances:
        yield (), ()
        return
    first, rest = covariances[0], covariances[1:]
    if first in singles:
        for pairs, alone in isserlis(rest, y, singles):
            yield pairs, (first, *alone)
    for k, other in enumerate(rest):
        for pairs, alone in isserlis(rest[:k] + rest[k + 1 :], y, singles):
            yield ((first, other), *pairs), alone


def expect_errors(names, S, K, y, linear):
    """E[Π factors] as a full array [components..., samples...]; names in `linear` are [z] on all inputs, others ε."""
    d = np.eye(OUTPUTS)
    n = len(names)
    components, samples = "ijklmn"[:n], "abcdef"[:n]
    total = 0.0
    for pairs, singles in isserlis(list(range(n)), y, [k for k in range(n) if names[k] not in linear]):
        operands, subscripts = [], []
        for p, q in pairs:
            left = S if names[p] in linear else np.eye(len(K))[TRAIN]
            right = S if names[q] in linear else np.eye(len(K))[TRAIN]
            operands += [d, left @ K @ right.T]
            subscripts += [components[p] + components[q], samples[p] + samples[q]]
        for p in singles:
            operands.append(-y.T)
            subscripts.append(components[p] + samples[p])
        total = total + np.einsum(",".join(subscripts) + "->" + components + samples, *operands)
    return total


@pytest.mark.equation("infinity.166")
def test_covariance_is_the_brute_force_sum(setting):
    flow, y, finite, Z = setting
    E, t = joint(flow, OUTPUTS), TRAIN
    S, Hi = residual_matrix(flow.Theta), np.linalg.inv(flow.Theta[np.ix_(TRAIN, TRAIN)])
    d = np.eye(OUTPUTS)
    moved = residual_matrix(flow.Theta + 1e-40j * flow.H1)
    own = S @ flow.G1 @ S.T + (moved @ flow.K @ moved.T).imag / 1e-40
    total = np.einsum("ij,xw->ijxw", d, own)

    def cut(x, *slots):
        for slot in slots:
            x = np.take(x, t, axis=4 + slot)
        return x

    # cross terms E[[z]_{i x} X_{j w}]: i, x on the left
    zeee = expect_errors(["z", "e", "e", "e"], S, flow.K, y, {"z"})
    ee = expect_errors(["e", "e"], S, flow.K, y, set())
    ze = expect_errors(["z", "e"], S, flow.K, y, {"z"})
    cross = -np.einsum("ikjkxbwa,ab->ijxw", np.einsum("sx,ijklxbwa->ijklsbwa", S, cut(E["zzH"], 1, 3)), Hi)
    cross += np.einsum("jkklwabc,ab,ce,ilxe->ijxw", cut(E["HH"], 1, 2, 3), Hi, Hi, ze, optimize=True)
    dHz = np.einsum("sx,ijkldefx->ijkldefs", S, E["dHz"])
    for name, cuts in (("Z_A", (0, 2)), ("Z_B", (1, 2))):
        letters = {"Z_A": "kjliawbx", "Z_B": "jkliwabx"}[name]
        block = cut(dHz, *cuts)
        cross += np.einsum(f"{letters},abcd,klcd->ijxw", block, Z[name], ee, optimize=True)
        block = cut(E["dHz"], *cuts, 3)
        letters = {"Z_A": "kjlkawbc", "Z_B": "jklkwabc"}[name]
        cross += np.einsum(f"{letters},abcd,ilxd->ijxw", block, Z[name], ze, optimize=True)
        letters = {"Z_A": "kjllawbd", "Z_B": "jkllwabd"}[name]
        cross += np.einsum(f"{letters},abcd,ikxc->ijxw", block, Z[name], ze, optimize=True)
    for name, tensor, letters, cuts in (
        ("Z_IA", "ddI", "kjlmawbc", (0, 2, 3)),
        ("Z_IB", "ddI", "jklmwabc", (1, 2, 3)),
        ("Z_IIA", "ddII", "kljmabwc", (0, 1, 3)),
        ("Z_IIB", "ddII", "jklmwabc", (1, 2, 3)),
    ):
        cross += np.einsum(f"{letters},abcdef,iklmxdef->ijxw", cut(E[tensor], *cuts), Z[name], zeee, optimize=True)
    cross = np.einsum("ijxw,sw->ijxs", cross, S)
    total = total + cross + cross.transpose(1, 0, 3, 2)
    square = np.einsum("ikjlxawb,ac,bd,klcd->ijxw", cut(E["HH"], 1, 3), Hi, Hi, ee, optimize=True)
    total = total + np.einsum("sx,ijxw,rw->ijsr", S, square, S)
    ours = finite.covariance()
    assert np.abs(ours - total).max() < 1e-10 * np.abs(total).max()
    assert np.abs(ours - ours.transpose(1, 0, 3, 2)).max() < 1e-12 * np.abs(total).max()
    assert np.abs(ours[:, :, TRAIN]).max() < 1e-10 * np.abs(total).max()
    assert np.abs(ours[0, 1]).max() > 0.1


@pytest.mark.equation("infinity.167")
def test_wiring_term_of_the_covariance(setting):
    """The seed's example, Σ E[z_2 dH_1] Z_B E[εε]; the second Q of its last line needs the other order of indices."""
    flow, y, finite, Z = setting
    t = TRAIN
    K = flow.K[np.ix_(t, t)]
    P, Q, ZB = flow.P[:, t][:, :, t], flow.Q[:, t][:, :, t], Z["Z_B"]
    swapped = Q.transpose(0, 2, 1, 3)
    diagonal = np.einsum("xabw,abcd,cd->xw", OUTPUTS * P + Q + swapped, ZB, K)
    diagonal += np.einsum("xabw,abcd,cj,dj->xw", P, ZB, y, y)
    same = np.einsum("ij,xw->ijxw", np.eye(OUTPUTS), diagonal) + np.einsum("xabw,abcd,ci,dj->ijxw", Q, ZB, y, y)
    right = same + np.einsum("xabw,abcd,di,cj->ijxw", swapped, ZB, y, y)
    printed = same + np.einsum("xabw,abcd,di,cj->ijxw", Q, ZB, y, y)
    (wiring,) = (c for c in CROSS if c.weight == "Z_B")
    moment = MOMENTS["ee"][0](finite.y, finite.K, np.eye(len(TRAIN)), np.eye(OUTPUTS))
    samples = finite._to_samples_pair(finite.projectors.Z_B * moment)
    ours = contract_two(finite._read, wiring, samples).transpose(1, 0, 3, 2)
    assert np.abs(ours - right).max() < 1e-10 * np.abs(right).max()
    assert np.abs(ours - printed).max() > 0.1
