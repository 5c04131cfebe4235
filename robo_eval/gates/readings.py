"""What gates read: estimates of one policy on one side, by the names profiles use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from robo_eval.axes.improvement import Streak
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.gates.audits import Audit

QUANTITIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "autonomy": "log uninterrupted_actions of each episode",
        "planning": "log plan_depth of each episode of a multi-stage task",
        "tools": "add tools.csv: tool categories under drift",
        "ar": "play episodes on the robot",
        "s2r": "play the simulated half of the pairs: robo-eval partner",
        "ss": "keep a record of incidents: incidents.csv, with column names alone if none happened",
        "e": "it needs AR, SS and S2R",
        "ra": "inject recoverable faults, and keep faults.csv",
        "qc": "give tolerances in the plan: metrics.tolerances",
        "minor_per_100_h": "keep a record of incidents: incidents.csv",
        "major": "keep a record of incidents: incidents.csv",
        "critical": "keep a record of incidents: incidents.csv",
        "exposure_hours": "run the robot",
        "mtbsi": "keep a record of incidents: incidents.csv",
        "kappa": "add checkpoints.csv: capability and resources by day and family",
        "maintenance_days": "add checkpoints.csv: capability by day through a drift calendar",
        "expansion": "add expansion.csv: success before, after and without a new tool",
        "sociality": "add teams.csv: episodes with one robot and with several",
        "world_model": "log stated_success_probability of each episode",
        "delivery": "deliver in novel workcells, and add declarations.csv",
        "cost_ratio": "compare the cost with an expert team, and add declarations.csv",
        "domain_audit": "have the domain audited, and add declarations.csv",
    }
)
"""Every quantity a gate may read, and what supplies it where it is missing."""


_SIDES: Final = tuple(side.value for side in Side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The evidence on one policy.

    Attributes:
        policy: Its name.
        side: Where it was shown: `real`, `twin`, or `sim`.
        values: Estimates by quantity; what is not there was not measured.
        families: By quantity, the estimate of each task family.
        streaks: Families that improve themselves, by name.
        events: Incidents counted in the exposure, by severity; None without a record.
        audits: What was checked besides.
        invalid: Why the whole window does not count; None if it does.
    """

    policy: str
    side: str
    values: Mapping[str, Estimate]
    families: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    events: Mapping[str, int] | None = None
    audits: tuple[Audit, ...] = ()
    invalid: str | None = None

    def __post_init__(self) -> None:
        if self.side not in _SIDES:
            raise unknown_name("side", self.side, _SIDES)

    def of(self, quantity: str) -> Estimate:
        """The estimate of a quantity; without a value, and with the remedy, if there is none."""
        found = self.values.get(quantity)
        if found is not None:
            return found
        return Estimate.missing(reason=QUANTITIES[quantity], unit="")
