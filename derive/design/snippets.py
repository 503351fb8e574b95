"""A recommendation as code: the network in a framework's own parametrization, with a learning rate for each layer.

The parameters of layer l are drawn with variances C_b and C_W/n_(l-1) and follow gradient descent with learning rates
eta lambda_b and eta lambda_W/n_(l-1) on sum (z - y)^2/2: exactly the network of the theory. What is specific to a
framework is a template; the activation is the framework's own function, or the formula in its array functions. STEPS in
a template are the layers after the first, plain or with a skip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from derive.activations.builtin import BUILTIN
from derive.errors import DeriveError
from derive.symbols import z

if TYPE_CHECKING:
    from derive.design.recommendation import Recommendation

_ARRAY = {"torch": "torch", "flax": "jnp", "equinox": "jnp", "keras": "ops"}
_SPECIAL = {
    "torch": {"erf": "torch.erf", "asinh": "torch.asinh", "atan": "torch.atan", "where": "torch.where"},
    "jnp": {"erf": "jax.scipy.special.erf", "asinh": "jnp.arcsinh", "atan": "jnp.arctan", "where": "jnp.where"},
    "ops": {"erf": "ops.erf", "asinh": "ops.arcsinh", "atan": "ops.arctan", "where": "ops.where"},
}
_OWN = {
    "torch": {
        "relu": "torch.relu(z)",
        "leaky_relu": "torch.nn.functional.leaky_relu(z, 0.01)",
        "sigmoid": "torch.sigmoid(z)",
        "softplus": "torch.nn.functional.softplus(z)",
        "gelu": "torch.nn.functional.gelu(z)",
        "gelu_tanh": 'torch.nn.functional.gelu(z, approximate="tanh")',
        "swish": "torch.nn.functional.silu(z)",
        "mish": "torch.nn.functional.mish(z)",
        "elu": "torch.nn.functional.elu(z)",
        "selu": "torch.nn.functional.selu(z)",
        "softsign": "torch.nn.functional.softsign(z)",
        "sigmoid_half": "torch.sigmoid(z) - 0.5",
    },
    "jnp": {
        "relu": "jax.nn.relu(z)",
        "leaky_relu": "jax.nn.leaky_relu(z, 0.01)",
        "sigmoid": "jax.nn.sigmoid(z)",
        "softplus": "jax.nn.softplus(z)",
        "gelu": "jax.nn.gelu(z, approximate=False)",
        "gelu_tanh": "jax.nn.gelu(z, approximate=True)",
        "swish": "jax.nn.silu(z)",
        "mish": "jax.nn.mish(z)",
        "elu": "jax.nn.elu(z)",
        "selu": "jax.nn.selu(z)",
        "softsign": "jax.nn.soft_sign(z)",
        "sigmoid_half": "jax.nn.sigmoid(z) - 0.5",
    },
    "ops": {
        "relu": "ops.relu(z)",
        "leaky_relu": "ops.leaky_relu(z, 0.01)",
        "sigmoid": "ops.sigmoid(z)",
        "softplus": "ops.softplus(z)",
        "gelu": "ops.gelu(z, approximate=False)",
        "gelu_tanh": "ops.gelu(z, approximate=True)",
        "swish": "ops.silu(z)",
        "mish": 'keras.activations.get("mish")(z)',
        "elu": "ops.elu(z)",
        "selu": "ops.selu(z)",
        "softsign": "ops.softsign(z)",
        "sigmoid_half": "ops.sigmoid(z) - 0.5",
    },
}
"""Built-in activations that frameworks have in a numerically careful form, at the parameters' defaults."""


def sigma_code(name: str, formula: sp.Expr, library: str) -> str:
    """sigma(z) as an expression in a library's functions.

    >>> sigma_code("gelu", sp.S.Zero, "torch"), sigma_code("f", z * sp.tanh(z), "jnp")
    ('torch.nn.functional.gelu(z)', 'z*jnp.tanh(z)')
    """
    return _OWN[library].get(name) or _print(formula, library)


