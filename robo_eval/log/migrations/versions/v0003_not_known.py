"""Version 3: start, duration, exposure and ticks may be missing, for those who do not know them."""

from alembic import op

from robo_eval.log.migrations.table_sql import rebuild

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Lift the four constraints; rows that are there keep the form they were hashed in."""
    rebuild(op.get_bind(), "episodes", ("start_ns", "duration_s", "exposure_s", "ticks"))
