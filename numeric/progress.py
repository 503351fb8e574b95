"""A progress bar on standard error for runs that take long: by itself on a terminal, or as asked."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PATIENCE = 2.0  # seconds before a bar appears by itself


@contextmanager
def progress_bar(total: int, wanted: bool | None, what: str) -> Iterator[Callable[[float], None]]:
    """Yields `tick(part)`. `wanted`: True shows a bar at once, False never, None after a while on a terminal."""
    if total < 1 or wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield lambda part: None
        return
    from rich.console import Console
    from rich.errors import LiveError
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.1f}/{task.total:.0f}"))
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=sys.stderr.isatty())
    task = bar.add_task(what, total=total)

    def start() -> None:
        with suppress(LiveError):  # the caller shows a bar already
            bar.start()

    timer = threading.Timer(0.0 if wanted else PATIENCE, start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda part: bar.advance(task, part)
    finally:
        timer.cancel()
        timer.join()  # a bar that is just starting is there to be stopped
        bar.stop()
