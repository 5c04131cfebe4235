"""Competitions: hidden novelties, served to agents of others; anybody can recompute the results."""
