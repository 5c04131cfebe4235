"""Version 2: indexes of shifts and withdrawals, names of logged times, words to search in."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_OF_PAGE = ("severity", "status", "robot", "side", "category")


def _texts(*names: str, nullable: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=nullable) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def upgrade() -> None:
    """Index records of two kinds, and make the lists anew: the next one who asks fills them."""
    for kind in ("nil", "withdrawal"):
        op.create_index(
            f"records_{kind}",
            "records",
            ["station", "sequence"],
            sqlite_where=sa.text(f'instr(content, \'"kind":"{kind}"\') > 0'),
            postgresql_where=sa.text(f'strpos(content, \'"kind":"{kind}"\') > 0'),
        )
    for table in ("page", "exposed"):
        op.drop_table(table)
    op.execute("DELETE FROM paged")
    _page()
    _exposed()


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


def _exposed() -> None:
    op.create_table(
        "exposed",
        sa.Column("record_id", sa.Text, primary_key=True),
        *_texts("station"),
        *_numbers("sequence"),
        *_texts("by", "robot", "side", "mode", "task"),
        *_texts("policy", "episode_id", "trial", nullable=True),
        *_numbers("start_ns", "end_ns"),
    )
    op.create_index("exposed_by_episode", "exposed", ["trial", "episode_id"])
