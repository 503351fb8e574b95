"""Errors that a user can act on: one clear sentence each. The command line prints them and exits with 2."""


class DeriveError(ValueError):
    """Base of all errors that bad input, or a question without an answer, can raise."""


class FormulaError(DeriveError):
    """An activation name or formula that the whitelist parser refuses."""


class DivergentExpectation(DeriveError):
    """A Gaussian expectation that does not exist, with the reason."""
