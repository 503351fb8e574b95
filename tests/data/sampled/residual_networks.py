"""Sampled residual networks without weight matrices, and infinitely wide ones that share their noise.

The network: z' = xi z + b + W sigma(z) between hidden layers of equal width n, a plain output layer, two inputs. Each
network comes with DIRECTIONS Gaussian directions t in the space of its parameters, with the learning rates as
variances, so that the mean of (t . grad z)(t . grad z) is the NTK. Given the layer below, a neuron's z and its
derivatives t . grad z are jointly Gaussian, exactly and at any width: a network is a sequence of small covariance
matrices. Nothing here knows the theory at order 1/n.
"""

import numpy as np
from scipy.special import erf

X = np.array([[1.0, -0.4, 0.7], [0.3, 0.9, -0.6]])
DIRECTIONS = 2
PAIRS = [(i, j) for i in range(DIRECTIONS) for j in range(i + 1, DIRECTIONS)]
UPPER = np.triu_indices(2)
BOTH = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
"""The independent entries of a symmetric matrix, and all entries of any, of two inputs."""
SETUPS = {
    f"{name}-{xi}-{L}": (name, float(xi), L, 100 * index + L)
    for index, (name, xi) in enumerate((a, x) for a in ("tanh", "gelu") for x in ("1.0", "0.8"))
    for L in (4, 8)
}
"""Activation, skip, layers of weights, seed."""


def hyperparameters(L):
    """One value a layer. The branches of deeper networks are weaker, so that 1/n corrections stay moderate.

    Learning rates are largest for the weights of the branches: the 1/n correction of tanh's NTK has one sign there, and
    the other sign for biases and none for the first layer, where it would cancel to a tenth of its parts.
    """
    branch = {4: 0.8, 8: 0.5}[L]
    return {
        "C_b": [0.2] + [0.05] * (L - 2) + [0.1],
        "C_W": [1.2] + [branch] * (L - 2) + [1.1],
        "lambda_b": [0.1] + [0.05] * (L - 2) + [0.1],
        "lambda_W": [0.2] + [0.6] * (L - 2) + [0.8],
    }


def _tanh(z):
    s = np.tanh(z)
    d = 1 - s * s
    return s, d, -2 * s * d


def _gelu(z):
    c, p = (1 + erf(z * z.dtype.type(np.sqrt(0.5)))) / 2, np.exp(z * z / -2) * z.dtype.type(1 / np.sqrt(2 * np.pi))
    return z * c, c + z * p, (2 - z * z) * p


ACTIVATIONS = {"tanh": _tanh, "gelu": _gelu}
"""The activation and two derivatives."""


def mean(f, K):
    """<f_a f_b> over N(0, K) for all pairs: a product of trapezoidal rules."""
    x = np.arange(-40, 41) * 0.22
    w = np.exp(-(x**2) / 2) * 0.22 / np.sqrt(2 * np.pi)
    out = np.empty_like(K)
    for a, b in np.ndindex(*K.shape):
        c = K[a, b] / np.sqrt(K[a, a])
        rest = np.sqrt(max(K[b, b] - c**2, 0.0))
        out[a, b] = w @ (f(np.sqrt(K[a, a]) * x[:, None]) * f(c * x[:, None] + rest * x[None, :])) @ w
    return out


def limits(name, xi, L):
    """The infinitely wide network: K, Theta, <ss>, <s's'> of every layer, roots of what a layer adds to K and Theta."""
    h = hyperparameters(L)
    gram = X @ X.T / X.shape[1]
    K, Theta = h["C_b"][0] + h["C_W"][0] * gram, h["lambda_b"][0] + h["lambda_W"][0] * gram
    found = {"K": [K], "Theta": [Theta], "ss": [], "dd": [], "roots": [(K, Theta)]}
    for layer in range(1, L):
        skip = xi if layer < L - 1 else 0.0
        ss, dd = (mean(lambda z, k=k: ACTIVATIONS[name](z)[k], K) for k in (0, 1))
        more = h["C_b"][layer] + h["C_W"][layer] * ss
        faster = h["lambda_b"][layer] + h["lambda_W"][layer] * ss + h["C_W"][layer] * dd * Theta
        K, Theta = skip**2 * K + more, skip**2 * Theta + faster
        for kind, value in (("K", K), ("Theta", Theta), ("ss", ss), ("dd", dd), ("roots", (more, faster))):
            found[kind].append(value)
    found["roots"] = [np.linalg.cholesky(np.stack(pair)).astype(np.float32) for pair in found["roots"]]
    return found


