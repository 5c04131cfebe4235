"""Version 3: start, duration, exposure and ticks may be missing, for those who do not know them."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Lift the four constraints; rows that are there keep the form they were hashed in."""
    # A view that somebody made of the rows would stop the table from being renamed.
    op.execute("PRAGMA legacy_alter_table = ON")
    # SQLite cannot drop a constraint: the table is copied, in the transaction of the upgrade.
    with op.batch_alter_table("episodes", recreate="always") as table:
        for name in ("start_ns", "duration_s", "exposure_s", "ticks"):
            table.alter_column(name, nullable=True)
    op.execute("PRAGMA legacy_alter_table = OFF")
