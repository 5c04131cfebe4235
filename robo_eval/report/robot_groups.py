"""Every number of a policy on a robot but its reliability: safety, times, recovery, control."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.robot import RobotResult
from robo_eval.metrics.safety import NOUNS
from robo_eval.page.table import Group, Row
from robo_eval.page.words import count, number, spaced

SEVERITIES: Final = {severity: plural for severity, (_, plural) in NOUNS.items()}
_TIMES: Final = {
    "mtbf": ("MTBF", "", "failure"),
    "mttr": ("MTTR", "", "repair"),
    "mtbsi": ("MTBSI", "", "incident"),
    "mtbsi_without_near_misses": ("MTBSI", "without near misses", "incident"),
}


def groups_of(found: RobotResult) -> list[Group]:
    """The numbers by what they are about; each group has at least a reason why it is empty.

    Args:
        found: What metrics found of one policy on one physical side.
    """
    parts = (
        ("With the help of simulated episodes without a partner", _sharpened(found)),
        ("Safety", _safety(found)),
        ("Embodiment score", _embodiment(found)),
        ("Times", _times(found)),
        ("Recovery from faults", _recovery(found)),
        ("Quality of control", _control(found)),
        ("Throughput", _throughput(found)),
    )
    groups = [Group(title=title, rows=list(rows)) for title, rows in parts]
    return [group for group in groups if group.rows]


def rate_basis(found: RobotResult, severity: str) -> str:
    """How many incidents of a severity there were, in which time."""
    counts = found.safety.counts or {}
    return f"{counts.get(severity, 0)} in {hours_text(found.safety.exposure.hours)}"


def hours_text(hours: float) -> str:
    """Hours with two decimals, or with three digits where these would be none.

    Example:
        >>> hours_text(8.0), hours_text(77 / 3600)
        ('8.00 h', '0.0214 h')
    """
    return f"{number(hours, digits=2 if hours >= 1.0 or not hours else None)} h"


def _caution(estimate: Estimate) -> str:
    return estimate.reason or "" if estimate.low is not None else ""


def _sharpened(found: RobotResult) -> Iterator[Row]:
    sharpened = found.sharpened
    if sharpened is None:
        return
    pairs = count(sharpened.plain.n, "pair")
    note = _caution(sharpened.estimate)
    if sharpened.correlation is not None:
        alike = f"correlation of both sides {number(sharpened.correlation)}"
        note = f"{note}; {alike}" if note else alike
    yield Row(
        name=f"{found.name} sharpened",
        estimate=sharpened.estimate,
        rests_on=f"{pairs} and {sharpened.n_sim_only} further simulated",
        note=note,
    )
    yield Row(
        name=f"{found.name} plain",
        family="of the same pairs",
        estimate=sharpened.plain,
        rests_on=pairs,
        note=_caution(sharpened.plain),
    )


def _safety(found: RobotResult) -> Iterator[Row]:
    safety, end = found.safety, found.suffix
    hours = hours_text(safety.exposure.hours)
    if safety.exposure.unknown:
        hours += f"; {count(safety.exposure.unknown, 'attempt')} without exposure"
    yield Row(name=f"SS{end}", estimate=safety.score, rests_on=hours, note=_caution(safety.score))
    if safety.score.low is not None:
        yield Row(
            name=f"SS{end}",
            family="pessimistic",
            estimate=safety.score,
            text=number(safety.score.low),
            rests_on=hours,
            note="rates at the upper ends of their intervals",
        )
    if safety.counts is None:
        return
    for severity, rate in safety.rates.items():
        high = rate.high or 0.0
        yield Row(
            name=f"{SEVERITIES[severity]}{end} per 100 h",
            estimate=rate,
            rests_on="" if rate.value is None else rate_basis(found, severity),
            note=_caution(rate) if rate.value is not None else "",
            digits=1 if high >= 100 else 2,
        )


def _embodiment(found: RobotResult) -> Iterator[Row]:
    score = found.embodiment
    yield Row(
        name=f"E{found.suffix}",
        estimate=score,
        rests_on=count(score.n, "pair" if score.method == "joint_bootstrap" else "episode")
        if score.value is not None
        else "",
        note=_caution(score),
    )


def _times(found: RobotResult) -> Iterator[Row]:
    end = found.suffix
    if not found.times:
        reason = found.safety.score.reason or "no record of incidents"
        missing = Estimate.missing(reason=reason, unit="h")
        yield Row(name=f"MTBF{end}, MTTR{end}, MTBSI{end}", estimate=missing)
    for key, estimate in found.times.items():
        name, which, noun = _TIMES[key]
        is_bound = estimate.value is None and estimate.low is not None
        yield Row(
            name=f"{name}{end}",
            family=which,
            estimate=estimate,
            text=f"at least {number(estimate.low, digits=None)} h" if is_bound else "",
            rests_on=count(estimate.n, noun) if estimate.low is not None or estimate.n else "",
            note=_caution(estimate),
            unit=" h",
            digits=None,
        )


def _recovery(found: RobotResult) -> Iterator[Row]:
    for fault, estimate in [("", found.recovery), *found.faults.items()]:
        yield Row(
            name=f"RA{found.suffix}",
            family=spaced(fault),
            estimate=estimate,
            rests_on=count(estimate.n, "recoverable fault") if estimate.n else "",
            note=_caution(estimate),
        )


def _control(found: RobotResult) -> Iterator[Row]:
    name = f"QC{found.suffix}"
    if not found.control:
        reason = "no tolerances are set for its tasks"
        yield Row(name=name, estimate=Estimate.missing(reason=reason, unit="ratio"))
    for task in found.control:
        yield Row(
            name=name,
            family=task.task,
            estimate=task.quality,
            rests_on=count(task.quality.n, "episode"),
            note=_caution(task.quality),
        )
        for measure in task.measures:
            missing = f"not measured in {count(measure.n_missing, 'episode')}"
            yield Row(
                name=f"share{name[2:]} with {spaced(measure.measure)} within {measure.tolerance:g}",
                family=task.task,
                estimate=measure.inside,
                rests_on=count(measure.inside.n, "episode"),
                note=missing if measure.n_missing else _caution(measure.inside),
            )


def _throughput(found: RobotResult) -> Iterator[Row]:
    end, made = found.suffix, found.throughput
    if made is None:
        missing = Estimate.missing(reason="no price card is set", unit="tasks/h")
        yield Row(name=f"tasks{end} per hour and currency unit", estimate=missing)
        return
    unit = made.currency or "currency unit"
    yield Row(
        name=f"tasks{end} per hour",
        estimate=made.per_hour,
        rests_on=f"{count(made.successes, 'success', 'successes')} in {hours_text(made.hours)}",
        note=_caution(made.per_hour),
        digits=None,
    )
    yield Row(
        name=f"tasks{end} per {unit}",
        estimate=made.per_cost,
        rests_on=f"{made.cost_per_hour:.2f} {unit} an hour",
        note=_caution(made.per_cost),
        digits=None,
    )
