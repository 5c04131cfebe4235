"""Version 2: the profile of a level, the policy's own forecast, and the form of a row."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns; rows that are there keep the form they were hashed in."""
    op.add_column("episodes", sa.Column("profile", sa.Text))
    op.add_column("episodes", sa.Column("stated_success_probability", sa.Float))
    op.add_column("episodes", sa.Column("row_form", sa.Integer, nullable=False, server_default="1"))
