# %% [markdown]
# # ReLU and finite angles
# A kink makes life different: some tensors do not exist, the kernel does not move at all, and two inputs must be
# followed at finite angle.

# %%
import matplotlib.pyplot as plt
import numpy as np

import derive
from derive.errors import DeriveError
from derive.nearby import finite_angle, psi_series

relu = derive.activation("relu")
relu.criticality()

# %% [markdown]
# ## What exists, exactly
# At criticality every tensor that exists is a polynomial in the layer.

# %%
for name, tensor in relu.exponents().tensors.items():
    print(f"{name:6}", tensor.series if tensor.exists else f"does not exist: {tensor.reason}")

# %% [markdown]
# Asking for a divergent expectation says so:

# %%
from derive.gaussian import parse_bracket, value

try:
    value(parse_bracket("s0'' s0''"), relu, 1)
except DeriveError as error:
    print(error)

# %% [markdown]
# ## Two inputs at an angle
# The angle flows by itself, $\psi \to 3\pi/\ell$ with logarithms, and drags the NTK's angle to $\cos\zeta = 1/4$.

# %%
angle = finite_angle("relu")
print("psi =", psi_series("relu", 2))
print("robustness:", angle.robustness, "  variance:", angle.variance)
print(angle.notes[0])

# %%
rho, psi, diagonal, off = 1 / np.pi, 1.0, 1.5, 0.5 + np.cos(1.0)
layers, angles, ratios = np.arange(1, 3001), [], []
for _ in layers:
    angles.append(psi)
    ratios.append(off / diagonal)
    f = np.cos(psi) + rho * (np.sin(psi) - psi * np.cos(psi))
    off = (1 - rho * psi) * off + 0.5 + f
    diagonal += 1.5
    psi = np.arccos(f)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.loglog(layers, angles, label="exact")
left.loglog(layers, 3 * np.pi / layers, "--", label="$3\\pi/\\ell$")
left.legend()
left.set_xlabel("layer")
right.semilogx(layers, ratios, label=r"$\Theta_{+-}/\Theta_{++}$")
right.axhline(float(angle.cos_zeta), color="gray", linestyle="--", label="1/4")
right.legend()
right.set_xlabel("layer")
figure.tight_layout()
