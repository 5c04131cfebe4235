"""How the numbers of a trial are printed for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from robo_eval.cli.output import print_table, say

if TYPE_CHECKING:
    from robo_eval.core.estimate import Estimate
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.metrics.performance import Cell
    from robo_eval.metrics.summary import TrialSummary


def summary_of(trial: TrialDirectory) -> TrialSummary:
    """Score and summarise a trial; scores of older versions are kept beside the log."""
    from robo_eval.analysis.trial import analyse_trial, write_scores

    write_scores(trial)
    return analyse_trial(trial)


def coverage_problem(summary: TrialSummary) -> str | None:
    """Why the trial has no headline; None if enough episodes are scored."""
    if not summary.uncovered:
        return None
    listed = "; ".join(f"{row.policy}: {row.coverage.text}" for row in summary.uncovered)
    return f"too few episodes are scored to compare policies: {listed}"


def interval(estimate: Estimate, digits: int = 2) -> str:
    """`0.62 [0.55, 0.69]`, or the reason why there is no number."""
    if estimate.value is None:
        return f"- ({estimate.reason})"
    text = f"{estimate.value:.{digits}f}"
    if estimate.low is not None and estimate.high is not None:
        text += f" [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"
    return text


def print_faults(trial: TrialDirectory) -> None:
    """Why episodes have no score, the most frequent reasons first."""
    frame = trial.frame()
    lost = frame[frame["quality"].isna() & frame["end_detail"].notna()]
    counts = Counter(zip(lost["policy"], lost["end_detail"], strict=True))
    for (policy, detail), count in counts.most_common(5):
        say(f"{policy}: {count} without a score: {detail}")


def print_summary(summary: TrialSummary, *, by_level: bool = True) -> None:
    """Each policy over all conditions, then by level, then against the control."""
    rows = [
        (
            row.policy,
            row.side,
            f"{row.coverage.scored} of {row.coverage.expected} scored",
            interval(row.performance) if row.is_sayable else "-",
            interval(row.success_exact) if row.is_sayable else "-",
            "" if row.is_sayable else f"too few scored ({row.coverage.text})",
        )
        for row in summary.policies
    ]
    columns = ["policy", "side", "episodes", "performance", "success", ""]
    print_table(f"{summary.name}: mean [95 % interval]", columns, rows)
    say(
        "performance: mean quality over conditions; success: share of strict successes, exact"
        " interval; where conditions share their seeds, each seed counts once"
    )
    say()
    if by_level:
        _print_levels(summary)
    if summary.effects.policies:
        _print_effects(summary)
    if not summary.is_complete:
        coverage = summary.coverage
        say(f"incomplete: {coverage.attempted} of {coverage.planned} planned episodes were tried")


def _print_levels(summary: TrialSummary) -> None:
    leveled = [cell for cell in summary.cells if cell.level is not None]
    if not leveled:
        return
    policies = list(dict.fromkeys(cell.policy for cell in leveled))
    found = {(cell.level, cell.difficulty, cell.policy): cell for cell in leveled}
    conditions = list(dict.fromkeys((cell.level, cell.difficulty) for cell in leveled))
    rows = [
        (level, difficulty, *(_cell(found.get((level, difficulty, p))) for p in policies))
        for level, difficulty in conditions
    ]
    counts = {cell.coverage.scored for cell in leveled}
    n = str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    columns = ("level", "difficulty", *policies)
    print_table(f"performance by level, n = {n} episodes a cell", columns, rows, right=(0,))


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    missing = cell.coverage.expected - cell.coverage.scored
    if not cell.coverage.scored:
        return f"0 of {cell.coverage.expected} scored"
    return interval(cell.performance) + (f" ({missing} missing)" if missing else "")


def _print_effects(summary: TrialSummary) -> None:
    rows = [
        (
            effect.policy,
            interval(effect.difference),
            effect.n_pairs,
            effect.difference.n,
            effect.verdict or "-",
        )
        for effect in summary.effects.policies
    ]
    print_table(
        "effect of novelty: performance minus that of the matched control",
        ("policy", "difference", "pairs", "controls", "verdict"),
        rows,
        right=(2, 3),
    )
