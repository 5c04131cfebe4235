"""`Estimate`, which statistics return and all that is measured is given as."""

from robo_eval.stats.estimate import Estimate

__all__ = ["Estimate"]
