"""How the numbers of a body are printed for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from robo_eval.cli.output import interval, percent, print_table, say
from robo_eval.core.units import text_of

if TYPE_CHECKING:
    from robo_eval.metrics.body import Body
    from robo_eval.metrics.summary import TrialSummary

_WHERE: Final = {
    "real": "on the robot",
    "twin": "on a twin of the robot",
}


def print_numbers(summary: TrialSummary) -> None:
    """Each policy on each side that metrics tell numbers of, robots first."""
    level = f"{percent(summary.config.level)} intervals"
    columns = ("metric", "value", "rests on")
    place = {(row.side, row.policy): number for number, row in enumerate(summary.by_success)}
    simulated = sorted(summary.simulated, key=lambda body: place[body.key])
    for body in sorted(summary.robots, key=lambda body: (body.side, place[body.key])):
        robots = f" ({', '.join(body.robots)})" if len(body.robots) > 1 else ""
        title = f"{body.policy} {_WHERE[body.side]}{robots}, {level}"
        print_table(title, columns, rows_of_body(body), prose=(2,))
    rows = [(body.policy, *row) for body in simulated for row in rows_of_body(body)]
    if rows:
        print_table(f"in simulation, {level}", ("policy", *columns), rows, prose=(3,))
    if summary.offered_pairs:
        from robo_eval.metrics.agreement import offer_text

        say(offer_text(summary.offered_pairs))
    if any(body.side == "twin" for body in summary.robots):
        say("a twin is a stand-in for the robot: its numbers end in _twin or S2S")


def rows_of_body(body: Body) -> list[tuple[str, str, str]]:
    """Of each number its name, its value with interval, and what it rests on or lacks."""
    from robo_eval.page.table import rows_of

    return [
        (
            row.label,
            text_of(row.estimate),
            "; ".join(part for part in (row.rests_on, row.said) if part),
        )
        for row in rows_of(body.numbers)
    ]


def print_raters(summary: TrialSummary) -> None:
    """How second raters agree with the log."""
    for rater in summary.raters:
        say(
            f"second rater {rater.rater}: kappa {interval(rater.kappa)}, agreed in"
            f" {interval(rater.agreed)} of {rater.agreed.n} episodes, {rater.blind} of"
            f" {rater.n} ratings blind"
            + (
                f", {rater.late} late: after the last episode, with names known"
                if rater.late
                else ""
            )
        )


def audit_problem(summary: TrialSummary) -> str | None:
    """What the audit of the evidence found; None if all of it fits."""
    findings: Iterable[object] = summary.findings
    texts = [str(finding) for finding in findings]
    if not texts:
        return None
    more = f" (and {len(texts) - 1} more, see --json)" if len(texts) > 1 else ""
    return f"the audit of the evidence failed: {texts[0]}{more}"
