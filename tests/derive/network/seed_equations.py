"""The seed's multi-input recursions as numbers, with insertions of z and the inverse kernel.

As they should read, and for R and S also as they are printed (docs/errata).
"""

import numpy as np


class OneLayer:
    """Tensors and brackets of layer l, hyperparameters of layer l+1."""

    def __init__(self, tensors, neuron, C, rate, r):
        self.tensors, self.neuron, self.C, self.rate, self.r = tensors, neuron, C, rate, r
        self.inverse = np.linalg.inv(tensors["K"])

    def mean(self, *factors, zs=None):
        """<sigma^(k)_a ...> with factors (a, k), or with an insertion of z_zs."""
        product = np.prod([self.neuron.value(a, k, "sigma") for a, k in factors], axis=0)
        return float((product * (1 if zs is None else self.neuron.z[zs])) @ self.neuron.weights)

    def raised(self, *factors):
        """sum_5 <z_5 ...> G^{57} as a vector in 7."""
        return self.inverse @ np.array([self.mean(*factors, zs=a) for a in range(len(self.inverse))])

    def tabulate(self, equation):
        """The equation at every choice of sample labels."""
        inputs = len(self.inverse)
        return np.array([equation(self, *index) for index in np.ndindex(*(inputs,) * 4)]).reshape((inputs,) * 4)


def seed_R(n, d0, d1, d2, d3):
    H, P_, B_, R_ = (n.tensors[k] for k in ("Theta", "P", "B", "R"))
    m, C, lam, r = n.mean, n.C, n.rate, n.r
    outer = C * m((d2, 1), (d3, 1))
    return (
        lam * C * m((d0, 2), (d1, 0), (d2, 1), (d3, 1)) * H[d0, d2] * H[d0, d3]
        + r * outer * lam * m((d0, 2), (d1, 0)) * B_[d0, d0, d2, d3]
        + r * outer * lam * (m((d0, 2), (d1, 0)) * P_[d0, d2, d3, d0] + m((d0, 1), (d1, 1)) * P_[d0, d2, d3, d1])
        + C**2 * m((d0, 3), (d1, 1), (d2, 1), (d3, 1)) * H[d0, d1] * H[d0, d2] * H[d0, d3]
        + r * outer * C * m((d0, 3), (d1, 1)) * B_[d0, d0, d2, d3] * H[d0, d1]
        + r
        * outer
        * C
        * H[d0, d1]
        * (m((d0, 3), (d1, 1)) * P_[d0, d2, d3, d0] + m((d0, 2), (d1, 2)) * P_[d0, d2, d3, d1])
        + r * outer * C * m((d0, 1), (d1, 1)) * R_[d0, d1, d2, d3]
    )


def seed_S(n, d1, d2, d3, d4):
    H, B_, S_ = (n.tensors[k] for k in ("Theta", "B", "S"))
    m, C, lam, r = n.mean, n.C, n.rate, n.r
    outer = C * m((d3, 1), (d4, 1))
    return (
        C * lam * m((d1, 1), (d2, 1), (d3, 1), (d4, 1)) * H[d1, d3] * H[d2, d4]
        + r * outer * (lam * m((d1, 1), (d2, 1)) + C * H[d1, d2] * m((d1, 2), (d2, 2))) * B_[d1, d2, d3, d4]
        + C**2 * m((d1, 2), (d2, 2), (d3, 1), (d4, 1)) * H[d1, d2] * H[d1, d3] * H[d2, d4]
        + r * C * m((d1, 1), (d2, 1)) * outer * S_[d1, d2, d3, d4]
    )


