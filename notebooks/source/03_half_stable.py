# %% [markdown]
# # GELU and SWISH: half-stable criticality
# These activations have a critical point at $K^\star > 0$ that attracts kernels from one side only. The asymptotics are
# the program's; whether a network of ordinary depth ever sees them is another question, and the answer is honest.

# %%
import matplotlib.pyplot as plt
import numpy as np

import derive

for name in ("gelu", "swish"):
    for point in derive.activation(name).criticality().points:
        K_star, C_W, C_b = (float(x) for x in (point.K_star, point.C_W, point.C_b))
        print(f"{name:6} K* = {K_star:.8g}  C_W = {C_W:.8g}  C_b = {C_b:.8g}  {point.stability}")

# %% [markdown]
# GELU's fixed point is exact:

# %%
gelu = derive.activation("gelu").criticality()
gelu.points[0].K_star, gelu.chi_perp

# %% [markdown]
# ## The slow approach
# Starting above $K^\star$ the kernel creeps down as $1/\ell$, but only after many layers: see the note.

# %%
table = derive.activation("gelu").exponents()
for note in table.notes:
    print(note)
print("K - K* ~", table.tensors["K"].series)

# %%
from math import erf, sqrt

nodes, weights = np.polynomial.hermite_e.hermegauss(120)
weights = weights / weights.sum()
point = gelu.points[0]
K_star, C_W, C_b = (float(x) for x in (point.K_star, point.C_W, point.C_b))
phi = np.vectorize(lambda x: 0.5 * (1 + erf(x / sqrt(2))))
figure, axes = plt.subplots(figsize=(6, 3))
for start in (0.5, 2.0, 6.0, 12.0):
    K, kernel = start, []
    for _ in range(3000):
        kernel.append(K)
        z = np.sqrt(K) * nodes
        K = C_b + C_W * weights @ (z * phi(z)) ** 2
    axes.semilogx(np.arange(1, 3001), kernel, label=f"K = {start}")
axes.axhline(K_star, color="gray", linestyle="--")
axes.set_xlabel("layer")
axes.set_ylabel("K")
_ = axes.legend()
