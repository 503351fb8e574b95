"""A model whose dNTK and ddNTKs are independent and known, and direct simulations of its training (no shared code).

z_a(u, w) = z0_a + J_a·u + e (½ u A_a u + ⅙ C_a[u,u,u] + u M_a w), a = (component, sample); w learns 1/e times faster.
To first order in e: dH_012 = J_1 A_0 J_2, ddI_0123 = C_0[J_1,J_2,J_3], ddII_1234 = (M_1ᵀJ_3)·(M_2ᵀJ_4). The
first-order part of a trajectory is read off with a complex step e = i·1e-60: no truncation error.
"""

from __future__ import annotations

import numpy as np

from numeric.trained.dynamics import NetworkTensors

STEP = 1e-60


class ToyNetwork:
    """Random tensors of the right symmetries for n outputs, N samples, the first n_train of which are trained on."""

    def __init__(self, outputs: int = 2, samples: int = 4, n_train: int = 2, parameters: int = 4, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.outputs, self.samples, self.train = outputs, samples, list(range(n_train))
        features = np.linalg.qr(rng.normal(size=(parameters, samples)))[0].T + 0.2 * rng.normal(
            size=(samples, parameters)
        )
        self.mean_ntk = features @ features.T
        # one copy of the parameters for each output: the NTK is diagonal in components
        self.J = np.einsum("ij,ap->iajp", np.eye(outputs), features).reshape(outputs, samples, -1)
        size = self.J.shape[-1]
        A = rng.normal(size=(outputs, samples, size, size)) / size
        self.A = A + A.swapaxes(-1, -2)
        C = rng.normal(size=(outputs, samples, size, size, size)) / size**1.5
        orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
        self.C = sum(C.transpose(0, 1, *(2 + np.array(order))) for order in orders)
        self.M = rng.normal(size=(outputs, samples, size, 3)) / np.sqrt(size)
        self.z0 = rng.normal(size=(outputs, samples))
        self.y = rng.normal(size=(n_train, outputs))

    def tensors(self) -> NetworkTensors:
        J, A, C, M = self.J, self.A, self.C, self.M
        H = np.einsum("iap,jbp->ijab", J, J)
        dH = np.einsum("iapq,jbp,kcq->ijkabc", A, J, J, optimize=True)
        ddI = np.einsum("iapqr,jbp,kcq,ldr->ijklabcd", C, J, J, J, optimize=True)
        MJ = np.einsum("iapm,kcp->iakcm", M, J)
        ddII = np.einsum("iakcm,jbldm->ijklabcd", MJ, MJ, optimize=True)
        return NetworkTensors(self.z0, H, dH, ddI, ddII)

    def output(self, u, w, e):
        Au, Cu = self.A @ u, (self.C @ u) @ u
        return self.z0 + self.J @ u + e * (Au @ u / 2 + Cu @ u / 6 + (self.M @ w) @ u)

    def gradients(self, u, w, e, weights):
        """Σ weights[i,a] × (∂z/∂u, ∂z/∂w / e) over the training samples."""
        t = self.train
        du = self.J[:, t] + e * (self.A[:, t] @ u + (self.C[:, t] @ u) @ u / 2 + self.M[:, t] @ w)
        dw = u @ self.M[:, t]
        return np.einsum("ia,iap->p", weights, du), np.einsum("ia,iam->m", weights, dw)

    def train_parameters(self, algorithm, steps: int, newton=None):
        """Train u, w with the algorithm's own `update`; the first-order part in e of the final output."""
        e = 1j * STEP
        u, w = np.zeros(self.J.shape[-1], complex), np.zeros(self.M.shape[-1], complex)
        memory_u = memory_w = (0.0,) * algorithm.memory_size
        for step in range(steps):
            error = self.output(u, w, e)[:, self.train] - self.y.T
            if newton is not None:
                error = error @ newton
            gu, gw = self.gradients(u, w, e, error)
            memory_u, du = algorithm.update(memory_u, gu, step)
            memory_w, dw = algorithm.update(memory_w, gw, step)
            u, w = u - du, w - dw
        z = self.output(u, w, e)
        return z.real, z.imag / STEP


def coupled_updates(net: NetworkTensors, y, train, eta, steps, masks=None):
    """Iterate (infinity.81)-(infinity.83) with differentials of size e: zeroth order and first order of z, H, dH."""
    e = 1j * STEP
    z, H = net.z.astype(complex), net.H.astype(complex)
    dH, t = e * net.dH, list(train)
    ddI, ddII = e * net.ddI, e * net.ddII
    for step in range(steps):
        err = z[:, t] - y.T
        if masks is not None:
            err = err * masks[step % len(masks)]
        ddI_e, ddII_e = _last(ddI, err, t), _last(ddII, err, t)
        ddI_ee, ddII_ee, dH_e = _last(ddI_e, err, t), _last(ddII_e, err, t), _last(dH, err, t)
        new_z = z - eta * _last(H, err, t) + eta**2 / 2 * _last(dH_e, err, t) - eta**3 / 6 * _last(ddI_ee, err, t)
        new_H = H - eta * (dH_e + dH_e.transpose(1, 0, 3, 2))
        new_H += eta**2 / 2 * (ddI_ee + ddI_ee.transpose(1, 0, 3, 2) + 2 * ddII_ee)
        dH = dH - eta * (ddI_e + ddII_e + ddII_e.transpose(0, 2, 1, 3, 5, 4))
        z, H = new_z, new_H
    return (z.real, z.imag / STEP), (H.real, H.imag / STEP), dH.imag / STEP


def _last(tensor, err, train):
    """Contract the last component and the last sample of a tensor with the training errors."""
    half = tensor.ndim // 2
    return np.tensordot(tensor[..., train], err, axes=([half - 1, tensor.ndim - 1], [0, 1]))
