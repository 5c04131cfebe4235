"""Version 2: lists of shifts and of withdrawn times, names of logged times, words to search in."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_OF_PAGE = ("severity", "status", "robot", "side", "category")


def _texts(*names: str, nullable: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=nullable) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def _record() -> list[sa.Column[str] | sa.Column[int]]:
    return [
        sa.Column("record_id", sa.Text, primary_key=True),
        *_texts("station"),
        *_numbers("sequence"),
        *_texts("by"),
    ]


def upgrade() -> None:
    """Make the lists anew; the next one who asks fills them from the records."""
    for table in ("page", "exposed"):
        op.drop_table(table)
    op.execute("DELETE FROM paged")
    _page()
    _times()


def _page() -> None:
    op.create_table(
        "page",
        sa.Column("incident_id", sa.Text, primary_key=True),
        *_texts("station"),
        *_numbers("sequence", "happened_ns"),
        *_texts(
            "robot", "side", "severity", "counted_severity", "category", "status", "engagement"
        ),
        *_texts("episode_id", "policy", nullable=True),
        *_texts("by", "description", "words"),
        sa.Column("counts", sa.Integer, nullable=False),
    )
    words = ["words"] if op.get_bind().dialect.name == "sqlite" else []
    op.create_index("page_by_time", "page", ["happened_ns", "incident_id", *words])
    for column in _OF_PAGE:
        op.create_index(f"page_by_{column}", "page", [column, "happened_ns", "incident_id"])


def _times() -> None:
    op.create_table(
        "exposed",
        *_record(),
        *_texts("robot", "side", "mode", "task"),
        *_texts("policy", "episode_id", "trial", nullable=True),
        *_numbers("start_ns", "end_ns"),
    )
    op.create_index("exposed_by_episode", "exposed", ["trial", "episode_id"])
    op.create_table(
        "shifts",
        *_record(),
        *_texts("robot", nullable=True),
        *_texts("side", "note"),
        *_numbers("start_ns", "end_ns"),
    )
    op.create_table("withdrawn", *_record(), *_texts("withdrawn_id", "reason"))
    op.create_index("withdrawn_by_id", "withdrawn", ["withdrawn_id"])