def _print(e: sp.Expr, library: str) -> str:
    special = _SPECIAL[library]
    if e == z:
        return "z"
    if e.is_number:
        return str(e) if e.is_Integer else repr(float(e))
    if e.is_Add:
        return "(" + " + ".join(_print(a, library) for a in e.args) + ")"
    if e.is_Mul:
        return "*".join(_print(a, library) for a in e.args)
    if isinstance(e, sp.Piecewise):
        value, text = e.args[-1][0], None
        text = _print(value, library)
        if not value.has(z):
            text = f"0*z + {text}"
        for branch, condition in reversed(e.args[:-1]):
            test = f"{_print(condition.lhs, library)} {condition.rel_op} {_print(condition.rhs, library)}"
            text = f"{special['where']}({test}, {_print(branch, library)}, {text})"
        return text
    if isinstance(e, sp.exp):
        return f"{library}.exp({_print(e.args[0], library)})"
    if e.is_Pow:
        if e.exp == sp.S.Half:
            return f"{library}.sqrt({_print(e.base, library)})"
        base = _print(e.base, library)
        return f"{base if e.base == z or base.startswith('(') else f'({base})'}**({_print(e.exp, library)})"
    if isinstance(e, sp.Max | sp.Min):
        zero = "z - z" if library != "jnp" else "0.0"
        first, *rest = [_print(a, library) if a.has(z) else f"{zero} + {_print(a, library)}" for a in e.args]
        for other in rest:
            first = f"{library}.{'maximum' if isinstance(e, sp.Max) else 'minimum'}({first}, {other})"
        return first
    name = {sp.Abs: "abs"}.get(e.func, e.func.__name__)
    return f"{special.get(name, f'{library}.{name}')}({_print(e.args[0], library)})"


_HEAD = '''"""{title}

Made by `derive recommend {command}`. Initialization: {why}.
Learning rates: every layer contributes the same to the output's NTK, which is 1 for one input.
"""

{imports}

DEPTH, WIDTH, INPUTS, OUTPUTS = {depth}, {width}, {inputs}, {outputs}  # INPUTS and OUTPUTS: those of your data
C_B, C_W = {C_b!r}, {C_W!r}  # variances: C_B of a bias, C_W/fan_in of a weight
{skip}LAMBDA_B = {lambda_b}
LAMBDA_W = {lambda_W}
S = {s!r}  # 0: NTK parametrization, 1: maximal update
ETA = {eta!r}  # {rate}
INPUT_NORM = {norm!r}  # x.x/n_0 of every input
TARGET_SCALE = {targets!r}  # multiply targets of mean square 1 by it


def sigma(z):
    return {sigma}


def normalize(x):
    return x * (INPUT_NORM * x.shape[-1] / (x * x).sum(-1)[..., None]) ** 0.5


def deviations(layer, fan_in):
    """Standard deviations of the weights and biases of a layer, counted from 0."""
{deviations}


def rates(layer, fan_in):
    """Learning rates of the weights and biases of a layer, counted from 0."""
    return ETA * WIDTH**S * LAMBDA_W[layer] / fan_in, ETA * WIDTH**S * LAMBDA_B[layer]


'''
_ETA_ONE = "one input is learned in one step; for N inputs divide by the largest eigenvalue of their NTK (--data)"
_ETA_DATA = "1/(largest eigenvalue of the data's NTK): half of the largest stable learning rate"
_SKIP = "SKIP, BRANCH = {!r}, {!r}  # between hidden layers z' = SKIP z + b + W sigma(z), BRANCH times C_B and C_W\n"
_PLAIN_DEVIATIONS = "    return (C_W / fan_in) ** 0.5, C_B**0.5"
_RESIDUAL_DEVIATIONS = """    branch = BRANCH if 0 < layer < DEPTH - 1 else 1.0
    return (branch * C_W / fan_in) ** 0.5, (branch * C_B) ** 0.5"""
_STEPS = """        for layer in self.NAME[1:]:
            z = layer(sigma(z))
"""
_RESIDUAL_STEPS = """        for layer in self.NAME[1:-1]:
            z = SKIP * z + layer(sigma(z))
        z = self.NAME[-1](sigma(z))
"""
_FLAX_STEP = """            z = dense(z if layer == 0 else sigma(z))
"""
_RESIDUAL_FLAX_STEP = """            carried = SKIP * z if 0 < layer < DEPTH - 1 else 0.0
            z = carried + dense(z if layer == 0 else sigma(z))
"""

