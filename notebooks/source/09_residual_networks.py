# %% [markdown]
# # Residual networks
#
# A skip connection carries a layer's preactivations over: $z' = \xi z + b + W\sigma(z)$. Where is such a network
# critical, what do its $1/n$ corrections do with depth, and do sampled networks agree? In a plain network fluctuations
# add up layer by layer, and depth over width is what counts. With a skip of one that is no longer so.

# %%
import matplotlib.pyplot as plt
import numpy as np

import derive
from numeric import flow

# %% [markdown]
# ## Criticality
# For $|\xi| < 1$ the critical point is the plain network's with both variances times $1 - \xi^2$: what the skip carries
# over, the branch need not supply.

# %%
for skip in ("0", "1/2", "4/5"):
    point = derive.criticality("tanh", layer="residual", skip=skip).points[0]
    print(f"skip {skip:4}  C_b = {point.C_b}, C_W = {point.C_W}")
derive.criticality("tanh", layer="residual", skip="4/5")

# %% [markdown]
# ## The kernel with depth
# A plain tanh network at criticality loses its kernel as $1/(2\ell)$, one with a skip of 4/5 as
# $1/(2(1-\xi^2)\ell)$: a layer counts as 0.36 of a plain one. At $\xi = 1$ the kernel grows.

# %%
DEPTH = 24
x = [[1.0]]
plain = flow("tanh", x, depth=DEPTH, C_b=0, C_W=1, tensors="K")
four_fifths = flow("tanh", x, depth=DEPTH, C_b=0, C_W=[1.0, *[0.36] * (DEPTH - 2), 1.0], skip=0.8, tensors="K")
whole = flow("tanh", x, depth=DEPTH, C_b=0, C_W=[1.0, *[1 / DEPTH] * (DEPTH - 2), 1.0], skip=1.0, tensors="K")
layers = np.arange(1, DEPTH)
figure, axes = plt.subplots(figsize=(6, 3.5))
for f, label in ((plain, "plain"), (four_fifths, "skip 4/5, branch 0.36"), (whole, "skip 1, branch 1/L")):
    axes.loglog(layers, [float(f.layer(l).K[0, 0]) for l in layers], label=label)
axes.loglog(layers, 1 / (2 * layers), ":", color="gray", label=r"$1/(2\ell)$")
axes.loglog(layers, 1 / (0.72 * layers), "--", color="gray", label=r"$1/(2 \cdot 0.36\, \ell)$")
axes.set(xlabel=r"layer $\ell$", ylabel="K")
_ = axes.legend()
# %% [markdown]
# ## Fluctuations
# $V/(nK^2)$ measures how much networks of width $n$ differ. In a plain network it grows in proportion to depth; with a
# skip of one and branches of $1/L$ it stays. The tensors alone do not close here (docs, Residual networks): the program
# iterates functionals of one neuron, so this takes a moment.

# %%
depths = (3, 4, 6)
ratios = {"plain": [], "skip 1, branch 1/L": []}
for L in depths:
    for name, weights, skip in (("plain", 1.0, None), ("skip 1, branch 1/L", [1.0, *[1 / L] * (L - 2), 1.0], 1.0)):
        f = flow("tanh", x, depth=L, width=64, C_b=0, C_W=weights, skip=skip, tensors="V", tolerance=1e-6)
        hidden = f.layer(L - 1)
        ratios[name].append(float(hidden.V[0, 0, 0, 0] / hidden.K[0, 0] ** 2))
figure, axes = plt.subplots(figsize=(6, 3.5))
for name, own in ratios.items():
    axes.plot(depths, own, "o-", label=name)
axes.set(xlabel="depth L", ylabel=r"$V/K^2$ at the last hidden layer")
axes.legend()
print({name: [round(v, 3) for v in own] for name, own in ratios.items()})

# %% [markdown]
# ## Do real networks do that?
# Six thousand networks of width 32 and depth 6 with a skip of one, sampled with NumPy alone. The mean square of a
# layer's preactivations varies from network to network with variance $(V + 2K^2)/n$, which is where $V$ is seen.

# %%
n, L, networks = 32, 6, 6_000
rng = np.random.default_rng(0)
squares = []
for _ in range(10):
    z = rng.standard_normal((networks // 10, n))
    for _ in range(L - 2):
        W = rng.standard_normal((networks // 10, n, n)) * np.sqrt(1 / L / n)
        z = z + np.einsum("kij,kj->ki", W, np.tanh(z))
    squares.append((z**2).mean(axis=1))
square = np.concatenate(squares)
f = flow("tanh", x, depth=L, width=n, C_b=0, C_W=[1.0, *[1 / L] * (L - 2), 1.0], skip=1.0, tensors="V", tolerance=1e-6)
K, V = float(f.layer(L - 1).K[0, 0]), float(f.layer(L - 1).V[0, 0, 0, 0])
variance = square.var(ddof=1)
kurtosis = ((square - square.mean()) ** 4).mean() / variance**2
error = variance * np.sqrt((kurtosis - 1) / networks)
print(f"n times the variance: theory {V + 2 * K**2:.3f}, networks {n * variance:.3f} ± {n * error:.3f}")
print(f"without V it would be {2 * K**2:.3f}")

# %% [markdown]
# ## How far tensors alone are off
# A recursion of $V$ alone drops what the persisting neurons remember. On sampled networks of widths 32, 64 and 128,
# extrapolated to infinite width (two inputs, a plain output layer; the first input's $V$ at the output):

# %%
from derive.reports.residual import samples

lines = [f"{'network':26}  {'sampled':18}  functionals  tensors only"]
for row in samples():
    name = f"{row['activation']}, skip {row['skip']:g}, L = {row['depth']}"
    value = f"{row['sampled']:.4g} ± {row['standard_error']:.1g}"
    pull = (row["functionals"] - row["sampled"]) / row["standard_error"]
    off = 100 * (row["tensors"] / row["functionals"] - 1)
    lines.append(f"{name:26}  {value:18}  {pull:+.1f} s.e.     {off:+.1f} %")
print("\n".join(lines))

# %% [markdown]
# ## What to do with it
# `derive.recommend` knows skips: initialization, learning rates, corrections and code at this depth.

# %%
found = derive.recommend("tanh", depth=8, layer="residual", skip="4/5")
name, size = found.largest
print(f"skip 4/5: width for 10 %: {found.width}; the largest correction is {name} = {size:.3g}/n")
print(f"plain:    width for 10 %: {derive.recommend('tanh', depth=8).width}")
