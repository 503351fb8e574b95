"""A half-stable activation

swish has its critical point at a kernel K* > 0, with biases; beyond a line the kernel grows without bound.
"""

import derive

derive.criticality("swish").plot()
