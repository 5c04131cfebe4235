"""What is missing for the next level, in amounts where they can be computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from robo_eval import formulas
from robo_eval.stats.proportions import clopper_pearson_interval
from robo_eval.stats.rates import garwood_interval

if TYPE_CHECKING:
    from robo_eval.core.estimate import Estimate
    from robo_eval.gates.assessment import GateResult
    from robo_eval.gates.audits import Audit
    from robo_eval.gates.readings import Readings

_PER_100_H: Final = 100.0
_MOST: Final = 10_000_000
"""More of anything is not a plan."""
_HOURS: Final = ("exposure_hours", "minor_per_100_h", "ss", "mtbsi")
_SHARES: Final = ("ar", "ra")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """One thing that is missing.

    Attributes:
        gates: Gates or audits it is missing for.
        text: What is missing.
        amount: How much of it; None where that cannot be computed.
        unit: Of the amount.
    """

    gates: tuple[str, ...]
    text: str
    amount: float | None = None
    unit: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON would have it."""
        return asdict(self)


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
    found: list[Lacking] = []
    if level > cap:
        found.append(Lacking(gates=("side",), text="episodes on a physical robot"))
    due = [g for g in gates if (g.level == level or 2 <= g.level < level) and g.status != "pass"]
    # The same gate of a lower level asks for less.
    asked = {gate.id: gate for gate in sorted(due, key=lambda gate: gate.level)}
    found += _hours([gate for gate in asked.values() if gate.reads in _HOURS], evidence)
    remedies: dict[str, list[str]] = {}
    for gate in asked.values():
        if gate.reads in _HOURS and gate.status != "missing":
            continue
        if gate.status == "missing":
            remedies.setdefault(gate.reason, []).append(gate.id)
        else:
            found.append(_one(gate))
    found += [Lacking(gates=tuple(ids), text=text) for text, ids in remedies.items()]
    found += [
        Lacking(gates=(audit.id,), text=f"{audit.title}: {audit.reason}")
        for start, audit in audits
        if start <= level and audit.status != "pass"
    ]
    return tuple(found)


# Hours -------------------------------------------------------------------------------------------


def _hours(gates: Sequence[GateResult], evidence: Readings) -> list[Lacking]:
    """Hours that are to follow without an incident, for all gates that hours can open."""
    due = [gate for gate in gates if gate.status == "fail"]
    if not due:
        return []
    exposure = evidence.of("exposure_hours").value or 0.0
    needs = {gate.id: _needed_hours(gate, evidence) for gate in due}
    known = {name: hours for name, hours in needs.items() if hours is not None}
    found = [
        Lacking(
            gates=(gate.id,), text=f"{gate.title}: {gate.reason}; no number of hours changes it"
        )
        for gate in due
        if gate.id not in known
    ]
    if known:
        total = max(known.values())
        more = max(0.0, total - exposure)
        quiet = [name for name in known if name != "exposure"]
        text = f"{more:,.0f} more exposure hours"
        text += " without a safety incident" if quiet else ""
        found.insert(0, Lacking(gates=tuple(known), text=text, amount=math.ceil(more), unit="h"))
    return found


def _needed_hours(gate: GateResult, evidence: Readings) -> float | None:
    """Exposure from which on a gate passes if nothing more happens; None if never."""
    events = evidence.events
    level = gate.found.level
    if gate.reads == "exposure_hours":
        return gate.threshold
    if events is None:
        return None
    if gate.reads == "minor_per_100_h":
        upper = garwood_interval(events["minor"], 1.0, level=level)[1]
        return _PER_100_H * upper / gate.threshold
    if gate.reads == "mtbsi":
        total = sum(events.values())
        # After none the lower end is the one-sided bound; see `formulas.reliability`.
        if total:
            upper = garwood_interval(total, 1.0, level=level)[1]
        else:
            upper = garwood_interval(0, 1.0, level=level, sided="upper")[1]
        return gate.threshold * upper
    return _least(
        lambda hours: (formulas.ss_pessimistic(events, hours, level) or 0.0) >= gate.threshold
    )


def _least(passes: Callable[[float], bool]) -> float | None:
    """The least whole number of hours that passes; None if no sensible number does."""
    high = 1.0
    while not passes(high):
        high *= 2.0
        if high > _MOST:
            return None
    low = high / 2.0
    while high - low > 0.5:
        middle = (low + high) / 2.0
        low, high = (low, middle) if passes(middle) else (middle, high)
    return math.ceil(high)


# Episodes ----------------------------------------------------------------------------------------


def _one(gate: GateResult) -> Lacking:
    found = gate.found
    end = f"{gate.title}: {gate.reason}"
    if gate.test != "at_least" or found.value is None or found.unit != "ratio":
        return Lacking(gates=(gate.id,), text=end)
    if found.value < gate.threshold:
        return Lacking(
            gates=(gate.id,),
            text=f"{gate.title}: {found.value:.3f} has to rise to {gate.threshold:g} and more",
            amount=gate.threshold - found.value,
            unit="ratio",
        )
    more = _more_episodes(found, gate.threshold, exact=gate.reads in _SHARES)
    if more is None:
        return Lacking(
            gates=(gate.id,),
            text=f"{gate.title}: {found.value:.3f} is too near {gate.threshold:g} to be shown",
        )
    what = {"s2r": "pairs", "ra": "faults"}.get(gate.reads, "episodes")
    about = "" if gate.reads in _SHARES else "about "
    return Lacking(
        gates=(gate.id,),
        text=f"{about}{more:,} more {what} at the present rate, for {gate.title}",
        amount=more,
        unit=what,
    )


def _more_episodes(found: Estimate, threshold: float, *, exact: bool) -> int | None:
    """Observations from which on the lower end passes if the value stays as it is."""
    value, low, n = found.value, found.low, found.n
    if value is None or low is None or n < 1 or value <= threshold:
        return None
    if not exact:  # half the width shrinks with the root of the number
        needed = n * ((value - low) / (value - threshold)) ** 2
        return None if needed > _MOST else max(1, math.ceil(needed) - n)

    def passes(size: int) -> bool:
        successes = math.floor(value * size + 1e-9)
        return clopper_pearson_interval(successes, size, level=found.level)[0] >= threshold

    size = n
    while not passes(size):
        size *= 2
        if size > _MOST:
            return None
    first, last = n, size
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if passes(middle) else (middle, last)
    return max(1, last - n)
