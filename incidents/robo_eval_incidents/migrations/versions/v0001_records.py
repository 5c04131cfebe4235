"""Version 1: records, heads of stations, checkpoints, and the tables that follow the records."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _texts(*names: str, nullable: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=nullable) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True)


def upgrade() -> None:
    """Create the tables."""
    _chain()
    _followers()
    _accounts()


def _chain() -> None:
    op.create_table(
        "records",
        sa.Column("number", _NUMBER, primary_key=True),
        *_texts("station"),
        *_numbers("sequence"),
        *_texts("record_id"),
        *_texts("about", nullable=True),
        *_texts("content", "sha256"),
        sa.UniqueConstraint("station", "sequence", name="records_chain"),
        sa.UniqueConstraint("record_id", "station", name="records_id"),
    )
    op.create_index(
        "records_about",
        "records",
        ["about"],
        sqlite_where=sa.text("about IS NOT NULL"),
        postgresql_where=sa.text("about IS NOT NULL"),
    )
    op.create_table(
        "stations",
        _key("station"),
        *_numbers("sequence"),
        *_texts("sha256"),
        *_numbers("time_ns", "monotonic_ns"),
        *_texts("boot_id"),
    )
    op.create_table(
        "checkpoints",
        sa.Column("number", _NUMBER, primary_key=True),
        sa.Column("sha256", sa.Text, nullable=False, unique=True),
        *_texts("content", "signature"),
        *_texts("stamp", nullable=True),
    )
    op.create_table("meta", _key("name"), *_texts("value"))


def _followers() -> None:
    op.create_table(
        "page",
        _key("incident_id"),
        *_texts("station"),
        *_numbers("sequence", "happened_ns"),
        *_texts(
            "robot", "side", "severity", "counted_severity", "category", "status", "engagement"
        ),
        *_texts("episode_id", "policy", nullable=True),
        *_texts("by", "description"),
        sa.Column("counts", sa.Integer, nullable=False),
    )
    op.create_index("page_by_time", "page", ["happened_ns", "incident_id"])
    for column in ("severity", "status", "robot", "side", "category"):
        op.create_index(f"page_by_{column}", "page", [column, "happened_ns", "incident_id"])
    op.create_table("paged", _key("station"), *_numbers("sequence"))
    op.create_table(
        "exposed",
        _key("record_id"),
        *_texts("robot", "side", "mode", "task"),
        *_texts("policy", "episode_id", "trial", nullable=True),
        *_numbers("start_ns", "end_ns"),
    )
    op.create_index("exposed_by_episode", "exposed", ["trial", "episode_id"])


def _accounts() -> None:
    op.create_table(
        "users",
        _key("name"),
        *_texts("shown_name", "password_hash", "roles"),
        sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
        sa.Column("locked_until_ns", sa.BigInteger, nullable=False, server_default="0"),
    )
    op.create_table(
        "sessions",
        sa.Column("token_sha256", sa.LargeBinary, primary_key=True),
        *_texts("user", "csrf"),
        *_numbers("started_ns", "seen_ns"),
    )
    op.create_index("sessions_by_user", "sessions", ["user"])
