"""Worker processes that stay warm: a question goes to one that is free, and is cancelled by asking it, then by force.

A worker that does not stop within `GRACE` seconds is ended and replaced; its memory of activations is lost, so quick
questions are left to finish.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from typing import Any

WORKERS = 2
GRACE = 1.0
WARMING = 60.0
"""Seconds in which a new process has loaded everything."""
READING = 30.0
"""Seconds that a formula may take to be read."""
LONGEST = 1800.0
"""Seconds after which a question is given up."""
BEAT = 0.25
"""Seconds between two looks at whether the question is still wanted."""
Message = dict[str, Any]
_START = "import sys; sys.path[:] = sys.argv[1:]; from derive.explorer.worker import main; main()"


class _Worker:
    """One process, and the thread that reads what it says."""

    def __init__(self) -> None:
        self.activation = ""
        self.ready = threading.Event()
        self.said: queue.Queue[Message | None] = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines, contextlib.suppress(ValueError, OSError):
            for line in lines:
                message = json.loads(line)
                if message.get("ready"):
                    self.ready.set()
                else:
                    self.said.put(message)
        self.said.put(None)

    def tell(self, message: Message) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()


class Pool:
    """`WORKERS` processes for all tabs of all browsers."""

    def __init__(self, workers: int = WORKERS) -> None:
        self._free = threading.Condition()
        self._idle = [_Worker() for _ in range(workers)]
        self._all = list(self._idle)
        self._closed = False

    def ask(self, parts: list[str], question: dict[str, str]) -> Generator[Message, None, None]:
        """What a worker says to a question, and {} every `BEAT` seconds of silence; closing the iterator cancels it."""
        worker = None
        try:
            while worker is None:
                worker = self._take(question.get("activation", ""))
                if worker is None:
                    yield {"progress": "waiting for another question to end"}
            worker.tell({"parts": parts, "question": question})
            yield from self._listen(worker)
        finally:
            if worker is not None:
                self._give_back(worker)

    def _listen(self, worker: _Worker) -> Iterator[Message]:
        start = time.monotonic()
        doing, since = "", start
        while True:
            try:
                message = worker.said.get(timeout=BEAT)
            except queue.Empty:
                now = time.monotonic()
                if doing == "reading the formula" and now - since > READING:
                    yield _failed(f"This formula takes more than {READING:g} s to read: write a simpler one.")
                    return
                if now - start > LONGEST:
                    yield _failed(f"This question took more than {LONGEST / 60:g} minutes and was given up.")
                    return
                yield {}
                continue
            if message is None:
                yield _failed("The program that answers was stopped (is there enough memory?); ask again.")
                return
            if message.get("progress", doing) != doing:
                doing, since = message["progress"], time.monotonic()
            if message.get("done"):
                worker.said.put({"over": True})  # told to _give_back: nothing runs any more
                return
            yield message

    def _take(self, activation: str) -> _Worker | None:
        """A free worker, one that knows the activation if there is one; None after a beat."""
        with self._free:
            if not self._idle:
                self._free.wait(BEAT)
            if not self._idle:
                return None
            known = next((w for w in self._idle if w.activation == activation), self._idle[0])
            self._idle.remove(known)
            known.activation = activation
            return known

    def _give_back(self, worker: _Worker) -> None:
        with contextlib.suppress(queue.Empty):
            if (worker.said.get_nowait() or {}).get("over"):
                self._add(worker)
                return
        worker.tell({"cancel": True})
        threading.Thread(target=self._retire, args=(worker,), daemon=True).start()

    def _retire(self, worker: _Worker) -> None:
        """Wait a moment for a cancelled worker to be ready again; else end it and start another."""
        worker.ready.wait(WARMING)  # ending one that still loads would only make the next question wait longer
        end = time.monotonic() + GRACE
        while (left := end - time.monotonic()) > 0:
            try:
                message = worker.said.get(timeout=left)
            except queue.Empty:
                break
            if message is None:
                break
            if message.get("done"):
                self._add(worker)
                return
        worker.end()
        with self._free:
            self._all.remove(worker)
            if self._closed:
                return
            fresh = _Worker()
            self._all.append(fresh)
        self._add(fresh)

    def _add(self, worker: _Worker) -> None:
        with self._free:
            self._idle.append(worker)
            self._free.notify()

    def close(self) -> None:
        """End all processes."""
        with self._free:
            self._closed = True
            everyone = list(self._all)
        for worker in everyone:
            worker.end()


def _failed(words: str) -> Message:
    return {"part": "activation", "error": words}
