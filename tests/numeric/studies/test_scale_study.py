"""Width transfer: a small study end to end, resumed and refused; the family's algebra on one step of training."""

import json
from dataclasses import replace

import numpy as np
import pytest

from numeric import NumericError
from numeric.studies.figures import scale_figure
from numeric.studies.scale import STANDARD, ScaleRecord, ScaleStudy, run_scale, summarize_scale

SMALL = ScaleStudy("tanh", (1.0, STANDARD), (4, 8), 2, 2, 2, (-2, 0), train=3, dimension=2)


def test_study_is_written_resumed_and_refused(tmp_path):
    record = ScaleRecord(SMALL, tmp_path)
    rows = run_scale(SMALL, record.done)
    record.add(next(rows))  # stopped after the first width
    again = ScaleRecord(SMALL, tmp_path)
    assert again.done == {("1.0", 4)} and len(again.rows) == 4
    for own in run_scale(SMALL, again.done):
        again.add(own)
    assert len(again.wanted) == 2 * 2 * 2 * 2
    assert all(np.isfinite(row.loss) and row.loss < row.start for row in again.wanted if row.power == -2)
    found = summarize_scale(SMALL, again.wanted)
    assert [(s.scheme, s.width) for s in found] == [("1.0", 4), ("1.0", 8), (STANDARD, 4), (STANDARD, 8)]
    assert all(s.best_power in (-2, 0) and s.optimum == s.best_power for s in found)  # no parabola at an edge
    scale_figure(found, SMALL.powers, "tanh", record.figure)
    assert record.figure.read_bytes().startswith(b"\x89PNG")
    assert json.loads(record.settings.read_text())["activation"] == "tanh"
    with pytest.raises(NumericError, match="other settings"):
        ScaleRecord(replace(SMALL, steps=3), tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"widths": (4,)},
        {"networks": 3},
        {"schemes": (2.0,)},
        {"depth": 1},
        {"powers": ()},
        {"target": 0.0},
        {"data_sets": 2},
    ],
)
def test_bad_studies(wrong):
    with pytest.raises(NumericError):
        replace(SMALL, **wrong)


def test_one_step_by_hand():
    """Two data sets, one step, one network each: the row's loss and NTK from the Jacobian of a network run by hand."""
    import jax
    import jax.numpy as jnp

    from numeric.ensemble.networks import Networks

    study = ScaleStudy("tanh", (0.5,), (4, 8), 3, 4, 1, (-1,), 0.1, 1.2, train=3, dimension=2, data_sets=2)
    (rows,) = run_scale(study, {("0.5", 4)})
    nets = Networks("tanh", (2, 8, 8, 1), 0.1, 1.2, *study.rates)
    for pair in range(2):
        X, y = study.data(pair)
        drawn = nets.sample_one(jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 8), pair))
        factor, eta = 8**-0.25, study.step_size(pair) * 8**0.5 / 2

        def loss(params, X=X, y=y, factor=factor):
            return jnp.sum((factor * nets.output_one(params, jnp.asarray(X))[0] - y) ** 2) / 2

        slopes = jax.grad(loss)(drawn)
        moved = [
            tuple(p - eta * r * g for p, g, r in zip(own, slope, rate))
            for own, slope, rate in zip(drawn, slopes, nets.rates())
        ]
        row = rows[2 * pair]
        assert row.start == pytest.approx(float(loss(drawn)), rel=1e-5)
        assert row.loss == pytest.approx(float(loss(moved)), rel=1e-5)
        traces = [np.trace(nets.ntk_one(params, jnp.asarray(X))[0, 0]) for params in (drawn, moved)]
        assert row.trace_change == pytest.approx(float(traces[1] / traces[0]) - 1, rel=1e-3, abs=1e-5)