def seed_T(n, d1, d3, d4, d2):
    H, F_, Q_, T_ = (n.tensors[k] for k in ("Theta", "F", "Q", "T"))
    m, C, lam, r = n.mean, n.C, n.rate, n.r

    def through_F(left, right):
        return np.einsum("a,b,ab", n.raised(*left), n.raised(*right), F_[:, d1, :, d2])

    low13, low24 = ((d1, 1), (d3, 0)), ((d2, 1), (d4, 0))
    high13, high24 = ((d1, 2), (d3, 1)), ((d2, 2), (d4, 1))
    Q24 = lambda f, g: m(*f) * Q_[d2, d4, d1, d1] + m(*g) * Q_[d2, d4, d1, d3]  # noqa: E731
    Q13 = lambda f, g: m(*f) * Q_[d1, d3, d2, d2] + m(*g) * Q_[d1, d3, d2, d4]  # noqa: E731
    return (
        lam**2 * m(*low13, *low24) * H[d1, d2]
        + r * lam**2 * through_F(low13, low24)
        + C * lam * m(*low13, *high24) * H[d2, d1] * H[d2, d4]
        + r * C * lam * H[d2, d4] * through_F(low13, high24)
        + r * C * lam * m((d2, 1), (d4, 1)) * Q24(((d1, 2), (d3, 0)), ((d1, 1), (d3, 1)))
        + C * lam * m(*high13, *low24) * H[d1, d2] * H[d1, d3]
        + r * C * lam * H[d1, d3] * through_F(high13, low24)
        + r * C * lam * m((d1, 1), (d3, 1)) * Q13(((d2, 2), (d4, 0)), ((d2, 1), (d4, 1)))
        + r * C**2 * m((d1, 1), (d3, 1)) * m((d2, 1), (d4, 1)) * T_[d1, d3, d4, d2]
        + C**2 * m(*high13, *high24) * H[d1, d2] * H[d1, d3] * H[d2, d4]
        + r * C**2 * H[d1, d3] * H[d2, d4] * through_F(high13, high24)
        + r * C**2 * H[d2, d4] * m((d1, 1), (d3, 1)) * Q13(((d2, 3), (d4, 1)), ((d2, 2), (d4, 2)))
        + r * C**2 * H[d1, d3] * m((d2, 1), (d4, 1)) * Q24(((d1, 3), (d3, 1)), ((d1, 2), (d3, 2)))
    )


def seed_U(n, d1, d4, d2, d3):
    """(infinity.181) as it should read: the print has two primes too many in the first term (docs/errata)."""
    H, U_ = n.tensors["Theta"], n.tensors["U"]
    m, C, r = n.mean, n.C, n.r
    return (
        C**2 * m((d1, 2), (d2, 2), (d3, 1), (d4, 1)) * H[d1, d2] * H[d1, d3] * H[d2, d4]
        + r * C**2 * m((d1, 1), (d4, 1)) * m((d2, 1), (d3, 1)) * U_[d1, d4, d2, d3]
    )


def printed_R(n, d0, d1, d2, d3):
    """(infinity.177) with its sixth and seventh lines as printed."""
    H, P_, B_ = (n.tensors[k] for k in ("Theta", "P", "B"))
    m, C, lam, r = n.mean, n.C, n.rate, n.r
    outer = C * m((d2, 1), (d3, 1))
    return (
        lam * C * m((d0, 2), (d1, 0), (d2, 1), (d3, 1)) * H[d0, d2] * H[d0, d3]
        + r * outer * lam * m((d0, 2), (d1, 0)) * B_[d0, d0, d2, d3]
        + r * outer * lam * (m((d0, 2), (d1, 0)) * P_[d0, d2, d3, d0] + m((d0, 1), (d1, 1)) * P_[d0, d2, d3, d1])
        + C**2 * m((d0, 3), (d1, 1), (d2, 1), (d3, 1)) * H[d0, d1] * H[d0, d2] * H[d0, d3]
        + r * outer * C * m((d0, 3), (d1, 1)) * B_[d0, d0, d2, d3] * H[d0, d1]
        + r * outer * (C * m((d0, 2), (d1, 1)) * P_[d0, d2, d3, d0] + m((d0, 2), (d1, 1)) * P_[d0, d2, d3, d1])
        + r * outer * C * m((d0, 1), (d1, 1)) * P_[d0, d1, d2, d3]
    )


def printed_S(n, d1, d2, d3, d4):
    """(infinity.179) with its third bracket as printed."""
    H, C, m = n.tensors["Theta"], n.C, n.mean
    loops = H[d1, d2] * H[d1, d3] * H[d2, d4]
    right, printed = m((d1, 2), (d2, 2), (d3, 1), (d4, 1)), m((d1, 2), (d2, 2), (d3, 2), (d4, 1))
    return seed_S(n, d1, d2, d3, d4) + C**2 * (printed - right) * loops
