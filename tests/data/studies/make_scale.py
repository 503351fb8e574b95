"""Real tanh networks between the NTK and the maximal-update parametrization: tests/data/studies/scale.json.

    python tests/data/studies/make_scale.py [NAME...]        # about six minutes of CPU time in all

NAME is s=0, s=0.5, s=1 (the NTK's relative change in training against width, pairs' means with standard errors: its
norm and its trace), predicted (the trace's change by theory at s = 0) or transfer (the mean loss at every learning
rate, for s = 1 and the standard parametrization). What is there already is kept.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from derive.design.recommendation import recommend
from numeric import GradientDescent, flow, predict
from numeric.studies.scale import STANDARD, ScaleStudy, run_scale, summarize_scale

HERE = Path(__file__).parent
TARGET = HERE / "scale.json"
RATES = recommend("tanh", 3)
BASE = ScaleStudy("tanh", (0.0,), (64, 128), 3, 64, 40, (-1,), 0.0, 1.0, RATES.lambda_b, RATES.lambda_W, train=4)
SAMPLES = {0.0: (512, (64, 128, 256)), 0.5: (128, (64, 128, 256, 512, 1024)), 1.0: (64, (64, 128, 256, 512, 1024))}
"""s: networks of each width, and the widths."""


def pairs(values):
    """Mean and standard error over pairs."""
    own = np.array(values).reshape(-1, 2).mean(axis=1)
    return float(own.mean()), float(own.std(ddof=1) / len(own) ** 0.5)


def change(s):
    networks, widths = SAMPLES[s]
    found = []
    for rows in run_scale(replace(BASE, schemes=(s,), widths=widths, networks=networks)):
        norm, trace = pairs([r.ntk_change for r in rows]), pairs([r.trace_change for r in rows])
        found.append({"width": rows[0].width, "norm": norm, "trace": trace})
        print(s, found[-1], flush=True)
    return found


def predicted():
    """The mean change of the NTK's trace over the trace, times n, at first order in 1/n."""
    X, y = BASE.data()
    f = flow("tanh", X, 3, 1, 0.0, 1.0, *BASE.rates)
    p = predict(f, y, range(len(X)), GradientDescent(BASE.step_size() / 2), time=BASE.steps)
    return float(np.trace(p.ntk_change)) / float(np.trace(np.asarray(f.Theta)))


def transfer():
    study = replace(BASE, schemes=(1.0, STANDARD), widths=(64, 256, 1024), networks=4, train=8, steps=30)
    study = replace(study, powers=(-3, -2, -1, 0, 1, 2))
    rows = [row for own in run_scale(study) for row in own]
    found = {"powers": sorted(study.powers)}
    for x in summarize_scale(study, rows):
        losses = [loss if np.isfinite(loss) else None for loss in x.losses]
        found.setdefault(x.scheme, {})[str(x.width)] = {"best": x.best_power, "losses": losses}
        print(x.scheme, x.width, x.best_power, losses, flush=True)
    return found


if __name__ == "__main__":
    makers = {f"s={s:g}": (lambda s=s: change(s)) for s in SAMPLES} | {"predicted": predicted, "transfer": transfer}
    for name in sys.argv[1:] or makers:
        data = json.loads(TARGET.read_text()) if TARGET.exists() else {}
        if name not in data:
            made = makers[name]()
            data = json.loads(TARGET.read_text()) if TARGET.exists() else {}
            TARGET.write_text(json.dumps({**data, name: made}, indent=1) + "\n")
