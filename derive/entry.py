"""The first thing that runs: an interrupt while the program is still being loaded ends it without a traceback."""

from __future__ import annotations

import signal


def main() -> None:
    """Load the command line and run it; from then on it answers for interrupts itself."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from derive.cli import main as run

    run()
