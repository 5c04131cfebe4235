"""Alembic's scripts: one file per schema version of the episode database."""
