"""Equations of chapter infinity typed as the seed prints them (sample space, full index arrays), for tests only."""

from __future__ import annotations

import numpy as np


def inverting_tensors(H, eta):
    """X_II (infinity.107) and X_III (infinity.110), by solving their defining equations; eta=0 gives (152), (153)."""
    n = len(H)
    one = np.eye(n)

    def k(*factors):
        result = factors[0]
        for factor in factors[1:]:
            result = np.kron(result, factor)
        return result

    two = k(H, one) + k(one, H) - eta * k(H, H)
    three = k(H, one, one) + k(one, H, one) + k(one, one, H)
    three = three - eta * (k(H, H, one) + k(H, one, H) + k(one, H, H)) + eta**2 * k(H, H, H)
    return np.linalg.inv(two).reshape((n,) * 4), np.linalg.inv(three).reshape((n,) * 6)


def projectors(H, eta):
    """(infinity.142)-(infinity.147) with the shorthands (infinity.135), (infinity.138)-(infinity.140)."""
    Hi = np.linalg.inv(H)
    X2, X3 = inverting_tensors(H, eta)
    Y1 = np.einsum("abde,cf->abcdef", X2, Hi) - np.einsum("cg,abgdef->abcdef", Hi, X3)
    Y2 = np.einsum("ac,bd->abcd", Hi, Hi) - np.einsum("be,aecd->abcd", Hi, X2)
    Y3 = (
        np.einsum("ad,be,cf->abcdef", Hi, Hi, Hi)
        - np.einsum("bg,agde,cf->abcdef", Hi, X2, Hi)
        - np.einsum("ad,cg,bgef->abcdef", Hi, Hi, X2)
        + np.einsum("ci,bigh,aghdef->abcdef", Hi, X2, X3)
    )
    Y4 = np.einsum("ad,bcef->abcdef", Hi, X2) - np.einsum("bcgh,aghdef->abcdef", X2, X3)
    return {
        "Z_A": Y2,
        "Z_B": Y2 + eta / 2 * X2,
        "Z_IA": -Y3 - eta / 2 * Y4,
        "Z_IB": -Y3 - eta / 2 * Y4 - eta / 2 * Y1 - eta**2 / 6 * X3,
        "Z_IIA": -Y3,
        "Z_IIB": -Y3 - Y3.transpose(1, 0, 2, 4, 3, 5) - Y3.transpose(0, 2, 1, 3, 5, 4) - eta * Y4 - eta * Y1,
    }


def mean_as_printed(flow, Z, Hi, K, y, train, corrected=False):
    """(infinity.162)-(infinity.165) exactly as printed, or with docs/errata; y is (N_train, n_L). Arrays (n_L, N)."""
    n, t = y.shape[1], train
    g = {name: getattr(flow, name) for name in "ABPQRSTU"}

    def tt(x, *positions):
        """x with its train axes cut out; `positions` are the axes that are training samples."""
        for axis in positions:
            x = np.take(x, t, axis=axis)
        return x

    A, B = tt(g["A"], 1, 2, 3), tt(g["B"], 1, 2, 3)
    variance = np.einsum("dabc->dabc", A) + np.einsum("dbac->dabc", B) + n * np.einsum("dcab->dabc", B)
    sign = -1 if corrected else 1
    parts = {"NTK variance": sign * np.einsum("dabc,ab,ce,ei->id", variance, Hi, Hi, y)}
    P0, Q0 = tt(g["P"], 1, 2, 3), tt(g["Q"], 1, 2, 3)
    P1, Q1, Q2 = tt(g["P"], 0, 2, 3), tt(g["Q"], 0, 2, 3), tt(g["Q"], 0, 1, 3)
    first = 2 * (P0 + Q0 + n * np.einsum("dbac->dabc", Q0))
    second = np.einsum("adbc->dabc", n * P1 + Q1) + np.einsum("abdc->dabc", Q2)
    third = np.einsum("adbc->dabc", P1 + n * Q1) + np.einsum("abdc->dabc", Q2)
    last = "dabc,abec,ei->id" if corrected else "dabc,abce,ei->id"
    Z_B = (Z["Z_B"] + Z["Z_B"].transpose(1, 0, 3, 2)) / 2 if corrected else Z["Z_B"]
    parts["dNTK"] = -np.einsum("dabc,abce,ei->id", first, Z_B, y)
    parts["dNTK"] -= np.einsum("dabc,abce,ei->id", second, Z["Z_A"], y) + np.einsum(last, third, Z["Z_A"], y)
    moment = (
        np.einsum("di,ef->idef", y, y @ y.T + n * K) + np.einsum("ei,fd->idef", y, K) + np.einsum("fi,de->idef", y, K)
    )
    R0 = tt(g["R"], 1, 2, 3)
    IB, IA = Z["Z_IB"], Z["Z_IA"]
    one = np.einsum("xabc,abcdef->xdef", R0, IB) + np.einsum("xabc,bcaefd->xdef", R0, IB)
    one = one + np.einsum("xabc,cabfde->xdef", R0, IB)
    one = one + np.einsum("axbc,abcdef->xdef", tt(g["R"], 0, 2, 3), IA)
    one = one + np.einsum("abcx,abcefd->xdef", tt(g["R"], 0, 1, 2), IA)
    one = one + np.einsum("acxb,abcfde->xdef", tt(g["R"], 0, 1, 3), IA)
    parts["ddNTK-I"] = -np.einsum("xdef,idef->ix", one, moment)
    IIB, IIA = Z["Z_IIB"], Z["Z_IIA"]
    two = np.einsum("xabc,abcdef->xdef", tt(g["S"], 1, 2, 3), IIB)
    orders = ("xabc,cabfde->xdef", "xabc,bcaefd->xdef") if corrected else ("xabc,bcaefd->xdef", "xabc,cabfde->xdef")
    two = two + np.einsum(orders[0], tt(g["T"], 1, 2, 3), IIB) + np.einsum(orders[1], tt(g["U"], 1, 2, 3), IIB)
    two = two + np.einsum("abxc,abcefd->xdef", tt(g["S"], 0, 1, 3), IIA)
    two = two + np.einsum("axcb,abcdef->xdef", tt(g["T"], 0, 2, 3), IIA)
    two = two + np.einsum("acbx,abcfde->xdef", tt(g["U"], 0, 1, 2), IIA)
    parts["ddNTK-II"] = -np.einsum("xdef,idef->ix", two, moment)
    return parts
