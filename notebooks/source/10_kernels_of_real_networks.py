# %% [markdown]
# # Kernels of real networks
# A network from Flax, scikit-learn's digits, and what the tangent kernel says of it: regression without training,
# risks without a test set, the network while it trains, and which digit to label next.
# (Needs the extra `notebooks`: scikit-learn and flax.)

# %%
import flax.linen as nn
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from numeric import empirical_ntk, linearize, pseudo_ntk
from numeric.empirical.learning_path import learning_path
from numeric.trained.kernel_regression import KernelRegression, ridge_path
from numeric.trained.look_ahead import expected_change

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
X = (digits.data[order] - digits.data.mean(axis=0)) / 16
labels = np.eye(10)[digits.target[order]] - 0.1
train, test = slice(0, 300), slice(300, 700)


class Classifier(nn.Module):
    """Two hidden layers; any JAX function would do."""

    @nn.compact
    def __call__(self, x):
        for width in (128, 128):
            x = nn.gelu(nn.Dense(width)(x))
        return nn.Dense(10)(x)


network = Classifier()
params = jax.tree.map(lambda w: w.astype(float), network.init(jax.random.key(0), jnp.zeros((1, 64))))
sum(leaf.size for leaf in jax.tree.leaves(params))

# %% [markdown]
# ## Regression with the network's own kernel, and its risk without a test set
# The NTK of ten outputs holds $(10 N)^2$ numbers; the pseudo-NTK $N^2$. Leave-one-out error and generalized
# cross-validation come from one factorization and choose the ridge; the test set only confirms.

# %%
K = np.asarray(pseudo_ntk(network.apply, params, jnp.asarray(X[train])))
k = np.asarray(pseudo_ntk(network.apply, params, jnp.asarray(X[test]), X2=jnp.asarray(X[train])))
start = np.asarray(network.apply(params, X[train]))
path = ridge_path(K, labels[train], start)
errors = []
for ridge in path.ridges:
    fit = KernelRegression(K, labels[train], ridge, start)
    errors.append(np.mean((fit.predict(k, np.asarray(network.apply(params, X[test]))) - labels[test]) ** 2))
figure, axes = plt.subplots(figsize=(5, 3))
axes.loglog(path.ridges, path.loo_mse, label="leave-one-out")
axes.loglog(path.ridges, path.gcv, "--", label="generalized cross-validation")
axes.loglog(path.ridges, errors, "k:", label="400 test digits")
axes.set(xlabel="ridge", ylabel="mean square")
_ = axes.legend()

# %%
fit = KernelRegression(K, labels[train], path.best("loo"), start)
predicted = fit.predict(k, np.asarray(network.apply(params, X[test])))
accuracy = np.mean(predicted.argmax(axis=1) == labels[test].argmax(axis=1))
print(f"ridge {fit.ridge:.3g}: leave-one-out {fit.loo_mse:.4f}, test {np.mean((predicted - labels[test]) ** 2):.4f}")
print(f"right on {accuracy:.1%} of the test digits, from 300 labels")

# %% [markdown]
# ## The same without a matrix
# `linearize(...).training(...)` takes products of the NTK alone when its matrix does not fit into the memory it is
# given: conjugate gradients, in batches. Here all ten outputs at once, 3000 rows, in 20 MB.

# %%
model = linearize(network.apply, params)
free = model.training(X[train], labels[train], ridge=1.0, memory=2e7)
ended = free.limit(X[test])
print(type(free).__name__, "residual below 1e-8:", bool(free.fit.solution.residual.max() < 1e-8))
print(f"right on {np.mean(ended.argmax(axis=1) == labels[test].argmax(axis=1)):.1%}")

# %% [markdown]
# ## The kernel moves
# The network trains by gradient descent on the squared loss; its NTK is measured on the way. A frozen kernel would stay
# at zero: what is seen is representation learning, and it aligns the kernel with the labels.

# %%
few = jnp.asarray(X[:60])
target = jnp.asarray(labels[:60])
H = empirical_ntk(network.apply, params, few)
eta = 1.0 / float(np.linalg.eigvalsh(np.asarray(H).transpose(2, 0, 3, 1).reshape(600, 600))[-1])


@jax.jit
def advance(p):
    def step(q, _):
        slope = jax.grad(lambda w: 0.5 * jnp.sum((network.apply(w, few) - target) ** 2))(q)
        return jax.tree.map(lambda w, g: w - eta * g, q, slope), None

    return jax.lax.scan(step, p, None, length=25)[0]


def measure(p):
    own = np.asarray(pseudo_ntk(network.apply, p, few))
    gram = np.asarray(target @ target.T)
    return own, float(np.sum(own * gram) / np.linalg.norm(own) / np.linalg.norm(gram))


moving, kernels, alignment = params, [], []
for _ in range(8):
    own, aligned = measure(moving)
    kernels.append(own)
    alignment.append(aligned)
    moving = advance(moving)
steps = 25 * np.arange(8)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot(steps, [np.linalg.norm(own - kernels[0]) / np.linalg.norm(kernels[0]) for own in kernels])
left.set(xlabel="steps", ylabel="relative change of the NTK")
right.plot(steps, alignment)
_ = right.set(xlabel="steps", ylabel="alignment with the labels")

