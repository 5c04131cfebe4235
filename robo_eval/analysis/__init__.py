"""Analyses over many conditions: agent characteristic curves and their kin."""
