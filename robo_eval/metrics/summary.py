"""What a trial found, in numbers: what the command line, metrics.json and the report show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from robo_eval.core.kinds import evidence_tag, strongest_side
from robo_eval.core.number import Numbers
from robo_eval.core.plain import plain
from robo_eval.core.series import Series, shortened
from robo_eval.metrics import registry
from robo_eval.metrics.body import Body, bodies_of
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.contradictions import is_synthetic
from robo_eval.metrics.coverage import Coverage, coverage_of
from robo_eval.metrics.deviation import Deviation
from robo_eval.metrics.dose import DoseCurve, dose_curves
from robo_eval.metrics.finding import Finding
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.performance import (
    DEFAULT,
    Cell,
    PolicyResult,
    cells_of,
    planned_episodes,
    policies_of,
)
from robo_eval.metrics.raters import SecondRater, second_raters
from robo_eval.metrics.stopped import series_of_table
from robo_eval.metrics.tables import main_rows
from robo_eval.metrics.thresholds import ThresholdCurve, threshold_curves

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan
    from robo_eval.log.evidence import Evidence

SUMMARY_VERSION = 2
"""Version of the form of `TrialSummary.as_dict`."""


class SummaryAnalysis(Protocol):
    """An analysis a summary can carry, such as `robo_eval.analysis.acc.AccTable`."""

    def as_dict(self) -> dict[str, Any]:
        """The analysis as JSON would have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSummary:
    """Everything tables and reports show of a trial.

    Attributes:
        name: Title of the plan.
        coverage: Scored main episodes out of those planned.
        policies: Each policy over all its conditions.
        cells: Each policy in each condition.
        bodies: Each policy on each side it was played on.
        doses: What each policy keeps as a novelty grows; empty if the plan has no `axes`.
        thresholds: What policies would detect of the onset of novelty with other thresholds; empty
            without trials.
        series: What the stopping rule of the plan says; None without one. Where it ended the
            series, the episodes it left out are not planned any more.
        raters: How second raters agree with the log.
        findings: What in the evidence does not fit the episodes; none in a clean audit.
        evidence: SHA-256 of each file of evidence, by its name.
        deviations: In what the trial departed from its plan; None if nobody looked, or nothing
            was planned, as in an imported trial.
        find_acc: Finds capability and generality, when somebody asks for `acc`.
        score_versions: Versions of the scoring rules the scores come from, with their episodes.
        config: Settings of the metrics.
        settings: Whose they are, and which of them a level may not rest on.
        origin: Where the rows come from if not from a run: `self-declared` of an import,
            `synthetic` of made-up ones.
        verified: Whether the rows are those that were logged; None if nobody looked, as where
            they come from no log.
        log_problem: Why they are not; None if they are.
    """

    name: str
    coverage: Coverage
    policies: tuple[PolicyResult, ...]
    cells: tuple[Cell, ...]
    find_acc: Callable[[], SummaryAnalysis | None]
    score_versions: Mapping[int, int]
    config: MetricConfig
    settings: str = ""
    origin: str = ""
    bodies: tuple[Body, ...] = ()
    doses: tuple[DoseCurve, ...] = ()
    thresholds: tuple[ThresholdCurve, ...] = ()
    series: Series | None = None
    raters: tuple[SecondRater, ...] = ()
    findings: tuple[Finding, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] | None = None
    verified: bool | None = None
    log_problem: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every planned episode was attempted."""
        return self.coverage.attempted >= (self.coverage.planned or 0)

    @property
    def acc(self) -> SummaryAnalysis | None:
        """Capability and generality; None if not asked for."""
        return self.find_acc()

    @property
    def robots(self) -> tuple[Body, ...]:
        """Each policy on each physical side; empty for a trial in simulation only."""
        return tuple(body for body in self.bodies if body.side in registry.PHYSICAL)

    @property
    def simulated(self) -> tuple[Body, ...]:
        """Each policy in simulation."""
        return tuple(body for body in self.bodies if body.side not in registry.PHYSICAL)

    @property
    def by_success(self) -> list[PolicyResult]:
        """The policies as a comparison has them: side by side, the best of each first."""
        sides = list(dict.fromkeys(result.side for result in self.policies))
        return sorted(self.policies, key=lambda own: (sides.index(own.side), own.place))

    def body_of(self, result: PolicyResult) -> Body | None:
        """The policy on its side; None if it was not played there."""
        key = result.side, result.policy
        return next((body for body in self.bodies if body.key == key), None)

    @property
    def numbers(self) -> Numbers:
        """Every number of a registered metric, body by body."""
        return Numbers(number for body in self.bodies for number in body.numbers)

    @property
    def offered_pairs(self) -> int:
        """Physical episodes that have a simulated twin by all but a `pair_id`."""
        return sum(body.agreement.offered for body in self.robots if body.agreement is not None)

    @property
    def evidence_tag(self) -> str:
        """What the numbers are evidence of; see `core.kinds.evidence_tag`."""
        return evidence_tag(strongest_side({robot.side for robot in self.robots}), self.origin)

    @property
    def left_out_problem(self) -> str:
        """What was left out of the numbers of robots beyond what the plan allows; empty if none."""
        found = [
            f"policy {body.policy}: {body.left_out.problem}"
            for body in self.robots
            if body.left_out.problem
        ]
        return "; ".join(found)

    @property
    def uncovered(self) -> tuple[PolicyResult, ...]:
        """Policies with too few scored episodes for a headline or a verdict."""
        return tuple(result for result in self.policies if not result.is_sayable)

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON would have it: no NaN, no infinity."""
        return {
            "version": SUMMARY_VERSION,
            "name": self.name,
            "is_complete": self.is_complete,
            "evidence_tag": self.evidence_tag,
            "verified": self.verified,
            "log_problem": self.log_problem,
            "coverage": plain(self.coverage),
            "policies": plain(self.policies),
            "cells": plain(self.cells),
            "doses": plain(self.doses),
            "thresholds": plain(self.thresholds),
            "numbers": [number.as_dict() for number in self.numbers],
            "offered_pairs": self.offered_pairs,
            "stopping": plain(self.series),
            "second_raters": plain(self.raters),
            "audit": [{"where": found.where, "text": found.text} for found in self.findings],
            "evidence": dict(self.evidence),
            "deviations": None
            if self.deviations is None
            else [found.as_dict() for found in self.deviations],
            "acc": None if self.acc is None else self.acc.as_dict(),
            "score_versions": {str(key): count for key, count in self.score_versions.items()},
            "packages": registry.packages(),
            "metric_files": registry.files(),
            "settings": self.settings,
            "configuration": self.config.as_dict(),
            "configuration_digest": self.config.digest,
        }


