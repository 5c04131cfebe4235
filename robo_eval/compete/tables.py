"""The tables of a competition's ledger."""

from __future__ import annotations

from functools import partial
from typing import Final

import sqlalchemy as sa

from robo_eval.log.sql import Form
from robo_eval.web.accounts import SESSIONS

METADATA: Final = sa.MetaData()
# SQLite numbers the rows of a table by itself only where the key is its plain INTEGER.
_NUMBER: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_text = partial(sa.Column, type_=sa.Text, nullable=False)
_small = partial(sa.Column, type_=sa.Integer, nullable=False)
_large = partial(sa.Column, type_=sa.BigInteger, nullable=False)


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(name, METADATA, *parts)


META: Final = _table("meta", _text("name", primary_key=True), _text("value"))
"""`version`, `code_version`, `commitment`; and once it is so `beacon`, `closed_ns`,
`revealed_ns`."""

TEAMS: Final = _table(
    "teams",
    sa.Column("number", _NUMBER, primary_key=True),
    _text("name", unique=True),
    _text("token_sha256", unique=True),
    _large("added_ns"),
    _large("revoked_ns", nullable=True),
    _small("n_notes", server_default="0"),
)
"""Who takes part. Of a token only its digest is kept; `n_notes` counts what was noted of a team."""

ATTEMPTS: Final = _table(
    "attempts",
    sa.Column("number", _NUMBER, primary_key=True),
    _large("team"),
    _small("attempt"),
    _large("started_ns"),
    _large("ended_ns", nullable=True),
    _small("is_cut", server_default="0"),
    _large("sequence", server_default="0"),
    _text("sha256"),
    sa.UniqueConstraint("team", "attempt", name="attempts_once"),
)
"""How often a team played the whole; `is_cut` says that closing ended it, `sequence` and `sha256`
are the newest link of its chain, and who appends holds this row."""

TRIALS: Final = _table(
    "trials",
    _large("attempt", primary_key=True),
    _small("trial", primary_key=True),
    _small("run", server_default="1"),
    _small("episode", server_default="0"),
    _small("begun", server_default="-1"),
    _text("state", server_default="open"),
    _text("server", nullable=True),
    _large("began_ns", nullable=True),
    _large("due_ns", nullable=True),
    _text("why", nullable=True),
)
"""How far each trial is: `episode` is the next one to play, `begun` the last one that began, `run`
is raised where it was given back, `state` is open, done or forfeited, `server` plays it, `due_ns`
is when the team has to have come back or ended the episode, and `why` says why it was forfeited or
given back."""

LINKS: Final = _table(
    "links",
    _large("attempt", primary_key=True),
    _large("sequence", primary_key=True),
    _text("kind"),
    _small("trial"),
    _small("run"),
    _small("episode"),
    _text("content"),
    sa.Column("actions", sa.LargeBinary),
    _text("sha256"),
    sa.UniqueConstraint("attempt", "trial", "run", "episode", "kind", name="links_once"),
)
"""What an attempt left behind, each chained to the one before: an `episode` with the canonical JSON
of its row and its actions, what was said of one by `declare` and `feedback`, or that a trial was
`given_back`, as the first link of its next run."""

NOTES: Final = _table(
    "notes",
    sa.Column("number", _NUMBER, primary_key=True),
    _large("team", nullable=True),
    _text("kind"),
    _text("detail"),
    _large("at_ns"),
)
"""What was refused, forged or out of order."""

SERVERS: Final = _table("servers", _text("name", primary_key=True), _large("seen_ns"))
"""Who plays, and when each was last heard of."""

SCORES: Final = _table(
    "scores", _large("attempt", primary_key=True), _text("key"), _text("content")
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
