"""When a progress bar appears: by itself on a terminal after a while, never in a pipe, or as asked."""

import io
import time

import pytest

import numeric.progress
from numeric import flow
from numeric.progress import progress_bar


class Terminal(io.StringIO):
    """Standard error as a terminal that keeps what was written to it."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def shown(monkeypatch):
    def run(terminal, wanted, seconds):
        stream = Terminal(terminal)
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(numeric.progress, "PATIENCE", 0.1)
        with progress_bar(4, wanted, "layers") as tick:
            time.sleep(seconds)
            tick(1.5)
        return stream.getvalue()

    return run


def test_by_itself_on_a_terminal_when_it_takes_long(shown):
    text = shown(terminal=True, wanted=None, seconds=0.4)
    assert "layers" in text and "1.5/4" in text
    assert shown(terminal=True, wanted=None, seconds=0.0) == ""


def test_never_in_a_pipe_unless_asked(shown):
    assert shown(terminal=False, wanted=None, seconds=0.3) == ""
    assert "1.5/4" in shown(terminal=False, wanted=True, seconds=0.0)
    assert shown(terminal=True, wanted=False, seconds=0.3) == ""


def test_a_flow_counts_its_layers(monkeypatch):
    stream = Terminal(False)
    monkeypatch.setattr("sys.stderr", stream)
    flow("erf", [[1.0, 0.5]], depth=3, width=4, tensors="Theta", progress=True)
    assert "2.0/2" in stream.getvalue()
