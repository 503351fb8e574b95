"""What the system does to a command: signals, kills, full disks, closed pipes, poor encodings, many at once."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import harness
import pytest

from effective_theory.files import write_file

MAIN = [sys.executable, "-c", "from derive.entry import main; main()"]
WORK = "import time\nfrom derive.cli import failures\n"


def start(words: list[str], folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    env = {k: v for k, v in os.environ.items() if k not in ("LANG", "LC_ALL", "PYTHONIOENCODING")}
    env |= {"DERIVE_CACHE_DIR": str(folder / "cache"), **environment}
    return subprocess.Popen([*MAIN, *words], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def whole(path: Path) -> bool:
    """Whether a file that a command writes is a complete one."""
    if path.suffix == ".png":
        return path.read_bytes().endswith(b"IEND\xaeB`\x82")
    text = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".json":
            return "key" in json.loads(text)
        case ".html":
            return text.endswith("</html>\n")
        case ".py":
            compile(text, str(path), "exec")
            return "FUNCTIONS" in text
    return True


def unfinished(folder: Path) -> list[str]:
    """Files that are neither whole nor the nameless remains of a killed writer."""
    return [str(p) for p in folder.rglob("*") if p.is_file() and p.suffix != ".tmp" and not whole(p)]


SWALLOWS = (
    "def run():\n"
    "    while True:\n"
    "        try:\n"
    "            time.sleep(30)\n"
    "        except KeyboardInterrupt:\n"
    "            if not seen: seen.append(1)\n"
    "            else: raise\n"
    "seen = []\n"
)
IN_A_DESTRUCTOR = (
    "class Slow:\n"
    "    def __del__(self): time.sleep(1)\n"
    "def run():\n"
    "    while True: Slow()\n"  # the exception cannot leave it: Python prints it, and goes on
)
STUCK = (
    "def run():\n    import ctypes\n    while True: ctypes.CDLL(None).sleep(30)\n"  # compiled code that never looks up
)
SLEEPS = "def run():\n    time.sleep(60)\n"


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (SLEEPS, signal.SIGINT, 130),
        (SLEEPS, signal.SIGTERM, 143),
        (SWALLOWS, signal.SIGINT, 130),
        (IN_A_DESTRUCTOR, signal.SIGTERM, 143),
        (STUCK, signal.SIGINT, 130),
    ],
)
def test_a_signal_ends_the_command(body: str, kind: signal.Signals, code: int) -> None:
    """Also where the first interrupt is swallowed, or never seen by Python."""
    program = WORK + "failures.PATIENCE = 2.0\n" + body + "print('ready', flush=True)\nfailures.guarded(run)\n"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        time.sleep(0.5)
        running.send_signal(kind)
        _, error = running.communicate(timeout=30)
    assert running.returncode == code and error.decode().strip() == "derive: stopped"


def test_failures_are_one_sentence() -> None:
    for failure, code in {
        "raise OSError(28, 'No space left on device')": 2,
        "raise MemoryError": 2,
        "'\\xff'.encode('ascii')": 2,
        "def f(): f()\nf()": 2,
        "1/0": 1,
        "raise RuntimeError('RESOURCE_EXHAUSTED: out of memory')": 2,
    }.items():
        body = "\n".join("    " + line for line in failure.splitlines())
        program = f"{WORK}def run():\n{body}\nfailures.guarded(run)\n"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.returncode == code and done.stderr.count("\n") == 1 and done.stderr.startswith("derive: "), done
        traced = {**os.environ, "DERIVE_TRACEBACK": "1"}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=traced)
        assert "Traceback" in done.stderr


def test_a_time_limit_that_the_user_sets() -> None:
    program = (
        WORK + "def run():\n    while True:\n        try: 1/0\n        except Exception: pass\nfailures.guarded(run)\n"
    )
    environment = {**os.environ, "DERIVE_TIME_LIMIT": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 2 and "more than 1 s" in done.stderr


def test_very_deep_questions_say_so_at_once(tmp_path: Path) -> None:
    """Before anything is computed, and Ctrl-C ends them."""
    with start(["recommend", "tanh", "--depth", "100000"], tmp_path) as running:
        assert running.stderr is not None
        assert b"takes minutes" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        assert running.stderr.read().endswith(b"derive: stopped\n") and running.wait(60) == 130
    too_deep = subprocess.run(
        [sys.executable, "-c", "from derive.cli import main; main()", "recommend", "tanh", "--depth", "1000000"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert too_deep.returncode == 2 and "at most 100000" in too_deep.stderr


def test_pipes_that_close_and_output_that_does_not_fit(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'from derive.cli import main; main()' recursion R"
    done = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout.count("\n") == 1 and done.stderr == ""
    done = subprocess.run(f"{command} > /dev/full", shell=True, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith("derive: ") and done.stderr.count("\n") == 1
    done = subprocess.run(f"{command} >&- 2>&-", shell=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize(
    "environment",
    [
        {"LANG": "C"},
        {"LC_ALL": "POSIX"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
    ],
)
def test_poor_terminals(environment: dict[str, str], tmp_path: Path) -> None:
    for words in (["forward", "dH"], ["forward", "dH", "--json"], ["criticality", "größe"]):
        with start(words, tmp_path, **environment) as running:
            output, error = running.communicate(timeout=60)
        assert running.returncode == (2 if "größe" in words else 0) and b"Traceback" not in error
        if "--json" in words:
            assert json.loads(output.decode("latin-1"))["object"] == "dH"


def test_eight_processes_on_one_cold_cache(tmp_path: Path) -> None:
    running = [start(["recursion", "V", "--json"], tmp_path) for _ in range(8)]
    found = [process.communicate(timeout=120) for process in running]
    assert [p.returncode for p in running] == [0] * 8 and {error for _, error in found} == {b""}
    assert len({output for output, _ in found}) == 1 and unfinished(tmp_path) == []


def _writer(path: str) -> None:
    for k in range(10**6):
        write_file(path, f"{k % 10}" * 200_000)


def test_killed_writers_leave_whole_files(tmp_path: Path) -> None:
    """kill -9 at random moments of a process that does nothing but write."""
    choose, target, kills = random.Random(0), tmp_path / "file.txt", 12
    for _ in range(kills):
        writer = multiprocessing.get_context("spawn").Process(target=_writer, args=(str(target),))
        writer.start()
        while not target.exists() and writer.is_alive():
            time.sleep(0.01)
        time.sleep(choose.random() * 0.15)
        writer.kill()
        writer.join()
        text = target.read_text()
        assert len(text) == 200_000 and len(set(text)) == 1
    harness.note(f"kill -9 while writing: {kills} kills, no torn file")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_commands_stopped_at_random_moments(kind: signal.Signals, tmp_path: Path) -> None:
    """Every command that writes, stopped anywhere: files are whole, exit codes are right, the next run is as ever."""
    choose = random.Random(int(kind))
    commands = {
        "generate": ["generate", "tanh(2*z)", "-o", "module.py"],
        "report": ["report", "relu", "-o", "reports"],
        "criticality": ["criticality", "sin(z)"],
        "learnability": ["learnability", "relu", "--dimension", "3", "-o", "spectra"],
    }
    endings: dict[int, int] = {}
    for name, words in commands.items():
        for _ in range(6):
            with start(words, tmp_path) as running:
                time.sleep(0.4 + choose.random() * (12 if name in ("report", "learnability") else 3))
                running.send_signal(kind)
                _, error = running.communicate(timeout=120)
            endings[running.returncode] = endings.get(running.returncode, 0) + 1
            assert running.returncode in (0, -int(kind), 128 + int(kind)), (name, running.returncode, error)
            assert kind == signal.SIGKILL or b"Traceback" not in error
            assert unfinished(tmp_path) == []
            assert kind == signal.SIGKILL or not list(tmp_path.rglob("*.tmp"))
    harness.note(f"stopped by {kind.name} at random moments: {endings}")


SMALL_FILES = ["bash", "-c", "trap '' XFSZ; ulimit -f 2; exec \"$@\"", "bash"]
"""Runs a command for which no file may grow beyond 2 KiB (a shell, since a process that runs JAX must not fork)."""


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """By the limit on the size of files: the cache, then the output, then the answer itself do not fit."""
    (tmp_path / "module.py").write_text("mine = 1\n")
    for words, code in ((["recursion", "V", "--json"], 0), (["generate", "tanh", "-o", "module.py"], 2)):
        env = {**os.environ, "DERIVE_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [*SMALL_FILES, *MAIN, *words], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
    assert (tmp_path / "module.py").read_text() == "mine = 1\n" and not list(tmp_path.rglob("*.tmp"))
