"""Level 0: nothing changes."""

from __future__ import annotations

from typing import ClassVar

from robo_eval.core.kinds import Profile
from robo_eval_sim.novelty.base import Level, both, novelty, same


@novelty("none", level=0)
class Nothing(Level):
    """The world agents are trained in."""

    effects: ClassVar = dict.fromkeys(Profile, "none: the world agents are trained in")
    tables: ClassVar = both(same({}))
