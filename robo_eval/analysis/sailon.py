"""How well an agent notices novelty in a trial: the formulas, under their public name.

They lie in `robo_eval.formulas.sailon`, where registered metrics may use them.
"""

from robo_eval.formulas.sailon import (
    THRESHOLDS,
    WORDS,
    characterisation,
    characterisation_summary,
    declared_index,
    detection,
    detection_intervals,
    detection_summary,
    fn_unlatched,
    mean_over_trials,
    reaction,
    reaction_summary,
    threshold_curve,
    window_of,
)

__all__ = [
    "THRESHOLDS",
    "WORDS",
    "characterisation",
    "characterisation_summary",
    "declared_index",
    "detection",
    "detection_intervals",
    "detection_summary",
    "fn_unlatched",
    "mean_over_trials",
    "reaction",
    "reaction_summary",
    "threshold_curve",
    "window_of",
]
