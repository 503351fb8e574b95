"""Makes the stored width studies of tanh and relu (a few minutes): the rows that tests/numeric/studies fits.

    nice python tests/data/studies/make.py [tanh] [relu]

The settings are the command's defaults, `derive ntk-study ACT`. Rows that are there already are kept.
"""

import sys
from pathlib import Path

from numeric.studies.linearization import Study, run
from numeric.studies.record import Record

C_W = {"tanh": 1.0, "relu": 2.0}  # critical

if __name__ == "__main__":
    for activation in sys.argv[1:] or C_W:
        study = Study(activation, C_W=C_W[activation])
        record = Record(study, Path(__file__).parent)
        for rows in run(study, record.done):
            record.add(rows)
