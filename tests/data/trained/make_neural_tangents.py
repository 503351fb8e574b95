"""Infinite-width kernels and predictions by an independent library, neural-tangents 0.6.5 (not a dependency).

    python -m venv nt && nt/bin/pip install neural-tangents==0.6.5 jax==0.4.30 jaxlib==0.4.30
    nt/bin/python tests/data/trained/make_neural_tangents.py

Its parametrization W = sqrt(C_W/n) ω with unit learning rates is ours with λ_W = C_W, λ_b = C_b. Its optional imports
(TensorFlow) are stubbed: only `stax` and `predict` are used. Writes neural_tangents.json next to this script.
"""

import json
import os
import sys
from pathlib import Path
from unittest.mock import MagicMock

for name in ("tf2jax", "tf2jax.experimental", "tensorflow", "jax.experimental.jax2tf", "neural_tangents.experimental"):
    sys.modules[name] = MagicMock()

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402
import neural_tangents as nt  # noqa: E402
from neural_tangents import stax  # noqa: E402

X = [[1.0, 0.3, -0.2], [-0.4, 1.1, 0.3], [0.2, -0.5, 1.2], [0.7, 0.8, -0.1], [-0.3, 0.4, 0.9]]
Y = [[1.4, -1.0], [-1.1, 0.6], [0.8, 1.5]]
C_W, C_b = 1.5, 0.1
TIMES = [0.5, 3.0, None]
ACTIVATIONS = {"erf": stax.Erf, "relu": stax.Relu, "gelu": stax.Gelu, "sin": stax.Sin}


def record(name):
    dense = lambda: stax.Dense(1, W_std=C_W**0.5, b_std=C_b**0.5, parameterization="ntk")  # noqa: E731
    _, _, kernel = stax.serial(dense(), ACTIVATIONS[name](), dense(), ACTIVATIONS[name](), dense())
    x = jnp.array(X)
    both = kernel(x, None, ("nngp", "ntk"))
    predict = nt.predict.gradient_descent_mse_ensemble(kernel, x[:3], jnp.array(Y), diag_reg=0.0)
    predictions = []
    for t in TIMES:
        # its loss is the mean over samples and outputs: time there is N_train x n_L x ours
        p = predict(t=None if t is None else t * 6, x_test=x[3:], get="ntk", compute_cov=True)
        predictions.append({"t": t, "mean": p.mean.tolist(), "covariance": p.covariance.tolist()})
    return {"K": both.nngp.tolist(), "Theta": both.ntk.tolist(), "predictions": predictions}


def main():
    data = {"X": X, "y": Y, "C_W": C_W, "C_b": C_b, "depth": 3, "version": nt.__version__}
    data["activations"] = {name: record(name) for name in ACTIVATIONS}
    file = Path(__file__).with_name("neural_tangents.json")
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(data, indent=1) + "\n")
    os.replace(partial, file)


if __name__ == "__main__":
    main()
