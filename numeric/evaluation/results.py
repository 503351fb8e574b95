"""The result of a flow: tensors of every layer that was kept, by name, with what is needed to use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import jax
import numpy as np

from derive.tables import Tabular, html_table
from numeric.brackets import Plan
from numeric.errors import MissingTensor, NumericError
from numeric.evaluation.inputs import Parameters
from numeric.evaluation.storage import State, arrays, read, restore, save
from numeric.evaluation.validity import flow_notes
from numeric.shapes import FourPoint, Kernel, Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Tensors:
    """What the tensors are, for type checkers and readers; which ones there are depends on the question."""

    K: Kernel
    Theta: Kernel
    V: FourPoint
    G1: Kernel
    D: FourPoint
    F: FourPoint
    H1: Kernel
    A: FourPoint
    B: FourPoint
    P: FourPoint
    Q: FourPoint
    R: FourPoint
    S: FourPoint
    T: FourPoint
    U: FourPoint


class Layer(Mapping[str, jax.Array], Tensors):
    """The tensors of one layer: `layer.V` or `layer["V"]`, axes in the subscripts' order."""

    def __init__(self, number: int, tensors: Mapping[str, jax.Array], missing: Mapping[str, str]) -> None:
        self.number = number
        self._tensors = dict(tensors)
        self._missing = dict(missing)

    def __getitem__(self, name: str) -> Tensor:
        if name in self._tensors:
            return self._tensors[name]
        raise MissingTensor(self._missing.get(name, f"The tensor {name} was not asked for: add it to `tensors`."))

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("_") or not name[:1].isupper():
            raise AttributeError(name)
        return self[name]

    def __dir__(self) -> list[str]:
        return sorted({"number", "keys", "items", "values", *self})

    def __repr__(self) -> str:
        return f"Layer({self.number}: {' '.join(self)})"


