# %% [markdown]
# # Trained networks at finite width, against a real ensemble
# The theory's mean prediction of trained networks, with its $1/n$ correction split by origin, beside networks that were
# really sampled and trained.

# %%
import matplotlib.pyplot as plt
import numpy as np

from numeric import GradientDescent, flow, predict
from numeric.ensemble import Networks, train_ensemble

X = np.array([[1.0, 0.3], [-0.4, 1.0], [0.7, -0.8], [0.2, 0.9], [0.9, -0.1]])
y = np.array([1.0, -1.0, 0.5])
settings = dict(C_b=0.1, C_W=1.2, lambda_b=0.3, lambda_W=1.0)
n = 32
f = flow("tanh", X, depth=3, width=n, **settings)
p = predict(f, y, train=[0, 1, 2], algorithm=GradientDescent(eta=0.1))
{name: np.round(part, 5) for name, part in p.parts.items()}

# %% [markdown]
# ## Real networks
# Pairs of networks with sign-flipped last layers, trained to convergence by the same gradient descent; the linearized
# prediction of the same networks serves as control variate.

# %%
networks = Networks("tanh", (2, n, n, 1), **settings)
ensemble = train_ensemble(
    networks, X, y, [0, 1, 2], p.algorithm, pairs=320, steps=1600, seed=1, linear_pairs=4096, progress=False
)
mean, error = (np.ravel(part)[[3, 4]] for part in ensemble.mean)
for k in range(2):
    print(
        f"test input {k}: infinite {p.mean_infinite[k]: .4f}   theory to 1/n {p.mean[k]: .4f}   "
        f"networks {mean[k]: .4f} ± {error[k]:.4f}"
    )

# %% [markdown]
# What is left between theory and networks is of order $1/n^2$ and statistical. The interaction part alone, dNTK and
# ddNTKs, is what linearized theories miss:

# %%
interaction, spread = (np.ravel(part)[[3, 4]] for part in ensemble.interaction)
theory = sum(p.parts[name] for name in ("dNTK", "ddNTK-I", "ddNTK-II"))
figure, axes = plt.subplots(figsize=(5, 3))
axes.bar(np.arange(2) - 0.15, theory * n, width=0.3, label="theory, first order")
axes.bar(np.arange(2) + 0.15, interaction * n, width=0.3, yerr=spread * n, label=f"networks, n = {n}")
axes.set_ylabel("n × interaction part")
axes.set_xticks([0, 1], ["test 0", "test 1"])
_ = axes.legend()
