"""Metrics, a file for each group: whatever lies here is registered."""
