"""How the numbers of a trial are printed for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from robo_eval.cli.output import interval, percent, print_table, quoted, say, say_missing_intervals
from robo_eval.cli.robots import print_numbers, print_raters
from robo_eval.core.wording import counted
from robo_eval.log.directory import TrialDirectory
from robo_eval.metrics.config import MetricConfig

if TYPE_CHECKING:
    from robo_eval.metrics.performance import Cell
    from robo_eval.metrics.summary import TrialSummary

ENOUGH_SCORED: Final = "enough episodes have a score"


def summary_of(
    trial: TrialDirectory,
    *,
    config: MetricConfig | None = None,
    evidence: Mapping[str, Path] | None = None,
) -> TrialSummary:
    """Score and summarise a trial; scores of older versions are kept beside the log.

    A log that does not verify is summarised all the same, but nothing is kept of its scores.

    Args:
        trial: The trial directory.
        config: Settings; those of the plan if none are given.
        evidence: Files of evidence to read instead of those in the directory, by kind.
    """
    from robo_eval.analysis.trial import analyse_trial, scored_frame, write_scores

    recorded = trial.frame()
    table = scored_frame(trial, recorded, config)
    summary = analyse_trial(trial, config=config, frame=table, evidence=evidence)
    if summary.verified:
        write_scores(trial, recorded)
    return summary


def coverage_problem(summary: TrialSummary, sides: Collection[str] | None = None) -> str | None:
    """Why the trial has no headline; None if enough episodes are scored.

    Args:
        summary: Of the trial.
        sides: The sides that were played; None for all. The others may be played later.
    """
    rows = [row for row in summary.uncovered if sides is None or row.side in sides]
    return too_few_scored(f"{row.policy}: {row.coverage.text}" for row in rows) if rows else None


def too_few_scored(policies: Iterable[str]) -> str:
    """What to say of policies with too few scored episodes.

    Args:
        policies: Each with its counts, such as `mine: 7 of 20 scored (13 fault)`.
    """
    return f"too few episodes are scored to compare policies: {'; '.join(policies)}"


def verification_problem(trial: Path, problem: str | None) -> str | None:
    """What to say of a log that is not what was logged; None if it is.

    Args:
        trial: The trial directory.
        problem: What `robo_eval.analysis.trial.log_problem` found.
    """
    if problem is None:
        return None
    return f"the log does not verify: {problem}; run `robo-eval verify {quoted(trial)}`"


def print_summary(summary: TrialSummary, *, by_level: bool = True) -> None:
    """Each policy over all conditions, then by level, against the control, and on a robot."""
    from robo_eval.metrics.registry import files

    rows = [
        (
            row.policy,
            row.side,
            f"{row.coverage.scored} of {row.coverage.expected} scored",
            *("-" if found.value is None and not row.is_sayable else interval(found)
              for found in (row.performance, row.success_exact)),
            "" if row.is_sayable else f"too few scored for a verdict ({row.coverage.text})",
        )
        for row in summary.by_success
    ]  # fmt: skip
    columns = ["policy", "side", "episodes", "performance", "success", ""]
    title = f"{summary.name}: mean [{percent(summary.config.level)} interval]"
    print_table(title, columns, rows, prose=(5,))
    say_missing_intervals(
        found for row in summary.policies for found in (row.performance, row.success_exact)
    )
    say(
        "performance: mean quality over conditions; success: share of strict successes, exact"
        " interval; a seed that repeats in a condition counts there once, by its mean"
    )
    for row in summary.policies:
        if row.faults_text:
            say(f"{row.policy}: {row.faults_text}")
    say()
    if by_level:
        _print_tasks(summary.cells, [row.policy for row in summary.by_success])
        _say_not_begun(summary)
    if not summary.policies:
        say("no episode of the main arm is in the log; controls alone are not scored")
    if summary.simulated and not summary.robots:
        say("simulation only: success is AR_sim; there is no AR, SS, S2R or E without a robot")
    print_numbers(summary)
    for name, sha256 in files().items():
        say(f"metrics of {name}: SHA-256 {sha256}")
    say(f"settings {summary.config.digest[:12]}: {summary.settings}; see docs/metrics.md")
    print_raters(summary)
    if summary.series is not None:
        say(summary.series.text)
    if not summary.is_complete:
        coverage = summary.coverage
        say(f"incomplete: {coverage.attempted} of {coverage.planned} planned episodes were tried")
    _print_lost(summary)


def _print_lost(summary: TrialSummary) -> None:
    """Why episodes have no score, the most frequent reasons first."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    for body in summary.bodies:
        frame = body.frame
        has_none = frame["quality"].isna()
        is_again = frame["base_id"].isin(frame.loc[~has_none, "base_id"])
        lost = frame[has_none & frame["end_detail"].notna()]
        counts.update(
            (body.policy, detail, again)
            for detail, again in zip(lost["end_detail"], is_again[lost.index], strict=True)
        )
    for (policy, detail, again), count in counts.most_common(5):
        more = "; played again, with a score" if again else ""
        say(f"{policy}: {count} without a score: {detail}{more}")


