# %% [markdown]
# # A numeric study with generated code
# The full multi-input recursions of all fifteen tensors on a small data set: how strongly do networks of width $n$
# fluctuate, and how does it grow with depth?

# %%
import matplotlib.pyplot as plt
import numpy as np

import derive
from numeric import flow

rng = np.random.default_rng(0)
X = rng.normal(size=(6, 4))
X *= 2 / np.linalg.norm(X, axis=1, keepdims=True)
depth, n = 8, 64
f = flow("tanh", X, depth=depth, width=n, C_b=0.0, C_W=1.0, lambda_b=0.0, lambda_W=1.0)
f

# %% [markdown]
# The numerical error of each tensor, relative to its largest entry, is estimated by the flow itself (`f.error`, here
# some 1e-12 and less, which is rounding and differs from machine to machine):

# %%
bool(max(f.error.values()) < 1e-11)

# %% [markdown]
# ## Fluctuations against depth
# The relative variance of the NTK, $A/(n\Theta^2) + \dots$, and of the kernel, $V/(nK^2)$, averaged over the inputs,
# against the asymptotic slope that `derive` gives for a single input.

# %%
layers = np.arange(2, depth + 1)
diagonal = np.arange(len(X))


def ratio(t, b):
    return np.mean([float(t[i, i, i, i] / b[i, i] ** 2) for i in diagonal]) / n


kernel = [ratio(f.layer(l).V, f.layer(l).K) for l in layers]
ntk = [ratio(f.layer(l).B, f.layer(l).Theta) for l in layers]
slope = float(derive.activation("tanh").exponents().ratios["V"].coefficient)
figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(layers, kernel, "o-", label="$V/(nK^2)$")
axes.plot(layers, ntk, "s-", label="$B/(n\\Theta^2)$")
axes.plot(layers, slope * layers / n, "k--", label=f"{slope:.3g} $\\ell/n$ (large depth)")
axes.set_xlabel("layer")
_ = axes.legend()

# %% [markdown]
# ## Derivatives
# The flow is differentiable: the sensitivity of the output kernel to $C_W$, by automatic differentiation.

# %%
import jax

g = flow("tanh", X, depth=4, width=n, C_W=1.0, tensors=["K"])


def kernel_of(C_W):
    return flow("tanh", X, depth=4, width=n, C_W=C_W, tensors=["K"], plan=g.plan).K[0, 0]


step = 1e-5
print("grad               ", float(jax.grad(kernel_of)(1.0)))
print("difference quotient", float((kernel_of(1 + step) - kernel_of(1 - step)) / (2 * step)))
