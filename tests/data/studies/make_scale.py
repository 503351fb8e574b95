"""Real tanh networks between the NTK and the maximal-update parametrization: tests/data/studies/scale.json.

    python tests/data/studies/make_scale.py        # about five minutes of CPU time

exponents: the NTK's relative change against width for s = 0, 1/2, 1. transfer: the mean loss at every learning rate for
s = 1 and the standard parametrization. prediction: the NTK's mean trace change at s = 0 beside p.ntk_change.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from derive.design.recommendation import recommend
from numeric import GradientDescent, flow, predict
from numeric.studies.scale import STANDARD, ScaleStudy, run_scale, summarize_scale

HERE = Path(__file__).parent
SETTINGS = recommend("tanh", 3)
BASE = ScaleStudy(
    "tanh",
    (0.0, 0.5, 1.0),
    (64, 128, 256),
    3,
    64,
    40,
    (-1,),
    0.0,
    1.0,
    SETTINGS.lambda_b,
    SETTINGS.lambda_W,
    train=4,
)


def exponents():
    rows = [row for own in run_scale(BASE) for row in own]
    found = {}
    for s in BASE.schemes:
        own = [x for x in summarize_scale(BASE, rows, -1) if x.scheme == str(s)]
        found[str(s)] = {"widths": [x.width for x in own], "means": [x.ntk_change for x in own]}
        found[str(s)]["errors"] = [x.ntk_error for x in own]
        print(s, found[str(s)], flush=True)
    return found


def transfer():
    study = replace(
        BASE,
        schemes=(1.0, STANDARD),
        widths=(64, 256, 1024),
        networks=2,
        train=8,
        powers=(-3, -2, -1, 0, 1, 2),
        steps=30,
    )
    rows = [row for own in run_scale(study) for row in own]
    found = {}
    for x in summarize_scale(study, rows):
        losses = [loss if np.isfinite(loss) else None for loss in x.losses]
        found.setdefault(x.scheme, {})[str(x.width)] = {"best": x.best_power, "losses": losses}
        print(x.scheme, x.width, x.best_power, losses, flush=True)
    return {"powers": sorted(study.powers), **found}


def prediction(width=128, networks=600):
    study = replace(BASE, schemes=(0.0,), widths=(width, width + 1), networks=networks)
    rows = next(iter(run_scale(study)))
    X, y = study.data()
    f = flow("tanh", X, 3, width, 0.0, 1.0, *study.rates)
    eta = study.step_size() / 2
    p = predict(f, y, range(len(X)), GradientDescent(eta), time=study.steps)
    trace = float(np.trace(np.asarray(f.Theta)))
    changes = np.array([r.trace_change for r in rows]).reshape(-1, 2).mean(axis=1)
    found = {"width": width, "measured": changes.mean(), "error": changes.std(ddof=1) / len(changes) ** 0.5}
    found["predicted"] = float(np.trace(p.ntk_change)) / trace
    print(found, flush=True)
    return found


if __name__ == "__main__":
    target = HERE / "scale.json"
    data = json.loads(target.read_text()) if target.exists() else {}
    for make in (exponents, transfer, prediction):
        if make.__name__ not in data:
            data[make.__name__] = make()
            target.write_text(json.dumps(data, indent=1) + "\n")
