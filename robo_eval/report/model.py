"""What a report says, before it is given a shape: the numbers of metrics and analysis, named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from robo_eval.core.plan import TrialPlan
from robo_eval.metrics.coverage import Coverage
from robo_eval.metrics.dose import DoseCurve
from robo_eval.metrics.lengths import Lengths
from robo_eval.metrics.performance import Cell as CellNumbers
from robo_eval.metrics.performance import PolicyResult
from robo_eval.metrics.thresholds import ThresholdCurve
from robo_eval.page.agent_curves import AgentCurve, IsometricCurves
from robo_eval.page.table import Group
from robo_eval.page.words import count, missing_words, thousands
from robo_eval.report.animation import Clip
from robo_eval.report.calibration import Calibrations
from robo_eval.report.conduct import Conduct
from robo_eval.report.incidents import IncidentList
from robo_eval.report.levels import Autonomy
from robo_eval.report.robots import Robot
from robo_eval.report.stages import Stages
from robo_eval.report.standings import Standings

if TYPE_CHECKING:
    from robo_eval.log.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialData:
    """What is known of a trial.

    Attributes:
        path: The trial directory.
        plan: The locked plan.
        plan_text: Its text.
        plan_digest: Its SHA-256.
        status: `"complete"`, or e.g. `"interrupted at 12/40"`.
        manifest: What the trial says of its own making.
        frame: Episodes, one row per attempt.
    """

    path: Path
    plan: TrialPlan
    plan_text: str
    plan_digest: str
    status: str
    manifest: Manifest | None
    frame: pd.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The verdict on one policy over the whole trial.

    Attributes:
        policy: Name shown; it says the side where a trial has more than one.
        numbers: What metrics found.
    """

    policy: str
    numbers: PolicyResult

    @property
    def missing_text(self) -> str:
        """How many episodes have no score, and why: `13 missing (13 fault)`; empty if none."""
        coverage = self.numbers.coverage
        if coverage.scored == coverage.expected:
            return ""
        why = f" ({missing_words(coverage.missing)})" if coverage.missing else ""
        return f"{coverage.expected - coverage.scored} missing{why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionCell:
    """One policy in one condition.

    Attributes:
        policy: Name shown.
        panel: What groups columns: the difficulty, and the task where there are several.
        column: The novelty level, or the task where it has no levels.
        column_name: What the level is called; may be empty.
        numbers: What metrics found.
        on_curve: Whether a curve over magnitudes shows it.
    """

    policy: str
    panel: str
    column: str
    column_name: str = ""
    numbers: CellNumbers
    on_curve: bool = False

    @property
    def place(self) -> str:
        """The condition in words."""
        where = f"level {self.column}" if self.column.isdigit() else self.column
        named = f"{where} ({self.column_name})" if self.column_name else where
        return f"{named}, {self.panel}" if self.panel else named


