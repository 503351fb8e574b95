"""Ctrl-C that is taken as an answer: a long run that ends with what it has says so, and nobody insists on the end."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def when_accepted(listener: Callable[[], None]) -> None:
    """Call `listener` when a run has caught an interrupt and goes on to report."""
    _listeners.append(listener)


def accepted() -> None:
    """An interrupt has been caught for good: what follows is the report."""
    for listener in _listeners:
        listener()
