"""What a report says, before it is given a shape: the numbers of metrics and analysis, named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from robo_eval.core.estimate import Estimate
from robo_eval.report.animation import Clip


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """The verdict on one policy over the whole trial.

    Attributes:
        policy: Name.
        digest: SHA-256 of what defines its behaviour.
        survived: Scored episodes that were a strict success.
        scored: Episodes with a score.
        planned: Episodes the plan asks for.
        success: Share of scored episodes that survived.
        performance: Mean quality of the scored episodes.
        missing: Episodes without a score, by reason (`"fault"`, `"void"`, `"not played"`, ...).
    """

    policy: str
    digest: str
    survived: int
    scored: int
    planned: int
    success: Estimate
    performance: Estimate
    missing: Mapping[str, int] = field(default_factory=dict)

    @property
    def coverage(self) -> float:
        """Share of the planned episodes that have a score."""
        return self.scored / self.planned if self.planned else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One policy in one condition.

    Attributes:
        policy: Name.
        panel: What groups columns: the difficulty, and the task where there are several.
        column: The novelty level, or the task where it has no levels.
        column_name: What the level is called; may be empty.
        performance: Mean quality of the scored episodes.
        success: Share of them that survived.
        survived: Scored episodes that were a strict success.
        scored: Episodes with a score.
        planned: Episodes the plan asks for.
    """

    policy: str
    panel: str
    column: str
    column_name: str = ""
    performance: Estimate
    success: Estimate
    survived: int
    scored: int
    planned: int

    @property
    def place(self) -> str:
        """The condition in words."""
        where = f"level {self.column}" if self.column.isdigit() else self.column
        named = f"{where} ({self.column_name})" if self.column_name else where
        return f"{named}, {self.panel}" if self.panel else named


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Paired difference of a condition from its matched control, for one policy."""

    policy: str
    label: str
    difference: Estimate

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and (low > 0.0 or high < 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Share of a policy's episodes still running after each time."""

    policy: str
    time_s: Sequence[float]
    still_running: Sequence[float]
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
        quality_label: What the quality of an episode is called.
    """

    title: str
    description: str = ""
    status: str
    synopsis: str
    results: Sequence[PolicyResult]
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

    @property
    def policies(self) -> list[str]:
        """Names of the policies in the plan's order."""
        return [result.policy for result in self.results]

    @property
    def is_complete(self) -> bool:
        """Whether the trial played all it planned."""
        return self.status == "complete"
