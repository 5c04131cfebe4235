"""What a report says, before it is given a shape: the numbers of metrics and analysis, named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.performance import Cell as CellNumbers
from robo_eval.metrics.performance import PolicyResult
from robo_eval.report.animation import Clip


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
        reasons = [f"{n} {reason.replace('_', ' ')}" for reason, n in coverage.missing.items()]
        why = f" ({', '.join(reasons)})" if reasons else ""
        return f"{coverage.expected - coverage.scored} missing{why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One policy in one condition.

    Attributes:
        policy: Name shown.
        panel: What groups columns: the difficulty, and the task where there are several.
        column: The novelty level, or the task where it has no levels.
        column_name: What the level is called; may be empty.
        numbers: What metrics found.
    """

    policy: str
    panel: str
    column: str
    column_name: str = ""
    numbers: CellNumbers

    @property
    def place(self) -> str:
        """The condition in words."""
        where = f"level {self.column}" if self.column.isdigit() else self.column
        named = f"{where} ({self.column_name})" if self.column_name else where
        return f"{named}, {self.panel}" if self.panel else named


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Paired difference of a condition from its matched control, for one policy.

    Attributes:
        policy: Name shown.
        label: The condition.
        difference: Quality with novelty minus quality of the control.
        n_pairs: Pairs of episodes it rests on.
        verdict: `"lower"`, `"higher"`, `"undecided"`, or None where nothing can be said.
    """

    policy: str
    label: str
    difference: Estimate
    n_pairs: int
    verdict: str | None

    @property
    def is_decided(self) -> bool:
        """Whether the interval lies on one side of 0."""
        return self.verdict in ("lower", "higher")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Share of a policy's episodes that have not failed after each time."""

    policy: str
    time_s: Sequence[float]
    unfailed: Sequence[float]
    median_s: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCurve:
    """Agent characteristic curve of one policy with the numbers read off it."""

    policy: str
    difficulty: Sequence[float]
    response: Sequence[float]
    capability: Estimate
    spread: Estimate
    generality: Estimate
    flag: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Characteristic:
    """Everything the capability and generality section shows.

    Attributes:
        curves: One for each policy.
        start: Lower end of the difficulties (h0).
        end: Upper end of the difficulties (q).
        source: Where the difficulties come from.
        warnings: Why the intervals are to be read with care.
    """

    curves: Sequence[AgentCurve]
    start: float
    end: float
    source: str
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report.

    Attributes:
        title: Name of the plan.
        description: What the trial is meant to find out.
        status: `"complete"`, `"running"` or e.g. `"interrupted at 12/40"`.
        synopsis: One line: what was played, how often.
        results: The verdict for each policy, in the plan's order.
        verdict: One or two sentences; empty where nothing can be said.
        warnings: What forbids or weakens a verdict, most important first.
        cells: Policy by level by difficulty.
        effects: Differences from the matched controls.
        lengths: Episode lengths.
        characteristic: Capability and generality; None where they are not defined.
        characteristic_reason: Why they are not.
        clips: Episodes to draw.
        clips_reason: Why there are none.
        conditions: What was run, as term and text.
        provenance: Versions and digests, as term and text.
        commands: Commands that repeat, check and rebuild what is shown.
        plan_text: The locked plan.
        verb: What an episode that succeeded did.
    """

    title: str
    description: str = ""
    status: str
    synopsis: str
    results: Sequence[Result]
    verdict: str
    warnings: Sequence[str]
    cells: Sequence[Cell]
    effects: Sequence[Effect]
    lengths: Sequence[Lengths]
    characteristic: Characteristic | None
    characteristic_reason: str = ""
    clips: Sequence[Clip] = ()
    clips_reason: str = ""
    conditions: Sequence[tuple[str, str]] = ()
    provenance: Sequence[tuple[str, str]] = ()
    commands: Sequence[tuple[str, str]] = ()
    plan_text: str = ""
    verb: str = "succeeded"

    @property
    def policies(self) -> list[str]:
        """Names of the policies in the plan's order."""
        return [result.policy for result in self.results]

    @property
    def is_complete(self) -> bool:
        """Whether the trial played all it planned."""
        return self.status == "complete"
