"""How well an agent notices novelty in a trial: the formulas, under their public name.

They lie in `robo_eval.formulas.sailon`, where registered metrics may use them.
"""

from robo_eval.formulas.sailon import *  # noqa: F403 - its names are told there, once
