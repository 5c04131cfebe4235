"""What a report says of policies on a robot or its twin, before it is given a shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.pairs import ConditionRates
from robo_eval.metrics.robot import RobotResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotNumber:
    """One number of a policy on a robot or its twin.

    Attributes:
        name: What it is called: `AR`, `AR_sim`, `S2R`, `AR_twin`, `S2S`, ...
        family: The task family or case it is of; empty for all of them.
        estimate: The number.
        rests_on: Episodes, pairs, hours or events behind it, in words.
        note: What to mind; may be empty.
        text: What stands in the place of value and interval; empty for these.
        unit: Written behind the value.
        digits: Decimals.
        is_share: Whether it lies between 0 and 1, so that it can be drawn beside the others.
        is_signed: Whether it is a difference.
        is_physical: Whether it is of the robot or twin alone.
        is_simulated: Whether it is of the simulator alone.
        is_worst: Whether the family is the one that agrees least.
    """

    name: str
    family: str = ""
    estimate: Estimate
    rests_on: str = ""
    note: str = ""
    text: str = ""
    unit: str = ""
    digits: int = 2
    is_share: bool = True
    is_signed: bool = False
    is_physical: bool = False
    is_simulated: bool = False
    is_worst: bool = False

    @property
    def label(self) -> str:
        """Name and family."""
        return f"{self.name}, {self.family}" if self.family else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberGroup:
    """Numbers that belong together in a table.

    Attributes:
        title: What they are about.
        numbers: In the order shown.
    """

    title: str
    numbers: Sequence[RobotNumber]


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
        numbers: Reliability and agreement with simulation, in the order shown; they are drawn.
        groups: Every other number.
        conditions: Success on both sides by condition.
        found: What metrics found, for the charts.
        why_no_agreement: Why simulation is not compared; empty where it is.
        worst: The task family that agrees least, as a sentence; empty with fewer than two.
        alarm: What forbids to rely on the numbers; empty without a critical incident.
    """

    policy: str
    title: str
    is_twin: bool
    numbers: Sequence[RobotNumber]
    groups: Sequence[NumberGroup] = ()
    conditions: Sequence[RobotCondition] = ()
    found: RobotResult
    why_no_agreement: str = ""
    worst: str = ""
    alarm: str = ""

    @property
    def table(self) -> list[NumberGroup]:
        """Every number, as a table shows it."""
        return [
            NumberGroup(title="Reliability and agreement with simulation", numbers=self.numbers),
            *self.groups,
        ]
