"""Jobs of the four-point engine on several threads: nothing is lost, nothing is counted twice."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numeric import flow
from numeric.activations import load
from numeric.brackets import make_plan, sorted_quadruples
from numeric.brackets.series.quadruples import ConditionedQuadruples
from numeric.evaluation import compiled, layers
from numeric.evaluation import flow as flows
from numeric.evaluation.memory import Needs, threads_within
from numeric.evaluation.threads import parts_of, unique_in_threads


def a_kernel(inputs: int, width: int) -> jax.Array:
    X = np.random.default_rng(17).normal(size=(inputs, width))
    return jnp.asarray(X @ X.T / width + 0.05)


def four_sines(K: np.ndarray) -> np.ndarray:
    """<sin sin sin sin> of every sorted quadruple: sin z is (e^iz - e^-iz) / 2i, and <e^is.z> is exp(-s.K.s / 2)."""
    found = []
    for q in np.asarray(sorted_quadruples(len(K))):
        own = K[np.ix_(q, q)]
        signs = np.array(list(product((1, -1), repeat=4)))
        found.append(np.sum(signs.prod(axis=1) * np.exp(-np.einsum("si,ij,sj->s", signs, own, signs) / 2)) / 16)
    return np.array(found)


@pytest.mark.parametrize("parts", [1, 3])
def test_every_job_is_in_the_sum_once(parts: int) -> None:
    functions, K = load("sin").FUNCTIONS, a_kernel(5, 9)
    plan = make_plan(functions, K, 1e-9)
    assert isinstance(plan.quadruples, ConditionedQuadruples)
    found = np.asarray(unique_in_threads(functions, plan, K, ((0, 0, 0, 0),), parts))[:, 0]
    np.testing.assert_allclose(found, four_sines(np.asarray(K)), rtol=0, atol=3e-9)


def test_as_many_threads_as_there_are_jobs() -> None:
    functions, K = load("tanh").FUNCTIONS, a_kernel(5, 9)
    plan = make_plan(functions, K, 1e-8)
    assert isinstance(plan.quadruples, ConditionedQuadruples)
    jobs = max(len(bucket.pairs) for bucket in plan.quadruples.buckets)
    assert [parts_of(plan, K, threads) for threads in (1, 2, 1000)] == [1, 2, jobs]
    assert parts_of(make_plan(functions, K, 1e-8, patterns=()), K, 2) == 1
    inside = []
    jax.jit(lambda K: inside.append(parts_of(plan, K, 2)) or K)(K)  # a program in a program: XLA's affair
    assert inside == [1]


def test_a_flow_by_threads_is_the_flow_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(3).normal(size=(5, 20))
    host = flow("tanh", X, depth=2, width=100, tensors=["V"])
    parts, threaded = [], compiled.unique_in_threads
    monkeypatch.setattr(layers, "on_host", lambda *arguments: False)
    monkeypatch.setattr(compiled, "host_is_faster", lambda plan, K: False)
    monkeypatch.setattr(flows, "cores", lambda: 3)
    monkeypatch.setattr(compiled, "unique_in_threads", lambda *own: parts.append(own[-1]) or threaded(*own))
    found = flow("tanh", X, depth=2, width=100, tensors=["V"])
    assert parts == [3]
    np.testing.assert_allclose(found.V, host.V, rtol=0, atol=1e-12 * np.abs(np.asarray(host.V)).max())


def test_copies_of_the_result_stay_within_the_memory() -> None:
    need = Needs(size=40, layer=1e8, layers=1, quadruples=2e7, evaluation=6e7, programs=1e8, row=1e6)
    left = [need.held() + need.evaluation + copies * need.quadruples for copies in (-1, 0.5, 1.5, 2.5, 100)]
    assert [threads_within(need, memory, 4) for memory in left] == [1, 1, 2, 3, 4]
