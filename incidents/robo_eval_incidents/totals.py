"""Hours and kilometres of which only the period is known, each counted once."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from robo_eval.core.kinds import Side
from robo_eval_incidents.words import Engagement


class Total(NamedTuple):
    """How long and how far a robot worked within a period.

    Attributes:
        record_id: The record of it.
        name: Its station and number.
        robot: Robot.
        side: Side.
        mode: Who was in control; `unknown` for all modes together.
        task: Task; empty if not known.
        start_ns: Begin of the period, UTC.
        end_ns: End of the period, UTC.
        total_ns: How long within it; None if nobody said.
        km: How far; None if nobody said.
    """

    record_id: str
    name: str
    robot: str
    side: Side
    mode: Engagement
    task: str
    start_ns: int
    end_ns: int
    total_ns: int | None
    km: float | None

    def overlaps(self, other: Total) -> bool:
        """Whether two periods have time in common."""
        return self.start_ns < other.end_ns and other.start_ns < self.end_ns


class Counted(NamedTuple):
    """What of a total counts beside what was logged by the clock; None of what it does not say."""

    total: Total
    ns: int | None
    km: float | None


class Dropped(NamedTuple):
    """A total that overlaps one that counts in its place, and what of it does not count."""

    total: Total
    rival: Total
    what: str


def heaviest(totals: Iterable[Total], weight: Callable[[Total], float]) -> dict[str, Total]:
    """Of some totals those without common time that have the most in all, by record.

    Args:
        totals: The totals.
        weight: How much one has, from 0 on.
    """
    ordered = sorted(totals, key=lambda one: (one.end_ns, one.start_ns, one.record_id))
    ends = [one.end_ns for one in ordered]
    # The most of the first ones, and the last of those that make it with the place before it.
    best: list[tuple[float, tuple[Total, int] | None]] = [(0.0, None)]
    places = [0]
    for place, one in enumerate(ordered):
        before = places[bisect_right(ends, one.start_ns, hi=place)]
        most = best[before][0] + weight(one)
        best.append((most, (one, before)))
        places.append(place + 1 if most >= best[places[-1]][0] else places[-1])
    found: dict[str, Total] = {}
    last = best[places[-1]][1]
    while last is not None:
        found[last[0].record_id] = last[0]
        last = best[last[1]][1]
    return dict(reversed(found.items()))


def counted_once(
    totals: Iterable[Total], clocked: Callable[[Total], tuple[int, float]]
) -> tuple[list[Counted], list[Dropped]]:
    """What totals of one robot and side add to what was logged by the clock.

    What was logged by the clock within a period, in the same mode, is a part of its total: only the
    rest is added. Nobody can tell how much two totals of one mode have in common whose periods
    overlap, so of hours, and of kilometres, those totals count that have the most without common
    time. A total of all modes holds those of single ones.

    Args:
        totals: The totals.
        clocked: Of a total, the ns and kilometres within its period that were logged by the clock,
            in its mode, or in any that is not `off` if its mode is `unknown`.

    Returns:
        What counts, and what does not for its overlap with that.
    """
    found: list[Counted] = []
    dropped: list[Dropped] = []
    of_mode: dict[Engagement, list[Total]] = defaultdict(list)
    for total in sorted(totals, key=lambda one: (one.start_ns, one.end_ns, one.record_id)):
        of_mode[total.mode].append(total)
    # What holds all modes comes last.
    for mode in sorted(of_mode, key=lambda one: (one is Engagement.UNKNOWN, one)):
        own = of_mode[mode]
        hours = heaviest((o for o in own if o.total_ns is not None), lambda o: o.total_ns or 0)
        ways = heaviest((o for o in own if o.km is not None), lambda o: o.km or 0.0)
        inner = [o for o in found if o.total.mode is not Engagement.OFF]
        for total in own:
            given = {"hours": (total.total_ns, hours), "km": (total.km, ways)}
            lost = [name for name, (amount, kept) in given.items()
                    if amount is not None and total.record_id not in kept]  # fmt: skip
            if lost:
                rivals = given[lost[0]][1].values()
                rival = next(one for one in rivals if one.overlaps(total))
                dropped.append(Dropped(total, rival, " and ".join(lost)))
            if total.record_id not in {*hours, *ways}:
                continue
            ns, km = clocked(total)
            if mode is Engagement.UNKNOWN:
                near = [one for one in inner if one.total.overlaps(total)]
                ns += sum(one.ns or 0 for one in near)
                km += sum(one.km or 0.0 for one in near)
            rest_ns = max(0, (total.total_ns or 0) - ns) if total.record_id in hours else None
            rest_km = max(0.0, (total.km or 0.0) - km) if total.record_id in ways else None
            found.append(Counted(total, rest_ns, rest_km))
    return found, dropped
