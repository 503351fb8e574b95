# %% [markdown]
# # Digits at finite width
# What the order 1/n does to networks that learn scikit-learn's digits: the mean outputs and the test accuracy of tanh
# networks with two hidden layers of width n, trained with a ridge, from sampled corrections (memory N², no tensor with
# four inputs), and real networks of two widths beside it.
# (Needs the extra `notebooks`: scikit-learn.)

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from numeric import flow, predict
from numeric.ensemble.networks import Networks

TRAIN, TEST, RIDGE, WIDTH = 500, 200, 5.0, 100
digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))[: TRAIN + TEST]
X = digits.data[order] - digits.data.mean(axis=0)
X = X / np.sqrt(np.mean(X**2, axis=1, keepdims=True))
labels = digits.target[order]
y, truth = np.eye(10)[labels[:TRAIN]] - 0.1, labels[TRAIN:]

# %% [markdown]
# ## The theory
# Infinite width is exact. Each part of the order 1/n has a standard error; the run ends when the correction is known to
# ten percent. A smaller ridge learns more and is harder to sample.

# %%
f = flow("tanh", X, depth=3, width=WIDTH, tensors="Theta")
p = predict(f, y, range(TRAIN), ridge=RIDGE, method="sampled", relative_error=0.1, seconds=3000)
correction = WIDTH * (p.mean - p.mean_infinite)


def size(array):
    """Root mean square over test images and outputs."""
    return float(np.sqrt(np.mean(np.square(array))))


for name, part in p.parts.items():
    print(f"{name:13s} {size(part):8.5f} ± {size(p.standard_error[name]):.5f}")
infinite_variance = float(np.mean(np.diagonal(p.covariance_infinite)))
shrink = WIDTH * (float(np.mean(p.variance)) / infinite_variance - 1)
shrink_error = WIDTH * float(np.mean(p.variance_error)) / infinite_variance
print(f"variance {infinite_variance:.4f} x (1 {shrink:+.1f}/n), error at most {shrink_error:.1f}/n")

# %% [markdown]
# Outputs on the true digit move towards zero: with the same ridge narrow networks have learnt less than wide ones.

# %%
true = np.arange(TEST), truth
along = float(np.mean(correction[true]) / np.mean(p.mean_infinite[true]))
print(f"output on the true digit: {np.mean(p.mean_infinite[true]):.3f} x (1 {along:+.2f}/n)")

# %% [markdown]
# ## Real networks
# Gradient descent on the same penalty, Σ(z - y)²/2 + ridge |θ - θ₀|²/2 in units of the learning rates, to its end.

# %%
COUNT = 200
LARGEST = float(np.linalg.eigvalsh(np.asarray(f.Theta)[:TRAIN, :TRAIN])[-1]) + RIDGE
ETA, STEPS = 1 / LARGEST, int(4 * LARGEST / RIDGE)


def trained_networks(width, seed):
    """Outputs of real networks on the test images, (networks, images, digits)."""
    networks = Networks.of_flow(flow("tanh", X[:1], depth=3, width=width, tensors="Theta"), 10)
    start, rates = networks.sample(jax.random.key(seed), COUNT), networks.rates()
    inputs, targets = jnp.asarray(X[:TRAIN]), jnp.asarray(y.T)[None]

    def step(params, _):
        z, pull = jax.vjp(lambda own: networks.outputs(own, inputs), params)
        slopes = pull(z - targets)[0]
        moved = [
            tuple(w - ETA * (rate * slope + RIDGE * (w - w0)) for w, rate, slope, w0 in zip(*four))
            for four in zip(params, rates, slopes, start)
        ]
        return moved, None

    end = jax.jit(lambda params: jax.lax.scan(step, params, None, STEPS)[0])(start)
    return np.asarray(networks.outputs(end, jnp.asarray(X[TRAIN:]))).transpose(0, 2, 1)


real = {width: trained_networks(width, width) for width in (32, 128)}


def against(name, values, infinite, theory, error, width):
    """A mean over networks, its shift from infinite width beside the order 1/n, and the pull."""
    shift, noise = values.mean() - infinite, values.std(ddof=1) / np.sqrt(COUNT)
    print(f"n = {width:3d}: {name} {values.mean():.4f}")
    print(f"         shift {shift:+.4f} ± {noise:.4f}, order 1/n {theory:+.4f} ± {error:.4f}")


for width, outputs in real.items():
    own = outputs[:, np.arange(TEST), truth].mean(axis=1)
    exact = float(np.mean(p.mean_infinite[true]))
    noise = float(np.mean(p.standard_error["mean"][true])) * WIDTH / width
    against("output on the true digit", own, exact, float(np.mean(correction[true])) / width, noise, width)

# %% [markdown]
# ## Accuracy against width
# One network's outputs are drawn from a Gaussian with the mean to order 1/n and with variances to order 1/n, averaged
# over test images and digits (one by one they would take many more draws). The two work against each other: outputs on
# the true digit shrink, and so does their spread. The band is the standard error of the variance as if all its errors
# were one; the points are real networks, with the standard error over networks.


# %%
def accuracy(outputs):
    return np.mean(np.argmax(outputs, axis=-1) == truth, axis=-1)


normal = np.sqrt(np.diagonal(p.covariance_infinite))[:, None] * np.random.default_rng(1).normal(size=(400, TEST, 10))


def drawn_accuracy(n, factor=shrink):
    """Of single networks of width n, to order 1/n: the mean over the same Gaussian draws for every width."""
    spread = np.sqrt(max(1 + factor / n, 0.0))
    return float(np.mean(accuracy(p.mean_infinite + correction / n + spread * normal)))


widths = np.geomspace(24, 1000, 25)
infinite, single = drawn_accuracy(np.inf), [drawn_accuracy(n) for n in widths]
learnt = [float(np.mean((p.mean_infinite + correction / n)[true])) for n in widths]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(widths, learnt, label="order 1/n")
left.axhline(np.mean(p.mean_infinite[true]), color="0.6", lw=1, label="infinite width")
right.plot(widths, single, label="one network, order 1/n")
band = [[drawn_accuracy(n, shrink + sign * shrink_error) for n in widths] for sign in (1, -1)]
right.fill_between(widths, *band, alpha=0.2, lw=0)
right.axhline(infinite, color="0.6", lw=1, label="infinite width")
for width, outputs in real.items():
    own, hits = outputs[:, np.arange(TEST), truth].mean(axis=1), accuracy(outputs)
    for axes, values in ((left, own), (right, hits)):
        axes.errorbar(width, values.mean(), values.std(ddof=1) / np.sqrt(COUNT), fmt="ko", ms=4)
    low, high = (drawn_accuracy(width, shrink + sign * shrink_error) for sign in (1, -1))
    against("accuracy", hits, infinite, drawn_accuracy(width) - infinite, (high - low) / 2, width)
for axes, title in ((left, "output on the true digit"), (right, "test accuracy of one network")):
    axes.set(xscale="log", xlabel="width n", title=title)
    axes.legend(frameon=False)
figure.tight_layout()
print(f"accuracy of one network at infinite width {infinite:.3f}, of the mean output {accuracy(p.mean_infinite):.3f}")
