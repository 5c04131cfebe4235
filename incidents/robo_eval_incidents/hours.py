"""For how long robots were exposed, and where hours, shifts and incidents do not fit together."""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from pydantic import ValidationError
from sqlalchemy import ColumnElement, Select, func, null, select

from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.yaml_form import first_problem
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.evidence import PHYSICAL
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import Exposure, Nil, Report
from robo_eval_incidents.lists import Filter, filtered, undecided
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.record import Record
from robo_eval_incidents.rows import HOUR_NS, Listed, LoggedTime
from robo_eval_incidents.schema import INCIDENTS, TIMES
from robo_eval_incidents.spans import NONE, Ints, Spans, clipped, holds, merged, within, without
from robo_eval_incidents.text import LATEST_NS, span_text, when
from robo_eval_incidents.totals import ROUNDING_NS, Counted, Piece, counted_once
from robo_eval_incidents.words import Engagement, Via

GAP_S: Final = 300.0
"""A pause between two episodes is no longer than this; what is longer is a gap."""
UNNAMED: Final = "unnamed"
"""What a robot is called whose episodes do not name it."""
SLACK_NS: Final = 10**9
"""Clocks of people and robots may differ by so much."""
_NAMED: Final = 3
"""Incidents that are named of a shift that was to be without."""
_BY: Final = "robo-eval"
_NOBODY: Final[Mapping[tuple[str, str], Iterable[str]]] = MappingProxyType({})
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
    return tuple(_exposure(one, opened) for one in _physical(opened) if _is_placed(one))


def unplaced_episodes(trial: Path | str) -> tuple[str, ...]:
    """Ids of physical episodes whose start or exposure is not known: hours that are missing."""
    episodes = _physical(TrialDirectory.open(trial))
    return tuple(one.episode_id for one in episodes if not _is_placed(one))


class Logged(NamedTuple):
    """How many episodes of a trial were logged now, and how many were withdrawn before."""

    added: int
    withdrawn: int


def log_exposure(trial: Path | str, log: IncidentLog) -> Logged:
    """Record the exposure of a trial; episodes that are in the log already are left alone.

    Args:
        trial: The trial directory.
        log: The log.

    Raises:
        TrialDirectoryError: If the trial cannot be read.
        InputError: If an episode holds what a record cannot.
        IncidentLogError: If the log cannot be written.
    """
    bodies = {_record_id(body): body for body in exposure_of(trial)}
    query = select(TIMES.c.id, TIMES.c.withdrawn_by)
    known = {row[0]: row[1] for row in log.database.rows(query)}
    new = {record_id: body for record_id, body in bodies.items() if record_id not in known}
    for record_id, body in new.items():
        log.file(body, by=_BY, via=Via.RULE, record_id=record_id)
    return Logged(len(new), sum(known.get(one) is not None for one in bodies))


def _physical(trial: TrialDirectory) -> Iterator[Episode]:
    with EpisodeStore(trial.path, durable=False, read_only=True) as store:
        yield from (one for one in store.episodes() if one.side.value in PHYSICAL)


def _is_placed(episode: Episode) -> bool:
    # A physical episode of no time at all was not measured.
    return episode.start_ns is not None and bool(episode.exposure_s)


