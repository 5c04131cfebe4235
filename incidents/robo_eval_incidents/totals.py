"""Hours and kilometres of which only the period is known, each counted once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush, heapreplace
from typing import Final, NamedTuple

from robo_eval_incidents.rows import HOUR_NS, LoggedTime
from robo_eval_incidents.words import Engagement

ROUNDING_NS: Final = 10**6
"""Lengths are kept in seconds; what overlaps by less was rounded."""


class Counted(NamedTuple):
    """What of a total counts beside what was logged by the clock; None of what it does not say."""

    total: LoggedTime
    ns: int | None
    km: float | None


class Dropped(NamedTuple):
    """What of a total does not count: it overlaps a rival, or no time is left for it."""

    total: LoggedTime
    rival: LoggedTime | None
    what: str


class Piece(NamedTuple):
    """Hours, ns, or kilometres that count already, as far as is known when and at what."""

    start_ns: int
    end_ns: int
    mode: Engagement
    task: str
    amount: float

    def may_be_in(self, mode: Engagement, task: str) -> bool:
        """Whether sums of a mode and task may hold them."""
        modes = {self.mode, mode}
        is_one = len(modes) == 1 or (Engagement.UNKNOWN in modes and Engagement.OFF not in modes)
        return is_one and (self.task == task or "" in (self.task, task))

    def is_loose(self, total: LoggedTime) -> bool:
        """Whether a total that may hold them may as well not."""
        is_sure = total.start_ns <= self.start_ns and self.end_ns <= total.end_ns
        is_sure &= total.mode in (self.mode, Engagement.UNKNOWN)
        return not (is_sure and total.task in (self.task, ""))


def heaviest(
    totals: Iterable[LoggedTime], weight: Callable[[LoggedTime], float]
) -> dict[str, LoggedTime]:
    """Of some totals those without common time that have the most in all, by record.

    Args:
        totals: The totals.
        weight: How much one has, from 0 on.
    """
    ordered = sorted(totals, key=lambda one: (one.end_ns, one.start_ns, one.record_id))
    ends = [one.end_ns for one in ordered]
    # The most of the first ones, and the last of those that make it with the place before it.
    best: list[tuple[float, tuple[LoggedTime, int] | None]] = [(0.0, None)]
    places = [0]
    for place, one in enumerate(ordered):
        before = places[bisect_right(ends, one.start_ns, hi=place)]
        most = best[before][0] + weight(one)
        best.append((most, (one, before)))
        places.append(place + 1 if most >= best[places[-1]][0] else places[-1])
    found: dict[str, LoggedTime] = {}
    last = best[places[-1]][1]
    while last is not None:
        found[last[0].record_id] = last[0]
        last = best[last[1]][1]
    return dict(reversed(found.items()))


def counted_once(
    totals: Iterable[LoggedTime], clocked: Mapping[str, Iterable[Piece]], free: Callable[[int], int]
) -> tuple[list[Counted], list[Dropped]]:
    """What totals of one robot and side add to what was logged by the clock.

    Nobody can tell how much two totals of one mode and task have in common whose periods overlap,
    so of hours, and of kilometres, those totals count that have the most without common time. One
    without a mode is of all modes, one without a task of all tasks. It may hold whatever counts
    already within its period, and only its rest is added. More than the clock has is not counted.

    Args:
        totals: The totals.
        clocked: What was logged by the clock, as `hours` and `km`.
        free: How much time, ns, nothing at work was logged by the clock up to a time.

    Returns:
        What counts, and what does not.
    """
    groups: dict[tuple[bool, bool, Engagement, str], list[LoggedTime]] = defaultdict(list)
    for one in sorted(totals, key=lambda one: (one.start_ns, one.end_ns, one.record_id)):
        # What may hold most comes last.
        groups[one.mode is Engagement.UNKNOWN, not one.task, one.mode, one.task].append(one)
    pieces = {"hours": list(clocked["hours"]), "km": list(clocked["km"])}
    found: list[Counted] = []
    dropped: list[Dropped] = []
    for (*_, mode, task), own in sorted(groups.items()):
        given: dict[str, dict[LoggedTime, float]] = {
            "hours": {one: one.ns for one in own if one.ns is not None},
            "km": {one: one.km for one in own if one.km is not None},
        }
        rests: dict[str, dict[LoggedTime, float]] = {}
        for name, amounts in given.items():
            kept = heaviest(amounts, amounts.__getitem__)
            chosen = [(one, amounts[one]) for one in own if one.record_id in kept]
            rests[name], pieces[name] = _rests(chosen, pieces[name], mode, task)
        for one in own:
            lost = [name for name in given if one in given[name] and one not in rests[name]]
            if lost:
                rival = next(other for other in rests[lost[0]] if other.overlaps(one))
                dropped.append(Dropped(one, rival, " and ".join(lost)))
            ns, km = rests["hours"].get(one), rests["km"].get(one)
            if (ns, km) != (None, None):
                found.append(Counted(one, None if ns is None else int(ns), km))
    return _fitting(found, dropped, free), dropped


def _rests(
    chosen: Iterable[tuple[LoggedTime, float]], pieces: list[Piece], mode: Engagement, task: str
) -> tuple[dict[LoggedTime, float], list[Piece]]:
    """What totals without common time, by their begin, add to what counts already.

    As much as can be is a part of them: first what surely is, then what ends first.

    Returns:
        The rest of each, and all that counts then; what is a part of a total is known better.
    """
    ahead = sorted(one for one in pieces if one.may_be_in(mode, task))
    after = [one for one in pieces if not one.may_be_in(mode, task)]
    rests: dict[LoggedTime, float] = {}
    near: list[tuple[bool, int, Piece]] = []
    for total, rest in chosen:
        upto = bisect_left(ahead, total.end_ns, key=lambda one: one.start_ns)
        for one in ahead[:upto]:
            heappush(near, (one.is_loose(total), one.end_ns, one))
        del ahead[:upto]
        while near and rest:
            one = near[0][2]
            part = min(rest, one.amount) if one.end_ns > total.start_ns else 0
            if part:
                begin, end = max(one.start_ns, total.start_ns), min(one.end_ns, total.end_ns)
                own_mode = one.mode if mode is Engagement.UNKNOWN else mode
                after.append(Piece(begin, end, own_mode, one.task or task, part))
                rest -= part
            left = one._replace(amount=one.amount - part)
            if part and left.amount:
                heapreplace(near, (*near[0][:2], left))
            else:
                heappop(near)
                after += [left] * bool(left.amount)
        rests[total] = rest
        after.append(Piece(total.start_ns, total.end_ns, mode, task, rest))
    return rests, after + ahead + [one for *_, one in near]


def _fitting(
    found: Iterable[Counted], dropped: list[Dropped], free: Callable[[int], int]
) -> list[Counted]:
    """What counts with no more hours in any time than it has; what goes beyond is dropped."""
    # By end: what was taken before has to be over by then.
    ordered = sorted(found, key=lambda one: one.total.end_ns)
    taken: dict[int, int] = dict.fromkeys(sorted(one.total.start_ns for one in ordered), 0)
    since = {begin: free(begin) for begin in taken}
    for place, (total, ns, km) in enumerate(ordered):
        if not ns or total.mode is Engagement.OFF:
            continue
        end = free(total.end_ns)
        room = min(
            end - since[begin] - used for begin, used in taken.items() if begin <= total.start_ns
        )
        fits = ns if ns - room < ROUNDING_NS else max(room, 0)
        for begin in taken:
            taken[begin] += fits * (begin <= total.start_ns)
        if fits < ns:
            ordered[place] = Counted(total, fits, km)
            dropped.append(Dropped(total, None, f"{(ns - fits) / HOUR_NS:,.6g} h"))
    return ordered