_TORCH = """class Network(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [INPUTS] + [WIDTH] * (DEPTH - 1) + [OUTPUTS]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        for place, layer in enumerate(self.layers):
            weight, bias = deviations(place, layer.in_features)
            nn.init.normal_(layer.weight, std=weight)
            nn.init.normal_(layer.bias, std=bias)

    def forward(self, x):
        z = self.layers[0](x)
STEPS        return WIDTH ** (-S / 2) * z


def make_optimizer(network):
    groups = []
    for place, layer in enumerate(network.layers):
        weight, bias = rates(place, layer.in_features)
        groups += [{"params": [layer.weight], "lr": weight}, {"params": [layer.bias], "lr": bias}]
    return torch.optim.SGD(groups, lr=ETA)


def loss(network, x, y):
    return ((network(x) - y) ** 2).sum() / 2


network = Network()
optimizer = make_optimizer(network)
# for each step: optimizer.zero_grad(); loss(network, normalize(x), TARGET_SCALE * y).backward(); optimizer.step()
"""

_FLAX = """class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        normal, z = nn.initializers.normal, x
        for layer in range(DEPTH):
            size = WIDTH if layer < DEPTH - 1 else OUTPUTS
            weight, bias = deviations(layer, z.shape[-1])
            dense = nn.Dense(size, kernel_init=normal(weight), bias_init=normal(bias), name=f"layer_{layer}")
STEPS        return WIDTH ** (-S / 2) * z


def make_optimizer(params):
    transforms, labels = {}, {}
    for layer in range(DEPTH):
        name = f"layer_{layer}"
        weight, bias = rates(layer, params["params"][name]["kernel"].shape[0])
        transforms |= {f"{name}/kernel": optax.sgd(weight), f"{name}/bias": optax.sgd(bias)}
        labels[name] = {"kernel": f"{name}/kernel", "bias": f"{name}/bias"}
    return optax.multi_transform(transforms, {"params": labels})


def loss(params, x, y):
    return ((network.apply(params, x) - y) ** 2).sum() / 2


network = Network()
params = network.init(jax.random.key(0), jnp.zeros((1, INPUTS)))
optimizer = make_optimizer(params)
state = optimizer.init(params)


@jax.jit
def step(params, state, x, y):
    gradients = jax.grad(loss)(params, normalize(x), TARGET_SCALE * y)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state
"""

_EQUINOX = """class Layer(eqx.Module):
    weight: jax.Array
    bias: jax.Array

    def __init__(self, place, fan_in, fan_out, key):
        one, two = jax.random.split(key)
        weight, bias = deviations(place, fan_in)
        self.weight = weight * jax.random.normal(one, (fan_out, fan_in))
        self.bias = bias * jax.random.normal(two, (fan_out,))

    def __call__(self, x):
        return x @ self.weight.T + self.bias


class Network(eqx.Module):
    layers: list[Layer]

    def __init__(self, key):
        sizes = [INPUTS] + [WIDTH] * (DEPTH - 1) + [OUTPUTS]
        keys = jax.random.split(key, DEPTH)
        self.layers = [Layer(*own) for own in zip(range(DEPTH), sizes, sizes[1:], keys)]

    def __call__(self, x):
        z = self.layers[0](x)
STEPS        return WIDTH ** (-S / 2) * z


def make_optimizer(network):
    transforms = {}
    labels = jax.tree.map(lambda leaf: "", network)
    for place, layer in enumerate(network.layers):
        weight, bias = rates(place, layer.weight.shape[1])
        transforms |= {f"weight {place}": optax.sgd(weight), f"bias {place}": optax.sgd(bias)}
        labels = eqx.tree_at(lambda n: n.layers[place].weight, labels, f"weight {place}")
        labels = eqx.tree_at(lambda n: n.layers[place].bias, labels, f"bias {place}")
    return optax.multi_transform(transforms, lambda _: labels)


def loss(network, x, y):
    return ((network(x) - y) ** 2).sum() / 2


network = Network(jax.random.key(0))
optimizer = make_optimizer(network)
state = optimizer.init(network)


@jax.jit
def step(network, state, x, y):
    gradients = jax.grad(loss)(network, normalize(x), TARGET_SCALE * y)
    updates, state = optimizer.update(gradients, state, network)
    return eqx.apply_updates(network, updates), state
"""

