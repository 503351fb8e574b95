# %% [markdown]
# # A network learns, at finite width
# At infinite width training moves the output and nothing else: the NTK stays what it was. A real network learns
# representations as well, and to first order in $1/n$ the theory says by how much. Here is one small problem at every
# step of gradient descent: the outputs $z(t)$, the change of the NTK and the test loss, of the theory and of networks
# that were really trained.

# %%
import matplotlib.pyplot as plt
import numpy as np

from numeric import GradientDescent, flow, predict
from numeric.ensemble import Networks, train_ensemble
from numeric.ensemble.training import mean_and_error
from numeric.trained.generalization import finite_test_loss

X = np.array([[1.0, 0.3], [-0.4, 1.0], [0.7, -0.8], [0.2, 0.9], [0.9, -0.1]])
target = np.sin(2 * X[:, 0]) - X[:, 1]
train, test = [0, 1, 2], [3, 4]
settings = dict(C_b=0.1, C_W=1.2, lambda_b=0.3, lambda_W=1.0)
n, descent = 48, GradientDescent(eta=0.1)

f = flow("tanh", X, depth=3, width=n, **settings)
times = np.unique(np.round(np.geomspace(1, 200, 14)))
p = predict(f, target[train], train, descent, time=times)
p.notes[1]

# %% [markdown]
# ## Real networks
# Pairs of networks with sign-flipped last layers, sampled anew for each of five times and trained for so many steps.

# %%
networks = Networks("tanh", (2, n, n, 1), **settings)
stops = [2, 8, 25, 70, 200]
runs = {
    t: train_ensemble(
        networks,
        X,
        target[train],
        train,
        descent,
        pairs=1024,
        steps=t,
        seed=t,
        tolerance=None,
        ntk=True,
        progress=False,
    )
    for t in stops
}


def at_stops(samples):
    """Mean over the pairs and its standard error at each stop."""
    means, errors = zip(*(mean_and_error(samples(run)) for run in runs.values()))
    return np.array(means), np.array(errors)


# %% [markdown]
# ## The outputs, the NTK, the test loss
# Of the networks with standard errors; of the theory the test loss too, bias and variance to first order in $1/n$ (the
# outputs `p.mean` and the change `p.ntk_change` of the NTK are there already).

# %%
truth = target[test]


def losses(run):
    """The test loss of each pair of networks."""
    squares = np.diagonal(run.products[:, 0, 0], axis1=-2, axis2=-1)[:, test]
    return np.sum(squares, axis=1) / 2 - run.trained[:, 0, test] @ truth + truth @ truth / 2


z, z_error = at_stops(lambda run: run.trained[:, 0, test])
change, change_error = at_stops(lambda run: run.ntks[:, 0, 0])
loss, loss_error = at_stops(losses)
theory = [finite_test_loss(predict(f, target[train], train, descent, time=t), truth) for t in times]

# %% [markdown]
# ## On one page
# Dashed is infinite width, where the NTK does not change at all; solid is the theory with the order $1/n$; dots are
# networks.

# %%
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6))
for k, color in enumerate(["C0", "C1"]):
    left.plot(times, p.mean_infinite[:, k], "--", color=color)
    left.plot(times, p.mean[:, k], color=color, label=f"test input {k}")
    left.errorbar(stops, z[:, k], z_error[:, k], fmt="o", color=color, ms=4)
left.set_ylabel("z(t), mean over networks")
middle.axhline(0, ls="--", color="gray")
for place, color in zip([0, 2, 3], ["C2", "C3", "C0"]):
    kind = "training" if place in train else "test"
    middle.plot(times, p.ntk_change[:, place, place], color=color, label=f"{kind} input {place}")
    middle.errorbar(stops, change[:, place, place], change_error[:, place, place], fmt="o", color=color, ms=4)
middle.set_ylabel("change of the mean NTK")
right.plot(times, [own.infinite.total for own in theory], "--", color="C4", label="infinite width")
right.plot(times, [own.total for own in theory], color="C4", label="with the order 1/n")
right.errorbar(stops, loss, loss_error, fmt="o", color="C4", ms=4, label=f"networks, n = {n}")
right.set_ylabel("test loss")
for own in (left, middle, right):
    own.set_xscale("log")
    own.set_xlabel("steps")
    own.legend(fontsize=8)
figure.tight_layout()

# %% [markdown]
# ## In numbers
# At the last stop, with the standard errors of the networks. For outputs and loss what is left is below the errors. The
# NTK's change of input 2 is a third off at this width: $n$ times it was measured as −3.6(1) at $n = 48$ and −4.4(1) at
# $n = 96$, which a straight line in $1/n$ takes to −5.2(3); the theory has −5.4. It is the next order.

# %%
last = predict(f, target[train], train, descent, time=stops[-1])
end = finite_test_loss(last, truth)
rows = [(f"z of test input {k}", last.mean_infinite[k], last.mean[k], z[-1, k], z_error[-1, k]) for k in range(2)]
rows += [
    (f"NTK's change, input {a}", 0.0, last.ntk_change[a, a], change[-1, a, a], change_error[-1, a, a])
    for a in (0, 2, 3)
]
rows += [("test loss", end.infinite.total, end.total, loss[-1], loss_error[-1])]
print(f"{'':22}{'n = ∞':>9}{'to 1/n':>9}   networks")
for name, infinite, first, measured, error in rows:
    print(f"{name:22}{infinite:9.4f}{first:9.4f}   {measured:.4f} ± {error:.4f}")
