"""How policies did on a robot, or a twin of it, beside what simulation had told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from robo_eval.core.kinds import Side
from robo_eval.core.number import Condition, Numbers
from robo_eval.metrics import registry
from robo_eval.metrics.agreement import offer_text
from robo_eval.metrics.body import Body
from robo_eval.metrics.pairs import ConditionRates
from robo_eval.metrics.safety import RATE_UNIT, hours_text, too_short
from robo_eval.metrics.summary import TrialSummary
from robo_eval.metrics.throughput import throughput_of
from robo_eval.page.table import Group, groups_of
from robo_eval.page.words import bounds_or_reason, count, interval_text, number


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
        conditions: Success on both sides by condition.
        found: What metrics found.
    """

    policy: str
    conditions: Sequence[RobotCondition]
    found: Body

    @property
    def title(self) -> str:
        """The policy's own name and the side."""
        return f"{self.found.policy} ({self.found.side})"

    @property
    def is_twin(self) -> bool:
        """Whether a twin stood in for the robot."""
        return self.found.side == Side.TWIN.value

    @property
    def body(self) -> str:
        """What was moved, in a word."""
        return "twin" if self.is_twin else "robot"

    @property
    def table(self) -> list[Group]:
        """The numbers, as a table shows them."""
        return groups_of(self.found.numbers)

    def numbers_of(self, name: str) -> Numbers:
        """Those of one name, whatever they are of.

        Args:
            name: As it is called on a robot.
        """
        owner = registry.owner_of(name)
        return self.found.numbers.where(name=owner.name_on(self.found.side, name))

    @property
    def alarm(self) -> str:
        """What forbids to rely on the numbers; empty without a critical incident."""
        critical = self.found.critical
        if not critical:
            return ""
        score = registry.owner_of("SS").name_on(self.found.side)
        return (
            f"{self.found.policy} on the {self.body}: {count(critical, 'critical incident')}."
            f" {score} is 0 and this window counts for nothing."
        )

    @property
    def comparison(self) -> str:
        """Where simulation tells least, or why it is not compared; empty of a single family."""
        agreement = self.found.agreement
        if agreement is None:
            if self.found.calibrations:
                return (
                    "The policy was simulated under several calibrations and the settings choose"
                    " none of them: each is compared, and there is no one agreement."
                )
            return "The policy has no simulated episode: there is nothing to compare with."
        offer = offer_text(agreement.offered)
        offer = f"{offer}." if offer else ""
        if agreement.worst_family is None:
            return offer
        worst = agreement.families[agreement.worst_family]
        return (
            f"Simulation and {self.body} agree least in {agreement.worst_family}:"
            f" {agreement.name} {interval_text(worst)}. {offer}"
        ).strip()


def robots_of(summary: TrialSummary, name_of: Callable[[str, str], str]) -> list[Robot]:
    """Each policy on each physical side; none for a trial in simulation only.

    Args:
        summary: Metrics of the trial.
        name_of: Name shown of a policy, from its side and its own name.
    """
    places = _places(summary.robots)
    return [
        Robot(
            policy=name_of(found.side, found.policy),
            conditions=[replace(places[rates.at], rates=rates) for rates in found.conditions],
            found=found,
        )
        for found in summary.robots
    ]


def robot_warnings(robots: Sequence[Robot]) -> list[str]:
    """What a reader must know before any number of a robot."""
    return [robot.alarm for robot in robots if robot.alarm]


# Conditions --------------------------------------------------------------------------------------


def _places(robots: Sequence[Body]) -> dict[Condition, RobotCondition]:
    """Number and name of each condition, the same for every policy."""
    first = {it.at: it for robot in robots for it in robot.conditions}
    has_tasks = len({at.task for at in first}) > 1
    has_profiles = len({at.profile for at in first}) > 1
    has_difficulties = len({at.difficulty for at in first}) > 1
    found: dict[Condition, RobotCondition] = {}
    for at, rates in first.items():
        parts = [
            at.task if has_tasks or at.level is None else "",
            (at.profile or "") if has_profiles else "",
            "" if at.level is None else f"level {at.level}",
            (at.difficulty or "") if has_difficulties else "",
        ]
        label = ", ".join(part for part in parts if part)
        found[at] = RobotCondition(number=len(found) + 1, label=label, rates=rates)
    return found


# Words -------------------------------------------------------------------------------------------


def robots_title(robots: Sequence[Robot]) -> str:
    """What the section is called: a twin is not the robot."""
    return "On the robot" if any(not robot.is_twin for robot in robots) else "On the robot's twin"