def _say_not_begun(summary: TrialSummary) -> None:
    """How many novel episodes of trials the tables by level have whose novelty never began."""
    from robo_eval.metrics.trials import not_begun_text

    for body in summary.bodies:
        if told := not_begun_text(body.episodes):
            say(f"{body.policy}: episodes that ended before their novelty began: {told}")


def _print_tasks(cells: Iterable[Cell], best_first: Sequence[str]) -> None:
    """A table of levels for each task, side and profile, and one of all tasks without levels."""
    place = {policy: number for number, policy in enumerate(dict.fromkeys(best_first))}
    groups: dict[tuple[str, ...], list[Cell]] = {}
    unleveled: list[Cell] = []
    for cell in cells:
        if cell.level is None:
            unleveled.append(cell)
        else:
            groups.setdefault((cell.label, cell.profile or "", cell.side), []).append(cell)
    # A table says in its title what not all tables share.
    differing = [len(set(parts)) > 1 for parts in zip(*groups, strict=True)]
    for key, own in groups.items():
        name = ", ".join(part for part, differs in zip(key, differing, strict=True) if differs)
        _print_levels(own, name, place)
    if len({_task(cell) for cell in unleveled}) > 1 or (unleveled and groups):
        _print_unleveled(unleveled, place)


def _task(cell: Cell) -> tuple[str, str]:
    return cell.label, cell.side


def _print_levels(cells: list[Cell], name: str, place: Mapping[str, int]) -> None:
    policies = sorted({cell.policy for cell in cells}, key=place.__getitem__)
    found = {(cell.level, cell.difficulty, cell.policy): cell for cell in cells}
    conditions = list(dict.fromkeys((cell.level, cell.difficulty) for cell in cells))
    rows = [
        (level, difficulty or "", *(_cell(found.get((level, difficulty, p))) for p in policies))
        for level, difficulty in conditions
    ]
    columns = ("level", "difficulty", *policies)
    title = f"performance by level{f' ({name})' if name else ''}, {_counts(cells)}"
    print_table(title, columns, rows, right=(0,), keys=2)
    say_missing_intervals(cell.performance for cell in cells)


def _print_unleveled(cells: list[Cell], place: Mapping[str, int]) -> None:
    policies = sorted({cell.policy for cell in cells}, key=place.__getitem__)
    found = {(_task(cell), cell.policy): cell for cell in cells}
    rows = [
        (*task, *(_cell(found.get((task, policy))) for policy in policies))
        for task in dict.fromkeys(_task(cell) for cell in cells)
    ]
    columns = ("task", "side", *policies)
    print_table(f"performance by task, {_counts(cells)}", columns, rows, keys=2)
    say_missing_intervals(cell.performance for cell in cells)


def _counts(cells: list[Cell]) -> str:
    counts = {cell.coverage.scored for cell in cells}
    if len(counts) > 1:
        return f"n = {min(counts)} to {max(counts)} episodes a cell"
    n = min(counts)
    return f"n = {counted(n, 'episode')} a cell"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    missing = cell.coverage.expected - cell.coverage.scored
    if not cell.coverage.scored:
        return f"0 of {cell.coverage.expected} scored"
    return interval(cell.performance) + (f" ({missing} missing)" if missing else "")
