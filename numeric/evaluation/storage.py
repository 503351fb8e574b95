"""Flows on disk and in pickles: arrays and text. An npz file holds no pickle, so that opening one runs nothing."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from effective_theory.files import write_file
from numeric.activations import load as load_activation
from numeric.archives import read_arrays
from numeric.errors import NumericError
from numeric.evaluation.inputs import HYPERPARAMETERS, Parameters
from numeric.generated.layer import STEPS

if TYPE_CHECKING:
    from numeric.evaluation.results import Flow

FORMAT = "effective-theory flow 1"
State = dict[str, np.ndarray]


def arrays(flow: Flow) -> State:
    """Everything that a flow holds but its quadrature plan, as arrays; texts are zero-dimensional ones."""
    about = {
        "format": FORMAT,
        "activation": flow.activation.FUNCTIONS.name,
        "names": list(flow.names),
        "widths": list(flow.widths),
        "missing": dict(flow.missing),
        "error": flow.known_error,
    }
    found = {"about": np.array(json.dumps(about))}
    found |= {f"parameters/{name}": np.asarray(getattr(flow.parameters, name)) for name in HYPERPARAMETERS}
    found |= {} if flow.skip is None else {"skip": np.asarray(flow.skip)}
    for number, tensors in flow.kept.items():
        found |= {f"layer/{number}/{name}": np.asarray(value) for name, value in tensors.items()}
    return found


def restore(kind: type[Flow], state: State) -> Flow:
    """A flow from its arrays."""
    about = json.loads(str(state["about"]))
    parameters = Parameters(**{name: jnp.asarray(state[f"parameters/{name}"]) for name in HYPERPARAMETERS})
    layers: dict[int, dict[str, jnp.ndarray]] = {}
    for key, value in state.items():
        if key.startswith("layer/"):
            _, number, name = key.split("/")
            layers.setdefault(int(number), {})[name] = jnp.asarray(value)
    module = load_activation(about["activation"])
    flow = kind(module, tuple(about["names"]), tuple(about["widths"]), parameters, layers, (), about["missing"])
    flow.skip = jnp.asarray(state["skip"]) if "skip" in state else None
    flow.known_error = about["error"]
    return flow


def save(flow: Flow, path: str | Path) -> Path:
    """Write a flow to an npz file, atomically."""
    target = Path(path)
    out = BytesIO()
    np.savez_compressed(out, allow_pickle=False, **arrays(flow))
    write_file(target, out.getvalue())
    return target


def read(path: str | Path) -> State:
    """The arrays of a file that `save` wrote, looked at before they are believed."""
    state = read_arrays(path, "a flow that `f.save` wrote")
    try:
        _check(state)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise NumericError(f"{path} is not a flow that `f.save` wrote, or has been changed since.") from None
    return state


def _check(state: State) -> None:
    """Raises one of the errors above where names, shapes or numbers are not those of a flow."""
    about = json.loads(str(state["about"]))
    widths, names = about["widths"], about["names"]
    sound = about["format"] == FORMAT and isinstance(about["activation"], str) and isinstance(about["missing"], dict)
    sound = sound and all(n is None or (type(n) is int and n > 0) for n in widths) and set(names) <= set(STEPS)
    errors, sizes = about["error"], set[int]()
    sound = sound and {f"parameters/{name}" for name in HYPERPARAMETERS} <= set(state)
    sound = sound and (errors is None or all(type(x) is float for x in errors.values()))
    for key, value in state.items():
        if key == "about":
            continue
        sound = sound and value.dtype in (np.float64, np.float32) and bool(np.isfinite(value).all())
        if key.startswith("layer/"):
            _, number, name = key.split("/")
            sizes |= set(value.shape)
            sound = sound and 1 <= int(number) <= len(widths) and value.ndim == STEPS[name].rank
        else:
            sound = sound and value.ndim == 1 and (key == "skip" or value.shape == (len(widths),))
    if not sound or not widths or len(sizes) != 1:
        raise ValueError("not a flow")