def robots_text(robots: Sequence[Robot]) -> list[str]:
    """What the numbers of the section are, in the names that are used in it."""
    kinds = []
    if any(not robot.is_twin for robot in robots):
        kinds.append(("AR", "on the robot", "S2R"))
    if any(robot.is_twin for robot in robots):
        kinds.append(("AR_twin", "on the twin", "S2S"))
    is_compared = any(robot.found.agreement or robot.found.calibrations for robot in robots)
    shares = "; ".join(f"{name}: {where}" for name, where, _ in kinds)
    text = f"Share of scored episodes that are strict successes. {shares}"
    if is_compared:
        text += "; AR_sim: of the simulated episodes it is compared with (hollow). "
        text += " ".join(
            f"{name} (diamond) is their agreement, 1 minus the distance of {own} and AR_sim."
            for own, _, name in kinds
        )
    else:
        text += "."
    if any(robot.is_twin for robot in robots):
        return [text, "A twin is a stand-in for the robot: its numbers end in _twin or S2S."]
    return [text]


def not_measured(robots: Sequence[Robot]) -> list[tuple[str, str]]:
    """Pictures a policy has no part in, and why, in words."""
    found = []
    for name, why in (
        ("Success by condition", _why_no_conditions),
        ("Incidents", _why_no_incidents),
        ("Recovery from faults", partial(_why_not, "RA")),
        ("Quality of control", partial(_why_not, "QC")),
        ("Throughput", partial(_why_not, "tasks_per_hour")),
    ):
        reasons: dict[str, list[str]] = {}
        for robot in robots:
            if reason := why(robot):
                reasons.setdefault(reason, []).append(robot.title)
        for reason, titles in reasons.items():
            who = "" if len(titles) == len(robots) else f" of {' and '.join(titles)}"
            found.append((f"{name}{who}", reason))
    return found


def _why_not(name: str, robot: Robot) -> str:
    """Why a metric has no value, whatever it is of; empty where it has one."""
    own = [it.estimate for it in robot.numbers_of(name)]
    return "" if any(it.value is not None for it in own) else own[0].reason or ""


def _why_no_conditions(robot: Robot) -> str:
    if robot.conditions:
        return ""
    agreed = robot.found.of("S2R")
    none = "no condition has scored episodes on both sides"
    return none if agreed.value is not None else agreed.reason or none


def _why_no_incidents(robot: Robot) -> str:
    counts, hours = robot.found.counts, robot.found.exposure.hours
    rates = [it.estimate for it in robot.found.numbers if it.estimate.unit == RATE_UNIT]
    if counts is None or any(rate.value is not None for rate in rates):
        return _why_not("SS", robot)
    if hours:
        return f"{count(sum(counts.values()), 'incident')} {too_short(hours)}"
    return next((rate.reason for rate in rates if rate.reason), "")


def comparison_lines(robots: Sequence[Robot]) -> list[tuple[str, str]]:
    """Where simulation tells least, or why it is not compared; once if it is the same for all."""
    lines = [(robot.title, robot.comparison) for robot in robots]
    if len({text for _, text in lines}) == 1:
        return [("", lines[0][1])] if lines[0][1] else []
    return [(title, text) for title, text in lines if text]


def conditions_note(robots: Sequence[Robot]) -> str:
    """How to read the chart of conditions, and how much a mark rests on."""
    rates = [it.rates for robot in robots for it in robot.conditions]
    if not rates:
        return ""
    sizes = [min(it.physical.n, it.sim.n) for it in rates]
    noun = "pair" if all(it.is_paired for it in rates) else "episode"
    least, most = min(sizes), max(sizes)
    n = count(most, noun) if least == most else f"{least} to {count(most, noun)}"
    return (
        "A mark for each condition, numbered as in the table, which holds the intervals; conditions"
        f" of equal rates share one, and thin lines are the widest interval. A condition rests on"
        f" {n}. Below the dashed diagonal simulation promised more than was kept, above it less."
    )


def throughput_lines(robots: Sequence[Robot]) -> list[tuple[str, str]]:
    """What an hour brings, policy by policy: title, and the sentence."""
    lines = []
    for robot in robots:
        found = throughput_of(robot.found.frame, robot.found.config)
        if found is None or found.per_hour.value is None:
            continue
        unit = found.currency or "currency unit"
        worth = (
            f"{number(found.per_cost.value, digits=None)} tasks per {unit}"
            f" ({bounds_or_reason(found.per_cost, digits=None)})"
            if found.per_cost.value is not None
            else f"tasks per {unit} not known: {found.per_cost.reason}"
        )
        text = (
            f"{number(found.per_hour.value, digits=None)} tasks per hour"
            f" ({bounds_or_reason(found.per_hour, digits=None)};"
            f" {count(found.successes, 'success', 'successes')} in {hours_text(found.hours)})"
            f" and {worth} at {found.cost_per_hour:.2f} {unit} an hour"
        )
        lines.append((robot.title, text))
    return lines