def summarise(
    frame: pd.DataFrame,
    plan: TrialPlan | None = None,
    *,
    config: MetricConfig = DEFAULT,
    acc: SummaryAnalysis | None = None,
    evidence: Evidence | None = None,
) -> TrialSummary:
    """Compute everything that is shown of a trial.

    Args:
        frame: Episodes with the columns of `core.episode.COLUMNS`.
        plan: The locked plan: says what is missing, and sets the order of rows. None for
            episodes without one.
        config: Settings of the intervals.
        acc: Capability and generality, `acc_for_trial(frame, item_difficulty)`; handed in
            because analyses build on metrics.
        evidence: Incidents, faults, repairs and second ratings.

    Raises:
        InputError: If the table cannot be used; the message names row and column.
    """
    table = episodes_frame(frame, plan)
    return summary_of_table(table, plan, config=config, find_acc=lambda: acc, evidence=evidence)


def summary_of_table(
    table: pd.DataFrame,
    plan: TrialPlan | None,
    *,
    config: MetricConfig,
    find_acc: Callable[[], SummaryAnalysis | None],
    evidence: Evidence | None = None,
) -> TrialSummary:
    """`summarise` of a table that was checked already; `find_acc` may be called more than once."""
    main = main_rows(table)
    series = series_of_table(table, plan)
    plan = None if plan is None else shortened(plan, series)
    versions = main["score_version"][main.scored].tolist()
    planned = sum(planned_episodes(plan).values()) if plan is not None else None
    bodies, attributed = bodies_of(table, main, config, evidence, plan)
    for body in bodies:  # errors of episodes and of metrics come to light here
        body.numbers  # noqa: B018
    return TrialSummary(
        name=plan.name if plan is not None else "episodes",
        coverage=coverage_of(main, planned=planned, minimum=config.min_coverage),
        policies=tuple(policies_of(main, plan, config)),
        cells=tuple(cells_of(main, plan, config)),
        bodies=bodies,
        doses=dose_curves(main, plan, config),
        thresholds=threshold_curves(bodies),
        series=series,
        raters=second_raters(None if evidence is None else evidence.ratings, table, config),
        findings=attributed.findings,
        evidence={} if evidence is None else dict(evidence.sources),
        find_acc=find_acc,
        score_versions={version: versions.count(version) for version in sorted(set(versions))},
        config=config,
        settings=_settings_text(config, plan),
        origin=_origin(table, plan),
    )


def _origin(table: pd.DataFrame, plan: TrialPlan | None) -> str:
    if is_synthetic(table):
        return "synthetic"
    return "" if plan is None or plan.imported is None else "self-declared"


def _settings_text(config: MetricConfig, plan: TrialPlan | None) -> str:
    """Whose settings the numbers were computed with, and what is unusual about them."""
    whose = "given for this, not those of the plan"
    if plan is None or plan.imported is not None:
        whose = "of no plan, so nobody agreed on them before"
    elif MetricConfig.of(plan.metrics).digest == config.digest:
        whose = "of the locked plan"
    return "; ".join((whose, *config.unusual))
