"""Simulated tasks: a folder each, which declares in `spec.py` what the product may know of it."""
