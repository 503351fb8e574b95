"""neural-tangents in an environment of its own, in the user's cache folder: TensorFlow comes with it, and an older JAX.

`bench/peer.py` is what runs there; `run` hands it a job and gives its answer back.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import platformdirs

PEER = ["neural-tangents==0.6.5", "jax==0.5.3", "jaxlib==0.5.3", "tf2jax==0.3.7"]


def python() -> Path:
    """The environment's interpreter; the environment is made if it is not there."""
    home = Path(platformdirs.user_cache_dir("effective-theory")) / "bench-peer"
    found = home / "bin" / "python"
    if not (home / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(found), "-m", "pip", "install", "-q", *PEER], check=True)
        (home / ".installed").touch()
    return found


def run(job: dict[str, Any]) -> dict[str, Any] | None:
    """The peer's answer to a job (`bench/peer.py` says which there are), or None and a line where it does not run."""
    command = [str(python()), str(Path(__file__).with_name("peer.py"))]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True)
    if done.returncode:
        print(f"the peer did not run: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(done.stdout)
