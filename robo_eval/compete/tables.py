"""The tables of a competition's ledger."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from robo_eval.log.sql import Form
from robo_eval.web.accounts import SESSIONS

METADATA: Final = sa.MetaData()
# SQLite numbers the rows of a table by itself only where the key is its plain INTEGER.
_NUMBER: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")

META: Final = sa.Table(
    "meta",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""`version`, `code_version`, `commitment`; and once it is so `beacon`, `closed_ns`,
`revealed_ns`."""

TEAMS: Final = sa.Table(
    "teams",
    METADATA,
    sa.Column("number", _NUMBER, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("token_sha256", sa.Text, nullable=False, unique=True),
    sa.Column("added_ns", sa.BigInteger, nullable=False),
    sa.Column("revoked_ns", sa.BigInteger),
    sa.Column("n_notes", sa.Integer, nullable=False, server_default="0"),
)
"""Who takes part. Of a token only its digest is kept; `n_notes` counts what was noted of a team."""

ATTEMPTS: Final = sa.Table(
    "attempts",
    METADATA,
    sa.Column("number", _NUMBER, primary_key=True),
    sa.Column("team", sa.BigInteger, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("started_ns", sa.BigInteger, nullable=False),
    sa.Column("ended_ns", sa.BigInteger),
    sa.Column("is_cut", sa.Integer, nullable=False, server_default="0"),
    sa.Column("sequence", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.UniqueConstraint("team", "attempt", name="attempts_once"),
)
"""How often a team played the whole; `is_cut` says that closing ended it, `sequence` and `sha256`
are the newest link of its chain, and who appends holds this row."""

TRIALS: Final = sa.Table(
    "trials",
    METADATA,
    sa.Column("attempt", sa.BigInteger, primary_key=True),
    sa.Column("trial", sa.Integer, primary_key=True),
    sa.Column("run", sa.Integer, nullable=False, server_default="1"),
    sa.Column("episode", sa.Integer, nullable=False, server_default="0"),
    sa.Column("begun", sa.Integer, nullable=False, server_default="-1"),
    sa.Column("state", sa.Text, nullable=False, server_default="open"),
    sa.Column("server", sa.Text),
    sa.Column("began_ns", sa.BigInteger),
    sa.Column("due_ns", sa.BigInteger),
    sa.Column("why", sa.Text),
)
"""How far each trial is: `episode` is the next one to play, `begun` the last one that began, `run`
is raised where it was given back, `state` is open, done or forfeited, `server` plays it, `due_ns`
is when the team has to have come back or ended the episode, and `why` says why it was forfeited or
given back."""

LINKS: Final = sa.Table(
    "links",
    METADATA,
    sa.Column("attempt", sa.BigInteger, primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("trial", sa.Integer, nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("episode", sa.Integer, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("actions", sa.LargeBinary),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.UniqueConstraint("attempt", "trial", "run", "episode", "kind", name="links_once"),
)
"""What an attempt left behind, each chained to the one before: an `episode` with the canonical JSON
of its row and its actions, or what was said of one by `declare`."""

NOTES: Final = sa.Table(
    "notes",
    METADATA,
    sa.Column("number", _NUMBER, primary_key=True),
    sa.Column("team", sa.BigInteger),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("at_ns", sa.BigInteger, nullable=False),
)
"""What was refused, forged or out of order."""

SERVERS: Final = sa.Table(
    "servers",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("seen_ns", sa.BigInteger, nullable=False),
)
"""Who plays, and when each was last heard of."""

SCORES: Final = sa.Table(
    "scores",
    METADATA,
    sa.Column("attempt", sa.BigInteger, primary_key=True),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
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
