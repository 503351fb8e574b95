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
    assert all(s.best_power in (-2, 0) for s in found)
    scale_figure(found, SMALL.powers, "tanh", record.figure)
    assert record.figure.read_bytes().startswith(b"\x89PNG")
    assert json.loads(record.settings.read_text())["activation"] == "tanh"
    with pytest.raises(NumericError, match="other settings"):
        ScaleRecord(replace(SMALL, steps=3), tmp_path)


@pytest.mark.parametrize(
    "wrong", [{"widths": (4,)}, {"networks": 3}, {"schemes": (2.0,)}, {"depth": 1}, {"powers": ()}, {"target": 0.0}]
)
def test_bad_studies(wrong):
    with pytest.raises(NumericError):
        replace(SMALL, **wrong)
