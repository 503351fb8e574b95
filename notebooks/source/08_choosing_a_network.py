# %% [markdown]
# # Choosing a network
#
# You have an activation, a depth and some data. How should the network be initialized, with which learning rate in each
# layer, and how wide must it be? Here an activation is typed by hand, `derive.recommend` answers, and the code that it
# prints trains a real network of depth 50. The framework's default initialization does not.

# %%
import matplotlib.pyplot as plt
import numpy as np

import derive

ACTIVATION, DEPTH, WIDTH, INPUTS = "tanh(2*z/3)", 50, 64, 4
found = derive.recommend(ACTIVATION, DEPTH, width=WIDTH, inputs=INPUTS)
print(f"C_b = {found.C_b}, C_W = {found.C_W}")
for note in found.notes:
    print("-", note)

# %% [markdown]
# The learning rates follow the equivalence principle at this depth: each layer's biases and each layer's weights
# contribute 1/(2L) to the output's NTK. The kernel K falls with depth, as it does for every activation of this class.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
layers = np.arange(1, DEPTH + 1)
left.loglog(layers, found.kernel, label="K")
left.set(xlabel="layer", title="kernel")
right.loglog(layers, found.lambda_b, label=r"$\lambda_b$")
right.loglog(layers, found.lambda_W, label=r"$\lambda_W$")
right.set(xlabel="layer", title="learning rates")
_ = right.legend()
# %% [markdown]
# Which 1/n corrections are large, and how wide is wide enough?

# %%
for name, value in sorted(found.corrections.items(), key=lambda item: -abs(item[1]))[:4]:
    print(f"{name:28} {value:8.3f}/n = {value / WIDTH:.1%} at width {WIDTH}")
print("width for 10 %:", found.width, "  best L/n:", round(found.aspect_ratio, 3))

# %% [markdown]
# ## From the answer to a network
# `found.code("flax")`, or `derive recommend ... --format flax`, is a module that runs as it stands (PyTorch, Equinox
# and Keras too).

# %%
code = found.code("flax")
print(code[: code.index("def normalize")])

# %%
import jax
import jax.numpy as jnp

names = {}
exec(code, names)
rng = np.random.default_rng(1)
X = names["normalize"](jnp.asarray(rng.normal(size=(8, INPUTS))))
y = jnp.asarray(np.sign(np.asarray(X)[:, :1] * np.asarray(X)[:, 1:2]))  # a product of two inputs

# %% [markdown]
# The largest stable learning rate for these eight inputs comes from their NTK at infinite width.

# %%
from numeric import flow

theta = flow(ACTIVATION, X, DEPTH, WIDTH, 0.0, float(found.C_W), found.lambda_b, found.lambda_W, tensors="Theta").Theta
eta_max = 2 / np.linalg.eigvalsh(np.asarray(theta))[-1]
names["ETA"] = float(eta_max) / 2
print(f"eta_max = {eta_max:.3f}, we take half of it")


# %%
def losses(params, optimizer, loss, steps=400):
    """The loss over its value at the start, in time."""
    state = optimizer.init(params)

    @jax.jit
    def step(carry, _):
        params, state = carry
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return (jax.tree.map(lambda p, u: p + u, params, updates), state), value

    return np.asarray(jax.lax.scan(step, (params, state), None, length=steps)[1])


scale = names["TARGET_SCALE"]
params = names["network"].init(jax.random.key(0), X)
ours = losses(params, names["make_optimizer"](params), lambda p: names["loss"](p, X, scale * y))
print(f"loss: {ours[0]:.3g} at the start, {ours[-1]:.3g} after {len(ours)} steps")

# %% [markdown]
# ## The same network with the framework's defaults
# Dense layers as Flax initializes them (variance 1/fan-in, zero biases) and one learning rate for all parameters,
# the best of several.

# %%
import flax.linen as nn
import optax


class Default(nn.Module):
    @nn.compact
    def __call__(self, x):
        z = nn.Dense(WIDTH)(x)
        for layer in range(1, DEPTH):
            z = nn.Dense(WIDTH if layer < DEPTH - 1 else 1)(names["sigma"](z))
        return z


default = Default()
start = default.init(jax.random.key(0), X)
runs = {}
for rate in (1e-1, 1e-2, 1e-3, 1e-4):
    runs[rate] = losses(start, optax.sgd(rate), lambda p: jnp.sum((default.apply(p, X) - y) ** 2) / 2)
best = min(runs, key=lambda rate: runs[rate][-50:].mean() if np.isfinite(runs[rate]).all() else np.inf)
for rate, values in runs.items():
    print(f"learning rate {rate:g}: {values[0]:.3g} -> {values[-50:].mean():.3g}")

# %%
plt.figure(figsize=(5, 3))
plt.semilogy(ours / ours[0], label="recommended")
plt.semilogy(runs[best] / runs[best][0], label=f"default, learning rate {best:g}")
plt.xlabel("step")
plt.ylabel("loss / loss at the start")
_ = plt.legend()
# %%
assert ours[-1] < 0.1 * ours[0]
assert runs[best][-50:].mean() > 3 * (ours[-1] / ours[0]) * runs[best][0]
