"""Real tanh networks between the NTK and the maximal-update parametrization: tests/data/studies/scale.json.

    python tests/data/studies/make_scale.py           # all of it, some four minutes of CPU time
    python tests/data/studies/make_scale.py s=0 s=1   # these parts

The parts: s=0, s=0.5, s=1 (the NTK's relative change in training against width, pairs' means with standard errors: its
norm and its trace), predicted (the trace's change by theory at s = 0), transfer (the mean loss at every learning rate
and the best one, for s = 1 and the standard parametrization). Each part is stored with the settings that made it;
widths that are there with the settings below are kept, so that the same command goes on where it was stopped.
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from derive.design.recommendation import recommend
from effective_theory.files import write_file
from numeric import GradientDescent, flow, predict
from numeric.studies.scale import STANDARD, ScaleStudy, run_scale, summarize_scale

TARGET = Path(__file__).parent / "scale.json"
RATES = recommend("tanh", 3)
BASE = ScaleStudy("tanh", (0.0,), (64, 128), 3, 64, 40, (-1,), 0.0, 1.0, RATES.lambda_b, RATES.lambda_W, train=4)
WIDTHS = (64, 128, 256, 512, 1024)
TRANSFER = replace(BASE, widths=WIDTHS, steps=30, train=32, data_sets=4, target=RATES.target_scale)
STUDIES = {
    "transfer, s=1": replace(TRANSFER, schemes=(1.0,), networks=16, powers=tuple(range(-2, 2))),
    "transfer, standard": replace(TRANSFER, schemes=(STANDARD,), networks=8, powers=tuple(range(-4, 3))),
    "s=0": replace(BASE, schemes=(0.0,), widths=WIDTHS[:3], networks=512),
    "s=0.5": replace(BASE, schemes=(0.5,), widths=WIDTHS, networks=128),
    "s=1": replace(BASE, schemes=(1.0,), widths=WIDTHS, networks=64),
    "predicted": BASE,
}


def settings(study):
    """A study as it is stored; learning rates to twelve digits, which every machine agrees on."""
    return json.loads(json.dumps(asdict(study)), parse_float=lambda text: float(f"{float(text):.12g}"))


def pairs(values):
    """Mean and standard error over pairs."""
    own = np.array(values).reshape(-1, 2).mean(axis=1)
    return float(own.mean()), float(own.std(ddof=1) / len(own) ** 0.5)


def change(study, rows):
    return {"norm": pairs([r.ntk_change for r in rows]), "trace": pairs([r.trace_change for r in rows])}


def transfer(study, rows):
    (x,) = summarize_scale(study, rows)
    losses = [loss if np.isfinite(loss) else None for loss in x.losses]
    return {"best": x.best_power, "optimum": (x.optimum, x.optimum_error), "losses": losses}


def predicted(study):
    """The mean change of the NTK's trace over the trace, times n, at first order in 1/n."""
    X, y = study.data()
    f = flow("tanh", X, 3, 1, 0.0, 1.0, *study.rates)
    p = predict(f, y, range(len(X)), GradientDescent(study.step_size() / 2), time=study.steps)
    return float(np.trace(p.ntk_change)) / float(np.trace(np.asarray(f.Theta)))


def keep(name, part):
    """Write one part; the others stay as they are."""
    data = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    data = {key: part if key == name else data.get(key) for key in STUDIES}
    write_file(TARGET, json.dumps({key: value for key, value in data.items() if value}, indent=1) + "\n")


def make(name, study):
    stored = json.loads(TARGET.read_text()).get(name) if TARGET.exists() else None
    fresh = {"settings": settings(study), "result": None if name == "predicted" else []}
    part = stored if isinstance(stored, dict) and stored.get("settings") == fresh["settings"] else fresh
    if name == "predicted":
        part["result"] = part["result"] or predicted(study)
        return keep(name, part)
    done = {(str(study.schemes[0]), row["width"]) for row in part["result"]}
    for rows in run_scale(study, done):
        found = (transfer if name.startswith("transfer") else change)(study, rows)
        part["result"].append({"width": rows[0].width, **found})
        print(name, part["result"][-1], flush=True)
        keep(name, part)


if __name__ == "__main__":
    for name in sys.argv[1:] or STUDIES:
        make(name, STUDIES[name])
