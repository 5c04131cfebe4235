"""The tables of the incident log."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TextClause,
    UniqueConstraint,
    text,
)

METADATA: Final = MetaData()
VERSION_TABLE: Final = "alembic_version"
CURRENT: Final = "0002"
"""The migration that leads to the schema of this program."""

# SQLite numbers the rows of a table by itself only where the key is its plain INTEGER.
_NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")

RECORDS: Final = Table(
    "records",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("station", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("record_id", Text, nullable=False),
    Column("about", Text),
    Column("content", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    UniqueConstraint("station", "sequence", name="records_chain"),
    UniqueConstraint("record_id", "station", name="records_id"),
)
"""Every record, never changed. `content` is its canonical form and `sha256` the digest of that;
the other columns repeat parts of it, to find it by. `about` is the incident a record other than
its report is about; `number` is the order of arrival in this database. Two stations that were
offline may have drafted the same event under the same `record_id`; no station has one twice."""

Index(
    "records_about",
    RECORDS.c.about,
    sqlite_where=RECORDS.c.about.isnot(None),
    postgresql_where=RECORDS.c.about.isnot(None),
)


def is_kind(kind: str, *, is_server: bool) -> TextClause:
    """A condition that only records of a kind fulfil, as indexes of such records have it.

    Within texts a quotation mark is escaped: nothing but the kind itself is written so.
    """
    function = "strpos" if is_server else "instr"
    return text(f'{function}(content, \'"kind":"{kind}"\') > 0')


for _kind in ("nil", "withdrawal"):
    Index(
        f"records_{_kind}",
        RECORDS.c.station,
        RECORDS.c.sequence,
        sqlite_where=is_kind(_kind, is_server=False),
        postgresql_where=is_kind(_kind, is_server=True),
    )

STATIONS: Final = Table(
    "stations",
    METADATA,
    Column("station", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("time_ns", BigInteger, nullable=False),
    Column("monotonic_ns", BigInteger, nullable=False),
    Column("boot_id", Text, nullable=False),
)
"""The newest record of each station; who appends holds this row."""

CHECKPOINTS: Final = Table(
    "checkpoints",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("sha256", Text, nullable=False, unique=True),
    Column("content", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("stamp", Text),
)
"""Signed statements of how far each station had got; `stamp` is an RFC 3161 token."""

META: Final = Table(
    "meta",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""`log_id`, what names this database, and `station`, as whom it writes by default."""

PAGE: Final = Table(
    "page",
    METADATA,
    Column("incident_id", Text, primary_key=True),
    Column("station", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("happened_ns", BigInteger, nullable=False),
    Column("robot", Text, nullable=False),
    Column("side", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("counted_severity", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("engagement", Text, nullable=False),
    Column("episode_id", Text),
    Column("policy", Text),
    Column("by", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("counts", Integer, nullable=False),
)
"""How each incident stands: what pages and lists are read from. Made from the records, and made
anew from them whenever it is behind; no result depends on it. `description` is the beginning of
what is said in `words`, which are all of it, with case folded, to search in."""

# A search reads all words, newest first: here they lie close together, and rows apart. PostgreSQL
# keeps no index of long texts.
_BY_TIME: Final = (PAGE.c.happened_ns, PAGE.c.incident_id)
Index("page_by_time", *_BY_TIME, PAGE.c.words).ddl_if(dialect="sqlite")
Index("page_by_time", *_BY_TIME).ddl_if(dialect="postgresql")
for _column in ("severity", "status", "robot", "side", "category"):
    Index(f"page_by_{_column}", PAGE.c[_column], PAGE.c.happened_ns, PAGE.c.incident_id)

PAGED: Final = Table(
    "paged",
    METADATA,
    Column("station", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
)
"""Up to which record of each station `page` has been brought."""

EXPOSED: Final = Table(
    "exposed",
    METADATA,
    Column("record_id", Text, primary_key=True),
    Column("station", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("robot", Text, nullable=False),
    Column("side", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("policy", Text),
    Column("episode_id", Text),
    Column("trial", Text),
    Column("start_ns", BigInteger, nullable=False),
    Column("end_ns", BigInteger, nullable=False),
)
"""Exposure by record, kept as `page` is; what was withdrawn is in it as well."""

Index("exposed_by_episode", EXPOSED.c.trial, EXPOSED.c.episode_id)

USERS: Final = Table(
    "users",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("shown_name", Text, nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("roles", Text, nullable=False),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("locked_until_ns", BigInteger, nullable=False, server_default="0"),
)
"""Accounts of the web page. What they may do is a record as well."""

SESSIONS: Final = Table(
    "sessions",
    METADATA,
    Column("token_sha256", LargeBinary, primary_key=True),
    Column("user", Text, nullable=False),
    Column("csrf", Text, nullable=False),
    Column("started_ns", BigInteger, nullable=False),
    Column("seen_ns", BigInteger, nullable=False),
)
"""Who is logged in. Of a token only its digest is kept."""

Index("sessions_by_user", SESSIONS.c.user)
