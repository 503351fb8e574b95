"""Errors of the numeric side that a user can act on: one clear sentence each, which the command line prints."""

from derive.errors import DeriveError


class NumericError(DeriveError):
    """Base of all errors that bad input, or a question without an answer, can raise in `numeric`."""


class NonFiniteFlow(NumericError):
    """The flow left the range of floating-point numbers; the message names the tensor and the layer."""


class NonFinitePrediction(NumericError):
    """A prediction that left the range of floating-point numbers; the message says which."""


class MissingTensor(NumericError, AttributeError):
    """A tensor that was not asked for, or that does not exist for this activation; the message says which and why."""
