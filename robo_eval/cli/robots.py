"""How the numbers of a robot, or of its twin, are printed for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from robo_eval.cli.output import interval, percent, print_table, say
from robo_eval.core.wording import counted

if TYPE_CHECKING:
    from robo_eval.core.estimate import Estimate
    from robo_eval.metrics.agreement import Agreement
    from robo_eval.metrics.robot import RobotResult
    from robo_eval.metrics.summary import TrialSummary

_DIGITS = {"tasks/currency unit": 3}
_TIMES = {
    "mtbf": "MTBF{}",
    "mttr": "MTTR{}",
    "mtbsi": "MTBSI{}",
    "mtbsi_without_near_misses": "MTBSI{} without near misses",
}

Line = tuple[str, "Estimate | str", str]
"""Name, the number or a text in its place, and what it rests on."""


def print_robots(summary: TrialSummary) -> None:
    """Each policy on each physical side, then what to mind of the evidence."""
    for robot in summary.robots:
        where = "the robot" if robot.side == "real" else "a twin of the robot"
        bodies = f" ({', '.join(robot.bodies)})" if len(robot.bodies) > 1 else ""
        title = f"{robot.policy} on {where}{bodies}, {percent(summary.config.level)} intervals"
        print_table(title, ("metric", "value", "rests on"), [_row(*line) for line in _lines(robot)])
    if any(robot.side == "twin" for robot in summary.robots):
        say("a twin is a stand-in for the robot: its numbers end in _twin or S2S")
    if summary.robots:
        say(f"settings {summary.config.digest[:12]}: this project's choices, see docs/metrics.md")
        say()


def _row(name: str, found: Estimate | str, rests: str) -> tuple[str, str, str]:
    """A line of the table; what has no number, or no interval, says why in its last cell."""
    if isinstance(found, str):
        return name, found, rests
    value = "-" if found.value is None else interval(found, _DIGITS.get(found.unit, 2))
    if found.value is not None and found.unit == "h":
        value = _hours(found)
    elif found.value is None and found.low is not None and found.unit == "h":
        value = f"at least {found.low:.3g} h"
    return name, value, "; ".join(part for part in (rests, found.reason) if part)


def _hours(found: Estimate) -> str:
    """A time; three digits, however short or long it is."""
    if found.low is None or found.high is None:
        return f"{found.value:.3g} h [-]"
    return f"{found.value:.3g} h [{found.low:.3g}, {found.high:.3g}]"


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


def _lines(robot: RobotResult) -> Iterator[Line]:
    end = robot.suffix
    yield robot.name, robot.reliability, counted(robot.reliability.n, "episode")
    if len(robot.tasks) > 1:
        for task, estimate in robot.tasks.items():
            yield f"  {task}", estimate, counted(estimate.n, "episode")
    if robot.agreement is not None:
        yield from _agreement(robot.agreement)
    elif robot.calibrations:
        yield "S2R" if not end else "S2S", "- (several calibrations; choose one)", ""
    for one in robot.calibrations:
        recordings = f", {counted(len(one.recordings), 'recording')}"
        yield (
            f"  simulation {one.calibration}",
            one.agreement,
            counted(one.agreement.n, "pair") + (recordings if len(one.recordings) > 1 else ""),
        )
    if robot.sharpened is not None:
        found = robot.sharpened
        rests = f"{counted(found.plain.n, 'pair')} and {found.n_sim_only} further simulated"
        yield f"{robot.name} sharpened by simulation", found.estimate, rests
    yield from _safety(robot)
    is_joint = robot.embodiment.method == "joint_bootstrap"
    rests = counted(robot.embodiment.n, "pair" if is_joint else "episode")
    yield f"E{end}", robot.embodiment, rests
    for name, estimate in robot.times.items():
        noun = "repair" if name == "mttr" else "event"
        yield _TIMES[name].format(end), estimate, counted(estimate.n, noun)
    yield from _rest(robot)


def _safety(robot: RobotResult) -> Iterator[Line]:
    from robo_eval.metrics.safety import NOUNS

    safety, end = robot.safety, robot.suffix
    hours = f"{safety.exposure.hours:.2f} h"
    without = safety.exposure.unknown
    rests = f"{hours} ({counted(without, 'attempt')} without)" if without else hours
    yield f"SS{end}", safety.score, rests
    if safety.counts is None:
        return
    for severity, rate in safety.rates.items():
        yield (
            f"  {NOUNS[severity][1]} per 100 h",
            rate,
            "" if rate.value is None else f"{safety.counts[severity]} in {hours}",
        )
    if not safety.is_valid:
        yield "", "a critical incident: this window counts for nothing", ""


def _rest(robot: RobotResult) -> Iterator[Line]:
    end = robot.suffix
    yield f"RA{end}", robot.recovery, counted(robot.recovery.n, "fault")
    for fault, estimate in robot.faults.items():
        yield f"  {fault}", estimate, counted(estimate.n, "fault")
    for task in robot.control:
        yield f"QC{end} {task.task}", task.quality, counted(task.quality.n, "episode")
        for measure in task.measures:
            yield (
                f"  {measure.measure} within {measure.tolerance:g}",
                measure.inside,
                counted(measure.inside.n, "episode"),
            )
    if robot.throughput is not None:
        found = robot.throughput
        unit = f"tasks per {found.currency or 'currency unit'}"
        yield f"{unit}{end}", found.per_cost, f"{found.successes} successes"
        yield f"tasks per hour{end}", found.per_hour, f"{found.hours:.2f} h"


def _agreement(found: Agreement) -> Iterator[Line]:
    noun = "pair" if found.matching == "pairs" else "episode"
    by = "" if found.matching == "pairs" else ", by context"
    yield "AR_sim", found.ar_sim, counted(found.ar_sim.n, "episode")
    if found.uncovered_mass:
        own = "AR" if found.name == "S2R" else "AR_twin"
        of = "of the pairs" if found.matching == "pairs" else "in simulated contexts"
        yield f"  {own} {of}", found.ar_physical, counted(found.ar_physical.n, "episode")
        yield "  not simulated", f"{found.uncovered_mass:.0%}", "of the scored physical episodes"
    if found.effective_sample_size is not None:
        yield "  effective sample size", f"{found.effective_sample_size:.0f}", "simulated episodes"
    yield found.name, found.agreement, counted(found.agreement.n, noun) + by
    if len(found.families) > 1 and found.worst_family is not None:
        worst = found.families[found.worst_family]
        yield f"  worst: {found.worst_family}", worst, counted(worst.n, noun) + by


def audit_problem(summary: TrialSummary) -> str | None:
    """What the audit of the evidence found; None if all of it fits."""
    findings: Iterable[object] = summary.findings
    texts = [str(finding) for finding in findings]
    if not texts:
        return None
    more = f" (and {len(texts) - 1} more, see --json)" if len(texts) > 1 else ""
    return f"the audit of the evidence failed: {texts[0]}{more}"
