"""For how long robots were exposed, by robot, side, mode and task, and what was not logged."""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.yaml_form import first_problem
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.evidence import PHYSICAL
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents.bodies import Exposure
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.spans import Span, clipped, length, merged, without
from robo_eval_incidents.taxonomy import Engagement, Via
from robo_eval_incidents.times import Exposed, Shift, exposed, shifts, withdrawals
from robo_eval_incidents.unlogged import (
    Body,
    Contradicted,
    Gap,
    Outside,
    contradicted_in,
    gaps_in,
    outside_of,
)

GAP_S: Final = 300.0
"""A pause between two episodes is no longer than this; what is longer is a gap."""
UNNAMED: Final = "unnamed"
"""What a robot is called whose episodes do not name it."""
_ROUNDING_NS: Final = 10**6
"""Lengths are kept in seconds; what overlaps by less was rounded."""
_HOUR_NS: Final = 3_600 * 10**9
_BY: Final = "robo-eval"
# Made once for this use, so that an episode that is logged twice is one record.
_EPISODES: Final = uuid.UUID("5b6f7f0e-9d0c-5c07-8e0b-6d2a3f0f3f5e")


# From the episodes of a trial --------------------------------------------------------------------


def exposure_of(trial: Path | str) -> tuple[Exposure, ...]:
    """The exposure of each physical episode of a trial, void and lost ones included.

    Simulation exposes nobody and is left out, and so is an episode of which nobody knows when it
    was or for how long; `unplaced_episodes` has those. An episode counts as `assisted` if somebody
    stepped in, and as `unknown` if an import does not say.

    Args:
        trial: The trial directory.

    Raises:
        TrialDirectoryError: If there is none, or its episodes cannot be read.
        InputError: If an episode holds what a record cannot; the message names it.
    """
    opened = TrialDirectory.open(trial)
    says_help = opened.plan.says_help
    return tuple(
        _exposure(episode, opened, says_help=says_help)
        for episode in _physical(opened)
        if _is_placed(episode)
    )


def unplaced_episodes(trial: Path | str) -> tuple[str, ...]:
    """Ids of physical episodes whose start or exposure is not known: hours that are missing."""
    episodes = _physical(TrialDirectory.open(trial))
    return tuple(one.episode_id for one in episodes if not _is_placed(one))


def log_exposure(trial: Path | str, log: IncidentLog) -> int:
    """Record the exposure of a trial; episodes that are in the log already are left alone.

    Args:
        trial: The trial directory.
        log: The log.

    Returns:
        How many episodes were recorded.

    Raises:
        TrialDirectoryError: If the trial cannot be read.
        InputError: If an episode holds what a record cannot.
        IncidentLogError: If the log cannot be written.
    """
    found = exposure_of(trial)
    added = 0
    for body in found:
        record_id = _record_id(body)
        if log.find(record_id) is None:
            log.file(body, by=_BY, via=Via.RULE, record_id=record_id)
            added += 1
    return added


def withdrawn_episodes(trial: Path | str, log: IncidentLog) -> tuple[str, ...]:
    """Ids of episodes of a trial whose hours were logged and withdrawn; they do not come again."""
    withdrawn = withdrawals(log)
    return tuple(
        str(body.episode_id) for body in exposure_of(trial) if _record_id(body) in withdrawn
    )


def _physical(trial: TrialDirectory) -> Iterator[Episode]:
    with EpisodeStore(trial.path, durable=False, read_only=True) as store:
        yield from (one for one in store.episodes() if one.side.value in PHYSICAL)


def _is_placed(episode: Episode) -> bool:
    # A physical episode of no time at all was not measured.
    return episode.start_ns is not None and bool(episode.exposure_s)


def _exposure(episode: Episode, trial: TrialDirectory, *, says_help: bool) -> Exposure:
    mode = Engagement.ASSISTED if episode.interventions else Engagement.AUTONOMOUS
    try:
        return Exposure.model_validate(
            {
                "robot": episode.robot or UNNAMED,
                "side": episode.side,
                "mode": mode if says_help else Engagement.UNKNOWN,
                "task": episode.family or episode.task,
                "policy": episode.policy,
                "episode_id": episode.episode_id,
                "trial": trial.plan_digest,
                "start_ns": episode.start_ns,
                "seconds": episode.exposure_s,
            }
        )
    except ValidationError as err:
        problem = first_problem(err, Exposure)
        raise InputError(f"{trial.path}: episode {episode.episode_id!r:.80}: {problem}") from err


