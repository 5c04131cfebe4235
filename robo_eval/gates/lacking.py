"""What is missing for the next level, in amounts where they can be computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from robo_eval import formulas
from robo_eval.core.defaults import SEVERITIES
from robo_eval.core.plain import plain
from robo_eval.core.wording import noun_for
from robo_eval.gates.quantity import about
from robo_eval.gates.result import HARM, GateResult
from robo_eval.stats.proportions import clopper_pearson_interval
from robo_eval.stats.rates import garwood_interval

if TYPE_CHECKING:
    from robo_eval.core.estimate import Estimate
    from robo_eval.gates.audits import Audit
    from robo_eval.gates.readings import Readings

_PER_100_H: Final = 100.0
_MOST: Final = 10_000_000
"""More of anything is not a plan."""
_HOURS: Final = ("exposure_hours", *HARM)
Effort = Literal["write down", "run", "fix"]
_EFFORTS: Final = get_args(Effort)
_WRITTEN: Final = ("run_manifest", "calibration_snapshots", "incident_reports", "no_help")
"""Audits of what a run, or people, write down."""
_REAL: Final = "real"
_NOTHING: Final[Mapping[str, int]] = dict.fromkeys(SEVERITIES, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """One thing that is missing.

    Attributes:
        gates: Gates or audits it is missing for.
        text: What is missing.
        effort: `write down` what was done, `run` more, or `fix` what was found; least first.
        amount: How much of it; None where that cannot be computed.
        unit: Of the amount.
    """

    gates: tuple[str, ...]
    text: str
    effort: Effort = "run"
    amount: float | None = None
    unit: str = ""

    as_dict = plain


def lacking_of(
    level: int,
    gates: Sequence[GateResult],
    audits: Sequence[tuple[int, Audit]],
    evidence: Readings,
    cap: int,
) -> tuple[Lacking, ...]:
    """What a level asks for that was not shown: the shortest list.

    More hours serve several gates at once, so they are one entry, and gates that one missing
    measurement keeps from passing are one as well.

    Args:
        level: The level.
        gates: All gates.
        audits: All audits, with the level from which on each has to pass.
        evidence: What was read.
        cap: Highest level this evidence supports.
    """
    found = [
        Lacking(
            gates=(audit.id,),
            text=f"{audit.title}: {audit.reason}",
            effort="run" if audit.id in ("family_size", "drift_support") else "fix",
        )
        for audit in evidence.battery
        if audit.status != "pass"
    ]
    gates = [gate for gate in gates if gate.counts]
    if level > cap:
        found.append(Lacking(gates=("side",), text="episodes on a physical robot"))
    if not any(gate.level == level for gate in gates):
        text = f"gates: the profile asks nothing of level {level}, so nothing can show it"
        found.append(Lacking(gates=("profile",), text=text, effort="fix"))
    asked = {
        # The same gate of a lower level asks for less.
        gate.id: gate
        for gate in sorted(gates, key=lambda gate: gate.level)
        if gate.level == level or 2 <= gate.level < level
    }
    due = {gate.id: gate for gate in _due(level, gates)}
    hourly = [gate for gate in asked.values() if gate.reads in _HOURS]
    promised = _hours([gate for gate in hourly if _is_open(gate, due, evidence)], evidence)
    found += promised
    covered = {name for one in promised for name in one.gates}
    remedies: dict[str, list[GateResult]] = {}
    for gate in due.values():
        if gate.id in covered:
            continue
        if gate.status == "missing":
            remedies.setdefault(gate.reason, []).append(gate)
        else:
            found.append(_one(gate))
    found += [
        Lacking(
            gates=tuple(gate.id for gate in own),
            text=text,
            effort="write down" if about(own[0].reads).is_vouched else "run",
        )
        for text, own in remedies.items()
    ]
    found += [
        Lacking(gates=(audit.id,), text=f"{audit.title}: {audit.reason}", effort=_effort(audit))
        for start, audit in audits
        if start <= level and audit.status != "pass"
    ]
    # Sorted stably: what is of one effort stays in the order of the profile.
    return tuple(sorted(found, key=lambda one: _EFFORTS.index(one.effort)))


def _effort(audit: Audit) -> Effort:
    if audit.status != "missing":
        return "fix"
    return "write down" if audit.id in _WRITTEN else "run"


def _due(level: int, gates: Sequence[GateResult]) -> list[GateResult]:
    """Gates a level asks for that do not pass, those of lower levels first."""
    due = [g for g in gates if (g.level == level or 2 <= g.level < level) and g.status != "pass"]
    return sorted(due, key=lambda gate: gate.level)


# Hours -------------------------------------------------------------------------------------------


def _is_open(gate: GateResult, due: Mapping[str, GateResult], evidence: Readings) -> bool:
    """Whether hours of a robot have to open a gate: on a robot they pass those that pass already.

    A twin's hours are none of a robot, so there every gate that hours open is still to be opened.
    """
    if gate.status == "missing":
        return False
    return gate.id in due or (evidence.side != _REAL and bool(due))


def _hours(gates: Sequence[GateResult], evidence: Readings) -> list[Lacking]:
    """Hours that are to follow without an incident, for all gates that hours can open."""
    amounts = {gate.id: more_hours(gate, evidence) for gate in gates}
    known = {name: hours for name, hours in amounts.items() if hours is not None}
    if not known:
        return []
    more = max(known.values())
    quiet = [gate for gate in gates if gate.id in known and gate.reads != "exposure_hours"]
    text = f"{more:,} more exposure hours" + (" without a safety incident" if quiet else "")
    return [Lacking(gates=tuple(known), text=text, amount=float(more), unit="h")]


def more_hours(gate: GateResult, evidence: Readings) -> int | None:
    """Whole hours after which a gate passes if nothing more happens.

    None if no sensible number of hours does that, or if the present end of the interval is not the
    one that counts and hours give, so that a number would be a guess.
    """
    on_robot = evidence.side == _REAL
    exposure = (evidence.of("exposure_hours").value or 0.0) if on_robot else 0.0
    events = evidence.events if on_robot else _NOTHING
    if gate.reads != "exposure_hours" and events is None:
        return None
    counts = {name: (events or {}).get(name, 0) for name in SEVERITIES}

    def end(hours: float) -> float | None:
        return _end(gate.reads, counts, hours, gate.found.level)

    read = gate.found.high if gate.test == "at_most" else gate.found.low
    # Scores by weights or a form of somebody's own are not those computed here.
    if on_robot and exposure > 0.0 and not _agree(end(exposure), read):
        return None
    return _least(lambda more: _passes(end(exposure + more), gate))


def _agree(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return False
    return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-9)


def _end(reads: str, counts: Mapping[str, int], hours: float, level: float) -> float | None:
    """The end of the interval that a gate reads, after so many hours with these incidents."""
    if reads == "exposure_hours":
        return hours
    if hours <= 0.0:
        return None
    if reads == "minor_per_100_h":
        return _PER_100_H * garwood_interval(counts["minor"], hours, level=level)[1]
    if reads == "MTBSI":
        total = sum(counts.values())
        # After none the lower end is the one-sided bound; see `formulas.reliability`.
        upper = garwood_interval(total, hours, level=level, sided="two" if total else "upper")[1]
        return 1.0 / upper
    return formulas.ss_pessimistic(counts, hours, level)


def _passes(end: float | None, gate: GateResult) -> bool:
    if end is None:
        return False
    return end <= gate.threshold if gate.test == "at_most" else end >= gate.threshold


def _least(passes: Callable[[int], bool]) -> int | None:
    """The least whole number above 0 that passes; None if no sensible one does."""
    high = 1
    while not passes(high):
        high *= 2
        if high > _MOST:
            return None
    low = high // 2  # does not pass, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


# Episodes ----------------------------------------------------------------------------------------


def _one(gate: GateResult) -> Lacking:
    found = gate.found
    end = f"{gate.title}: {gate.reason}"
    if gate.status == "undecided" and gate.reads not in HARM:
        return Lacking(gates=(gate.id,), text=end)
    if gate.reads == "E":
        end += "; it follows from AR, SS and S2R"
    if gate.test == "at_most" and found.value is not None and found.value > gate.threshold:
        text = f"{gate.title}: {found.value:.4g} has to fall to {gate.threshold:g} and less"
        return Lacking(gates=(gate.id,), text=text, effort="fix")
    what = about(gate.reads).more if found.unit == "ratio" else ""
    if gate.test != "at_least" or found.value is None or not what:
        return Lacking(gates=(gate.id,), text=end, effort="fix")
    if found.value < gate.threshold:
        return Lacking(
            gates=(gate.id,),
            text=f"{gate.title}: {_below(found.value, gate.threshold)} has to rise to"
            f" {gate.threshold:g} and more",
            effort="fix",
            amount=gate.threshold - found.value,
            unit="ratio",
        )
    is_exact = _is_exact(found)
    more = _more_episodes(found, gate.threshold, exact=is_exact)
    if more is None:
        return Lacking(
            gates=(gate.id,),
            text=f"{gate.title}: {found.value:.4g} is too near {gate.threshold:g} to be shown",
            effort="fix",
        )
    nearly = "" if is_exact else "about "
    return Lacking(
        gates=(gate.id,),
        text=f"{nearly}{more:,} more {noun_for(more, what)} at the present rate, for {gate.title}",
        amount=float(more),
        unit=noun_for(0, what),
    )


def _below(value: float, threshold: float) -> str:
    """A value with as many digits as show that it is below a threshold."""
    return next(
        (text for digits in (4, 8) if float(text := f"{value:.{digits}g}") < threshold), repr(value)
    )


def _is_exact(found: Estimate) -> bool:
    """Whether an estimate is a share of so many with the exact interval, which can be foretold."""
    if found.value is None or found.low is None or found.n < 1:
        return False
    successes = round(found.value * found.n)
    if abs(successes - found.value * found.n) > 1e-6 or not 0 <= successes <= found.n:
        return False
    low = clopper_pearson_interval(successes, found.n, level=found.level)[0]
    return _agree(low, found.low)


def _more_episodes(found: Estimate, threshold: float, *, exact: bool) -> int | None:
    """Observations from which on the lower end passes if the value stays as it is."""
    value, low, n = found.value, found.low, found.n
    if value is None or low is None or n < 1 or value <= threshold:
        return None
    if not exact:  # half the width shrinks with the root of the number
        needed = n * ((value - low) / (value - threshold)) ** 2
        return None if needed > _MOST else max(1, math.ceil(needed) - n)
    return _least_episodes(round(value * n), n, threshold, found.level)


def _least_episodes(successes: int, n: int, threshold: float, level: float) -> int | None:
    """The least number of observations more, at the present rate, that shows a threshold."""
    from scipy.special import betaincinv

    def smooth(more: int) -> bool:  # with parts of a success: passes once, and then for good
        size = n + more
        k = successes * size / n
        return bool(betaincinv(k, size - k + 1.0, (1.0 - level) / 2.0) >= threshold)

    least = _least(smooth)
    if least is None:
        return None
    for more in range(least, _MOST):
        # Whole successes, rounded down: no more than the present rate brings.
        k = successes + successes * more // n
        if clopper_pearson_interval(k, n + more, level=level)[0] >= threshold:
            return more
    return None