# %% [markdown]
# ## Softmax on the way
# Probabilities of one training digit under cross-entropy, by the linearized network's gradient flow, beside the real
# network trained with small steps.

# %%
classes = np.asarray(target) + 0.1
times = np.array([0.0, 0.05, 0.1, 0.2])
linear = learning_path(model, few[:30], classes[:30], times, few[:1])[:, 0]
slope = jax.jit(jax.grad(lambda p: -jnp.sum(classes[:30] * jax.nn.log_softmax(network.apply(p, few[:30]), axis=-1))))
real, own, size = [], params, 1e-3
for number in range(201):
    if any(abs(number * size - times) < size / 2):
        real.append(np.asarray(jax.nn.softmax(network.apply(own, few[:1])[0])))
    own = jax.tree.map(lambda w, g: w - size * g, own, slope(own))
true = int(classes[0].argmax())
figure, axes = plt.subplots(figsize=(5, 3))
axes.plot(times, linear[:, true], "o-", label="linearized")
axes.plot(times, np.array(real)[:, true], "s--", label="network")
axes.set(xlabel="time", ylabel="probability of the true digit")
_ = axes.legend()

# %% [markdown]
# ## Which digit to label next
# With 40 labels, look-ahead says how far each of 150 candidates would move the predictions if it were labelled, by
# block inversion, without training anything. Then twelve of them really are added, one at a time, and the real
# network, trained from the same start, shows how far it moves.

# %%
shown, pool, watched = np.arange(40), np.arange(100, 250), np.arange(300, 400)
every = jnp.asarray(X[:400])
full = np.asarray(pseudo_ntk(network.apply, params, every))
now = KernelRegression(full[np.ix_(shown, shown)], labels[shown], 1e-2 * np.trace(full) / 400)
scores = expected_change(
    now, full[np.ix_(pool, shown)], full[pool, pool], full[np.ix_(watched, shown)], full[np.ix_(watched, pool)]
)


@jax.jit
def trained(inputs, targets, weights):
    def step(p, _):
        slope = jax.grad(lambda w: 0.5 * jnp.sum(weights[:, None] * (network.apply(w, inputs) - targets) ** 2))(p)
        return jax.tree.map(lambda w, g: w - 0.5 * eta * g, p, slope), None

    return network.apply(jax.lax.scan(step, params, None, length=400)[0], every[watched])


def with_point(c):
    rows = [*shown, c]
    return np.asarray(trained(every[jnp.array(rows)], jnp.asarray(labels[rows]), jnp.ones(41)))


rows = [*shown, pool[0]]
before = np.asarray(trained(every[jnp.array(rows)], jnp.asarray(labels[rows]), jnp.ones(41).at[40].set(0.0)))
chosen = pool[np.argsort(scores)[np.linspace(0, 149, 12).astype(int)]]
moved = np.array([np.sqrt(np.mean((with_point(c) - before) ** 2)) for c in chosen])
start = np.asarray(network.apply(params, every))
fit = KernelRegression(now.K, labels[shown], now.ridge, start[shown])
known = fit.look_ahead(
    full[np.ix_(chosen, shown)],
    full[chosen, chosen],
    labels[chosen] - start[chosen],
    full[np.ix_(watched, shown)],
    full[np.ix_(watched, chosen)],
)
size = np.sqrt(np.mean(known**2, axis=(1, 2)))
correlation = np.corrcoef(size, moved)[0, 1]
figure, axes = plt.subplots(figsize=(4.5, 3))
axes.plot(size, moved, "o")
axes.set(
    xlabel="look-ahead: change of the predictions", ylabel="retrained network", title=f"correlation {correlation:.2f}"
)
print(f"correlation of look-ahead and retraining: {correlation:.2f}")

# %% [markdown]
# ## What no kernel learns
# One ReLU with a large bias, active on few inputs: gradient descent on a single neuron finds it; kernel regression with
# the network's infinite-width NTK from the same samples does not (Yehudai, Shamir 2019).

# %%
from numeric import NetworkKernel

random = np.random.default_rng(1)
d, n = 30, 400
direction = random.normal(size=d)
direction /= np.linalg.norm(direction)


def neuron(inputs):
    return np.maximum(3 * inputs @ direction - 3, 0)


inputs, others = random.normal(size=(n, d)), random.normal(size=(2000, d))
y, truth = neuron(inputs), neuron(others)
kernel = NetworkKernel("relu", inputs, depth=2)
chosen_ridge = ridge_path(kernel(inputs, inputs), y[:, None]).best("loo")
by_kernel = KernelRegression(kernel(inputs, inputs), y, chosen_ridge).predict(kernel(others, inputs))


@jax.jit
def descend(w):
    def step(p, _):
        slope = jax.grad(lambda q: jnp.mean((jnp.maximum(inputs @ q[:-1] + q[-1], 0) - y) ** 2))(p)
        return p - 0.1 * slope, None

    return jax.lax.scan(step, w, None, length=3000)[0]


w = np.asarray(descend(jnp.asarray(random.normal(size=d + 1) * 0.3)))
by_descent = np.maximum(others @ w[:-1] + w[-1], 0)
for name, found in (("kernel regression", by_kernel), ("gradient descent", by_descent)):
    print(f"{name}: test error over the target's variance {np.mean((found - truth) ** 2) / np.var(truth):.3f}")
