"""What a report says of policies on a robot or its twin, before it is given a shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robo_eval.core.number import Numbers
from robo_eval.metrics import registry
from robo_eval.metrics.body import Body
from robo_eval.metrics.pairs import ConditionRates
from robo_eval.page.table import Group, groups_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotCondition:
    """One condition that was met on both sides.

    Attributes:
        number: Its number in chart and table, the same for every policy.
        label: What it is called.
        rates: Success on both sides.
    """

    number: int
    label: str
    rates: ConditionRates


@dataclass(frozen=True, slots=True, kw_only=True)
class Robot:
    """One policy on a robot or its twin, and how well simulation had told.

    Attributes:
        policy: Name shown.
        title: The policy's own name and the side.
        is_twin: Whether a twin stood in for the robot.
        numbers: Every number, in the order shown.
        conditions: Success on both sides by condition.
        found: What metrics found, for the charts.
        why_no_agreement: Why simulation is not compared; empty where it is.
        worst: The task family that agrees least, as a sentence; empty with fewer than two.
        alarm: What forbids to rely on the numbers; empty without a critical incident.
    """

    policy: str
    title: str
    is_twin: bool
    numbers: Numbers
    conditions: Sequence[RobotCondition] = ()
    found: Body
    why_no_agreement: str = ""
    worst: str = ""
    alarm: str = ""

    def numbers_of(self, name: str) -> Numbers:
        """Those of one name, whatever they are of.

        Args:
            name: As it is called on a robot.
        """
        owner = registry.owner_of(name)
        return self.numbers.where(name=owner.name_on(self.found.side, name))

    @property
    def table(self) -> list[Group]:
        """The numbers, as a table shows them."""
        return groups_of(self.numbers)