def _record_id(body: Exposure) -> str:
    """Id of the record of an episode.

    Its start is in it, because one plan can be played twice, with the same names of episodes.
    """
    return str(uuid.uuid5(_EPISODES, f"{body.trial} {body.start_ns} {body.episode_id}"))


# From a log --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursRow:
    """For how long one robot did one thing in one mode.

    Attributes:
        robot: Robot.
        side: Side.
        mode: Who was in control.
        task: Task; empty if not known.
        hours: Hours, each counted once.
        nil_hours: As many of them lie in shifts that were reported to be without incidents, and
            had none.
        times: How many times, mostly episodes, they were logged in.
    """

    robot: str
    side: Side
    mode: Engagement
    task: str
    hours: float
    nil_hours: float
    times: int

    @property
    def is_exposed(self) -> bool:
        """Whether an incident could have happened: not while it was off."""
        return self.mode is not Engagement.OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A time that was logged twice for one robot and side; it counts once.

    Attributes:
        robot: Robot.
        side: Side.
        start_ns: Start, UTC.
        end_ns: End, UTC.
        first: What was logged first: an episode, or a record if it was none.
        second: What was logged for the same time.
    """

    robot: str
    side: Side
    start_ns: int
    end_ns: int
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """The exposure of a period.

    Attributes:
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        rows: Hours by robot, side, mode and task.
        overlaps: What was logged twice.
        gaps: What was not logged within shifts and runs.
        outside: Incidents on physical sides at a time that was not logged.
        contradicted: Shifts that were reported to be without incidents, and had some.
    """

    since_ns: int | None
    until_ns: int | None
    rows: tuple[HoursRow, ...]
    overlaps: tuple[Overlap, ...]
    gaps: tuple[Gap, ...]
    outside: tuple[Outside, ...]
    contradicted: tuple[Contradicted, ...]

    def total(self, side: Side = Side.REAL, robot: str | None = None) -> float:
        """Hours of exposure on one side; those of other sides never count for it."""
        return total_hours(self.rows, side, robot)

    def as_dict(self) -> dict[str, Any]:
        """The hours as JSON would have them."""
        return {
            "since_ns": self.since_ns,
            "until_ns": self.until_ns,
            "hours": {side.value: self.total(side) for side in _sides(self.rows)},
            "rows": [asdict(row) for row in self.rows],
            "overlaps": [asdict(one) for one in self.overlaps],
            "gaps": [asdict(one) for one in self.gaps],
            "outside": [asdict(one) for one in self.outside],
            "contradicted": [asdict(one) for one in self.contradicted],
        }


def hours(
    log: IncidentLog,
    since_ns: int | None = None,
    until_ns: int | None = None,
    *,
    gap_s: float = GAP_S,
) -> Hours:
    """For how long robots were exposed in a period, and what was logged twice or not at all.

    A robot is in one place at a time: what was logged twice for one robot and side counts once,
    for what began first, and is an overlap. A gap is a time without exposure within a shift, which
    is the time of a nil report, or within a run, which is the time from the first episode of a
    trial on one robot to the last. Time that is logged with mode `off` is no gap and no exposure.

    Args:
        log: The log.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        gap_s: The shortest gap that is listed, seconds.

    Raises:
        InputError: If the period ends before it begins.
    """
    check_period(since_ns, until_ns)
    bodies = _bodies(exposed(log, since_ns, until_ns), since_ns, until_ns)
    overlaps = [one for body in sorted(bodies) for one in _overlaps(body, bodies[body])]
    told = shifts(log, since_ns, until_ns)
    contradicted = tuple(contradicted_in(log, told, since_ns, until_ns))
    least_ns = round(gap_s * 1e9)
    return Hours(
        since_ns=since_ns,
        until_ns=until_ns,
        rows=_rows(bodies, _without(told, contradicted)),
        overlaps=tuple(overlaps),
        gaps=tuple(gaps_in(log, _spans(bodies), told, since_ns, until_ns, least_ns)),
        outside=tuple(outside_of(log, _spans(bodies, off=False), since_ns, until_ns)),
        contradicted=contradicted,
    )


def hours_rows(
    log: IncidentLog, since_ns: int | None = None, until_ns: int | None = None
) -> tuple[HoursRow, ...]:
    """The rows of `hours`, without looking for what is wrong with them."""
    check_period(since_ns, until_ns)
    bodies = _bodies(exposed(log, since_ns, until_ns), since_ns, until_ns)
    told = shifts(log, since_ns, until_ns)
    contradicted = contradicted_in(log, told, since_ns, until_ns)
    return _rows(bodies, _without(told, contradicted))


def _without(told: Iterable[Shift], contradicted: Iterable[Contradicted]) -> list[Shift]:
    """Shifts that had no incident, as they were reported."""
    had_some = {one.shift for one in contradicted}
    return [shift for shift in told if shift.name not in had_some]


def total_hours(rows: Iterable[HoursRow], side: Side, robot: str | None = None) -> float:
    """Hours of exposure of some rows on one side, of one robot or of all."""
    return math.fsum(
        row.hours
        for row in rows
        if row.side is side and row.is_exposed and robot in (None, row.robot)
    )


def check_period(since_ns: int | None, until_ns: int | None) -> None:
    """Refuse a period that ends before it begins.

    Raises:
        InputError: If it does.
    """
    if since_ns is not None and until_ns is not None and since_ns >= until_ns:
        raise InputError(
            f"the period ends at {until_ns} ns, which is not after its begin at {since_ns} ns"
        )


@dataclass(frozen=True, slots=True)
class _Time:
    """A logged time, with the part of it in the period."""

    span: Span
    what: Exposed

    @property
    def name(self) -> str:
        return self.what.episode_id or self.what.record_id


def _bodies(
    times: Iterable[Exposed], since_ns: int | None, until_ns: int | None
) -> dict[Body, list[_Time]]:
    """Times of each robot by their start, as far as they are in the period."""
    bodies: dict[Body, list[_Time]] = defaultdict(list)
    for one in times:
        span = clipped((one.start_ns, one.end_ns), since_ns, until_ns)
        if span[0] < span[1]:
            bodies[one.robot, one.side].append(_Time(span, one))
    for own in bodies.values():
        # By the whole time, so that a period tells no other story than the periods it is made of.
        own.sort(key=lambda one: (one.what.start_ns, one.what.end_ns, one.what.record_id))
    return dict(bodies)


def _rows(
    bodies: Mapping[Body, Sequence[_Time]], reported: Sequence[Shift]
) -> tuple[HoursRow, ...]:
    found: dict[tuple[str, Side, Engagement, str], tuple[int, int, int]] = {}
    for (robot, side), times in bodies.items():
        nil = merged(shift.span for shift in reported if shift.side is side and shift.is_of(robot))
        for time, alone in _counted_once(times):
            key = (robot, side, time.what.mode, time.what.task)
            ns, nil_ns, count = found.get(key, (0, 0, 0))
            alone_ns = length(alone)
            nil_ns += alone_ns - length(without(alone, nil))
            found[key] = (ns + alone_ns, nil_ns, count + 1)
    return tuple(
        HoursRow(
            robot=robot, side=side, mode=mode, task=task,
            hours=ns / _HOUR_NS, nil_hours=nil_ns / _HOUR_NS, times=count,
        )
        for (robot, side, mode, task), (ns, nil_ns, count) in sorted(found.items())
    )  # fmt: skip


def _counted_once(times: Sequence[_Time]) -> Iterator[tuple[_Time, list[Span]]]:
    """Each time with what of it no earlier one has; what was off yields to all others."""
    at_work = [one for one in times if one.what.mode is not Engagement.OFF]
    taken = merged(one.span for one in at_work)
    covered = -1
    for one in at_work:
        yield one, merged([(max(one.span[0], covered), one.span[1])])
        covered = max(covered, one.span[1])
    covered = -1
    for one in times:
        if one.what.mode is Engagement.OFF:
            rest = (max(one.span[0], covered), one.span[1])
            yield one, without(merged([rest]), taken)
            covered = max(covered, one.span[1])


def _overlaps(body: Body, times: Sequence[_Time]) -> Iterator[Overlap]:
    latest: _Time | None = None
    for one in times:
        if latest is not None:
            start, end = one.span[0], min(one.span[1], latest.span[1])
            if end - start > _ROUNDING_NS:
                yield Overlap(
                    robot=body[0], side=body[1], start_ns=start, end_ns=end,
                    first=latest.name, second=one.name,
                )  # fmt: skip
        if latest is None or one.span[1] > latest.span[1]:
            latest = one


def _spans(bodies: Mapping[Body, Sequence[_Time]], *, off: bool = True) -> dict[Body, list[Span]]:
    return {
        body: [one.span for one in times if off or one.what.mode is not Engagement.OFF]
        for body, times in bodies.items()
    }


def _sides(rows: Iterable[HoursRow]) -> list[Side]:
    found = {row.side for row in rows}
    return [side for side in Side if side in found or side is Side.REAL]
