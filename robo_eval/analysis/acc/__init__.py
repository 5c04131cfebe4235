"""How able and how general an agent is, read off its agent characteristic curve (ACC).

References:
    Hernandez-Orallo, Loe, Cheke, Martinez-Plumed and O hEigeartaigh (2021), General intelligence
    disentangled via a generality metric for natural and artificial intelligence, Scientific
    Reports 11:22822.
"""

from robo_eval.analysis.acc.agent import Analysis, analyse
from robo_eval.analysis.acc.group import Population, population
from robo_eval.analysis.acc.resample import AccIntervals, bootstrap, bootstrap_seeds
from robo_eval.analysis.acc.shapes import Isometrics, attainable_maximum, isometrics
from robo_eval.analysis.acc.transforms import Transformed, closed_form, transform
from robo_eval.analysis.acc.trial import AccTable, acc_for_trial

__all__ = [
    "AccIntervals",
    "AccTable",
    "Analysis",
    "Isometrics",
    "Population",
    "Transformed",
    "acc_for_trial",
    "analyse",
    "attainable_maximum",
    "bootstrap",
    "bootstrap_seeds",
    "closed_form",
    "isometrics",
    "population",
    "transform",
]
