"""Baseline agents that act on observations alone."""
