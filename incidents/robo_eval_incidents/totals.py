"""Hours and kilometres of which only the period is known, each counted once."""

from __future__ import annotations

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
        total_ns: How long within it.
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
    total_ns: int
    km: float | None

    def overlaps(self, other: Total) -> bool:
        """Whether two periods have time in common."""
        return self.start_ns < other.end_ns and other.start_ns < self.end_ns


class Counted(NamedTuple):
    """What of a total counts beside what was logged by the clock."""

    total: Total
    ns: int
    km: float | None


def counted_once(
    totals: Iterable[Total], clocked: Callable[[Total], tuple[int, float]]
) -> tuple[list[Counted], list[tuple[Total, Total]]]:
    """What totals of one robot and side add to what was logged by the clock.

    What was logged by the clock within a period, in the same mode, is a part of its total: only the
    rest is added. Nobody can tell how much two totals of one mode have in common whose periods
    overlap, so the larger one counts, and the other one is an overlap. A total of all modes holds
    those of single ones.

    Args:
        totals: The totals.
        clocked: Of a total, the ns and kilometres within its period that were logged by the clock,
            in its mode, or in any that is not `off` if its mode is `unknown`.

    Returns:
        What counts, and pairs of totals that overlap, the one that counts first.
    """
    found: list[Counted] = []
    twice: list[tuple[Total, Total]] = []

    def place(one: Total) -> tuple[bool, int, float, int, str]:
        of_all = one.mode is Engagement.UNKNOWN
        return of_all, -one.total_ns, -(one.km or 0.0), one.start_ns, one.record_id

    for total in sorted(totals, key=place):
        near = [one for one in found if one.total.overlaps(total)]
        rival = next((one.total for one in near if one.total.mode is total.mode), None)
        if rival is not None:
            twice.append((rival, total))
            continue
        ns, km = clocked(total)
        if total.mode is Engagement.UNKNOWN:
            inner = [one for one in near if one.total.mode is not Engagement.OFF]
            ns += sum(one.ns for one in inner)
            km += sum(one.km or 0.0 for one in inner)
        rest_km = None if total.km is None else max(0.0, total.km - km)
        found.append(Counted(total, max(0, total.total_ns - ns), rest_km))
    return found, twice
