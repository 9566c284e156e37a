"""Measurements of the package: python -m tilewright.bench overhead."""