@dataclass(frozen=True, slots=True, kw_only=True)
class EndCounts:
    """How the planned episodes of one policy ended.

    Attributes:
        policy: Name shown.
        succeeded: Strict successes.
        failed: Scored episodes that were none, by what ended them.
        missing: Episodes without a score, by why.
        interventions: Times a person stepped in.
    """

    policy: str
    succeeded: int
    failed: Mapping[str, int]
    missing: Mapping[str, int]
    interventions: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Episodes by kind: `good`, `bad`, `missing`; the order in which a bar shows them."""
        return {
            "good": self.succeeded,
            "bad": sum(self.failed.values()),
            "missing": sum(self.missing.values()),
        }

    @property
    def total(self) -> int:
        """All episodes there should be a score of."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why episodes ended otherwise than by success or failure, as the log tells it.

    Attributes:
        policy: Name shown.
        end: What ended them.
        detail: The text of the log.
        n: Attempts it ended.
    """

    policy: str
    end: str
    detail: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheck:
    """Whether the rows a report rests on are those that were logged.

    Attributes:
        rows: Rows whose digests were computed again.
        problems: What is not as it was logged, each in one line; empty if all is well.
    """

    rows: int
    problems: Sequence[str] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def text(self) -> str:
        """The finding in one line."""
        if self.is_sound:
            return f"log verified ({count(self.rows, 'row')})"
        more = len(self.problems) - 1
        others = f" (and {count(more, 'more problem')})" if more else ""
        return f"this log does not verify: {self.problems[0]}{others}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Characteristic:
    """Everything the capability and generality section shows.

    Attributes:
        curves: One for each policy.
        isometrics: Spread of curves of extreme and of no generality, from h0 to q.
        source: Where the difficulties come from.
        axis: How many there are, and between which ends.
        warnings: Why the intervals are to be read with care.
    """

    curves: Sequence[AgentCurve]
    isometrics: IsometricCurves
    source: str
    axis: str = ""
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialAnswer:
    """What a trial says to one of the questions it was played for.

    Attributes:
        question: The question.
        text: The answer, in a sentence or two.
        numbers: The numbers it rests on, as sentences.
    """

    question: str
    text: str
    numbers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report.

    Attributes:
        title: Name of the plan.
        description: What the trial is meant to find out.
        status: `"complete"`, or e.g. `"running at 12/40"` or `"interrupted at 12/40"`.
        synopsis: One line: what was played, how often.
        log: Whether the rows are those that were logged; None if that was not looked at.
        coverage: Scored episodes out of those there should be; None if that is not known.
        results: The verdict for each policy, in the plan's order.
        tally: How many of the planned episodes are scored, and what is missing.
        answers: What the trial answers; empty where nothing can be said.
        warnings: What forbids or weakens a verdict, most important first.
        outcomes: How each policy's episodes ended.
        troubles: What the log tells of faults, stops and void attempts.
        cells: Policy by level by difficulty.
        standings: The policies of each side against each other; empty with one policy.
        stopping: What the stopping rule of the plan says; empty without one.
        robots: How policies did on a robot or its twin; empty for a trial in simulation only.
        simulated: What registered metrics tell of policies in simulation, by policy.
        calibrations: What snapshots that lie with the trial found.
        autonomy: Which autonomy levels were shown; None for a trial in simulation only.
        incidents: What its incident log says; None if it has none.
        conduct: How the trial was run; None if not known.
        effects: Differences from the matched controls, by policy.
        doses: Success and quality over the magnitude of novelties; empty without `axes`.
        thresholds: Detection over the threshold of declarations; empty without trials.
        not_begun: Novel episodes of each policy that ended before their novelty began, in words;
            only of policies that have such episodes.
        stages: How far episodes of tasks with stages come.
        lengths: Episode lengths.
        lengths_reason: Why there are none.
        lengths_note: Which episodes the lines leave out; empty where they leave out none.
        characteristic: Capability and generality; None where they are not defined.
        characteristic_reason: Why they are not.
        clips: Episodes to draw.
        tilts: What is drawn tilting beside them.
        conditions: What was run, as term and text.
        provenance: Versions and digests, as term and text.
        commands: Commands that repeat, check and rebuild what is shown.
        commands_note: From where to give them, and what they need.
        plan_text: The locked plan.
        meanings: Names of the numbers of metrics, and what they mean.
        verb: What an episode that succeeded did.
    """

    title: str
    description: str = ""
    status: str
    synopsis: str
    log: LogCheck | None = None
    coverage: Coverage | None = None
    results: Sequence[Result]
    tally: str = ""
    answers: Sequence[TrialAnswer]
    warnings: Sequence[str]
    outcomes: Sequence[EndCounts] = ()
    troubles: Sequence[Trouble] = ()
    cells: Sequence[ConditionCell]
    standings: Sequence[Standings] = ()
    stopping: str = ""
    robots: Sequence[Robot] = ()
    simulated: Mapping[str, Sequence[Group]] = field(default_factory=dict)
    calibrations: Calibrations = field(default_factory=Calibrations)
    autonomy: Autonomy | None = None
    incidents: IncidentList | None = None
    conduct: Conduct | None = None
    effects: Sequence[Group] = ()
    doses: Sequence[DoseCurve] = ()
    thresholds: Sequence[ThresholdCurve] = ()
    not_begun: Mapping[str, str] = field(default_factory=dict)
    stages: Sequence[Stages] = ()
    lengths: Sequence[Lengths]
    lengths_reason: str = ""
    lengths_note: str = ""
    characteristic: Characteristic | None
    characteristic_reason: str = ""
    clips: Sequence[Clip] = ()
    tilts: Sequence[str] = ()
    conditions: Sequence[tuple[str, str]] = ()
    provenance: Sequence[tuple[str, str]] = ()
    commands: Sequence[tuple[str, str]] = ()
    commands_note: str = ""
    plan_text: str = ""
    meanings: Sequence[tuple[str, str]] = ()
    verb: str = "succeeded"

    @property
    def mapped(self) -> Sequence[ConditionCell]:
        """The cells of the map; curves show theirs, and what is alone beside them makes none."""
        others = [cell for cell in self.cells if not cell.on_curve]
        is_alone = bool(self.doses) and len({(one.panel, one.column) for one in others}) < 2
        return () if is_alone else others

    @property
    def policies(self) -> list[str]:
        """Names of the policies in the plan's order."""
        return [result.policy for result in self.results]

    @property
    def badge(self) -> Badge:
        """How the trial stands, in a few words."""
        lost = self.coverage.expected - self.coverage.scored if self.coverage is not None else 0
        return badge(self.status, lost, self.log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """How a trial stands, in a few words.

    Attributes:
        text: The words.
        tone: `"done"`, `"open"` where something is missing, or `"bad"` where the log is not what
            was logged. No tone says that the policies did well.
    """

    text: str
    tone: str


def badge(status: str, lost: int, log: LogCheck | None) -> Badge:
    """How a trial stands: a run that is complete may still lack scores, or not be trusted.

    Args:
        status: How far it is.
        lost: Episodes without a score.
        log: Whether the rows are those that were logged.
    """
    if log is not None and not log.is_sound:
        return Badge(text=f"{status}, not verified", tone="bad")
    if status != "complete":
        return Badge(text=status, tone="open")
    if lost:
        return Badge(text=f"{status}, {thousands(lost)} without a score", tone="open")
    return Badge(text=status, tone="done")
