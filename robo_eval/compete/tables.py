"""The tables of a competition's ledger."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from robo_eval.log.sql import Form
from robo_eval.web.accounts import SESSIONS

METADATA: Final = MetaData()
# SQLite numbers the rows of a table by itself only where the key is its plain INTEGER.
_NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")

META: Final = Table(
    "meta",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""`version`, `code_version`, `commitment`; and once it is so `beacon`, `closed_ns`,
`revealed_ns`."""

TEAMS: Final = Table(
    "teams",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("token_sha256", Text, nullable=False, unique=True),
    Column("added_ns", BigInteger, nullable=False),
    Column("revoked_ns", BigInteger),
    Column("n_notes", Integer, nullable=False, server_default="0"),
)
"""Who takes part. Of a token only its digest is kept; `n_notes` counts what was noted of a team."""

ATTEMPTS: Final = Table(
    "attempts",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("team", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("started_ns", BigInteger, nullable=False),
    Column("ended_ns", BigInteger),
    Column("is_cut", Integer, nullable=False, server_default="0"),
    Column("sequence", BigInteger, nullable=False, server_default="0"),
    Column("sha256", Text, nullable=False),
    UniqueConstraint("team", "attempt", name="attempts_once"),
)
"""How often a team played the whole; `is_cut` says that closing ended it, `sequence` and `sha256`
are the newest link of its chain, and who appends holds this row."""

TRIALS: Final = Table(
    "trials",
    METADATA,
    Column("attempt", BigInteger, primary_key=True),
    Column("trial", Integer, primary_key=True),
    Column("run", Integer, nullable=False, server_default="1"),
    Column("episode", Integer, nullable=False, server_default="0"),
    Column("begun", Integer, nullable=False, server_default="-1"),
    Column("state", Text, nullable=False, server_default="open"),
    Column("server", Text),
    Column("began_ns", BigInteger),
    Column("due_ns", BigInteger),
    Column("why", Text),
)
"""How far each trial is: `episode` is the next one to play, `begun` the last one that began, `run`
is raised where it was given back, `state` is open, done or forfeited, `server` plays it, `due_ns`
is when the team has to have come back or ended the episode, and `why` says why it was forfeited or
given back."""

LINKS: Final = Table(
    "links",
    METADATA,
    Column("attempt", BigInteger, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("run", Integer, nullable=False),
    Column("episode", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("actions", LargeBinary),
    Column("sha256", Text, nullable=False),
    UniqueConstraint("attempt", "trial", "run", "episode", "kind", name="links_once"),
)
"""What an attempt left behind, each chained to the one before: an `episode` with the canonical JSON
of its row and its actions, or what was said of one by `declare`."""

NOTES: Final = Table(
    "notes",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("team", BigInteger),
    Column("kind", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
)
"""What was refused, forged or out of order."""

SERVERS: Final = Table(
    "servers",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("seen_ns", BigInteger, nullable=False),
)
"""Who plays, and when each was last heard of."""

SCORES: Final = Table(
    "scores",
    METADATA,
    Column("attempt", BigInteger, primary_key=True),
    Column("key", Text, nullable=False),
    Column("content", Text, nullable=False),
)
"""What was computed of an attempt; `key` is the digest of its last link and of the rules."""

SHOWN: Final = {one.name: one for one in (TEAMS, ATTEMPTS, TRIALS, LINKS, SCORES)}
"""What of the ledger is shown in the end, but for columns of the server's own."""
SESSIONS.to_metadata(METADATA)

FORM: Final = Form(
    noun="ledger of a competition",
    tables=METADATA,
    main="attempts",
    version="1",
    made_by="robo-eval compete serve",
    lock=7_302_412,
)
"""What opens a database as a ledger."""
