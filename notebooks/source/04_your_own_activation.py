# %% [markdown]
# # Your own activation in ten lines
# Any formula in `z`, parsed by a whitelist. From it: criticality, exponents, generated JAX code, predictions.

# %%
import numpy as np

import derive
from derive.errors import DeriveError
from numeric import flow, predict

mine = derive.activation("sin(z) + 4/5*(1 - cos(z))")
print(mine.criticality().universality_class, mine.criticality().points[0])
print(mine.exponents())
X = np.array([[1.0, 0.0], [0.6, 0.8], [-0.3, 0.9], [0.8, 0.6]])
f = flow("sin(z) + 4/5*(1 - cos(z))", X, depth=4, width=100, lambda_b=0.3, lambda_W=1.0)
p = predict(f, [1.0, 0.0, -1.0], train=[0, 1, 2])
print(
    "mean", p.mean, " infinite width", p.mean_infinite, " standard deviation", np.sqrt(np.diag(p.covariance_infinite))
)

# %% [markdown]
# A formula that the theory cannot take is refused with one sentence:

# %%
for formula in ("log(z)", "x + 1", "exp(z^2)", "__import__('os')"):
    try:
        derive.activation(formula)
    except DeriveError as error:
        print(f"{formula:20} {error}")
