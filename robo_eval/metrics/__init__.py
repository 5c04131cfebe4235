"""Functions of episodes that return estimates with intervals.

The functions named here are imported when they are first used: what scores single episodes must
not wait for tables and statistics.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robo_eval.metrics.agreement import compare_sides, sim_to_real
    from robo_eval.metrics.control import quality_of_control
    from robo_eval.metrics.embodiment import embodiment_score
    from robo_eval.metrics.recovery import recovery_autonomy, recovery_by_fault
    from robo_eval.metrics.reliability import (
        actuation_reliability,
        reliability_by_task,
        time_between_failures,
    )
    from robo_eval.metrics.safety import incident_rates, safety_score
    from robo_eval.metrics.throughput import itemised_throughput, physical_throughput

__all__ = [
    "actuation_reliability",
    "compare_sides",
    "embodiment_score",
    "incident_rates",
    "itemised_throughput",
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
    "actuation_reliability": "reliability",
    "compare_sides": "agreement",
    "embodiment_score": "embodiment",
    "incident_rates": "safety",
    "physical_throughput": "throughput",
    "quality_of_control": "control",
    "recovery_autonomy": "recovery",
    "recovery_by_fault": "recovery",
    "reliability_by_task": "reliability",
    "safety_score": "safety",
    "sim_to_real": "agreement",
    "itemised_throughput": "throughput",
    "time_between_failures": "reliability",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever a module holds
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
