"""The tables of the episode database."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Column, Float, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

from robo_eval.core.episode import COLUMNS, SCHEMA_VERSION
from robo_eval.log.rows import KINDS, OPTIONAL, SINCE, Kind

METADATA: Final = MetaData()

CHAIN: Final = ("sequence", "row_form", "previous_sha256", "row_sha256")
"""Columns that tie the rows together; not part of an episode."""

_TYPES: Final[dict[Kind, type[TypeEngine[Any]]]] = {
    Kind.TEXT: Text,
    Kind.WORD: Text,
    Kind.INTEGER: Integer,
    Kind.NUMBER: Float,
    Kind.TRUTH: Integer,
    Kind.MAPPING: Text,
}


def column(name: str) -> Column[Any]:
    """The database column of an episode column."""
    # A column added later is missing in older rows, so that it can only be nullable.
    nullable = name in OPTIONAL or name in SINCE
    return Column(name, _TYPES[KINDS[name]], nullable=nullable, unique=name == "episode_id")


EPISODES: Final = Table(
    "episodes",
    METADATA,
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    *(column(name) for name in COLUMNS),
    Column("row_form", Integer, nullable=False, server_default="1"),
    Column("previous_sha256", Text, nullable=False),
    Column("row_sha256", Text, nullable=False),
)
"""One row per attempt. `sequence` counts from 1; `row_form` says which canonical form the row
is hashed in, `row_sha256` is that digest and `previous_sha256` the one of the row before."""

VERSION_TABLE: Final = "alembic_version"
"""Table of one row that holds the schema version."""


def revision(version: int) -> str:
    """Name of the migration that leads to a schema version, e.g. `0002`."""
    return f"{version:04d}"


CURRENT: Final = revision(SCHEMA_VERSION)
