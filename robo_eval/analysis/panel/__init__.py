"""How difficult each item of CartPole3D is, by a panel of frozen reference controllers."""

from __future__ import annotations

from robo_eval.analysis.panel.items import (
    TASK,
    Member,
    Provenance,
    check_outsiders,
    item_difficulty,
    members,
    members_among,
    plan_text,
    provenance,
    unlike_items,
    warnings,
)

__all__ = [
    "TASK",
    "Member",
    "Provenance",
    "check_outsiders",
    "item_difficulty",
    "members",
    "members_among",
    "plan_text",
    "provenance",
    "unlike_items",
    "warnings",
]
