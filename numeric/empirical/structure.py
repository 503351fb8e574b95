"""Where a model's parameters enter, read off its trace: dense and convolution layers, and everything else.

A matrix that enters a model once, through y = a W (or a convolution), has the gradient sum_p a_p (x) dz/dy_p: a is the
layer's input, p the positions (one in a dense layer) and dz/dy the signal that comes back. `Structure` finds these
places in the model's jaxpr and runs the model with a zero added to every such y, so that one backward pass a output
gives all signals at once; no gradient with respect to a matrix is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun

Key = tuple[int, ...]
_ISOMETRIES = ("transpose", "reshape", "squeeze", "copy", "rev")
"""Primitives that only move a parameter's numbers."""
_INLINED = ("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "remat2")


@dataclass(frozen=True)
class Place:
    """One matrix (or convolution kernel) at the only place where it enters the model, `scale` times."""

    key: Key
    leaf: int
    scale: float
    operand: int  # which operand of the primitive is the parameter
    positions: int
    inputs: int  # length of a_p
    outputs: int  # length of y_p


@dataclass(frozen=True)
class _Tag:
    """This value is `scale` times a parameter, its numbers moved about."""

    leaf: int
    scale: float


class Structure:
    """The places of a model `function(leaves, x)` of one input, for parameter leaves of given shapes."""

    def __init__(self, function: Callable[[Sequence[Array], Array], Array], leaves: Sequence[Any], x: Any) -> None:
        self.closed: ClosedJaxpr = jax.make_jaxpr(lambda p, x: function(p, x))(list(leaves), x)
        self._uses: dict[int, list[Place | None]] = {k: [] for k in range(len(leaves))}
        tags: list[_Tag | None] = [_Tag(k, 1.0) for k in range(len(leaves))]
        rest = len(self.closed.jaxpr.invars) - len(leaves)
        out = self._analyse(self.closed.jaxpr, [*tags, *[None] * rest], ())
        for tag in filter(None, out):
            self._uses[tag.leaf].append(None)
        self.places = [u[0] for u in self._uses.values() if len(u) == 1 and u[0] is not None]
        """Leaves with one use, in a dense layer or a convolution."""
        structured = {place.leaf for place in self.places}
        self.others = [k for k, uses in self._uses.items() if uses and k not in structured]
        """Leaves whose gradients are formed."""

    def _analyse(self, jaxpr: Jaxpr, tags: Sequence[_Tag | None], path: Key) -> list[_Tag | None]:
        known: dict[Any, _Tag | None] = dict(zip(jaxpr.invars, tags))

        def tag_of(v: Any) -> _Tag | None:
            return None if isinstance(v, Literal) else known.get(v)

        for number, eqn in enumerate(jaxpr.eqns):
            found = [tag_of(v) for v in eqn.invars]
            if not any(found):
                continue
            key = (*path, number)
            name = eqn.primitive.name
            if name in _INLINED and (inner := _inner(eqn)) is not None:
                known.update(zip(eqn.outvars, self._analyse(inner.jaxpr, found, key)))
            elif name in _ISOMETRIES or (name == "convert_element_type" and _same_type(eqn)):
                known[eqn.outvars[0]] = found[0]
            elif (scaled := _scaled(eqn, found)) is not None:
                known[eqn.outvars[0]] = scaled
            else:
                place = _place(eqn, found, key)
                for tag in filter(None, found):
                    self._uses[tag.leaf].append(place)
        return [tag_of(v) for v in jaxpr.outvars]

    def biases(self) -> dict[Key, tuple[int, float]]:
        """{place: (leaf, c)} for the leaves whose gradient is c times the signal of a dense layer at one position.

        Such a leaf is added, number by number, to a multiple of the layer's y, and neither is used anywhere else.
        """
        found: dict[Key, tuple[int, float]] = {}
        for place in self.places:
            if place.positions == 1 and self._equation(place.key).primitive.name == "dot_general":
                bias = self._bias(place)
                if bias is not None and self._uses[bias[0]] == [None]:
                    found[place.key] = bias
        return found

    def _bias(self, place: Place) -> tuple[int, float] | None:
        jaxpr = self._jaxpr(place.key)
        if place.key[:-1]:  # inside a call: which leaf an argument is would have to be followed through it
            return None
        leaves: dict[Any, _Tag] = {v: _Tag(k, 1.0) for k, v in enumerate(jaxpr.invars[: len(self._uses)])}
        value, scale = jaxpr.eqns[place.key[-1]].outvars[0], 1.0

        def used_once(v: Any) -> bool:
            return sum(u is v for e in jaxpr.eqns for u in e.invars) + sum(u is v for u in jaxpr.outvars) == 1

        for number, eqn in enumerate(jaxpr.eqns):
            operands = [v for v in eqn.invars if not isinstance(v, Literal)]
            own = [leaves[v] for v in operands if v in leaves and used_once(v)]
            if own and len(operands) == 1 and _in_order(eqn):
                leaves[eqn.outvars[0]] = own[0]
            elif own and len(operands) == 1:
                scaled = _scaled(eqn, [own[0] if v is operands[0] else None for v in eqn.invars])
                leaves.update({} if scaled is None else {eqn.outvars[0]: scaled})
            if number <= place.key[-1] or value not in operands:
                continue
            if not used_once(value):
                return None
            moved = _scaled(eqn, [_Tag(0, scale) if v is value else None for v in eqn.invars])
            if _in_order(eqn):
                value = eqn.outvars[0]
            elif moved is not None and moved.scale != 0:
                value, scale = eqn.outvars[0], moved.scale
            elif eqn.primitive.name in ("add", "add_any") and len(own) == 1 and _equal_shapes(eqn):
                return own[0].leaf, own[0].scale / scale
            else:
                return None
        return None

    def run(
        self,
        leaves: Sequence[Array],
        x: Array,
        added: dict[Key, Array] | None = None,
        move: Callable[[Place, Array], Array] | None = None,
    ) -> tuple[Array, dict[Key, Array]]:
        """The output on one input with `added` on top of every place's y, and the inputs a of the places (p, k).

        `move(place, a)` is added too, (positions, outputs) of the place.
        """
        seen: dict[Key, Array] = {}
        places = {place.key: place for place in self.places}

        def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], values: Sequence[Any], path: Key) -> list[Any]:
            env: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values]))
            read = lambda v: v.val if isinstance(v, Literal) else env[v]  # noqa: E731
            for number, eqn in enumerate(jaxpr.eqns):
                key = (*path, number)
                arguments = [read(v) for v in eqn.invars]
                inner = _inner(eqn) if eqn.primitive.name in _INLINED else None
                if inner is not None:
                    answers = evaluate(inner.jaxpr, inner.consts, arguments, key)
                else:
                    answers = _apply(jaxpr, eqn, arguments)
                if key in places:
                    seen[key] = _inputs(eqn, places[key], arguments)
                    if added is not None:
                        answers = [answers[0] + added[key]]
                    if move is not None:
                        answers = [answers[0] + self.output(places[key], move(places[key], seen[key]))]
                env.update(zip(eqn.outvars, answers))
            return [read(v) for v in jaxpr.outvars]

        flat = evaluate(self.closed.jaxpr, self.closed.consts, [*leaves, x], ())
        return flat[0], seen

    def zeros(self) -> dict[Key, Array]:
        """What is added at every place: nothing."""
        return {key: jnp.zeros(aval.shape, aval.dtype) for key, aval in self._outputs().items()}

    def _outputs(self) -> dict[Key, Any]:
        found: dict[Key, Any] = {}

        def visit(jaxpr: Jaxpr, path: Key) -> None:
            for number, eqn in enumerate(jaxpr.eqns):
                key = (*path, number)
                if eqn.primitive.name in _INLINED and (inner := _inner(eqn)) is not None:
                    visit(inner.jaxpr, key)
                elif any(place.key == key for place in self.places):
                    found[key] = _shaped(eqn.outvars[0])

        visit(self.closed.jaxpr, ())
        return found

    def signal(self, place: Place, cotangent: Array) -> Array:
        """dz/dy of a place as (outputs of the model, positions, outputs of the layer)."""
        eqn = self._equation(place.key)
        if eqn.primitive.name == "conv_general_dilated":
            feature = eqn.params["dimension_numbers"].out_spec[1]
            moved = jnp.moveaxis(cotangent, feature + 1, -1)
        else:
            contract, _ = eqn.params["dimension_numbers"]
            free = len(_shaped(eqn.invars[1 - place.operand]).shape) - len(contract[0])
            moved = cotangent if place.operand == 1 else jnp.moveaxis(cotangent, range(-free, 0), range(1, free + 1))
        return moved.reshape(len(cotangent), place.positions, place.outputs)

    def output(self, place: Place, y: Array) -> Array:
        """(positions, outputs of the layer) in the shape that the place's y has: what `signal` undoes."""
        eqn = self._equation(place.key)
        shape = _shaped(eqn.outvars[0]).shape
        if eqn.primitive.name == "conv_general_dilated":
            feature = eqn.params["dimension_numbers"].out_spec[1]
            rest = [size for d, size in enumerate(shape) if d != feature]
            return jnp.moveaxis(y.reshape(*rest, place.outputs), -1, feature)
        if place.operand == 1:
            return y.reshape(shape)
        contract, _ = eqn.params["dimension_numbers"]
        free = len(_shaped(eqn.invars[1]).shape) - len(contract[0])
        moved = y.reshape(*shape[len(shape) - free :], *shape[: len(shape) - free])
        return jnp.moveaxis(moved, range(free), range(-free, 0))

    def _equation(self, key: Key) -> JaxprEqn:
        return self._jaxpr(key).eqns[key[-1]]

    def _jaxpr(self, key: Key) -> Jaxpr:
        """The (inner) jaxpr in which an equation stands."""
        jaxpr = self.closed.jaxpr
        for number in key[:-1]:
            inner = _inner(jaxpr.eqns[number])
            assert inner is not None
            jaxpr = inner.jaxpr
        return jaxpr


