"""Alembic's scripts: one file per schema version of the incident log."""
