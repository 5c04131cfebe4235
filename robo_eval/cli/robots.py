"""How the numbers of a body are printed for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from robo_eval.cli.output import interval, percent, print_table, say

if TYPE_CHECKING:
    from robo_eval.metrics.summary import TrialSummary

_WHERE: Final = {
    "real": "on the robot",
    "twin": "on a twin of the robot",
    "sim": "in simulation",
}


def print_numbers(summary: TrialSummary) -> None:
    """Each policy on each side that metrics tell numbers of, robots first."""
    from robo_eval.core.units import text_of
    from robo_eval.page.table import groups_of

    for body in summary.bodies:
        rows = [
            (
                row.label,
                text_of(row.estimate),
                "; ".join(part for part in (row.rests_on, row.said) if part),
            )
            for group in groups_of(body.numbers)
            for row in group.rows
        ]
        if not rows:
            continue
        robots = f" ({', '.join(body.robots)})" if len(body.robots) > 1 else ""
        level = percent(summary.config.level)
        title = f"{body.policy} {_WHERE[body.side]}{robots}, {level} intervals"
        print_table(title, ("metric", "value", "rests on"), rows)
    if any(body.side == "twin" for body in summary.bodies):
        say("a twin is a stand-in for the robot: its numbers end in _twin or S2S")
    if summary.robots:
        say(f"settings {summary.config.digest[:12]}: this project's choices, see docs/metrics.md")
        say()


def print_conduct(summary: TrialSummary) -> None:
    """Void attempts and second raters."""
    for found in summary.voids:
        reasons = ", ".join(f"{count} {reason}" for reason, count in found.voids.items())
        flag = "; more than the plan allows" if found.is_high else ""
        say(
            f"{found.policy} ({found.side}): void {interval(found.rate)} of"
            f" {found.attempts} attempts ({reasons}){flag}"
        )
    for rater in summary.raters:
        say(
            f"second rater {rater.rater}: kappa {interval(rater.kappa)}, agreed in"
            f" {interval(rater.agreed)} of {rater.agreed.n} episodes, {rater.blind} of"
            f" {rater.n} ratings blind"
        )


def audit_problem(summary: TrialSummary) -> str | None:
    """What the audit of the evidence found; None if all of it fits."""
    findings: Iterable[object] = summary.findings
    texts = [str(finding) for finding in findings]
    if not texts:
        return None
    more = f" (and {len(texts) - 1} more, see --json)" if len(texts) > 1 else ""
    return f"the audit of the evidence failed: {texts[0]}{more}"
