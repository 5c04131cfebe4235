"""Functions of episodes that return estimates with intervals.

The functions named here are imported when they are first used: what scores single episodes must
not wait for tables and statistics.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robo_eval.core.estimate import Estimate
    from robo_eval.core.number import Number
    from robo_eval.metrics.agreement import compare_sides, sim_to_real
    from robo_eval.metrics.body import Body
    from robo_eval.metrics.control import quality_of_control
    from robo_eval.metrics.embodiment import embodiment_score
    from robo_eval.metrics.recovery import recovery_autonomy, recovery_by_fault
    from robo_eval.metrics.registry import metric
    from robo_eval.metrics.reliability import (
        actuation_reliability,
        reliability_by_task,
        time_between_failures,
    )
    from robo_eval.metrics.safety import incident_rates, safety_score
    from robo_eval.metrics.throughput import itemised_throughput, physical_throughput

__all__ = [
    "Body",
    "Estimate",
    "Number",
    "actuation_reliability",
    "compare_sides",
    "embodiment_score",
    "incident_rates",
    "itemised_throughput",
    "metric",
    "physical_throughput",
    "quality_of_control",
    "recovery_autonomy",
    "recovery_by_fault",
    "reliability_by_task",
    "safety_score",
    "sim_to_real",
    "time_between_failures",
]

_MODULES = {
    "Body": "robo_eval.metrics.body",
    "Estimate": "robo_eval.core.estimate",
    "Number": "robo_eval.core.number",
    "actuation_reliability": "robo_eval.metrics.reliability",
    "compare_sides": "robo_eval.metrics.agreement",
    "embodiment_score": "robo_eval.metrics.embodiment",
    "incident_rates": "robo_eval.metrics.safety",
    "itemised_throughput": "robo_eval.metrics.throughput",
    "metric": "robo_eval.metrics.registry",
    "physical_throughput": "robo_eval.metrics.throughput",
    "quality_of_control": "robo_eval.metrics.control",
    "recovery_autonomy": "robo_eval.metrics.recovery",
    "recovery_by_fault": "robo_eval.metrics.recovery",
    "reliability_by_task": "robo_eval.metrics.reliability",
    "safety_score": "robo_eval.metrics.safety",
    "sim_to_real": "robo_eval.metrics.agreement",
    "time_between_failures": "robo_eval.metrics.reliability",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
