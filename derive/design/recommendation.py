r"""What the theory recommends for a network of given activation, depth and width, all of it at this very depth.

Initialization at criticality, learning rates by the equivalence principle, the size of every 1/n correction and with it
the width, the aspect ratio that maximizes the mutual information of outputs. The numbers come from the exact recursions
of one input (`derive.design.one_input`); no large-depth formula is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from derive.activations import Activation
from derive.activations import activation as make_activation
from derive.depth.ratios import CONTENT, kernel_powers, ratio_with_targets
from derive.design.information import best_aspect_ratio
from derive.design.initialization import initialization
from derive.design.notes import notes
from derive.design.one_input import one_input
from derive.errors import DeriveError
from derive.layout import Block, Table, Text
from derive.numbers import exact
from derive.results import Result, cell
from derive.steps import said, typeset, words
from derive.symbols import C_W, C_b, lambda_b, lambda_W
from derive.symbols import K as kernel_symbol

SIZE = 0.1
"""The largest 1/n correction that is accepted when a width is recommended."""
LARGEST = {"depth": 100_000, "width": 10**9, "outputs": 10**9, "inputs": 10**9}
"""What a network may have: layers are computed one after the other."""
RULES = ("equivalence", "constant")
Tensors = Mapping[str, float]
"""Tensors of one input at the output layer."""


@dataclass(frozen=True)
class Hyperparameters:
    """Per-layer values, layer 1 first, as `numeric.flow` takes them."""

    C_b: float
    C_W: float
    lambda_b: tuple[float, ...]
    lambda_W: tuple[float, ...]


@dataclass(frozen=True)
class Recommendation(Result):
    """Everything that initializes and trains a network of `depth` weight layers; lists have layer 1 first.

    `corrections` are n times the dimensionless ratios at the output; `width` is where none of them exceeds 10 %, and
    `given_width` what the user asked about. Weights of layer l have standard deviation `weight_std[l - 1]` and learning
    rate eta lambda_W/n_(l-1), biases `bias_std` and eta lambda_b; outputs are multiplied by `output_multiplier`.
    With a `skip`, z' = skip z + b + W sigma(z) between hidden layers, C_b, C_W and `bias_std` are those of these
    layers; `C_b_layers` and `C_W_layers` hold every layer's.
    """

    activation: str
    formula: sp.Expr
    depth: int
    C_b: sp.Expr
    C_W: sp.Expr
    critical: bool
    universality_class: str
    input_norm: float
    inputs: int
    outputs: int
    lambda_b: tuple[float, ...]
    lambda_W: tuple[float, ...]
    weight_std: tuple[float, ...]
    bias_std: float
    output_multiplier: float
    s: float
    eta_max: float
    output_variance: float
    target_scale: float
    corrections: Mapping[str, float]
    width: int
    given_width: int | None
    aspect_ratio: float | None
    kernel: tuple[float, ...]
    C_b_layers: tuple[float, ...]
    C_W_layers: tuple[float, ...]
    skip: sp.Expr | None
    options: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def largest(self) -> tuple[str, float]:
        """The ratio that decides about the width, and n times its value."""
        return max(self.corrections.items(), key=lambda item: abs(item[1])) if self.corrections else ("none", 0.0)

    @property
    def built_width(self) -> int:
        """The hidden width that standard deviations, snippets and --s refer to."""
        return self.given_width if self.given_width is not None else self.width

    def to_json(self) -> dict[str, object]:
        return {
            "activation": self.activation,
            "class": self.universality_class,
            "depth": self.depth,
            "layer": "mlp" if self.skip is None else "residual",
            "skip": None if self.skip is None else exact(self.skip),
            "C_b": exact(self.C_b),
            "C_W": exact(self.C_W),
            "C_b_layers": list(self.C_b_layers),
            "C_W_layers": list(self.C_W_layers),
            "critical": self.critical,
            "input_norm": self.input_norm,
            "lambda_b": list(self.lambda_b),
            "lambda_W": list(self.lambda_W),
            "weight_std": list(self.weight_std),
            "bias_std": self.bias_std,
            "output_multiplier": self.output_multiplier,
            "s": self.s,
            "eta_max": self.eta_max,
            "K": list(self.kernel),
            "target_scale": self.target_scale,
            "corrections": {str(name): value for name, value in self.corrections.items()},
            "largest": [str(self.largest[0]), self.largest[1]],
            "width": self.width,
            "given_width": self.given_width,
            "outputs": self.outputs,
            "aspect_ratio": self.aspect_ratio,
            "notes": [str(note) for note in self.notes],
        }

    def blocks(self) -> tuple[Block, ...]:
        layers = tuple(
            (str(l), f"{self.kernel[l - 1]:.6g}", *(f"{own[l - 1]:.6g}" for own in self._by_layer))
            for l in sorted(
                {1, 2, *(round(self.depth * k / 4) for k in (1, 2, 3)), self.depth} & {*range(1, self.depth + 1)}
            )
        )
        header = ("layer", *(cell(s) for s in (kernel_symbol, lambda_b, lambda_W)), "weights' s.d.")
        summary = (
            (cell(C_b), f"{float(self.C_b):.8g}"),
            (cell(C_W), f"{float(self.C_W):.8g}"),
            (cell(sp.Symbol("x.x/n_0")), f"{self.input_norm:.6g}"),
            (said("largest stable {}", sp.Symbol("eta")), f"{self.eta_max:.6g}"),
            ("multiply targets by", f"{self.target_scale:.6g}"),
            ("width for 10 %", str(self.width)),
            (said("best {}", typeset("L/n")), "–" if self.aspect_ratio is None else f"{self.aspect_ratio:.4g}"),
        )
        ratios = tuple((words(name), f"{value:.5g}") for name, value in self.corrections.items())
        return (
            Table((self.activation, f"depth {self.depth}"), summary),
            Table(header, layers, "Some layers; the JSON has all."),
            Table(("ratio", "n times its value"), ratios, "1/n corrections at the output."),
            *(Text(note) for note in self.notes),
        )

    def code(self, framework: str) -> str:
        """A runnable module of a framework (torch, flax, equinox, keras), exactly equivalent to this network."""
        from derive.design.snippets import snippet

        return snippet(self, framework)

    @property
    def _by_layer(self) -> tuple[tuple[float, ...], ...]:
        return self.lambda_b, self.lambda_W, self.weight_std


def recommend(
    activation: Activation | str | sp.Expr,
    depth: int,
    width: int | None = None,
    outputs: int = 1,
    input_norm: float | None = None,
    inputs: int | None = None,
    targets: float | None = None,
    s: float = 0.0,
    point: int = 0,
    skip: sp.Expr | None = None,
    residual: Callable[[Recommendation], tuple[Tensors, Mapping[str, str]]] | None = None,
) -> Recommendation:
    """Initialization, learning rates, width and aspect ratio of a network of `depth` weight layers.

    `width` is the hidden width of a network that is planned, `inputs` its n_0 (the width unless given), `input_norm`
    the inputs' x.x/n_0, `targets` the targets' mean square if they are not rescaled to the outputs' scale, and `s` the
    place between the NTK (0) and the maximal-update (1) parametrization. `skip` is that between hidden layers; the
    tensors of order 1/n, and what is missing, are then those that `residual` finds for the recommendation so far.

    >>> found = recommend("relu", 8, outputs=2)
    >>> found.C_W, found.lambda_W[0], found.corrections["V/(n K^2)"]
    (2, 0.0625, 35.0)
    >>> round(found.aspect_ratio, 6)  # 4/(26 nu) with nu = 35/8
    0.035165
    """
    _check(depth=depth, width=width, outputs=outputs, inputs=inputs)
    for name, value in (("the inputs' x.x/n_0", input_norm), ("the targets' mean square", targets)):
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
            raise DeriveError(f"{name} is a positive number, not {value!r}")
    if not (isinstance(s, int | float) and 0 <= s <= 1):
        raise DeriveError(f"s lies between 0 (NTK) and 1 (maximal update), not {s!r}")
    sigma = make_activation(activation)
    start = initialization(sigma, depth, input_norm, point, skip)
    C_b_layers, C_W_layers = start.by_layer(depth)
    strength = None if skip is None else float(skip)
    flow = one_input(sigma, depth, C_b_layers, C_W_layers, start.input_norm, skip=strength)
    variance = flow.tensors["K"][-1]
    found = Recommendation(
        activation=sigma.name,
        formula=sigma.expression,
        depth=depth,
        C_b=start.branch * start.C_b,
        C_W=start.branch * start.C_W,
        critical=start.critical,
        universality_class=start.universality_class,
        input_norm=start.input_norm,
        inputs=inputs or 0,
        outputs=outputs,
        lambda_b=flow.lambda_b,
        lambda_W=flow.lambda_W,
        weight_std=(),
        bias_std=math.sqrt(float(start.branch * start.C_b)),
        output_multiplier=1.0,
        s=float(s),
        eta_max=2 / flow.tensors["Theta"][-1],
        output_variance=variance,
        target_scale=math.sqrt(variance) if targets is None else 1.0,
        corrections={},
        width=1,
        given_width=width,
        aspect_ratio=None,
        kernel=flow.tensors["K"],
        C_b_layers=flow.C_b,
        C_W_layers=flow.C_W,
        skip=skip,
        options=_options(input_norm=input_norm, targets=targets, point=point or None),
        notes=(),
    )
    output: Tensors = {name: values[-1] for name, values in flow.tensors.items()}
    missing = flow.missing
    if residual is not None:
        output, missing = residual(found)
    found = _with_width(found, output, variance if targets is None else float(targets))
    return replace(found, notes=notes(found, start.notes, flow.error, missing, targets))


def _with_width(found: Recommendation, output: Tensors, mean_square: float) -> Recommendation:
    """Corrections, the width, and what depends on it: standard deviations and the family's factors."""
    plain = corrections(output, mean_square)
    needed = width_for(plain)
    built = found.given_width if found.given_width is not None else needed
    factor = float(built) ** found.s
    inputs = found.inputs or built
    nu = plain.get("V/(n K^2)", 0.0) / found.depth
    fan_in = [inputs, *[built] * (found.depth - 1)]
    return replace(
        found,
        inputs=inputs,
        lambda_b=tuple(factor * rate for rate in found.lambda_b),
        lambda_W=tuple(factor * rate for rate in found.lambda_W),
        weight_std=tuple(math.sqrt(weight / n) for weight, n in zip(found.C_W_layers, fan_in)),
        output_multiplier=factor**-0.5,
        corrections=corrections(output, factor * mean_square),
        width=needed,
        aspect_ratio=best_aspect_ratio(nu, found.outputs) if nu > 0 else None,
    )


