"""Changes that once passed all tests, by name: each must be killed by the test that is there for it.

python tests/mutation/named.py       # stores the outcome in results.json
"""

from __future__ import annotations

from typing import NamedTuple

from run import ROOT, load, save
from warm import attempt, importers, warm_up


class Change(NamedTuple):
    """`old` becomes `new` in a file (once); `test` must fail."""

    what: str
    file: str
    old: str
    new: str
    test: str


TRAINED = "tests/numeric/trained"
CHANGES = (
    Change(
        "the loss ignores κ, (10.22), (10.23)",
        "numeric/trained/losses.py",
        "return np.eye(len(self.y)) if self.kappa is None else np.asarray(self.kappa)",
        "return np.eye(len(self.y))",
        f"{TRAINED}/test_regression_edges.py::test_losses_are_their_slopes_and_curvatures",
    ),
    Change(
        "penultimate_update ignores κ, (10.11), (10.12)",
        "numeric/trained/hidden.py",
        "metric = np.eye(len(picked)) if kappa is None else np.asarray(kappa)",
        "metric = np.eye(len(picked))",
        f"{TRAINED}/test_penultimate_update.py",
    ),
    Change(
        "the kernel of random features is not K on average, (10.136)",
        "numeric/ensemble/features.py",
        "networks.C_W[-1] / width",
        "networks.C_W[-1] / (width + 1)",
        f"{TRAINED}/test_random_features.py::test_the_stochastic_kernel_of_the_last_layer_has_the_mean_K",
    ),
    Change(
        "the test loss of order 1/n, (∞.170)",
        "numeric/trained/generalization.py",
        "float(np.sum((center - truth) * shift))",
        "float(np.sum((center - truth) * shift) / 2)",
        f"{TRAINED}/test_finite_test_loss.py::test_one_training_input_by_hand",
    ),
    Change(
        "deep linear networks, trained, do not interpolate linearly, (10.100)-(10.104)",
        "numeric/trained/infinite.py",
        "return self._map(algorithm, t, inputs) @ self.y",
        "return self._map(algorithm, t, inputs) @ self.y**2",
        f"{TRAINED}/test_deep_linear_networks.py",
    ),
    Change(
        "the two-step algorithm does not invert each network's own NTK, (∞.71)",
        "numeric/trained/algorithms.py",
        '''repairs what the differentials have missed.
    """

    own_ntk = True''',
        '''repairs what the differentials have missed.
    """

    own_ntk = False''',
        "tests/numeric/ensemble/test_steps_by_hand.py",
    ),
    Change(
        "trained networks do not end on their targets, (∞.66)",
        "numeric/trained/dynamics.py",
        "x - x[:, train] @",
        "x - 0.9 * x[:, train] @",
        f"{TRAINED}/test_training_dynamics.py::test_training_inputs_end_on_their_targets",
    ),
)


def main() -> None:
    """Try all of them."""
    warm_up()
    found = {}
    for change in CHANGES:
        text = (ROOT / change.file).read_text(encoding="utf-8")
        if text.count(change.old) != 1:
            raise SystemExit(f"{change.file} has {text.count(change.old)} places like {change.old!r}")
        module = change.file.removesuffix(".py").replace("/", ".")
        new = text.replace(change.old, change.new)
        outcome, test, seconds = attempt(change.file, new, importers(module), [change.test], 200)
        found[change.what] = {"file": change.file, "new": change.new, "outcome": outcome, "test": test}
        print(f"{outcome} {change.what} [{test}] {seconds:.1f} s", flush=True)
    save({}, {"named": found | {k: v for k, v in load().get("named", {}).items() if k not in found}})


if __name__ == "__main__":
    main()
