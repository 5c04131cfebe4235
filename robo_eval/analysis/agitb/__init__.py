"""AGITB: twelve tests of whether a model that predicts bits learns as a living thing would.

A model takes one input of ten bits after the other, and predicts the next. Each test asks for one
thing that any general learner should do, such as to leave no state the same, or to learn a longer
sequence after a shorter one.

References:
    M. Sprogar, AGITB: A Signal-Level Benchmark for Evaluating Artificial General Intelligence.
"""

from __future__ import annotations

from robo_eval.analysis.agitb.models import ModelError, Models
from robo_eval.analysis.agitb.testbed import Testbed, Tested, missing, run_testbed

__all__ = ["ModelError", "Models", "Testbed", "Tested", "missing", "run_testbed"]