def _options(**given: float | None) -> tuple[str, ...]:
    """The command's options, as far as they were given."""
    return tuple(f"--{name.replace('_', '-')} {value!r}" for name, value in given.items() if value is not None)


def _check(**numbers: int | None) -> None:
    what = {
        "depth": "the depth is the number of weight layers",
        "width": "the width is the number of neurons of a hidden layer",
        "outputs": "outputs is the number of output neurons",
        "inputs": "inputs is the dimension of an input",
    }
    for name, value in numbers.items():
        if value is None and name in ("width", "inputs"):
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise DeriveError(f"{what[name]}, a whole number from 1 on, not {value!r}")
        if value > LARGEST[name]:
            raise DeriveError(f"{what[name]}, at most {LARGEST[name]}, not {value}")


def corrections(output: Tensors, targets: float) -> dict[str, float]:
    """n times each dimensionless ratio at the output, PDLT (∞.169), with K + y^2 for K in the last four (footnote 26).

    `targets` is the mean square y^2 of the targets over outputs; with outputs multiplied by n^(-s/2) and learning rates
    by n^s all ratios stay as they are but for y^2, which then counts n^s times.
    """
    found: dict[str, float] = {}
    for name in CONTENT:
        if name not in output:
            continue
        k, t = kernel_powers(name)
        scale = (output["K"] + targets) ** -k if k < 0 else 1 / output["K"] ** k
        found[ratio_with_targets(name)] = output[name] * scale / output["Theta"] ** t
    return found


