# %% [markdown]
# # Generalization and interpolation
# What exponents say about trained networks: how a prediction changes with a nearby input, and how networks bend between
# training points.

# %%
import matplotlib.pyplot as plt
import numpy as np

from derive.nearby import deviation_asymptotics, generalization, interpolation_mean, starpolation

for name in ("tanh", "sin", "erf", "relu", "linear", "softsign", "elu", "selu", "sin(z)+4/5*(1-cos(z))"):
    for rule in ("equivalence", "constant"):
        g = generalization(name, rule)
        print(f"{name:22} {rule:12} robustness {g.robustness}")

# %% [markdown]
# With the equivalence principle, odd activations keep the robustness of order one at any depth; with layer-independent
# learning rates it decays as $1/L$ (and its coefficient is not the printed one: see the errata).

# %%
deviation_asymptotics("generic odd", "ddTheta_2", learning_rates="constant").leading

# %% [markdown]
# ## Interpolation
# The mean prediction at $s x_+ + (1-s) x_-$ between two nearby training inputs, derived from the kernel prediction:

# %%
import sympy as sp
from IPython.display import Math

Math(sp.latex(interpolation_mean(equal_norms=True)))

# %%
starpolation("tanh")

# %% [markdown]
# ## Seen on real inputs
# The exact infinite-width prediction on a circle between two training points, for two depths.

# %%
from numeric import flow, predict

angles = np.linspace(-0.9, 0.9, 41)
train_angles = np.array([-0.5, 0.5])
X = np.array([[np.cos(t), np.sin(t)] for t in [*train_angles, *angles]]) * np.sqrt(2)
figure, axes = plt.subplots(figsize=(6, 3))
for name, depth in (("tanh", 3), ("tanh", 20), ("linear", 3)):
    f = flow(name, X, depth=depth, width=100, C_b=0, C_W=1, lambda_b=0.3, lambda_W=1.0, tensors=["K", "Theta"])
    p = predict(f, np.array([1.0, 1.0]), train=[0, 1])
    axes.plot(angles, p.mean_infinite, label=f"{name}, L = {depth}")
axes.plot(train_angles, [1, 1], "ko")
axes.set_xlabel("angle of the input")
axes.set_ylabel("mean prediction")
_ = axes.legend()
