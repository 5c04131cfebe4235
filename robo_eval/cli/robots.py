"""How the numbers of a robot, or of its twin, are printed for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from robo_eval.cli.output import print_table, say
from robo_eval.cli.summary import interval, percent, say_missing_intervals

if TYPE_CHECKING:
    from robo_eval.core.estimate import Estimate
    from robo_eval.metrics.agreement import Agreement
    from robo_eval.metrics.robot import RobotResult
    from robo_eval.metrics.summary import TrialSummary

_SEVERITIES = {
    "near_miss": "near misses",
    "minor": "minor incidents",
    "major": "major incidents",
    "critical": "critical incidents",
}
_TIMES = {
    "mtbf": "MTBF",
    "mttr": "MTTR",
    "mtbsi": "MTBSI",
    "mtbsi_without_near_misses": "MTBSI without near misses",
}

Line = tuple[str, str, str]
"""Name, value with interval, and what it rests on."""


def print_robots(summary: TrialSummary) -> None:
    """Each policy on each physical side, then what to mind of the evidence."""
    for robot in summary.robots:
        lines = list(_lines(robot))
        where = "the robot" if robot.side == "real" else "a twin of the robot"
        title = f"{robot.policy} on {where}, {percent(summary.config.level)} intervals"
        print_table(title, ("metric", "value", "rests on"), lines)
    shown = [robot.reliability for robot in summary.robots]
    shown += [robot.agreement.agreement for robot in summary.robots if robot.agreement]
    say_missing_intervals(shown)
    if any(robot.side == "twin" for robot in summary.robots):
        say("AR_twin and S2S come from a twin, a stand-in for the robot; they are no AR and S2R")
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


def _lines(robot: RobotResult) -> Iterator[Line]:
    end = robot.suffix
    yield robot.name, interval(robot.reliability), _count(robot.reliability.n, "episode")
    if len(robot.tasks) > 1:
        for task, estimate in robot.tasks.items():
            yield f"  {task}", interval(estimate), _count(estimate.n, "episode")
    if robot.agreement is not None:
        yield from _agreement(robot.agreement)
    elif robot.calibrations:
        yield "S2R" if not end else "S2S", "- (several calibrations; choose one)", ""
    for one in robot.calibrations:
        recordings = f", {_count(len(one.recordings), 'recording')}"
        yield (
            f"  simulation {one.calibration}",
            interval(one.agreement),
            _count(one.agreement.n, "pair") + (recordings if len(one.recordings) > 1 else ""),
        )
    if robot.sharpened is not None:
        found = robot.sharpened
        rests = f"{_count(found.plain.n, 'pair')} and {found.n_sim_only} further simulated"
        yield f"{robot.name} sharpened by simulation", interval(found.estimate), rests
    yield from _safety(robot)
    is_joint = robot.embodiment.method == "joint_bootstrap"
    rests = _count(robot.embodiment.n, "pair" if is_joint else "episode")
    yield f"E{end}", interval(robot.embodiment), rests
    for name, estimate in robot.times.items():
        yield f"{_TIMES[name]}{end}", _time(estimate), _count(estimate.n, "event")
    yield from _rest(robot)


def _safety(robot: RobotResult) -> Iterator[Line]:
    safety, end = robot.safety, robot.suffix
    hours = f"{safety.exposure.hours:.2f} h"
    if safety.exposure.unknown:
        hours += f" ({_count(safety.exposure.unknown, 'attempt')} without)"
    yield f"SS{end}", interval(safety.score), hours
    if safety.counts is None:
        return
    for severity, rate in safety.rates.items():
        yield (
            f"  {_SEVERITIES[severity]} per 100 h",
            interval(rate),
            f"{safety.counts[severity]} in {safety.exposure.hours:.2f} h",
        )
    if not safety.is_valid:
        yield "", "a critical incident: this window counts for nothing", ""


def _rest(robot: RobotResult) -> Iterator[Line]:
    end = robot.suffix
    yield f"RA{end}", interval(robot.recovery), _count(robot.recovery.n, "fault")
    for fault, estimate in robot.faults.items():
        yield f"  {fault}", interval(estimate), _count(estimate.n, "fault")
    for task in robot.control:
        yield f"QC{end} {task.task}", interval(task.quality), _count(task.quality.n, "episode")
        for measure in task.measures:
            yield (
                f"  {measure.measure} within {measure.tolerance:g}",
                interval(measure.inside),
                _count(measure.inside.n, "episode"),
            )
    if robot.throughput is not None:
        found = robot.throughput
        unit = f"tasks per {found.currency or 'currency unit'}"
        yield f"{unit}{end}", interval(found.per_cost, 3), f"{found.successes} successes"
        yield f"tasks per hour{end}", interval(found.per_hour), f"{found.hours:.2f} h"


def _agreement(found: Agreement) -> Iterator[Line]:
    noun = "pair" if found.matching == "pairs" else "episode"
    by = "" if found.matching == "pairs" else ", by context"
    yield "AR_sim", interval(found.ar_sim), _count(found.ar_sim.n, "episode")
    yield found.name, interval(found.agreement), _count(found.agreement.n, noun) + by
    if len(found.families) > 1 and found.worst_family is not None:
        worst = found.families[found.worst_family]
        yield f"  worst: {found.worst_family}", interval(worst), _count(worst.n, noun) + by


def _time(estimate: Estimate) -> str:
    """Hours; where nothing happened, how many they are at least."""
    if estimate.value is None and estimate.low is not None:
        return f"at least {estimate.low:.1f} h ({estimate.reason})"
    text = interval(estimate, 1)
    return text if estimate.value is None else f"{text} h"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def audit_problem(summary: TrialSummary) -> str | None:
    """What the audit of the evidence found; None if all of it fits."""
    findings: Iterable[object] = summary.findings
    texts = [str(finding) for finding in findings]
    if not texts:
        return None
    more = f" (and {len(texts) - 1} more, see --json)" if len(texts) > 1 else ""
    return f"the audit of the evidence failed: {texts[0]}{more}"
