"""Activations that are analytic on both sides of a kink at zero (elu, selu, softsign); close inputs."""

from __future__ import annotations

from numeric.brackets.kinked.calculus import Kinked, Wide

__all__ = ["Kinked", "Wide"]
