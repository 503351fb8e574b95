"""Shared by the tests against sampled networks: the stored reference, and derived recursions evaluated in the slow way.

Brackets are Gauss-Hermite sums over all inputs, tensors are filled entry by entry: nothing of `numeric`.
"""

import json
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import sympy as sp

from derive.gaussian.bracket import Bracket
from derive.network import GRAM, TENSORS, Component, Layer, initial, recursion
from derive.symbols import r, z

DATA = Path(__file__).parents[2] / "data" / "sampled"
NODES = {2: 40, 3: 20}
"""Nodes a dimension, for two and three inputs."""


def load(setup):
    return json.loads((DATA / f"{setup}.json").read_text())


class Neuron:
    """Expectations over one Gaussian neuron's preactivations on all inputs."""

    def __init__(self, K, activations):
        x, weights = np.polynomial.hermite_e.hermegauss(NODES[len(K)])
        grid = np.meshgrid(*[x] * len(K), indexing="ij")
        self.z = np.linalg.cholesky(K) @ np.stack([g.ravel() for g in grid])
        w = weights / weights.sum()
        self.weights = np.array([1.0])
        for _ in K:
            self.weights = np.multiply.outer(self.weights, w).ravel()
        self.activations = activations
        self.value = cache(self.value)
        self.mean = cache(self.mean)

    def value(self, sample, order, function):
        derivative = sp.diff(self.activations[function], z, order)
        return sp.lambdify(z, derivative, "numpy")(self.z[sample]) * np.ones_like(self.weights)

    def mean(self, *atoms):
        return float(np.prod([self.value(*a) for a in atoms], axis=0) @ self.weights)


def apply_recursion(rec, tensors, neuron, gram, numbers):
    """The tensor of the next layer, entry by entry."""
    expression = rec.expression.subs({s: numbers[s.name] for s in rec.expression.free_symbols if s.name in numbers})
    atoms = sorted(expression.atoms(Bracket, Component), key=str)
    dummies = sp.symbols(f"a:{len(atoms)}")
    function = sp.lambdify(dummies, expression.xreplace(dict(zip(atoms, dummies))), "numpy")
    inputs = len(gram)
    result = np.empty((inputs,) * len(rec.labels))
    for index in product(range(inputs), repeat=len(rec.labels)):
        place = dict(zip(rec.labels, index))
        values = []
        for atom in atoms:
            if isinstance(atom, Bracket):
                values.append(neuron.mean(*sorted((place[int(a.label)], a.order, a.function) for a in atom.args)))
            else:
                array = gram if atom.name == GRAM else tensors[atom.name]
                values.append(array[tuple(place[int(x)] for x in atom.labels)])
        result[index] = function(*values)
    return result


def flow(record, layer: Layer):
    """All fifteen at layers 1, 2 and 3 of a stored setup, by the recursions derived for the layer's definition."""
    x = np.array(record["inputs"])
    gram = x @ x.T / x.shape[1]
    tensors = {n: apply_recursion(initial(n), {}, None, gram, parameters(record, 0)) for n in TENSORS}
    layers = [tensors]
    for i in (1, 2):
        neuron = Neuron(tensors["K"], activations(record))
        numbers = parameters(record, i)
        tensors = {n: apply_recursion(recursion(n, layer), tensors, neuron, gram, numbers) for n in TENSORS}
        layers.append(tensors)
    return layers


def activations(record):
    return {name: sp.sympify(text, {"z": z}) for name, text in record["activations"].items()}


def parameters(record, i):
    """Hyperparameters of layer i + 1, and r; at the first step the 1/n tensors vanish, so r does not matter there."""
    ratio = record["hidden_widths_over_w"][1] / record["hidden_widths_over_w"][0]
    return {k: v[i] for k, v in record["hyperparameters"].items()} | {r.name: ratio}
