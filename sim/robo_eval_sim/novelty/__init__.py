"""What a novelty level is, and how those of a task are found."""

from robo_eval_sim.novelty.base import (
    Effect,
    Fixed,
    Later,
    Level,
    Novelty,
    Range,
    both,
    novelty,
    same,
)
from robo_eval_sim.novelty.mixed import mixed
from robo_eval_sim.novelty.registry import levels, levels_in, load_level

__all__ = [
    "Effect",
    "Fixed",
    "Later",
    "Level",
    "Novelty",
    "Range",
    "both",
    "levels",
    "levels_in",
    "load_level",
    "mixed",
    "novelty",
    "same",
]
