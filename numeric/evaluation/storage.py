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
from numeric.errors import NumericError
from numeric.evaluation.inputs import HYPERPARAMETERS, Parameters

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
    """The arrays of a file that `save` wrote."""
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            state = {key: file[key] for key in file.files}
        if json.loads(str(state["about"]))["format"] != FORMAT:
            raise KeyError("format")
    except OSError as error:
        raise NumericError(f"Cannot read {path}: {error.strerror or 'it is no npz file'}.") from None
    except (ValueError, KeyError, TypeError, EOFError):
        raise NumericError(f"{path} is not a flow that `f.save` wrote.") from None
    return state
