"""The tables of the incident log."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
)

from robo_eval.web import accounts

METADATA: Final = MetaData()
VERSION: Final = "4"
"""Version of these tables, as `meta` has it."""

# SQLite numbers the rows of a table by itself only where the key is its plain INTEGER.
_NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")

RECORDS: Final = Table(
    "records",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("station", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("record_id", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("texts", Text),
    Column("sha256", Text, nullable=False),
    UniqueConstraint("station", "sequence", name="records_chain"),
    UniqueConstraint("record_id", "station", name="records_id"),
)
"""Every record. `content` is its canonical form, `sha256` the digest of that, and `texts` the free
texts whose digests it holds, which a redaction takes out; nothing else of it is ever changed. The
other columns repeat parts of it, to find it by. `subject` is what it tells of: an incident, hours
or a shift, or else itself; `number` is the order of arrival in this database. Two stations that
were offline may have drafted the same event under the same `record_id`; no station has
one twice."""

Index("records_subject", RECORDS.c.subject)

STAY: Final = """ BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.number, NEW.station, NEW.sequence, NEW.record_id, NEW.subject, NEW.kind,
            NEW.content, NEW.sha256) IS NOT DISTINCT FROM (OLD.number, OLD.station, OLD.sequence,
            OLD.record_id, OLD.subject, OLD.kind, OLD.content, OLD.sha256) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'records of an incident log are never changed';
END """
"""On a server a trigger refuses to change a record; only its free texts can be taken out."""

for _statement in (
    f"CREATE FUNCTION records_stay() RETURNS trigger LANGUAGE plpgsql AS $${STAY}$$",
    """CREATE TRIGGER records_stay BEFORE UPDATE OR DELETE ON records
    FOR EACH ROW EXECUTE FUNCTION records_stay()""",
    "CREATE TRIGGER records_stay_all BEFORE TRUNCATE ON records EXECUTE FUNCTION records_stay()",
):
    event.listen(RECORDS, "after_create", DDL(_statement).execute_if(dialect="postgresql"))  # type: ignore[no-untyped-call]

STATIONS: Final = Table(
    "stations",
    METADATA,
    Column("station", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
)
"""The newest record of each station; who appends holds this row."""

CHECKPOINTS: Final = Table(
    "checkpoints",
    METADATA,
    Column("number", _NUMBER, primary_key=True),
    Column("sha256", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("stamp", Text),
    UniqueConstraint("sha256", name="checkpoints_once"),
)
"""Signed statements of how far each station had got; `stamp` is an RFC 3161 token."""

META: Final = Table(
    "meta",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""`log_id`, what names this database, `station`, as whom it writes by default, and `version`."""

INCIDENTS: Final = Table(
    "incidents",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("station", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("happened_ns", BigInteger, nullable=False),
    Column("latest_ns", BigInteger, nullable=False),
    Column("robot", Text, nullable=False),
    Column("side", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("counted_severity", Text, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("highest_severity", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("counts", Integer, nullable=False),
    Column("episode_id", Text),
    Column("due", Text),
    Column("words", Text, nullable=False),
    Column("state", Text, nullable=False),
)
"""How each incident stands, written with each of its records. `rank` is that of the severity it
counts at, `due` the first day on which an action is due, `words` what happened with case folded, to
search in, and `state` a JSON object of what else lists show."""

# Lists go by time, newest first, and a search reads all words: in an index what is asked for lies
# close together, and rows apart. One index of all filters costs a record less than one for each.
_BY_TIME: Final = (INCIDENTS.c.happened_ns, INCIDENTS.c.id)
_ASKED_FOR: Final = ("latest_ns", "robot", "side", "severity", "counted_severity", "category",
                     "status", "counts", "episode_id", "station", "sequence")  # fmt: skip
Index("incidents_by_time", *_BY_TIME, *(INCIDENTS.c[name] for name in _ASKED_FOR))
WORDS: Final = Index("incidents_words", *_BY_TIME, INCIDENTS.c.words).ddl_if(dialect="sqlite")
"""Only in a file: PostgreSQL keeps no index of long texts."""

TIMES: Final = Table(
    "times",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("station", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("robot", Text),
    Column("side", Text, nullable=False),
    Column("mode", Text),
    Column("what", Text, nullable=False),
    Column("episode_id", Text),
    Column("trial", Text),
    Column("start_ns", BigInteger, nullable=False),
    Column("end_ns", BigInteger, nullable=False),
    Column("total_ns", BigInteger),
    Column("km", Double),
    Column("withdrawn_by", Text),
    Column("reason", Text),
)
"""Hours and shifts without incidents, kept as `incidents` is; what was withdrawn says so. `what` is
the task of hours and the note of a shift, `total_ns` how long within the period from start to end
where only that is known, -1 if nobody said."""

Index("times_by_start", TIMES.c.kind, TIMES.c.start_ns)
# Few have them: a question for those need not look at all others.
for _name in ("total_ns", "km"):
    _has = TIMES.c[_name].isnot(None)
    Index(f"times_with_{_name}", TIMES.c[_name], sqlite_where=_has, postgresql_where=_has)
Index("times_by_trial", TIMES.c.trial, TIMES.c.robot, TIMES.c.side)

USERS: Final = accounts.USERS.to_metadata(METADATA)
"""Accounts of the web page. What they may do is a record as well."""

SESSIONS: Final = accounts.SESSIONS.to_metadata(METADATA)
