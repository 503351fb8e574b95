"""An activation and its derivatives

What is built in, or any formula in z, with the regular parts of its first two derivatives.
"""

import derive

derive.activation("z*tanh(z)").plot()
