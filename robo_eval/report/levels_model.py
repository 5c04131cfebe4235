"""What the section on autonomy levels of a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from robo_eval.gates.axes.anchors import Axis
    from robo_eval.gates.axes.frontier import Frontier
    from robo_eval.gates.axes.progress import DayIndex, Progress


LEAST_AXES: Final = 3
"""Axes with a value that make a picture."""
LEAST_DAYS: Final = 2
"""Days that make a picture over time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """What one level asks of a gate, and whether that was shown.

    Attributes:
        level: The level.
        asked: The threshold, with its direction.
        status: `pass`, `fail`, `missing` or `undecided`: the word beside the sign.
        found: What was found at this level, where each level looks for something else.
        reason: Why, in words.
    """

    level: int
    asked: str
    status: str
    found: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One gate with all levels that have it.

    Attributes:
        title: What people call it.
        value: The evidence found; empty where there is none.
        interval: Its interval, or why there is none.
        rests_on: How much it rests on.
        lights: One for each level of the table; None where a level does not ask.
        reason: Why the lowest level that is not passed is not, or why it passes.
    """

    title: str
    value: str
    interval: str
    rests_on: str
    lights: Sequence[Light | None]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTable:
    """Gates that decide, or gates that are only reported.

    Attributes:
        levels: Levels that ask for one of them.
        rows: The gates, in the order of the profile.
    """

    levels: Sequence[int]
    rows: Sequence[GateRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One audit, or one check of the battery of tasks.

    Attributes:
        title: What is checked.
        level: From which level on it has to pass; 0 if no level is issued without it.
        status: `pass`, `fail` or `missing`.
        reason: What was found.
    """

    title: str
    level: int
    status: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTable:
    """What was checked besides the gates.

    Attributes:
        rows: The checks.
        passed: How many of them pass, in words.
    """

    rows: Sequence[AuditRow]
    passed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One level on the way to the verdict.

    Attributes:
        level: The level.
        checks: What it asks for and how that went, each `pass`, `fail` or `missing`.
        passed: Whether all of that holds.
    """

    level: int
    checks: Mapping[str, str]
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A number as it stands in a table.

    Attributes:
        label: What it is.
        value: The number; empty where there is none.
        note: Its interval, or why there is none.
    """

    label: str
    value: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisRow:
    """One axis.

    Attributes:
        title: Its letter and its name.
        raw: What was measured.
        anchors: Raw values that count 0 and 1.
        source: Where they come from.
        value: The axis.
        rests_on: Sample size.
        weight: Its share of the index; empty if it does not count.
        made_of: What else was measured on the way.
    """

    title: str
    raw: Shown
    anchors: str
    source: str
    value: Shown
    rests_on: str
    weight: str
    made_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AxesPart:
    """The axes of one policy, and what they add up to.

    Attributes:
        rows: The axes.
        counted: How many of them have a value, in words.
        text: The index in words, each a sentence.
        alternatives: The index with other weights; empty if all lack the same.
    """

    rows: Sequence[AxisRow]
    counted: str
    text: Sequence[str]
    alternatives: Sequence[Shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressRow:
    """Progress of one task family.

    Attributes:
        family: Its name.
        numbers: What is said of it, alike for all families.
    """

    family: str
    numbers: Sequence[Shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingList:
    """What is missing for a level.

    Attributes:
        level: The level.
        items: Each thing in a line.
    """

    level: int
    items: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Days in a row on which a capability was kept up.

    Attributes:
        first: Number of its first day, from 1970 on.
        last: Number of its last day.
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLevel:
    """What is said of one policy.

    Attributes:
        policy: Its name.
        side: Where the evidence comes from: `real`, `twin` or `sim`.
        badge: The level, or that there is none.
        is_valid: Whether a level was issued.
        tag: What the level is evidence of.
        found_where: Where the evidence was found.
        headline: What is shown and what point values say, as a sentence.
        reason: Why that is shown, as a sentence.
        notes: What else is to be said of the level, each as a sentence.
        missing: What is missing for the next level; None if there is no next one.
        above: What is missing for the levels above that.
        prefix: What a number becomes a level by.
        gates: The gates that decide.
        reported: The gates that are only reported.
        steps: How the level was found, from the highest down.
        audits: The audits.
        battery: Whether the tasks are fit to show a level.
        axes: The axes in words; None if they were not computed.
        progress: Progress of each family in words.
        axes_found: The axes as they were found, for the picture.
        days_found: What the families could do on average, day by day.
        progress_found: Progress of each family as it was found.
        kept: When the maintenance closure holds; None where that is not known.
    """

    policy: str
    side: str
    badge: str
    is_valid: bool
    tag: str
    found_where: str
    headline: str
    reason: str
    notes: Sequence[str]
    missing: MissingList | None
    above: Sequence[MissingList]
    prefix: str
    gates: GateTable
    reported: GateTable
    steps: Sequence[StepRow]
    audits: AuditTable
    battery: AuditTable
    axes: AxesPart | None
    progress: Sequence[ProgressRow]
    axes_found: Sequence[Axis]
    days_found: Sequence[DayIndex]
    progress_found: Mapping[str, Progress]
    kept: Stretch | None = None

    @property
    def has_axes(self) -> bool:
        """Whether enough axes have a value to draw them."""
        return sum(axis.value.value is not None for axis in self.axes_found) >= LEAST_AXES

    @property
    def has_days(self) -> bool:
        """Whether there are enough days to draw them."""
        return len(self.days_found) >= LEAST_DAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPart:
    """How much of the work can be delegated.

    Attributes:
        found: The frontier.
        text: What it says, each as a sentence.
        note: What the picture of it shows.
        is_drawn: Whether a picture says more than the words.
    """

    found: Frontier
    text: Sequence[str]
    note: str
    is_drawn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of the form that others need to repeat an assessment.

    Attributes:
        question: What is asked.
        answer: The answer; empty while there is none.
        source: Where it comes from, or where it is to be given.
    """

    question: str
    answer: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPart:
    """The form that others need to repeat an assessment.

    Attributes:
        answered: How many questions have an answer, as a sentence.
        open: Questions without an answer.
        items: All of them.
    """

    answered: str
    open: Sequence[Question]
    items: Sequence[Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class Autonomy:
    """What the section on autonomy levels shows.

    Attributes:
        policies: One for each policy.
        text: How to read it.
        axes_note: Why a policy is not in the picture of the axes; empty if all are.
        days_note: Why a policy is not in the picture over time; empty if all are.
        frontier: How much of the work can be delegated; None if there is nothing to say.
        form: What others need to repeat it.
        thresholds: Whose the thresholds are, as the end of a sentence.
        profile_name: Which profile was asked.
        profile_digest: SHA-256 of it.
        is_open: Whether the main tables are unfolded.
    """

    policies: Sequence[PolicyLevel]
    text: Sequence[str]
    axes_note: str
    days_note: str
    frontier: FrontierPart | None
    form: FormPart
    thresholds: str
    profile_name: str
    profile_digest: str
    is_open: bool