def sample(rng, setup, n, count, limit, weights=None):
    """`count` networks: covariances of every layer given the one below, functions of the wide ones' neurons, answers.

    Both are those of z and z ("G"), a derivative and the same ("H"), z and a derivative ("Y"), two derivatives ("Z");
    the functions are products after the activation, less their mean, and neurons are independent. With the weights by
    which covariances go along with the functions below, there is also the wide network's answer to them (Answer).
    """
    name, xi, L, _ = setup
    h, act, size = hyperparameters(L), ACTIVATIONS[name], 2 * (1 + DIRECTIONS)
    z = np.zeros((count, 1 + DIRECTIONS, 2, n), np.float32)
    wide = np.zeros_like(z)
    gram = np.zeros((count, 1 + DIRECTIONS, 2, 1 + DIRECTIONS, 2))
    gram[:, 0, :, 0] = X @ X.T / X.shape[1]
    covariance, covariances, functions = given_below(gram, 0, h), [], []
    answer = Answer(limit, n)
    for layer in range(L - 1):
        noise = rng.standard_normal((count, size, n), dtype=np.float32)
        root = np.linalg.cholesky(covariance.reshape(count, size, size)).astype(np.float32)
        skip = np.float32(xi if layer else 0.0)
        z = skip * z + (root @ noise).reshape(z.shape)
        noise = noise.reshape(z.shape)
        wide *= skip
        wide[:, 0] += limit["roots"][layer][0] @ noise[:, 0]
        wide[:, 1:] += limit["roots"][layer][1] @ noise[:, 1:]
        after = activated(*act(z[:, 0])[:2], z).reshape(count, size, n)
        covariance = given_below((after @ after.transpose(0, 2, 1) / n).reshape(gram.shape), layer + 1, h)
        covariances.append(entries(covariance))
        s, d, dd = act(wide[:, 0])
        after = activated(s, d, wide)
        if weights is not None and layer:
            answer.move(layer, skip, along(weights[layer - 1], functions), noise)
            answer.add(after, d, dd, wide)
        functions.append(of_neurons(after, limit["ss"][layer], limit["dd"][layer] * limit["Theta"][layer]))
    return covariances, functions, answer.found


def along(weights, functions):
    """The functions of neurons whose averages go along with G, H, Y, Z."""
    f = {k: sum(w.T @ layer[k] for w, layer in zip(weights[k], functions, strict=True)) for k in "GHYZ"}
    f["H"] = f["H"] + sum(w.T @ layer["G"] for w, layer in zip(weights["HG"], functions, strict=True))[:, None]
    return f


