"""What the report of one trial says: log and summary in, named content out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pandas as pd

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm
from robo_eval.core.number import Condition
from robo_eval.core.plan import TrialPlan
from robo_eval.core.task import task_of
from robo_eval.core.wording import NOT_RECORDED
from robo_eval.log.directory import TrialDirectory
from robo_eval.metrics import registry
from robo_eval.metrics.lengths import Lengths, lengths_of
from robo_eval.metrics.performance import Cell as CellNumbers
from robo_eval.metrics.summary import TrialSummary
from robo_eval.metrics.tasks import task_label, task_variants
from robo_eval.metrics.trials import not_begun_text
from robo_eval.page.table import Group, Row, groups_of
from robo_eval.page.words import count, listed, sentence
from robo_eval.report.calibration import calibrations_of
from robo_eval.report.characteristic import characteristic_of
from robo_eval.report.clips import choose, clips
from robo_eval.report.conduct import conduct_of, conduct_warnings, place_of
from robo_eval.report.facts import (
    commands,
    commands_note,
    conditions,
    provenance,
    settings_note,
    synopsis,
)
from robo_eval.report.incidents import incident_list
from robo_eval.report.levels import autonomy_of
from robo_eval.report.meanings import meanings_of
from robo_eval.report.model import ConditionCell, LogCheck, Report, Result, TrialData
from robo_eval.report.outcomes import outcomes, troubles
from robo_eval.report.robots import robot_warnings, robots_of
from robo_eval.report.stages import stages_of
from robo_eval.report.standings import compared_sides, standings_of
from robo_eval.report.verdict import answers_of, coverage_warnings, status_warnings, tally

if TYPE_CHECKING:
    from robo_eval.gates.trial import TrialFindings

OVER_ALL: Final = "all levels"
"""What an effect over all levels of a policy stands under."""
_ELSEWHERE: Final = ("Effect of novelty", "Conduct")
"""Groups of numbers that have a section of their own."""


def make_report(
    data: TrialData, summary: TrialSummary, findings: TrialFindings | None = None
) -> Report:
    """The content of a trial's report.

    Args:
        data: The trial.
        summary: Its metrics.
        findings: Which autonomy level each policy has shown; None if that is not told.
    """
    names = Names(summary)
    shown_as = {
        (row.side, row.policy): names.policy(row.side, row.policy) for row in summary.policies
    }
    results = [
        Result(policy=name, numbers=row)
        for name, row in zip(shown_as.values(), summary.policies, strict=True)
    ]
    envs = list(dict.fromkeys(task.env for task in data.plan.tasks))
    specs = [spec for env in envs if (spec := task_of(env)) is not None]
    verbs = {spec.succeeded for spec in specs} if len(specs) == len(envs) else set()
    verb = verbs.pop() if len(verbs) == 1 else "succeeded"
    characteristic, why_not = characteristic_of(summary, names.policy, results)
    drawn, damaged = clips(choose(data.frame, summary.cells, data.path))
    sides = compared_sides(data.frame, data.plan, summary.config)
    log = _log_check(summary, len(data.frame), damaged)
    lengths = _lengths(summary, names, data.frame)
    robots = robots_of(summary, names.policy)
    conduct = conduct_of(summary, names.policy)
    besides = _labels_besides_doses(summary, data.plan)
    return Report(
        title=data.plan.name,
        description=data.plan.description,
        status=data.status,
        synopsis=synopsis(data.plan, data.frame),
        log=log,
        coverage=summary.coverage,
        results=results,
        tally=tally(data.plan, summary.coverage, data.frame),
        answers=[]
        if _is_unsound(log)
        else answers_of(summary, results, sides, _level_names(data.frame)),
        warnings=[
            *status_warnings(data),
            *robot_warnings(robots),
            *conduct_warnings(conduct),
            *coverage_warnings(summary, results),
        ],
        outcomes=outcomes(results, data.frame),
        troubles=troubles(results, data.frame, data.plan),
        cells=_cells(summary.cells, names, data.frame, besides),
        standings=standings_of(sides),
        stopping="" if summary.series is None else sentence(summary.series.text),
        robots=robots,
        simulated=_simulated(summary),
        calibrations=calibrations_of(
            TrialDirectory(data.path, data.plan, data.plan_digest), summary.robots
        ),
        autonomy=autonomy_of(findings, places=_places(data, summary)),
        incidents=incident_list(data.path),
        conduct=conduct,
        effects=_effects(summary, names, besides),
        doses=[replace(one, policy=names.policy(one.side, one.policy)) for one in summary.doses],
        thresholds=[
            replace(one, policy=names.policy(one.side, one.policy)) for one in summary.thresholds
        ],
        not_begun={
            names.policy(body.side, body.policy): told
            for body in summary.bodies
            if (told := not_begun_text(body.episodes))
        },
        stages=stages_of(data.frame, shown_as, summary.config),
        lengths=[item for item in lengths if item.n],
        lengths_reason=_why_no_lengths(lengths),
        lengths_note=_lengths_note(lengths),
        characteristic=characteristic,
        characteristic_reason=why_not,
        clips=drawn,
        tilts=list(dict.fromkeys(spec.tilt.frame for spec in specs if spec.tilt is not None)),
        conditions=conditions(data.plan, data.frame, data.manifest),
        provenance=provenance(data, summary, log),
        commands=commands(data.path, data.plan, data.status),
        commands_note=commands_note(data.path, data.plan)
        + settings_note(data.path, data.plan, summary),
        plan_text=data.plan_text,
        meanings=meanings_of(summary.numbers, specs),
        verb=verb,
    )


def _simulated(summary: TrialSummary) -> dict[str, list[Group]]:
    """What no other section tells of policies in simulation."""
    found = {
        body.policy: [group for group in groups_of(body.numbers) if group.title not in _ELSEWHERE]
        for body in summary.simulated
    }
    return {policy: groups for policy, groups in found.items() if groups}


def _places(data: TrialData, summary: TrialSummary) -> dict[str, str]:
    """Files and folders that texts may name, and what a page calls them."""
    found = {finding.where: place_of(finding.where) for finding in summary.findings}
    return found | {f"{data.path}/": ""}


def _log_check(summary: TrialSummary, rows: int, damaged: Sequence[str]) -> LogCheck | None:
    """What was found of the log, and which of the traces the page wanted to draw were changed."""
    if summary.verified is None:
        return None
    problems = () if summary.log_problem is None else (summary.log_problem,)
    return LogCheck(rows=rows, problems=(*problems, *damaged))


def _is_unsound(log: LogCheck | None) -> bool:
    return log is not None and not log.is_sound


class Names:
    """How policies, panels and columns are called, as short as the trial allows."""

    def __init__(self, summary: TrialSummary) -> None:
        self._has_sides = len({row.side for row in summary.policies}) > 1
        tasks = list(dict.fromkeys((cell.label, cell.profile) for cell in summary.cells))
        self._has_tasks = len(tasks) > 1
        self._has_profiles = len({label for label, _ in tasks}) < len(tasks)

    def policy(self, side: str, policy: str) -> str:
        """The policy, and the side where there are several."""
        return f"{policy} ({side})" if self._has_sides else policy

    def task(self, label: str | None, profile: str | None) -> str:
        """The task where there are several, and its profile where one task has several."""
        if not self._has_tasks:
            return ""
        return f"{label} {profile}" if self._has_profiles and profile else f"{label}"

    def panel(self, cell: CellNumbers) -> str:
        """What groups the columns a cell stands in."""
        if cell.level is None:
            return ""
        parts = [self.task(cell.label, cell.profile), cell.difficulty or ""]
        return ", ".join(part for part in parts if part)

    def column(self, cell: CellNumbers) -> str:
        """What a cell stands under."""
        return cell.label if cell.level is None else str(cell.level)


def _labels_besides_doses(summary: TrialSummary, plan: TrialPlan) -> set[str]:
    """The tasks of which no curve over magnitudes tells what novelty changes."""
    if not summary.doses:
        return {cell.label for cell in summary.cells}
    tasks = zip(plan.tasks, task_variants(plan), strict=True)
    return {task_label(task.family or task.env, variant) for task, variant in tasks}


def _cells(
    numbers: Sequence[CellNumbers], names: Names, frame: pd.DataFrame, besides: set[str]
) -> list[ConditionCell]:
    level_names = _level_names(frame)
    return [
        ConditionCell(
            policy=names.policy(cell.side, cell.policy),
            panel=names.panel(cell),
            column=names.column(cell),
            column_name=level_names.get(cell.level, ""),
            numbers=cell,
            on_curve=cell.label not in besides,
        )
        for cell in numbers
    ]


def _level_names(frame: pd.DataFrame) -> dict[int | None, str]:
    """What the log calls each level: the name of the novelty most of its episodes had."""
    counts: dict[int, Counter[str]] = {}
    main = frame[frame["arm"] == Arm.MAIN.value]
    for level, novelty in zip(main["level"], main["novelty"], strict=True):
        if pd.notna(level) and isinstance(novelty, Mapping) and novelty.get("name"):
            counts.setdefault(int(level), Counter())[str(novelty["name"])] += 1
    found = {level: names.most_common(1)[0][0] for level, names in counts.items()}
    return {
        level: "no novelty" if name == "none" else name.replace("_", " ")
        for level, name in found.items()
    }


def _effects(summary: TrialSummary, names: Names, labels: Collection[str]) -> list[Group]:
    """Differences by level, which rest on three times the pairs of a single cell, and over all.

    Of tasks with other labels something else tells.
    """
    effect = registry.owner_of("novelty_effect")
    found = {}
    for row in summary.policies:
        body = summary.body_of(row)
        own = [] if body is None else body.numbers.where(name=effect.name_on(row.side))
        found[names.policy(row.side, row.policy)] = [
            (_place(one.at, names), one)
            for one in own
            if one.at is None or (not one.at.difficulty and one.at.task in labels)
        ]
    levels = {place for own in found.values() for place, one in own if one.at is not None}
    return [
        Group(
            title=policy,
            rows=[
                replace(Row.of(one), name=place, is_hollow=not _excludes_zero(one.estimate))
                for place, one in own
                if one.at is not None or len(levels) > 1
            ],
        )
        for policy, own in found.items()
        if levels
    ]


def _excludes_zero(found: Estimate) -> bool:
    """Whether enough is scored, and the interval lies on one side of 0."""
    if found.reason or found.low is None or found.high is None:
        return False
    return found.high < 0.0 or found.low > 0.0


def _place(at: Condition | None, names: Names) -> str:
    if at is None:
        return OVER_ALL
    level = "" if at.level is None else str(at.level)
    return " ".join(part for part in (names.task(at.task, at.profile), level) if part) or OVER_ALL


def _lengths(summary: TrialSummary, names: Names, frame: pd.DataFrame) -> list[Lengths]:
    shown = frame[(frame["arm"] == Arm.MAIN.value) & frame["success"].notna()]
    end = float(shown["duration_s"].max()) if shown["duration_s"].notna().any() else 0.0
    found = []
    for row in summary.policies:
        own = shown[(shown["side"] == row.side) & (shown["policy"] == row.policy)]
        lengths = lengths_of(
            own,
            names.policy(row.side, row.policy),
            never_failed=row.success_exact,
            end_s=end,
            level=summary.config.level,
        )
        if lengths is not None:
            scored = "" if row.is_sayable else row.coverage.text
            found.append(replace(lengths, scored=scored))
    return found


def _why_no_lengths(lengths: Sequence[Lengths]) -> str:
    """Which policies have no line; empty where all have one, or none has a scored episode."""
    unknown = [item for item in lengths if not item.n]
    if not unknown:
        return ""
    who = "" if len(unknown) == len(lengths) else f" of {listed([item.policy for item in unknown])}"
    return f"The length of the episodes{who} is {NOT_RECORDED} in this log."


def _lengths_note(lengths: Sequence[Lengths]) -> str:
    """Which episodes have no part in the lines although the table counts whether they failed."""
    parts = [
        f"{count(item.n_unknown, 'episode')} of {item.policy} ({item.n_unknown_failed} failed)"
        for item in lengths
        if item.n and item.n_unknown
    ]
    if not parts:
        return ""
    return (
        f"Lines and medians leave out {', '.join(parts)}, whose length is {NOT_RECORDED};"
        " \u201cnever failed\u201d in the table counts them."
    )
