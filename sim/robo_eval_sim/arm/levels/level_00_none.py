"""Level 0: everything as usual."""

from __future__ import annotations

from typing import ClassVar

from robo_eval.core.kinds import Profile
from robo_eval_sim.novelty import Level, both, novelty, same


@novelty("none", level=0)
class NoNovelty(Level):
    """Nothing is new."""

    effects: ClassVar = dict.fromkeys(Profile, "no novelty")
    tables: ClassVar = both(same({}))
