"""Ordered and chaotic phases

Where two nearby inputs grow alike (blue) or apart (orange) with depth; the critical line between them ends at the star,
the critical initialization of tanh, PDLT chapter 5.
"""

import derive

derive.criticality("tanh").plot()
