"""Novelty levels of CartPole3D: one file a level, found by looking into this folder."""

from robo_eval_sim.novelty.base import Effect, Fixed, Level, Novelty, Range, both, novelty, same
from robo_eval_sim.novelty.registry import levels, load_level

__all__ = [
    "Effect",
    "Fixed",
    "Level",
    "Novelty",
    "Range",
    "both",
    "levels",
    "load_level",
    "novelty",
    "same",
]
