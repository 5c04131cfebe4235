"""Level 1."""

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty import Fixed, Level, Range, both, novelty


@novelty("puck_mass", level=1)
class PuckMass(Level):
    """A heavier puck."""

    effects = dict.fromkeys(Profile, "the puck is heavier")
    tables = both(
        {
            Difficulty.EASY: {"mass": Range(1.5, 2.0, "kg")},
            Difficulty.MEDIUM: {"mass": Fixed(4.0, "kg")},
            Difficulty.HARD: {"mass": Fixed(8.0, "kg")},
        }
    )

    def physics(self, drawn):
        return drawn.parameters["mass"]
