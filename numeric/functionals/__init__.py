"""Residual networks at order 1/n: functionals of one-neuron functions, their tables, the flow with a skip."""
