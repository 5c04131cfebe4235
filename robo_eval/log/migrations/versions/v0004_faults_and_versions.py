"""Version 4: who a fault was by, and what the task, its level and its engine were."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns; rows that are there keep the form they were hashed in."""
    for name in ("fault_by", "task_version", "behaviour", "engine", "numerics"):
        op.add_column("episodes", sa.Column(name, sa.Text))
