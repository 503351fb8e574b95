"""A process that answers the explorer's questions, one at a time: JSON lines in, JSON lines out.

In: {"parts": [...], "question": {...}}; {"cancel": true} ends the question at its next step. Out: {"progress": words},
{"part": name, "data": ...}, {"part": name, "error": sentence} and at the end {"done": true}. The process ends with its
input, that is, with the server.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import IO, Any

from derive.errors import DeriveError


class _Cancelled(Exception):
    """The page wants something else."""


def sentence(error: BaseException) -> str:
    """One sentence for the page; a defect of ours says so."""
    if isinstance(error, DeriveError) and str(error):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for this question."
    if isinstance(error, RecursionError):
        return "This formula is nested too deeply."
    return f"This should not have happened ({type(error).__name__}: {str(error)[:200]}); please report it."


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's
    out = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # whatever a library prints does not mix with answers
    questions: queue.Queue[dict[str, Any]] = queue.Queue()
    cancelled = threading.Event()
    threading.Thread(target=_read, args=(sys.stdin, questions, cancelled), daemon=True).start()
    from derive.explorer.answers import Question, answer

    _say(out, {"ready": True})
    while True:
        asked = questions.get()
        cancelled.clear()

        def progress(words: str) -> None:
            if cancelled.is_set():
                raise _Cancelled
            _say(out, {"progress": words})

        for part in asked["parts"]:
            try:
                found: dict[str, Any] = {"data": answer(part, Question.of(asked["question"]), progress)}
            except _Cancelled:
                break
            except Exception as error:  # one part that fails leaves the others
                found = {"error": sentence(error)}
            _say(out, {"part": part, **found})
        _say(out, {"done": True})


def _say(out: IO[str], message: dict[str, Any]) -> None:
    out.write(json.dumps(message, allow_nan=False) + "\n")
    out.flush()


def _read(source: IO[str], questions: queue.Queue[dict[str, Any]], cancelled: threading.Event) -> None:
    for line in source:
        message = json.loads(line)
        if "cancel" in message:
            cancelled.set()
        else:
            questions.put(message)
    os._exit(0)
