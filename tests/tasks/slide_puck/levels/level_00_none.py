"""Level 0."""

from robo_eval.core.kinds import Profile
from robo_eval_sim.novelty import Level, both, novelty, same


@novelty("none", level=0)
class Nothing(Level):
    """Nothing changes."""

    effects = dict.fromkeys(Profile, "none")
    tables = both(same({}))
