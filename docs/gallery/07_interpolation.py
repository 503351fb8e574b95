"""Between two training inputs

Inputs on a circle, two of them training inputs with targets 1 and -1: the mean prediction between and beyond them, and
how much networks differ there, PDLT section 10.4.
"""

import numpy as np

from numeric import flow, predict

angles = np.concatenate([[0.5, 1.5], np.linspace(0, 2, 41)])
f = flow("relu", np.stack([np.cos(angles), np.sin(angles)], axis=1), depth=4)
predict(f, [1.0, -1.0], [0, 1]).plot()
