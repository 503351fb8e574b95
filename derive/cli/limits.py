"""Limits on time: reading a formula ends within half a minute, and a long question says that it is still at work.

DERIVE_TIME_LIMIT=60 ends any question after 60 seconds of CPU time with one sentence (for services and tests).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import click

from derive.errors import DeriveError

READING = 30.0
"""Seconds of CPU time for reading one formula."""
MOMENTS = (20.0, 60.0, 180.0, 600.0, 1800.0)
"""CPU seconds after which a command says that it is still at work."""


class _OutOfTime(BaseException):
    """Not an Exception, so that no library's `except Exception` swallows it."""


@contextlib.contextmanager
def cpu_limit(seconds: float, sentence: str) -> Iterator[None]:
    """A DeriveError with that sentence after so many seconds of CPU time (main thread of Unix systems only)."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "ITIMER_VIRTUAL"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGVTALRM, stop)
    rest, _ = signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)
    try:
        yield
    except _OutOfTime:
        raise DeriveError(sentence) from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, max(rest - seconds, 1.0) if rest else 0.0, 1.0 if rest else 0.0)
        signal.signal(signal.SIGVTALRM, before)


@contextlib.contextmanager
def whole_question() -> Iterator[None]:
    """The limit that the user has set, if any."""
    text = os.environ.get("DERIVE_TIME_LIMIT", "")
    if not text:
        yield
        return
    if not text.isdigit() or not 1 <= int(text) <= 10**6:
        raise DeriveError(f"DERIVE_TIME_LIMIT is a whole number of seconds, not {text!r}.")
    with cpu_limit(float(text), f"This question took more than {text} s of CPU time (DERIVE_TIME_LIMIT)."):
        yield


def say_when_long(done: threading.Event) -> None:
    """Start the voice that speaks after a while on standard error, until `done`."""

    def speak() -> None:
        for moment in MOMENTS:
            while time.process_time() < moment:
                if done.wait(max(0.5, (moment - time.process_time()) / 4)):
                    return
            if not done.is_set():
                with contextlib.suppress(OSError, ValueError):
                    click.echo(f"derive: still at work after {moment:g} s; Ctrl-C stops it, nothing is lost", err=True)

    threading.Thread(target=speak, daemon=True).start()
