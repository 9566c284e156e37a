"""Measurements: `python -m tilewright.bench overhead`, what a call costs on the host."""
