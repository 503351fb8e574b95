"""`derive predict` on digits as a user runs it, with what it took: adds a record to bench/digits-runs.json.

    python bench/digits_run.py --train 1000 --ridge 10 [--activation gelu] [--relative-error 0.05] [--seconds 600]

Width 100, depth 3, ten outputs, 100 test images; wall and CPU seconds and peak memory are those of the whole command.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from effective_theory.files import write_file

HERE = Path(__file__).parent
RUNS = HERE / "digits-runs.json"
WIDTH, TESTS = 100, 100


def record(answer: dict[str, Any], usage: dict[str, float], chosen: dict[str, Any]) -> dict[str, Any]:
    """What is stored of a run."""
    mean, infinite = (np.array(answer[name]) for name in ("mean", "mean_infinite"))
    size = float(np.sqrt(np.mean((mean - infinite) ** 2)))
    error = float(np.sqrt(np.mean(np.array(answer["standard_error"]["mean"]) ** 2)))
    (note,) = [note for note in answer["notes"] if " draws" in note]
    draws = int(note.split(" draws")[0].split()[-1])
    about = {"date": datetime.now(UTC).isoformat(timespec="minutes"), "width": WIDTH, "tests": TESTS, **chosen}
    found = {"draws": draws, "correction_times_width": WIDTH * size, "standard_error_times_width": WIDTH * error}
    return about | found | {"relative_error": error / size, "ended": note.split("; ")[-1], **usage}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--activation", default="tanh")
    parser.add_argument("--ridge", type=float, default=10.0)
    parser.add_argument("--relative-error", type=float, default=0.05)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--depth", type=int, default=3)
    chosen = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, HERE / "digits.py", folder, "--train", str(chosen["train"])], check=True)
        given = {name: chosen[name] for name in ("activation", "ridge", "relative_error", "seconds", "depth")}
        options = [text for name, value in given.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        targets = [text for k in range(10) for text in ("--target", f"digit{k}")]
        command = [str(Path(sys.executable).parent / "derive"), "predict", f"{folder}/train.csv"]
        command += ["--test", f"{folder}/test.csv", "--width", str(WIDTH), "--method", "sampled", "--json"]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run([*command, *options, *targets], stdout=subprocess.PIPE, text=True, check=True)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    usage = {"wall_seconds": wall, "cpu_seconds": cpu, "peak_gigabytes": after.ru_maxrss / 1e6}
    usage["load"] = os.getloadavg()[1]
    found = record(json.loads(done.stdout), usage, chosen)
    print(json.dumps(found, indent=1))
    runs = json.loads(RUNS.read_text()) if RUNS.exists() else []
    write_file(RUNS, json.dumps([*runs, found], indent=1) + "\n")


if __name__ == "__main__":
    main()