def plan(
    activation: Activation | str,
    depth: int,
    learning_rates: str = "equivalence",
    input_norm: float | None = None,
    targets: float | None = None,
    point: int = 0,
) -> tuple[Hyperparameters, dict[str, float]]:
    """Initialization, learning rates (the equivalence principle at this depth, or 1 for all) and n times the ratios.

    >>> plan("relu", 4)[0].lambda_b
    (0.125, 0.125, 0.125, 0.125)
    """
    if learning_rates not in RULES:
        raise DeriveError(f"learning rates are one of {', '.join(RULES)}, not {learning_rates!r}")
    _check(depth=depth)
    sigma = make_activation(activation)
    start = initialization(sigma, depth, input_norm, point)
    rate = 1.0 if learning_rates == "constant" else None
    flow = one_input(sigma, depth, start.C_b, start.C_W, start.input_norm, rate, rate)
    chosen = Hyperparameters(flow.C_b[0], flow.C_W[0], flow.lambda_b, flow.lambda_W)
    output = {name: values[-1] for name, values in flow.tensors.items()}
    return chosen, corrections(output, output["K"] if targets is None else targets)


def width_for(ratios: Mapping[str, float], size: float = SIZE) -> int:
    """The width at which no ratio exceeds `size`."""
    return max([1, *(math.ceil(abs(value) / size - 1e-9) for value in ratios.values())])
