"""From recursions and activations to JAX source: stable sigma, the layer step, whole modules with a header."""

from derive.codegen.families import family
from derive.codegen.layer import closure, layer_source
from derive.codegen.module import activation_module, content_hash, layer_module, training_module, write
from derive.codegen.sigma import stable_sigma

__all__ = [
    "activation_module",
    "closure",
    "content_hash",
    "family",
    "layer_module",
    "layer_source",
    "stable_sigma",
    "training_module",
    "write",
]
