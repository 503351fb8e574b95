# %% [markdown]
# # Deriving tanh from scratch
# From the definition of an activation to the behaviour of every finite-width tensor at large depth. Every result below
# is exact, and every one is checked at the end by iterating the exact recursions.

# %%
import matplotlib.pyplot as plt
import numpy as np
import sympy as sp

import derive

a = derive.activation("tanh")
a.expression, a.is_odd, [a.taylor(k) for k in range(6)]

# %% [markdown]
# ## Criticality
# The kernel $K$ of a single input neither explodes nor vanishes exponentially if both susceptibilities are one.

# %%
found = a.criticality()
for step in found.steps:
    print("-", step)
found

# %% [markdown]
# ## The recursions
# Derived by the program from $z' = b + W\sigma(z)$ and the definition of the NTK and its differentials. The first
# ddNTK's tensor $R$, for instance, and its single-input form:

# %%
from IPython.display import Math

R = derive.recursion("R")
print("depends on", R.depends_on)
R.single_input().equal_widths()

# %% [markdown]
# ## Large depth
# A scaling ansatz, order by order. Free constants (`c_K`, `c_Theta`) are what only the first layers can fix.

# %%
table = a.exponents()
table

# %%
series = a.asymptotics("R", order=2)
Math(r"R^{(\ell)} = " + sp.latex(sp.expand(series.series)) + r" + \dots")

# %% [markdown]
# ## Does it hold?
# The kernel's recursion, iterated by an integral at every layer, against its leading term $1/(2\ell)$.

# %%
nodes, weights = np.polynomial.hermite_e.hermegauss(80)
weights = weights / weights.sum()
K, kernel = 1.0, []
layers = np.arange(1, 2001)
for _ in layers:
    kernel.append(K)
    K = weights @ np.tanh(np.sqrt(K) * nodes) ** 2
kernel = np.array(kernel)
leading = sp.lambdify(sp.Symbol("ell", positive=True), table.tensors["K"].leading)(layers)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.loglog(layers, kernel, label="exact")
left.loglog(layers, leading, "--", label="$1/(2\\ell)$")
left.set_xlabel("layer")
left.legend()
right.semilogx(layers, kernel / leading)
right.axhline(1, color="gray")
right.set_xlabel("layer")
right.set_title("exact / leading")
figure.tight_layout()
abs(kernel[-1] / leading[-1] - 1)
