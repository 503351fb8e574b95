"""Designing a network: initialization, learning rates, depth and width from the theory."""
