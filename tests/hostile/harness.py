"""Runs one question in this process, with a limit on its time, and says how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType

from click.testing import CliRunner

from derive.cli import group
from derive.cli.failures import explain

LIMIT = 60.0


class OutOfTime(BaseException):
    """A question that did not end."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the main thread after so many seconds of this process's CPU time, again every second."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Count:
    """How many questions ended how, with the ones that ended badly."""

    answers: int = 0
    sentences: int = 0
    defects: list[str] = field(default_factory=list)
    endless: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")

    def __str__(self) -> str:
        total = self.answers + self.sentences + len(self.defects) + len(self.endless)
        return (
            f"{total} tried: {self.answers} answered, {self.sentences} refused in one sentence, "
            f"{len(self.defects)} tracebacks, {len(self.endless)} over {LIMIT:g} s of CPU time; "
            f"slowest {self.slowest[0]:.1f} s ({self.slowest[1]!r})"
        )

    def ask(self, text: str, question: Callable[[], object], limit: float = LIMIT) -> None:
        """Ask, and sort the ending."""
        start = time.process_time()
        try:
            with time_limit(limit), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                question()
            self.answers += 1
        except OutOfTime:
            self.endless.append(text)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            sentence, code = explain(error)
            if code == 2 and sentence.strip() and "\n" not in sentence.strip():
                self.sentences += 1
            else:
                self.defects.append(f"{text!r}: {type(error).__name__}: {error}")
        spent = time.process_time() - start
        self.slowest = max(self.slowest, (spent, text))


def command_line(words: list[str]) -> None:
    """One command line; raises what the command raises."""
    result = CliRunner().invoke(group, words, standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    code = result.exit_code
    if code not in (0, 2):
        raise AssertionError(f"exit code {code}")


def note(text: str) -> None:
    """Print a count where pytest's capture does not swallow it, and keep it for CI's log."""
    path = os.environ.get("HOSTILE_LOG")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    print(text)
