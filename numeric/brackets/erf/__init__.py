"""Activations made of the error function, its derivatives and powers: closed forms by Stein's identity."""

from __future__ import annotations

from numeric.brackets.erf.calculus import Erf

__all__ = ["Erf"]
