"""A progress bar on standard error for runs that take long: by itself on a terminal, or as asked."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 2.0  # seconds before a bar appears by itself


@contextmanager
def progress_bar(total: int, wanted: bool | None, what: str) -> Iterator[Callable[[float], None]]:
    """Yields `tick(part)`. `wanted`: True shows a bar at once, False never, None after a while on a terminal."""
    with _bar(total, wanted, what, counted=True) as found:
        yield lambda part: None if found is None else found[0].advance(found[1], part)


@contextmanager
def share_bar(wanted: bool | None, what: str) -> Iterator[Callable[[float, str], None]]:
    """Yields `show(share, text)` for work whose end is not known beforehand: the share that is done, and a text."""
    with _bar(1, wanted, what, counted=False) as found:

        def show(share: float, text: str) -> None:
            if found is not None:
                found[0].update(found[1], completed=share, description=text)

        yield show


@contextmanager
def _bar(total: int, wanted: bool | None, what: str, counted: bool) -> Iterator[tuple[Progress, TaskID] | None]:
    if total < 1 or wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.errors import LiveError
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn()]
    if counted:
        columns.append(TextColumn("{task.completed:.1f}/{task.total:.0f}"))
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=sys.stderr.isatty())
    task = bar.add_task(what, total=total)

    def start() -> None:
        with suppress(LiveError):  # the caller shows a bar already
            bar.start()

    timer = threading.Timer(0.0 if wanted else PATIENCE, start)
    timer.daemon = True
    timer.start()
    try:
        yield bar, task
    finally:
        timer.cancel()
        timer.join()  # a bar that is just starting is there to be stopped
        bar.stop()