def _apply(jaxpr: Jaxpr, eqn: JaxprEqn, arguments: Sequence[Any]) -> list[Any]:
    """One equation on values."""
    alone = [(v, value) for v, value in zip(eqn.invars, arguments) if not isinstance(v, Literal)]
    known = dict(alone)  # an operand that occurs twice is one argument
    single = jaxpr.replace(constvars=[], invars=list(known), outvars=list(eqn.outvars), eqns=[eqn])
    return list(jaxpr_as_fun(ClosedJaxpr(single, ()))(*known.values()))


def _inner(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The closed jaxpr that a call runs, if it can be run in its place."""
    inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
    if isinstance(inner, Jaxpr):
        return ClosedJaxpr(inner, ()) if not inner.constvars else None
    return inner if isinstance(inner, ClosedJaxpr) else None


def _shaped(v: Any) -> jax.core.ShapedArray:
    """What is known of a value before it is computed: shape and type."""
    aval: jax.core.ShapedArray = v.aval
    return aval


def _in_order(eqn: JaxprEqn) -> bool:
    """Whether an equation only gives its operand's numbers another shape: the same ones in the same order."""
    name = eqn.primitive.name
    if name in ("reshape", "squeeze", "copy") or (name == "convert_element_type" and _same_type(eqn)):
        return eqn.params.get("dimensions") is None or name != "reshape"
    return name == "broadcast_in_dim" and _shaped(eqn.invars[0]).size == _shaped(eqn.outvars[0]).size


def _equal_shapes(eqn: JaxprEqn) -> bool:
    first, second = (_shaped(v).shape for v in eqn.invars)
    return bool(first == second)


def _same_type(eqn: JaxprEqn) -> bool:
    return bool(_shaped(eqn.invars[0]).dtype == _shaped(eqn.outvars[0]).dtype)


def _scaled(eqn: JaxprEqn, tags: Sequence[_Tag | None]) -> _Tag | None:
    """A parameter times or divided by a number that stands in the trace."""
    name = eqn.primitive.name
    if name == "neg" and tags[0] is not None:
        return _Tag(tags[0].leaf, -tags[0].scale)
    if name not in ("mul", "div") or len(eqn.invars) != 2:
        return None
    for k in (0, 1) if name == "mul" else (0,):
        tag, other = tags[k], eqn.invars[1 - k]
        if tag is not None and isinstance(other, Literal) and np.ndim(other.val) == 0:
            factor = float(other.val)
            return _Tag(tag.leaf, tag.scale * factor if name == "mul" else tag.scale / factor)
    return None


def _place(eqn: JaxprEqn, tags: Sequence[_Tag | None], key: Key) -> Place | None:
    """The dense layer or convolution that this equation is, if one operand is a parameter and the other is not."""
    name = eqn.primitive.name
    if len(tags) != 2 or (tags[0] is None) == (tags[1] is None):
        return None
    operand = 0 if tags[0] is not None else 1
    tag = tags[operand]
    assert tag is not None
    if name == "dot_general":
        (contract, batch) = eqn.params["dimension_numbers"]
        if any(batch):
            return None
        parameter, other = _shaped(eqn.invars[operand]), _shaped(eqn.invars[1 - operand])
        length = math.prod(parameter.shape[d] for d in contract[operand])
        outputs, positions = parameter.size // max(length, 1), other.size // max(length, 1)
        return Place(key, tag.leaf, tag.scale, operand, positions, length, outputs)
    if name == "conv_general_dilated" and operand == 1:
        p = eqn.params
        if p["feature_group_count"] != 1 or p["batch_group_count"] != 1:
            return None
        kernel, out = _shaped(eqn.invars[1]), _shaped(eqn.outvars[0])
        channels = kernel.shape[p["dimension_numbers"].rhs_spec[0]]
        return Place(key, tag.leaf, tag.scale, 1, out.size // channels, kernel.size // channels, channels)
    return None


def _inputs(eqn: JaxprEqn, place: Place, arguments: Sequence[Array]) -> Array:
    """a, the layer's input, as (positions, length)."""
    other = arguments[1 - place.operand]
    if eqn.primitive.name == "dot_general":
        contracted = eqn.params["dimension_numbers"][0][1 - place.operand]
        moved = jnp.moveaxis(other, contracted, range(-len(contracted), 0))
        return moved.reshape(place.positions, place.inputs)
    p = eqn.params
    numbers = p["dimension_numbers"]
    kernel = arguments[1].shape
    patches = jax.lax.conv_general_dilated_patches(
        other,
        [kernel[d] for d in numbers.rhs_spec[2:]],
        p["window_strides"],
        p["padding"],
        lhs_dilation=p["lhs_dilation"],
        rhs_dilation=p["rhs_dilation"],
        dimension_numbers=numbers,
    )
    return jnp.moveaxis(patches, numbers.out_spec[1], -1).reshape(place.positions, place.inputs)
