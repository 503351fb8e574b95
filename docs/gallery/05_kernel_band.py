"""What sampled networks do around the kernel

The mean square of a layer's 64 preactivations lies within one standard deviation in two of three sampled networks:
K + G1/n ± √((V + 2K²)/n), for two inputs of different norm at criticality.
"""

from numeric import flow

flow("tanh", [[1.0, 1.0], [1.6, 1.6]], depth=16, width=64).plot()