class Answer:
    """Sums over pairs of different neurons: one moves a covariance, the other's products answer. Their mean is zero.

    z of the wide network and its derivatives are sums of the layers' noise times roots of covariances. To first order
    the roots move with the covariances, those with functions f(j) of the neurons below, and the products with
    the roots.
    """

    def __init__(self, limit, n):
        self.roots, self.n = limit["roots"], n
        self.all, self.same = np.float32(0.0), np.float32(0.0)
        self.found = {"G": [], "H": []}

    def move(self, layer, skip, f, noise):
        """Shifts z and its derivatives; by the same neuron's functions, and by the averages over all."""
        average = {k: v.mean(-1, keepdims=True) for k, v in f.items()}
        self.same = skip * self.same + self.shift(layer, f, noise)
        self.all = skip * self.all + self.shift(layer, average, noise)

    def shift(self, layer, f, noise):
        value, rate = self.roots[layer]
        shifted = np.empty_like(noise)
        shifted[:, 0] = triangular(value, f["G"], noise[:, 0])
        white = [
            np.linalg.inv(value).T @ noise[:, 0],
            *(np.linalg.inv(rate).T @ noise[:, 1 + k] for k in range(DIRECTIONS)),
        ]
        for k in range(DIRECTIONS):
            shifted[:, 1 + k] = triangular(rate, f["H"][:, k], noise[:, 1 + k])
            for a, b in zip(*BOTH, strict=True):
                shifted[:, 1 + k, b] += f["Y"][:, k, 2 * a + b] * white[0][:, a]
        for place, (i, j) in enumerate(PAIRS):  # the later direction's root has the earlier one's noise
            for a, b in zip(*BOTH, strict=True):
                shifted[:, 1 + j, b] += f["Z"][:, place, 2 * a + b] * white[1 + i][:, a]
        return shifted

    def add(self, after, d, dd, wide):
        shift = self.all - self.same / self.n
        slope = d * shift[:, 0]
        self.found["G"].append(symmetric(after[:, 0], slope))
        slope = d[:, None] * shift[:, 1:] + (dd * shift[:, 0])[:, None] * wide[:, 1:]
        self.found["H"].append(symmetric(after[:, 1:], slope).mean(1))


def symmetric(f, g):
    a, b = UPPER
    return (f[..., a, :] * g[..., b, :] + g[..., a, :] * f[..., b, :]).mean(-1, dtype=float)


def triangular(root, moved, noise):
    """How a triangular root moves with its square, times noise."""
    (x, _), (y, w) = root
    dx = moved[:, 0] / (2 * x)
    dy = moved[:, 1] / x - (y / x) * dx
    dw = (moved[:, 2] - 2 * y * dy) / (2 * w)
    return np.stack([dx * noise[:, 0], dy * noise[:, 0] + dw * noise[:, 1]], axis=1)


def entries(covariance):
    i, j = np.array(PAIRS).T[:, :, None]
    k = np.arange(1, 1 + DIRECTIONS)[:, None]
    return {
        "G": covariance[:, 0, UPPER[0], 0, UPPER[1]],
        "H": covariance[:, k, UPPER[0], k, UPPER[1]],
        "Y": covariance[:, 0, BOTH[0], k, BOTH[1]],
        "Z": covariance[:, 1 + i, BOTH[0], 1 + j, BOTH[1]],
    }


def activated(s, d, z):
    """s, and s' times each derivative of z."""
    return np.concatenate([s[:, None], d[:, None] * z[:, 1:]], axis=1)


def given_below(gram, layer, h):
    """Covariance of what a layer adds to z and its derivatives, given the averages of products below."""
    value = h["C_W"][layer] * gram.astype(float) if layer else np.zeros_like(gram)
    first = gram[:, 0, :, 0]
    value[:, 0, :, 0] = h["C_b"][layer] + h["C_W"][layer] * first
    for k in range(1, 1 + DIRECTIONS):  # the derivative of W along a direction is a Gaussian matrix of its own
        value[:, k, :, k] += h["lambda_b"][layer] + h["lambda_W"][layer] * first
    return value


def of_neurons(after, ss, tt):
    s, t = after[:, 0], after[:, 1:]
    return {
        "G": s[:, UPPER[0]] * s[:, UPPER[1]] - ss[UPPER].astype(np.float32)[:, None],
        "H": t[:, :, UPPER[0]] * t[:, :, UPPER[1]] - tt[UPPER].astype(np.float32)[:, None],
        "Y": s[:, None, BOTH[0]] * t[:, :, BOTH[1]],
        "Z": np.stack([t[:, i][:, BOTH[0]] * t[:, j][:, BOTH[1]] for i, j in PAIRS], axis=1),
    }
