"""Training, in time

Predictions of trained networks on two test inputs: infinite width (dashed, with the ensemble's spread), and with the
order 1/n (solid), PDLT (∞.141), (∞.160).
"""

from numeric import GradientFlow, flow, predict

f = flow("tanh", [[1.0, 0.3], [-0.4, 1.0], [0.7, -0.8], [0.2, 0.9]], depth=3, width=64)
predict(f, [1.0, -1.0], [0, 1], GradientFlow(), time=[0, 0.5, 1, 2, 3, 4, 6, 8, 12]).plot()
