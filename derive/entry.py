"""The first thing that runs: an interrupt while the program is still being loaded ends it without a traceback."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Load the command line and run it; from then on it answers for interrupts itself."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA's alarms of slow compilations are not for users
    from derive.cli import main as run

    run()
