"""How a command ends when it cannot answer: one sentence on standard error, never a traceback, nothing half done.

A mistake of the user, or a place that cannot be written, is exit code 2; Ctrl-C is 130, a termination signal 143, and a
defect of ours is 1, with the way to see where it happened: DERIVE_TRACEBACK=1 shows the traceback of any failure.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from types import FrameType
from typing import IO, Any, NoReturn

import click

from derive.cli.limits import say_when_long, whole_question
from derive.cli.output import shown
from derive.errors import DeriveError
from effective_theory.interrupts import when_accepted

PATIENCE = 5.0
"""Seconds after which a stopped command that is deep inside compiled code is ended from outside."""


class Terminated(BaseException):
    """SIGTERM, as an exception, so that half-written files are removed on the way out."""


def explain(error: BaseException) -> tuple[str, int]:
    """The sentence and the exit code of a failure."""
    match error:
        case click.ClickException():
            return error.format_message(), 2
        case KeyboardInterrupt() | click.Abort():
            return "stopped", 130
        case Terminated():
            return "stopped", 143
        case DeriveError():
            return str(error), 2
        case ValueError() if type(error).__module__.startswith("numeric."):
            return str(error), 2
        case UnicodeError():
            return f"A text cannot be read or written in this encoding: {error.reason}." if isinstance(
                error, UnicodeDecodeError | UnicodeEncodeError
            ) else "A text cannot be read or written in this encoding.", 2
        case OSError():
            return _system(error), 2
        case MemoryError():
            return "There is not enough memory for this question: ask for less (inputs, digits, depth, degree).", 2
        case RecursionError():
            return "This question is nested too deeply.", 2
    if "RESOURCE_EXHAUSTED" in str(error):  # JAX out of memory
        return "There is not enough memory for this question: ask for less (inputs, digits, depth, degree).", 2
    words = str(error).strip().splitlines()
    return (
        f"This should not have happened ({type(error).__name__}{': ' + words[0][:200] if words else ''}); "
        "please report it, with what DERIVE_TRACEBACK=1 shows.",
        1,
    )


def _system(error: OSError) -> str:
    from effective_theory.files import OutputError

    reason = error.strerror or str(error) or type(error).__name__
    if isinstance(error, OutputError):
        return reason
    place = f"{error.filename}: " if error.filename is not None else ""
    return f"{place}{reason}."


def guarded(run: Callable[[], int]) -> NoReturn:
    """Run a command and leave the process: with its exit code, or with one sentence."""
    stop = _Stop()
    _mend_streams()
    warnings.showwarning = _warn
    say_when_long(stop.done)
    try:
        with whole_question():
            code = run()
        _flush()
    except click.exceptions.Exit as end:
        code = end.exit_code
        with contextlib.suppress(OSError, ValueError):
            _flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException as error:
        stop.caught()
        code = _report(error)
    stop.caught()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    sys.exit(code)


def _report(error: BaseException) -> int:
    if isinstance(error, BrokenPipeError) and getattr(error, "filename", None) is None:
        _silence(sys.stdout)  # the reader has seen enough
        return 141
    message, code = explain(error)
    if os.environ.get("DERIVE_TRACEBACK") and code not in (130, 143):
        traceback.print_exception(error)
    if isinstance(error, OSError) and error.filename is None:
        _silence(sys.stdout)  # what standard output did not take is not tried again at the end
    with contextlib.suppress(OSError, ValueError):
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"derive: {shown(message)}", err=True)
    return code


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _silence(stream: IO[str] | None) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        empty = os.open(os.devnull, os.O_WRONLY)
        os.dup2(empty, stream.fileno())  # type: ignore[union-attr]
        os.close(empty)


def _mend_streams() -> None:
    """Letters that the terminal's encoding lacks are written as escapes instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _warn(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        click.echo(f"derive: {shown(str(message))}", err=True)


class _Stop:
    """Ctrl-C and SIGTERM end the command, also where a library swallows the exception or stays in compiled code."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.asked: int | None = None
        self.heard = threading.Event()
        when_accepted(self.accepted)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.ask)
            signal.signal(signal.SIGTERM, self.ask)
            self.others, sys.unraisablehook = sys.unraisablehook, self.swallowed

    def swallowed(self, lost: Any) -> None:
        """An exception that arrived in a destructor or a callback of the collector: the next one comes soon."""
        if not isinstance(lost.exc_value, KeyboardInterrupt | Terminated):
            self.others(lost)

    def ask(self, number: int, frame: FrameType | None) -> None:
        if self.done.is_set():
            return
        if self.asked is None:
            self.asked, self.heard = number, threading.Event()
            threading.Thread(target=self.insist, args=(self.heard,), daemon=True).start()
        raise Terminated if self.asked == signal.SIGTERM else KeyboardInterrupt

    def accepted(self) -> None:
        """A run ends with what it has: the next Ctrl-C is a new one."""
        self.heard.set()
        self.asked = None

    def insist(self, heard: threading.Event) -> None:
        """Ask again until the exception has arrived, and in the end leave without asking."""
        start = time.monotonic()
        while not self.done.wait(0.5) and not heard.is_set():
            if time.monotonic() - start > PATIENCE:
                with contextlib.suppress(OSError):
                    os.write(2, b"derive: stopped\n")
                os._exit(143 if self.asked == signal.SIGTERM else 130)
            os.kill(os.getpid(), self.asked or signal.SIGINT)

    def caught(self) -> None:
        self.done.set()