def _exposure(episode: Episode, trial: TrialDirectory) -> Exposure:
    mode = Engagement.ASSISTED if episode.interventions else Engagement.AUTONOMOUS
    try:
        return Exposure.model_validate(
            {
                "robot": episode.robot or UNNAMED,
                "side": episode.side,
                "mode": mode if trial.plan.says_help else Engagement.UNKNOWN,
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


# Times as they were logged -----------------------------------------------------------------------


def logged_times(
    log: IncidentLog,
    since_ns: int | None = None,
    until_ns: int | None = None,
    *,
    robot: str | None = None,
    limit: int = 50,
) -> tuple[Sequence[LoggedTime], bool]:
    """Entries of exposure and of shifts that touch a period, newest first, withdrawn ones as well.

    Args:
        log: The log.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        robot: Only what is of this robot, or of all robots of a station.
        limit: How many at most.

    Returns:
        The entries, and whether there are more.
    """
    query = _in_period(select(TIMES), since_ns, until_ns)
    if robot is not None:
        query = query.where((TIMES.c.robot == robot) | TIMES.c.robot.is_(None))
    query = query.order_by(TIMES.c.start_ns.desc(), TIMES.c.id.desc()).limit(limit + 1)
    rows = log.database.rows(query)
    return _told(log, rows[:limit]), len(rows) > limit


def find_time(log: IncidentLog, name: str) -> LoggedTime:
    """An entry of exposure or of a shift.

    Args:
        log: The log.
        name: Its station and number, or the id of its record.

    Raises:
        InputError: If there is none.
    """
    named = log.named(name)
    ids = [one.record_id for one in named if isinstance(one.body, Exposure | Nil)]
    if not ids and any(isinstance(one.body, Report) for one in named):
        raise InputError(
            f"{name:.80} is an incident, no hours and no shift; `robo-eval incidents review"
            " --dismiss` says that it is none"
        )
    rows = log.database.rows(select(TIMES).where(TIMES.c.id.in_(ids)))
    if not rows:
        raise InputError(
            f"no hours and no shift {name!r:.80} in this log; `robo-eval incidents exposure"
            " --times` has them"
        )
    return _told(log, rows)[0]


def _told(
    log: IncidentLog, rows: Iterable[Any], of_all: Mapping[tuple[str, str], Iterable[str]] = _NOBODY
) -> list[LoggedTime]:
    """Times as rows have them; `of_all` has the robots of a station and side."""
    try:
        return [
            LoggedTime.of(row._asdict(), of_all.get((row.station, row.side), ())) for row in rows
        ]
    except (TypeError, ValueError) as err:
        raise _damaged(log) from err


def _damaged(log: IncidentLog) -> IncidentLogError:
    return IncidentLogError(
        f"{log.name}: the list of hours holds what no record says; `robo-eval verify` says more"
    )


def _in_period(query: Select[Any], since_ns: int | None, until_ns: int | None) -> Select[Any]:
    if since_ns is not None:
        query = query.where(TIMES.c.end_ns > since_ns)
    if until_ns is not None:
        query = query.where(TIMES.c.start_ns < until_ns)
    return query


# Hours -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursRow:
    """For how long one robot did one thing in one mode.

    Attributes:
        robot: Robot.
        side: Side.
        mode: Who was in control.
        task: Task; empty if not known.
        hours: Hours, each counted once; None if nobody knows them.
        nil_hours: As many of them lie in shifts that were reported to be without incidents, and
            had none.
        times: How many times, mostly episodes, they were logged in.
        km: Kilometres, each once; None if none were logged.
    """

    robot: str
    side: Side
    mode: Engagement
    task: str
    hours: float | None
    nil_hours: float
    times: int
    km: float | None = None

    @property
    def is_exposed(self) -> bool:
        """Whether an incident could have happened: not while it was off."""
        return self.mode is not Engagement.OFF


_Kind = Literal["overlap", "gap", "outside", "contradicted", "part", "beyond"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something about hours, shifts and incidents that does not fit.

    Attributes:
        kind: `overlap` for a time that was logged twice and counts once, `gap` for one within a
            shift or run that was not logged, `outside` for an incident while nothing was logged,
            which counts all the same, `contradicted` for a shift that was reported to be without
            incidents and had some, `part` for a total of a period that lies partly in this one,
            which does not count, `beyond` for what of a total its period has no time for beside
            all else, which does not count.
        robot: Robot; None where a shift of a whole station is meant.
        side: Side.
        start_ns: Start, UTC.
        end_ns: End, UTC.
        within: What a gap is a part of, `shift` or `run` of a trial; what of a total does not
            count for its overlap with another one: `hours`, `km` or both; hours that are beyond.
        name: Shift, or digest of the trial's plan, it is about; empty of an overlap or incident.
        by: Who reported the shift without incidents.
        named: Ids and names: of both times of an overlap, or of the first incidents.
        count: How many incidents there are.
    """

    kind: _Kind
    robot: str | None
    side: Side
    start_ns: int
    end_ns: int
    within: str = ""
    name: str = ""
    by: str = ""
    named: tuple[tuple[str, str], ...] = ()
    count: int = 0

    @property
    def why(self) -> str:
        """Which total does not count, and why."""
        *rival, one = (name for _, name in self.named)
        told = f"{one}, {self.robot} ({self.side}), {span_text(self.start_ns, self.end_ns)}"
        if self.kind == "beyond":
            return f"{told}: {self.within} are more than its time has beside what else counts"
        if not rival:
            return f"{told}, lies partly in this period"
        return f"{told}: {self.within} overlap {rival[0]}, which counts"

    @property
    def names(self) -> str:
        """What it names, in words."""
        rest = max(0, self.count - len(self.named))
        return ", ".join(name for _, name in self.named) + (f" and {rest} more" if rest else "")

    def __str__(self) -> str:
        whose = f"{self.robot or 'no robot at work'} ({self.side})"
        span = f"{when(self.start_ns)} to {when(self.end_ns)}"
        is_known = self.start_ns == self.end_ns
        match self.kind:
            case "beyond":
                return self.why
            case "part":
                return f"{self.names}, {whose}, {span_text(self.start_ns, self.end_ns)}"
            case "overlap":
                return f"{whose}, {span}: {self.names}"
            case "gap":
                return f"{whose}, {span}, within a {self.within}"
            case "outside":
                time = span_text(self.start_ns, None if is_known else self.end_ns + 1)
                return f"{self.names}, {whose}, {time}"
            case "contradicted":
                return f"{self.name} by {self.by} ({self.side}), {span}: {self.names}"


TITLES: Final = {
    "overlap": "logged twice",
    "gap": "not logged",
    "outside": "incidents at times without hours",
    "contradicted": "reported without incidents, with some",
    "part": "totals that lie partly in the period, and do not count",
    "beyond": "hours beyond those of their period, which do not count",
}
"""What findings of each kind are, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """The exposure of a period.

    Attributes:
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        rows: Hours by robot, side, mode and task.
        findings: What does not fit.
    """

    since_ns: int | None
    until_ns: int | None
    rows: tuple[HoursRow, ...]
    findings: tuple[Finding, ...]

    def of(self, kind: str) -> list[Finding]:
        """Findings of one kind."""
        return [one for one in self.findings if one.kind == kind]

    def total(self, side: Side = Side.REAL, robot: str | None = None) -> float:
        """Hours of exposure on one side; those of other sides never count for it."""
        return total_hours(self.rows, side, robot)

    def as_dict(self) -> dict[str, Any]:
        """The hours as JSON would have them."""
        sides = {row.side for row in self.rows} | {Side.REAL}
        return {
            "since_ns": self.since_ns,
            "until_ns": self.until_ns,
            "hours": {side.value: self.total(side) for side in Side if side in sides},
            "rows": [asdict(row) for row in self.rows],
            "findings": [asdict(one) for one in self.findings],
        }


def total_hours(
    rows: Iterable[HoursRow],
    side: Side,
    robot: str | None = None,
    *,
    of: Literal["hours", "km"] = "hours",
) -> float:
    """Hours, or kilometres, of exposure of some rows on one side, of one robot or of all."""
    return math.fsum(
        getattr(row, of) or 0.0
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
    period = _Period(log, since_ns, until_ns, named=True)
    findings = [
        *period.overlaps(),
        *period.not_counted,
        *period.gaps(max(round(gap_s * 1e9), 1)),
        *period.outside(),
        *period.contradicted,
    ]
    return Hours(since_ns=since_ns, until_ns=until_ns, rows=period.rows(), findings=tuple(findings))


Body = tuple[str, Side]
"""A robot, and the side it is on: a twin of the same name is another body."""


class Exposed(NamedTuple):
    """What rates divide by: the rows of `hours`, totals that do not count, and what is not known.

    `unknown` has, for `h` and `km`, the times of each body that it worked in, without anybody
    knowing for how long or how far.
    """

    rows: tuple[HoursRow, ...]
    not_counted: list[Finding]
    unknown: Mapping[str, Mapping[Body, Spans]]

    def not_counted_of(self, side: Side, robot: str | None) -> list[Finding]:
        """Totals of a side, and of a robot or of all, that do not count."""
        return [one for one in self.not_counted if one.side is side and robot in (None, one.robot)]


def hours_rows(
    log: IncidentLog, since_ns: int | None = None, until_ns: int | None = None
) -> Exposed:
    """What rates of a period divide by; nothing else is looked for."""
    period = _Period(log, since_ns, until_ns, named=False)
    return Exposed(period.rows(), period.not_counted, period.unknown())


@dataclass(slots=True)
class _Times:
    """Logged times of one body, by their start."""

    spans: Spans
    is_off: Any
    keys: Any
    """Which mode and task, as a number for each."""
    names: Sequence[str]
    km: Any
    """How far, for each; NaN if nobody said."""
    lengths: Any
    """How long each is in all, ns."""

    @property
    def at_work(self) -> Spans:
        """When it was exposed."""
        return merged(self.spans[~self.is_off])


class _Period:
    """What was logged and happened in a period.

    Args:
        log: The log.
        since_ns: Begin, UTC; None for all before.
        until_ns: End, UTC; None for all after.
        named: Whether each time is to be named as well.
    """

    def __init__(
        self, log: IncidentLog, since_ns: int | None, until_ns: int | None, *, named: bool
    ) -> None:
        check_period(since_ns, until_ns)
        self._log = log
        self._bounds = (since_ns, until_ns)
        self._keys: dict[tuple[str, str], int] = {}
        self._bodies = self._read(named=named)
        self.not_counted: Final[list[Finding]] = []
        self._totals = self._read_totals()
        self._shifts = shifts(log, since_ns, until_ns)
        self.contradicted: Final = list(contradicted_in(log, self._shifts))

    def _read(self, *, named: bool) -> dict[Body, _Times]:
        columns: list[ColumnElement[Any]] = [
            TIMES.c[name] for name in ("robot", "side", "mode", "what", "start_ns", "end_ns")
        ]
        database = self._log.database
        has_km = database.rows(select(TIMES.c.km).where(TIMES.c.km.isnot(None)).limit(1))
        columns.append(TIMES.c.km if has_km else null().label("km"))
        if named:
            columns += [TIMES.c.episode_id, TIMES.c.station, TIMES.c.sequence]
        query = _in_period(select(*columns), *self._bounds)
        query = query.where(
            TIMES.c.kind == Exposure.kind,
            TIMES.c.withdrawn_by.is_(None),
            TIMES.c.total_ns.is_(None),
        )
        # By the whole time, so that a period tells no other story than the periods it is made of.
        query = query.order_by(TIMES.c.start_ns, TIMES.c.end_ns, TIMES.c.id)
        found: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for row in database.rows(query):
            found[row[0], row[1]].append(row)
        try:
            return {(robot, Side(side)): self._times(found[robot, side], named=named)
                    for robot, side in sorted(found)}  # fmt: skip
        except (TypeError, ValueError, OverflowError) as err:
            raise _damaged(self._log) from err

    def _times(self, rows: Sequence[Any], *, named: bool) -> _Times:
        _, _, modes, tasks, starts, ends, km, *names = zip(*rows, strict=True)
        names = names if named else [(), (), ()]
        keys = np.array(
            [self._keys.setdefault(key, len(self._keys)) for key in zip(modes, tasks, strict=True)]
        )
        of_off = [number for (mode, _), number in self._keys.items()
                  if Engagement(mode) is Engagement.OFF]  # fmt: skip
        whole = np.array((starts, ends), dtype=np.int64).T
        spans = clipped(whole, *self._bounds)
        called = [episode or f"{station}/{number}"
                  for episode, station, number in zip(*names, strict=True)]  # fmt: skip
        lengths = whole[:, 1] - whole[:, 0]
        is_off = np.isin(keys, of_off)
        return _Times(spans, is_off, keys, called, np.array(km, dtype=np.float64), lengths)

    def _read_totals(self) -> dict[Body, list[Counted]]:
        """What is added by totals that lie in the period; what does not count is noted."""
        query = _in_period(select(TIMES), *self._bounds)
        query = query.where(TIMES.c.total_ns.isnot(None), TIMES.c.withdrawn_by.is_(None))
        since, until = self._bounds
        whole: dict[Body, list[LoggedTime]] = defaultdict(list)
        rows = self._log.database.rows(query.order_by(TIMES.c.start_ns, TIMES.c.id))
        for one in _told(self._log, rows):
            if (since is None or since <= one.start_ns) and (until is None or one.end_ns <= until):
                for body in one.bodies:
                    whole[body].append(one)
            else:
                self.not_counted.append(_about_totals("part", one))
        found = {}
        for body, totals in whole.items():
            times = self._bodies.get(body)
            at_work = NONE if times is None else times.at_work
            clocked = self._clocked(times, totals)
            found[body], dropped = counted_once(totals, clocked, partial(_free, at_work))
            self.not_counted.extend(
                _about_totals("overlap", rival, one, what=what)
                if rival
                else _about_totals("beyond", one, what=what)
                for one, rival, what in dropped
            )
        return found

    def _clocked(
        self, times: _Times | None, totals: Iterable[LoggedTime]
    ) -> dict[str, list[Piece]]:
        """What was logged by the clock between begins and ends of totals, each time once."""
        found: dict[str, list[Piece]] = {"hours": [], "km": []}
        if times is None:
            return found
        cuts = np.unique(_spans_of(totals))
        alone = np.zeros_like(times.spans)
        for is_of in (times.is_off, ~times.is_off):
            alone[is_of] = _alone(times.spans[is_of])
        km = np.nan_to_num(times.km) * (alone[:, 1] - alone[:, 0]) / np.maximum(times.lengths, 1)
        for (mode, task), number in self._keys.items():
            is_of = times.keys == number
            if not is_of.any():
                continue
            spans, ways = alone[is_of], np.cumsum(km[is_of])
            ns = within(merged(spans), cuts[:-1], cuts[1:])
            upto = np.column_stack((ways - km[is_of], ways))
            far = np.diff(np.interp(cuts, spans.ravel(), upto.ravel()))
            for name, amounts in (("hours", ns), ("km", far)):
                found[name] += [
                    Piece(begin, end, Engagement(mode), task, amount)
                    for begin, end, amount in zip(
                        cuts[:-1].tolist(), cuts[1:].tolist(), amounts.tolist(), strict=True
                    )
                    if amount
                ]
        return found

    def rows(self) -> tuple[HoursRow, ...]:
        """Hours by robot, side, mode and task; what was off yields to all else."""
        contrary = {one.name for one in self.contradicted}
        quiet = [shift for shift in self._shifts if shift.name not in contrary]
        found: dict[tuple[str, Side, Engagement, str], HoursRow] = {}
        names = {number: key for key, number in self._keys.items()}
        for (robot, side), times in self._bodies.items():
            nil = merged(_spans_of(one for one in quiet if (robot, side) in one.bodies))
            alone, alone_nil = _counted_once(times, nil)
            km = times.km * (alone / np.maximum(times.lengths, 1))
            for key in np.unique(times.keys).tolist():
                is_of = times.keys == key
                count = np.count_nonzero(is_of & (times.spans[:, 0] < times.spans[:, 1]))
                if count:
                    mode, task = names[key]
                    row = HoursRow(
                        robot=robot,
                        side=side,
                        mode=Engagement(mode),
                        task=task,
                        hours=int(alone[is_of].sum()) / HOUR_NS,
                        nil_hours=int(alone_nil[is_of].sum()) / HOUR_NS,
                        times=int(count),
                        km=None if np.isnan(km[is_of]).all() else float(np.nansum(km[is_of])),
                    )
                    found[robot, side, row.mode, task] = row
        for (robot, side), totals in self._totals.items():
            for total, ns, km_ in totals:
                place = (robot, side, total.mode, total.task)
                before = found.get(place) or HoursRow(
                    robot=robot, side=side, mode=total.mode, task=total.task,
                    hours=None, nil_hours=0.0, times=0,
                )  # fmt: skip
                found[place] = replace(
                    before,
                    hours=before.hours if ns is None else (before.hours or 0.0) + ns / HOUR_NS,
                    times=before.times + 1,
                    km=before.km if km_ is None else (before.km or 0.0) + km_,
                )
        return tuple(found[place] for place in sorted(found))

    def overlaps(self) -> Iterator[Finding]:
        """What was logged twice."""
        for (robot, side), times in self._bodies.items():
            spans = times.spans
            is_there = spans[:, 0] < spans[:, 1]
            places = np.flatnonzero(is_there)
            spans = spans[places]
            if len(spans) < 2:
                continue
            reach = np.maximum.accumulate(spans[:, 1])
            # Where the end that reaches farthest so far was first reached.
            is_new = np.append(True, reach[1:] > reach[:-1])
            latest = np.maximum.accumulate(np.where(is_new, np.arange(len(spans)), 0))
            ends = np.minimum(spans[1:, 1], reach[:-1])
            for place in np.flatnonzero(ends - spans[1:, 0] > ROUNDING_NS).tolist():
                first, second = (times.names[places[one]] for one in (latest[place], place + 1))
                yield Finding(
                    kind="overlap",
                    robot=robot,
                    side=side,
                    start_ns=int(spans[place + 1, 0]),
                    end_ns=int(ends[place]),
                    named=((first, first), (second, second)),
                )

    def unknown(self) -> dict[str, dict[Body, Spans]]:
        """Times at work of which no hours, or no kilometres, are known, nor of a part of them."""
        found: dict[str, dict[Body, Spans]] = {"h": {}, "km": {}}
        for body in {*self._bodies, *self._totals}:
            times = self._bodies.get(body)
            at_work = NONE if times is None else times.spans[~times.is_off]
            km = np.empty(0) if times is None else times.km[~times.is_off]
            totals = [one.total for one in self._totals.get(body, ())
                      if one.total.mode is not Engagement.OFF]  # fmt: skip
            spans = np.concatenate([at_work, _spans_of(totals)])
            for name, is_clocked, of_totals in (
                ("h", [True] * len(km), [one.ns for one in totals]),
                ("km", ~np.isnan(km), [one.km for one in totals]),
            ):
                is_known = np.array([*is_clocked, *(one is not None for one in of_totals)], bool)
                known, rest = merged(spans[is_known]), spans[~is_known]
                rest = merged(rest[within(known, rest[:, 0], rest[:, 1]) == 0])
                if len(rest):
                    found[name][body] = rest
        return found

    def _covered(self, *, at_work: bool) -> dict[Body, Spans]:
        """Times of each body, or those at work; in the period of a total it may have been."""
        found = {
            body: times.at_work if at_work else times.spans for body, times in self._bodies.items()
        }
        for body, totals in self._totals.items():
            own = [
                one
                for one, *_ in totals
                if one.ns is not None and not (at_work and one.mode is Engagement.OFF)
            ]
            found[body] = np.concatenate([found.get(body, NONE), _spans_of(own)])
        return {body: merged(spans) for body, spans in found.items()}

    def gaps(self, least_ns: int) -> Iterator[Finding]:
        """Times within shifts and runs of which nothing was logged."""
        known = self._covered(at_work=False)
        at_work: dict[frozenset[Body], Spans] = {}
        watched: dict[tuple[str | None, Side, frozenset[Body]], int] = {}
        for whole, bodies in sorted(
            _watched(self._log, self._shifts),
            key=lambda one: (one[0].start_ns, one[0].end_ns, one[0].name, one[0].robot or ""),
        ):
            span = clipped(np.array([(whole.start_ns, whole.end_ns)]), *self._bounds)
            start, end = span[0].tolist()
            # A gap is listed once, however many shifts and runs it is in; they come by their start.
            whose = (whole.robot, whole.side, bodies)
            until = watched.get(whose, start)
            watched[whose] = max(end, until)
            if bodies not in at_work:
                own = [known.get(body, NONE) for body in bodies]
                at_work[bodies] = merged(np.concatenate([NONE, *own]))
            taken = at_work[bodies]
            first = max(int(np.searchsorted(taken[:, 1], until)), 0)
            last = int(np.searchsorted(taken[:, 0], end))
            left = without(merged(np.array([(max(start, until), end)])), taken[first:last])
            for gap_start, gap_end in left[left[:, 1] - left[:, 0] >= least_ns].tolist():
                yield replace(whole, start_ns=gap_start, end_ns=gap_end)

    def outside(self) -> Iterator[Finding]:
        """Incidents that count, on physical sides, at a time without exposure."""
        rows = [row for row in _happened(self._log, *self._bounds) if row.side in PHYSICAL]
        exposed = self._covered(at_work=True)
        own: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            own[row[0], row[1]].append(place)
        is_in = np.zeros(len(rows), dtype=bool)
        for (robot, side), places in own.items():
            first, last = np.array([rows[place][2:4] for place in places], dtype=np.int64).T
            # One of which only a day is known may have been at any exposure of that day.
            last = np.minimum(last, LATEST_NS - SLACK_NS)
            is_in[places] = holds(exposed.get((robot, Side(side)), NONE), first, SLACK_NS, last)
        for place in np.flatnonzero(~is_in).tolist():
            robot, side, start_ns, end_ns, incident_id, station, sequence = rows[place]
            yield Finding(
                kind="outside",
                robot=robot,
                side=Side(side),
                start_ns=start_ns,
                end_ns=end_ns,
                named=((incident_id, f"{station}/{sequence}"),),
                count=1,
            )


def _spans_of(times: Iterable[LoggedTime]) -> Spans:
    own = [(one.start_ns, one.end_ns) for one in times]
    return np.array(own, dtype=np.int64).reshape(-1, 2)


def _about_totals(kind: _Kind, *totals: LoggedTime, what: str = "") -> Finding:
    named = tuple((total.name, total.name) for total in totals)
    return _about(kind, totals[-1], within=what, named=named)


def _about(kind: _Kind, one: LoggedTime, **more: Any) -> Finding:
    return Finding(
        kind=kind,
        robot=one.robot,
        side=one.side,
        start_ns=one.start_ns,
        end_ns=one.end_ns,
        **more,
    )


def _free(at_work: Spans, time_ns: int) -> int:
    """How much time up to one was not spent at work, ns."""
    return time_ns - int(within(at_work, np.array([0]), np.array([time_ns]))[0])


def _alone(spans: Spans) -> Spans:
    """What of each span, by their begin, no earlier one has."""
    reach = np.append(spans[:1, 0], np.maximum.accumulate(spans[:, 1])[:-1])
    starts = np.maximum(spans[:, 0], reach)
    return np.column_stack((starts, np.maximum(spans[:, 1], starts)))


def _counted_once(times: _Times, nil: Spans) -> tuple[Ints, Ints]:
    """What of each time no earlier one has, ns, and as much of it in quiet shifts."""
    alone = np.zeros(len(times.spans), dtype=np.int64)
    quiet = np.zeros(len(times.spans), dtype=np.int64)
    at_work = times.at_work
    for is_of, taken in ((~times.is_off, NONE), (times.is_off, at_work)):
        spans = times.spans[is_of]
        if not len(spans):
            continue
        starts, ends = _alone(spans).T
        alone[is_of] = ends - starts - within(taken, starts, ends)
        quiet[is_of] = within(without(nil, taken), starts, ends)
    return alone, quiet


# Shifts and runs ---------------------------------------------------------------------------------


def shifts(
    log: IncidentLog, since_ns: int | None = None, until_ns: int | None = None
) -> list[LoggedTime]:
    """Shifts without incidents that touch a period, by their begin; not those withdrawn."""
    query = _in_period(select(TIMES), since_ns, until_ns)
    query = query.where(TIMES.c.kind == Nil.kind, TIMES.c.withdrawn_by.is_(None))
    rows = log.database.rows(query.order_by(TIMES.c.start_ns))
    of_all = _robots_by_station(log) if any(row.robot is None for row in rows) else _NOBODY
    return sorted(_told(log, rows, of_all), key=lambda one: (one.start_ns, one.name))


def _robots_by_station(log: IncidentLog) -> dict[tuple[str, str], set[str]]:
    """Robots that incidents or hours are of, by the station that filed them and their side."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for table in (INCIDENTS, TIMES):
        query = select(table.c.station, table.c.side, table.c.robot).distinct()
        if table is TIMES:
            query = query.where(TIMES.c.kind == Exposure.kind)
        for station, side, robot in log.database.rows(query):
            found[station, side].add(robot)
    return found


def _watched(
    log: IncidentLog, told: Iterable[LoggedTime]
) -> Iterator[tuple[Finding, frozenset[Body]]]:
    """Shifts and runs, in which hours should have been logged, as whole gaps, and of whom."""
    for one in told:
        if one.side is not Side.SIM:
            yield _about("gap", one, within="shift", name=one.name), one.bodies
    # What was withdrawn between two others was played all the same, and is a gap; a withdrawn end
    # is none of the run: its clock may have been wrong.
    keys = (TIMES.c.trial, TIMES.c.robot, TIMES.c.side)
    query = select(*keys, func.min(TIMES.c.start_ns), func.max(TIMES.c.end_ns))
    query = query.where(TIMES.c.trial.isnot(None), TIMES.c.withdrawn_by.is_(None))
    for trial, robot, side, start_ns, end_ns in log.database.rows(query.group_by(*keys)):
        run = Finding(
            kind="gap", robot=robot, side=Side(side), start_ns=start_ns, end_ns=end_ns,
            within="run", name=trial,
        )  # fmt: skip
        yield run, frozenset({(robot, run.side)})


def contradicted_in(log: IncidentLog, told: Sequence[LoggedTime]) -> Iterator[Finding]:
    """Shifts that were reported to be without incidents, and had some that count.

    Args:
        log: The log.
        told: The shifts.
    """
    if not told:
        return
    # A shift that is partly in a period is contradicted by what was in its other part as well.
    since_ns, until_ns = min(one.start_ns for one in told), max(one.end_ns for one in told)
    own: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for robot, side, *row in _happened(log, since_ns, until_ns):
        own[robot, side].append(row)
    times = {body: np.array([one[0] for one in found]) for body, found in own.items()}
    for shift in told:
        sure: list[Any] = []
        for robot in sorted(shift.robots):
            body = (robot, shift.side.value)
            if body in own:
                begin, end = np.searchsorted(times[body], (shift.start_ns, shift.end_ns)).tolist()
                # Of which only a day is known, that may have been before or after the shift.
                sure += [one for one in own[body][begin:end] if one[1] < shift.end_ns]
        if sure:
            yield _about(
                "contradicted",
                shift,
                name=shift.name,
                by=shift.by,
                named=tuple((one[2], f"{one[3]}/{one[4]}") for one in sorted(sure)[:_NAMED]),
                count=len(sure),
            )


def speaking_against(log: IncidentLog, record: Record) -> Finding | None:
    """What speaks against a nil report that was just made; None if nothing does.

    Args:
        log: The log.
        record: The report.
    """
    return next(contradicted_in(log, _shift_of(log, record)), None)


def may_lie_in(log: IncidentLog, record: Record) -> list[Listed]:
    """Incidents that may lie in the time of a nil report that was just made, or outside it."""
    return [
        one
        for shift in _shift_of(log, record)
        for one in undecided(
            log, Filter(side=shift.side, since_ns=shift.start_ns, until_ns=shift.end_ns)
        )
        if one.robot in shift.robots
    ]


def _shift_of(log: IncidentLog, record: Record) -> list[LoggedTime]:
    body = record.body
    told = shifts(log, body.start_ns, body.end_ns) if isinstance(body, Nil) else []
    return [one for one in told if one.name == record.name]


def _happened(log: IncidentLog, since_ns: int | None, until_ns: int | None) -> Sequence[Any]:
    """Incidents of a period that count, by when they happened."""
    names = ("robot", "side", "happened_ns", "latest_ns", "id", "station", "sequence")
    query = select(*(INCIDENTS.c[name] for name in names))
    query = filtered(query, Filter(since_ns=since_ns, until_ns=until_ns))
    query = query.where(INCIDENTS.c.counts == 1)
    return log.database.rows(query.order_by(INCIDENTS.c.happened_ns, INCIDENTS.c.id))