_KERAS = '''class Network(keras.Model):
    def __init__(self):
        super().__init__()
        sizes = [INPUTS] + [WIDTH] * (DEPTH - 1) + [OUTPUTS]
        self.dense = []
        for place, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):
            weight, bias = (keras.initializers.RandomNormal(0.0, own) for own in deviations(place, fan_in))
            layer = keras.layers.Dense(fan_out, kernel_initializer=weight, bias_initializer=bias)
            layer.build((None, fan_in))
            self.dense.append(layer)
        self.built = True

    def call(self, x):
        z = self.dense[0](x)
STEPS        return WIDTH ** (-S / 2) * z


class LayerwiseSGD(keras.optimizers.SGD):
    """Gradient descent with a learning rate for each variable: gradients are multiplied by it, eta is 1."""

    def __init__(self, network):
        super().__init__(learning_rate=1.0)
        self.own_rates = [r for k, layer in enumerate(network.dense) for r in rates(k, layer.kernel.shape[0])]

    def apply(self, grads, trainable_variables=None):
        return super().apply([g * r for g, r in zip(grads, self.own_rates)], trainable_variables)


network = Network()
optimizer = LayerwiseSGD(network)
network.compile(optimizer=optimizer, loss=lambda y, z: ops.sum((z - y) ** 2) / 2)
# network.fit(normalize(x), TARGET_SCALE * y, batch_size=len(x), epochs=...)
'''

_IMPORTS = {
    "torch": "import torch\nfrom torch import nn",
    "flax": "import flax.linen as nn\nimport jax\nimport jax.numpy as jnp\nimport optax",
    "equinox": "import equinox as eqx\nimport jax\nimport jax.numpy as jnp\nimport optax",
    "keras": "import keras\nfrom keras import ops",
}
_BODY = {"torch": _TORCH, "flax": _FLAX, "equinox": _EQUINOX, "keras": _KERAS}


def snippet(found: Recommendation, framework: str) -> str:
    """Runnable source for one of torch, flax, equinox, keras.

    >>> from derive.design.recommendation import recommend
    >>> "optax.multi_transform" in snippet(recommend("relu", 3), "flax")
    True
    """
    if framework not in _BODY:
        raise DeriveError(f"the framework is one of {', '.join(_BODY)}, not {framework!r}")
    why = "critical" if found.critical else "the best at this depth, there is no critical point"
    unscaled = float(found.built_width) ** found.s
    residual = found.skip is not None and found.depth > 2
    branch = found.C_W_layers[1] / found.C_W_layers[0] if residual else 1.0
    head = _HEAD.format(
        title=f"A network of depth {found.depth} with {found.activation} as the effective theory recommends it.",
        command=f"{_quoted(found.activation)} {_options(found)} --format {framework}",
        why=why,
        imports=_IMPORTS[framework],
        depth=found.depth,
        width=found.built_width,
        inputs=found.inputs,
        outputs=found.outputs,
        C_b=found.C_b_layers[0],
        C_W=found.C_W_layers[0],
        skip=_SKIP.format(float(found.skip or 0), branch) if residual else "",
        deviations=_RESIDUAL_DEVIATIONS if residual else _PLAIN_DEVIATIONS,
        lambda_b=_list(found.lambda_b, unscaled),
        lambda_W=_list(found.lambda_W, unscaled),
        s=found.s,
        eta=found.eta_max / 2,
        rate=_ETA_DATA if any(o.startswith("--data") for o in found.options) else _ETA_ONE,
        norm=found.input_norm,
        targets=found.target_scale,
        sigma=sigma_code(found.activation, found.formula, _ARRAY[framework]),
    )
    if framework == "flax":
        steps = _RESIDUAL_FLAX_STEP if residual else _FLAX_STEP
    else:
        steps = (_RESIDUAL_STEPS if residual else _STEPS).replace("NAME", "dense" if framework == "keras" else "layers")
    return head + _BODY[framework].replace("STEPS", steps)


def _options(found: Recommendation) -> str:
    texts = [f"--depth {found.depth}", f"--width {found.built_width}"]
    texts += [f"--inputs {found.inputs}"] if found.inputs != found.built_width else []
    texts += [f"--outputs {found.outputs}"] if found.outputs != 1 else []
    texts += [f"--s {found.s:g}"] if found.s else []
    texts += [f"--layer residual --skip {found.skip}"] if found.skip is not None else []
    return " ".join([*texts, *found.options])


def _quoted(name: str) -> str:
    return name if name in BUILTIN else f"'{name}'"


def _list(values: tuple[float, ...], divisor: float) -> str:
    """A list of numbers, eight digits each, a few to a line."""
    texts = [f"{value / divisor:.9g}" for value in values]
    lines = [", ".join(texts[k : k + 8]) for k in range(0, len(texts), 8)]
    return f"[{lines[0]}]" if len(lines) == 1 else "[\n    " + ",\n    ".join(lines) + ",\n]"
