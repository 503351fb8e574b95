"""Two host devices by jax.sharding, two local processes by jax.distributed: results equal one device's to rounding."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from numeric import flow

X = [[0.9, -0.3], [0.1, 0.8]]
NETWORK = {"depth": 2, "width": 6, "C_W": 1.2, "tensors": ["B"]}
CODE = """
import json, sys
import jax
if len(sys.argv) > 2:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # the default of newer versions
    jax.distributed.initialize("localhost:" + sys.argv[2], num_processes=2, process_id=int(sys.argv[3]))
import numeric.evaluation.memory
from numeric import flow
numeric.evaluation.memory.PROGRAMS = numeric.evaluation.memory.PLANNING = 0
f = flow("tanh", json.loads(sys.argv[1])["X"], devices=jax.devices(), memory=1100, **json.loads(sys.argv[1])["network"])
print(json.dumps({"devices": len(jax.devices()), "B": f.B.tolist()}))
"""


@pytest.fixture(scope="module")
def one_device():
    return np.asarray(flow("tanh", X, **NETWORK).B)


def start(*arguments, **environment):
    job = json.dumps({"X": X, "network": NETWORK})
    command = [sys.executable, "-c", CODE, job, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment)


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err.decode()
    return json.loads(out.decode().splitlines()[-1])


def test_two_devices_of_one_process(one_device):
    answer = finish(start(XLA_FLAGS="--xla_force_host_platform_device_count=2"))
    assert answer["devices"] == 2
    np.testing.assert_allclose(answer["B"], one_device, rtol=1e-13)


def test_two_processes(one_device):
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = str(probe.getsockname()[1])
    processes = [start(port, str(index)) for index in range(2)]
    for process in processes:
        answer = finish(process)
        assert answer["devices"] == 2
        np.testing.assert_allclose(answer["B"], one_device, rtol=1e-13)
