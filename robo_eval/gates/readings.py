"""What gates read: estimates of one policy on one side, by the names profiles use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from robo_eval.core import defaults
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.number import Number, Numbers
from robo_eval.gates.audits import Audit
from robo_eval.gates.axes.anchors import Axis
from robo_eval.gates.axes.cognition import ProbeResult
from robo_eval.gates.axes.experts import Margins
from robo_eval.gates.axes.improvement import Streak, Upkeep
from robo_eval.gates.axes.index import Index
from robo_eval.gates.axes.progress import DayIndex, Progress
from robo_eval.gates.axes.revision import RevisionResult
from robo_eval.gates.quantity import REGISTERED, about
from robo_eval.log.evidence import PHYSICAL
from robo_eval.metrics import registry

_SIDES: Final = tuple(side.value for side in Side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The evidence on one policy.

    Attributes:
        policy: Its name.
        side: Where it was shown: `real`, `twin`, or `sim`.
        values: Estimates by quantity; what is not there was not measured.
        numbers: What metrics tell of it, which gates read by name.
        families: By quantity, the estimate of each task family.
        played: Task families that were played.
        streaks: Families that improve themselves, by name.
        events: Incidents counted in the exposure, by severity; None without a record.
        audits: What was checked besides.
        unusual: Settings of the metrics that a level may not rest on.
        confidence: Of the intervals.
        left_out: What was left out of the log beyond what the plan allows; it counts as failures.
        left_out_allowed: What the plan allows to be left out, which counts as failures as well.
        origin: Where the rows come from if not from a run; see `core.kinds.evidence_tag`.
        grounds: What a reader has to know of the evidence; see `gates.grounds`.
        battery: Whether the tasks are fit to show a level; empty if that was not looked at.
        axes: The ten axes; empty if they were not computed.
        index: What they add up to; None without them.
        progress: How each task family went on over checkpoints, by name.
        days: What the families could do on average, day by day.
        upkeep: For how long it kept what it could do; None without checkpoints.
        revisions: Changes of the policy to itself, and whether they count.
        margins: How it did beside human professionals; None if that was not noted.
        probes: Cognitive probes beside the median of people.
        invalid: Why the whole window does not count; None if it does.
    """

    policy: str
    side: str
    values: Mapping[str, Estimate]
    numbers: Numbers = field(default_factory=Numbers)
    families: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    played: tuple[str, ...] = ()
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    events: Mapping[str, int] | None = None
    audits: tuple[Audit, ...] = ()
    unusual: tuple[str, ...] = ()
    confidence: float = defaults.LEVEL
    left_out: str = ""
    left_out_allowed: str = ""
    origin: str = ""
    grounds: tuple[str, ...] = ()
    battery: tuple[Audit, ...] = ()
    axes: tuple[Axis, ...] = ()
    index: Index | None = None
    progress: Mapping[str, Progress] = field(default_factory=dict)
    days: tuple[DayIndex, ...] = ()
    upkeep: Upkeep | None = None
    revisions: tuple[RevisionResult, ...] = ()
    margins: Margins | None = None
    probes: tuple[ProbeResult, ...] = ()
    invalid: str | None = None

    def __post_init__(self) -> None:
        if self.side not in _SIDES:
            raise unknown_name("side", self.side, _SIDES)

    @property
    def has_body(self) -> bool:
        """Whether the policy was judged on a robot or a twin of one."""
        return self.side in PHYSICAL

    def of(self, quantity: str) -> Estimate:
        """The estimate of a quantity; if there is none, why, or what would supply it."""
        if quantity in self.values:
            return self.values[quantity]
        told = self._told(quantity)
        return (
            Estimate.missing(reason=about(quantity).remedy, unit="")
            if told is None
            else told.estimate
        )

    def remedy_of(self, quantity: str) -> str:
        """What supplies a quantity where it is missing."""
        told = None if quantity in self.values else self._told(quantity)
        return (told and told.remedy) or about(quantity).remedy

    def _told(self, quantity: str) -> Number | None:
        """What metrics say of a quantity; where its metric cannot be computed, that and why."""
        if quantity in REGISTERED:
            return None
        owner = registry.owner_of(quantity)
        whole = self.numbers.where(family="", case="", at=None)
        found = whole.where(name=owner.name_on(self.side, quantity))
        if found:
            return found[0]
        lacking = [one for one in whole.where(name=owner.name_on(self.side)) if one.remedy]
        if not lacking:
            return None
        unit = owner.unit_of(quantity) or ""
        return replace(lacking[0], estimate=replace(lacking[0].estimate, unit=unit))

    def families_of(self, quantity: str) -> Mapping[str, Estimate]:
        """The estimate of a quantity in each task family; empty where it has none."""
        if quantity in self.families or quantity in REGISTERED:
            return self.families.get(quantity, {})
        return self.numbers.families(registry.owner_of(quantity).name_on(self.side, quantity))
