"""Version 1: the table of episodes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TEXT = (
    "pair_id", "control_id", "difficulty", "robot", "calibration", "end_detail", "void_by",
    "operator", "trace_uri", "trace_sha256",
)  # fmt: skip
_TEXT_NEEDED = (
    "arm", "plan_digest", "side", "task", "family", "policy", "policy_digest", "end_reason",
    "control_quality", "costs", "novelty", "initial_state", "initial_state_source", "software",
    "previous_sha256", "row_sha256",
)  # fmt: skip
_INTEGER = ("level", "drift_step", "seed", "success", "uninterrupted_actions", "plan_depth")
_INTEGER_NEEDED = (
    "attempt", "start_ns", "ticks", "score_version", "recovered", "interventions",
)  # fmt: skip
_NUMBER = ("episode_return", "quality")
_NUMBER_NEEDED = ("duration_s", "exposure_s")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "episodes",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("episode_id", sa.Text, nullable=False, unique=True),
        *(sa.Column(name, sa.Text) for name in _TEXT),
        *(sa.Column(name, sa.Text, nullable=False) for name in _TEXT_NEEDED),
        *(sa.Column(name, sa.Integer) for name in _INTEGER),
        *(sa.Column(name, sa.Integer, nullable=False) for name in _INTEGER_NEEDED),
        *(sa.Column(name, sa.Float) for name in _NUMBER),
        *(sa.Column(name, sa.Float, nullable=False) for name in _NUMBER_NEEDED),
    )
