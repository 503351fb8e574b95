"""The symbols that every formula of the package shares, so that two modules never mean different `C_W`.

Layer parameters carry no layer index: in a recursion from layer l to l+1 they are those of layer l+1.
"""

import sympy as sp

C_b = sp.Symbol("C_b", nonnegative=True)
"""Bias variance."""
C_W = sp.Symbol("C_W", positive=True)
"""Rescaled weight variance: E[W W] = C_W / n_{l-1}."""
lambda_b = sp.Symbol("lambda_b", nonnegative=True)
"""Learning-rate factor of the biases."""
lambda_W = sp.Symbol("lambda_W", nonnegative=True)
"""Learning-rate factor of the weights: the tensor holds lambda_W / n_{l-1}."""
r = sp.Symbol("r", positive=True)
"""Width ratio n_l / n_{l-1}: turns the layer's 1/n_{l-1} into the next one's 1/n_l."""
K = sp.Symbol("K", positive=True)
"""The single-input kernel."""
z = sp.Symbol("z", real=True)
"""The preactivation: the variable of every activation formula."""
ell = sp.Symbol("ell", positive=True)
"""The layer, as a continuous variable of large-depth series."""
L = sp.Symbol("L", positive=True)
"""The depth of the whole network."""

_ELEMENTARY = (sp.exp, sp.log, sp.tanh, sp.sinh, sp.cosh, sp.sin, sp.cos, sp.tan, sp.atan, sp.asinh, sp.erf, sp.erfc)
ELEMENTARY: dict[type, str] = {function: function.__name__ for function in _ELEMENTARY}
"""Functions of formulas, by the names that arbitrary precision and ball arithmetic know them by as well."""