@jax.tree_util.register_pytree_node_class
class Flow(Tabular, Tensors):
    """The flow of a network: `f.K`, `f.Theta`, ..., `f.U` at the output layer, `f.layer(l)` at layer l (1 to depth).

    `widths` is (n_0, n_1, ..., n_{L-1}), hidden widths None at infinite width; every finite-width
    tensor of layer l carries 1/n_{l-1} = 1/widths[l-1].
    `parameters` holds the per-layer C_b, C_W, lambda_b, lambda_W (arrays of L values), `skip` the skip into each layer
    of a residual network (L values; None where there is none). `error` maps each tensor to an estimate of its numerical
    error relative to its largest entry, computed when first asked for. `plan` can be given to `flow` again, under
    `jax.jit`, `jax.grad` or `jax.vmap`. A flow is a pytree.
    """

    def __init__(
        self,
        activation: ModuleType,
        names: tuple[str, ...],
        widths: tuple[int | None, ...],
        parameters: Parameters,
        layers: Mapping[int, Mapping[str, jax.Array]],
        plan: tuple[Plan, ...],
        missing: Mapping[str, str],
        estimate: Callable[[], dict[str, float]] | None = None,
        skip: jax.Array | None = None,
    ) -> None:
        self.activation = activation
        self.names = names
        self.widths = widths
        self.parameters = parameters
        self.plan = plan
        self.skip = skip
        self._layers = dict(layers)
        self.missing = dict(missing)
        self._estimate = estimate
        self.known_error: dict[str, float] | None = None

    @property
    def depth(self) -> int:
        """L, the number of weight layers."""
        return len(self.widths)

    @property
    def width(self) -> int:
        """n_{L-1}: the last hidden width, by which the output layer's tensors are to be divided."""
        width = self.widths[-1]
        if width is None:
            raise NumericError("This flow is of infinite width: give the hidden layers' width, flow(..., width=...).")
        return width

    def __dir__(self) -> list[str]:
        """What users complete: the tensors of the output layer, and everything else by name."""
        return sorted({*(name for name in object.__dir__(self) if not name.startswith("_")), *self.names})

    def layer(self, number: int) -> Layer:
        """The tensors of layer `number`, counted from 1 (the first preactivations) to depth (the output)."""
        if not 1 <= number <= self.depth:
            raise NumericError(f"There are layers 1 to {self.depth}; {number} is not one of them.")
        if number not in self._layers:
            raise NumericError(f"Layer {number} was not kept: ask for it with layers=[{number}, ...].")
        return Layer(number, self._layers[number], self.missing)

    @property
    def error(self) -> dict[str, float]:
        """{tensor: numerical error at the output layer, relative to the tensor's largest entry}.

        Three times the largest difference from a second, finer evaluation by other routes, plus rounding; of more than
        six inputs only six are compared, those that are hardest to integrate among them, and it is ten times the
        difference: see `numeric.evaluation.error`. It is no bound. Infinity says that there is no second evaluation.
        """
        if self.known_error is None:
            if self._estimate is None:
                raise NumericError(
                    "This flow has no error estimate: ask for it outside of jit, grad and vmap, and before saving."
                )
            self.known_error = self._estimate()
        return self.known_error

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings: where the order 1/n at the output is not small against the leading one, so that it says little.

        >>> from numeric import flow
        >>> wide, narrow = (flow("relu", [[1.0, 0.3]], depth=8, width=n, tensors="V") for n in (400, 20))
        >>> wide.notes, narrow.notes[0][:72]
        ((), "Warning: at width 20 the order 1/n of the output's statistics (V/(n K^2)")
        """
        width = self.widths[-1]
        if width is None or self.depth not in self._layers:
            return ()
        return flow_notes({name: np.asarray(x) for name, x in self._layers[self.depth].items()}, float(width))

    @property
    def kept(self) -> dict[int, Mapping[str, jax.Array]]:
        """The tensors of every layer that was kept, by its number."""
        return dict(self._layers)

    def plot(self, tensor: str = "K", axes: Axes | None = None) -> Axes:
        """A tensor of each input against the layers, on the given Matplotlib axes or new ones; K with its 1/n band."""
        from numeric.evaluation.picture import draw_flow

        return draw_flow(self, tensor, axes)

    def save(self, path: str | Path) -> Path:
        """Write the flow to an npz file, which `numeric.load` reads: arrays and text, no pickle."""
        return save(self, path)

    def rows(self) -> list[dict[str, float | int | str]]:
        """One row a component of a tensor: layer, tensor, its subscripts (input numbers), its value."""
        found: list[dict[str, float | int | str]] = []
        for number, tensors in sorted(self._layers.items()):
            for name, array in tensors.items():
                for place, value in np.ndenumerate(np.asarray(array)):
                    labels = " ".join(map(str, place))
                    found.append({"layer": number, "tensor": name, "inputs": labels, "value": float(value)})
        return found

    def __reduce__(self) -> tuple[Callable[..., Flow], tuple[type[Flow], State]]:
        return restore, (type(self), arrays(self))

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("_") or not name[:1].isupper():
            raise AttributeError(name)
        return self.layer(self.depth)[name]

    def __repr__(self) -> str:
        return (
            f"Flow({self.activation.FUNCTIONS.name}, depth {self.depth}, widths {self.widths}: {' '.join(self.names)})"
        )

    def _repr_html_(self) -> str:
        """The output layer's tensors at a glance: the largest component of each, as it enters (times 1/n)."""
        largest: list[dict[str, object]] = []
        for name, array in self.layer(self.depth).items():
            small = isinstance(array, jax.core.Tracer)
            enters = 1.0 if name in ("K", "Theta") else float(self.width or 1)
            value = "traced" if small else float(np.max(np.abs(np.asarray(array)))) / enters
            over = "" if enters == 1.0 else f" / {self.width:g}"
            largest.append({"tensor": f"{name}{over}", "shape": str(np.shape(array)), "largest component": value})
        return html_table(largest, repr(self))

    def tree_flatten(self) -> tuple[tuple, tuple]:
        static = (self.activation, self.names, self.widths, tuple(sorted(self.missing.items())))
        return (self.parameters, self._layers, self.plan, self.skip), static

    @classmethod
    def tree_unflatten(cls, static: tuple, children: tuple) -> Flow:
        activation, names, widths, missing = static
        parameters, layers, plan, skip = children
        return cls(activation, names, widths, parameters, layers, plan, dict(missing), skip=skip)


def load(path: str | Path) -> Flow:
    """A flow that `f.save` wrote. Its `plan` is empty, and its error is what was known when it was saved."""
    return restore(Flow, read(path))
