# %% [markdown]
# # Your own activation in ten lines
# Any formula in `z`, parsed by a whitelist. From it: criticality, exponents, generated JAX code, predictions.

# %%
import matplotlib.pyplot as plt
import numpy as np

import derive
from derive.errors import DeriveError
from numeric import flow, predict

formula = "sin(z) + 4/5*(1 - cos(z))"
mine = derive.activation(formula)
print(mine.criticality().universality_class, mine.criticality().points[0])
print(mine.exponents())

# %% [markdown]
# Three training points on the unit circle, and what an ensemble of networks of width 20, trained to the end, predicts
# along it: the mean at infinite width, its correction of order $1/n$, and the spread from network to network.

# %%
known, angles = np.array([0.0, 0.93, 1.9]), np.linspace(-1.2, 3.0, 11)
every = np.concatenate([known, angles])
f = flow(formula, np.stack([np.cos(every), np.sin(every)], axis=1), depth=4, width=20, lambda_b=0.3, lambda_W=1.0)
y = [1.0, 0.0, -1.0]
p = predict(f, y, train=[0, 1, 2])
spread = np.sqrt(np.diag(p.covariance_infinite))

# %%
z = np.linspace(-6, 6, 400)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
left.plot(z, np.sin(z) + 0.8 * (1 - np.cos(z)))
left.set(title="the activation", xlabel="z")
middle.fill_between(angles, p.mean_infinite - spread, p.mean_infinite + spread, alpha=0.25, label="one deviation")
middle.plot(angles, p.mean_infinite, label="infinite width")
middle.plot(angles, p.mean, "--", label="width 20")
middle.plot(known, y, "ko", label="training data")
middle.set(title="what trained networks predict", xlabel="angle")
middle.legend(fontsize=7)
right.axhline(0, color="black", linewidth=0.6)
right.plot(angles, p.mean - p.mean_infinite, "o-")
right.plot(known, np.zeros(3), "ko")
right.set(title="shift of the mean by finite width", xlabel="angle")
plt.show()

# %% [markdown]
# A formula that the theory cannot take is refused with one sentence:

# %%
for refused in ("log(z)", "x + 1", "exp(z^2)", "__import__('os')"):
    try:
        derive.activation(refused)
    except DeriveError as error:
        print(f"{refused:20} {error}")
