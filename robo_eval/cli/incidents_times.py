"""`robo-eval incidents exposure` and `withdraw`: hours of robots, and shifts without incidents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from robo_eval.cli.checks import check_there
from robo_eval.cli.incidents_common import (
    ByOption,
    LogOption,
    SinceOption,
    StationOption,
    UntilOption,
    author,
    checked,
    noting_robots,
    opened,
    past_period,
    period_of,
    say_filed,
    when,
)
from robo_eval.cli.incidents_fields import Given, Where, said, verb
from robo_eval.cli.output import JsonOption, print_json, print_table, say
from robo_eval.core.errors import InputError
from robo_eval.core.wording import counted, shown
from robo_eval_incidents.kinds import MOST_SECONDS, Exposure, Withdrawal, section_of
from robo_eval_incidents.words import Via

if TYPE_CHECKING:
    from robo_eval_incidents.hours import Hours
    from robo_eval_incidents.hours_table import HoursMap
    from robo_eval_incidents.log import IncidentLog
    from robo_eval_incidents.rows import LoggedTime

_MOST: Final = 10
"""Gaps and the like that are printed; the JSON has more."""
_MOST_TIMES: Final = 1_000
"""Logged times that are listed."""


def exposure(
    trials: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR|FILE...]",
            help="Trials, and tables (CSV) of robot, period, hours and km, to take hours from.",
            show_default=False,
        ),
    ] = None,
    *,
    columns: Annotated[
        Path | None,
        typer.Option("--map", "-m", help="Map (YAML) of tables with other columns: see the docs."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode", help="Log hours outside trials: autonomous, teleoperated, idle, off, ..."
        ),
    ] = None,
    robot: Annotated[str | None, typer.Option("--robot", "-r", help="Robot, with --mode.")] = None,
    side: Annotated[
        str | None, typer.Option("--side", help="Side, with --mode: real unless named.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="Task, with --mode.")] = None,
    km: Annotated[
        float | None, typer.Option("--km", min=0.0, help="Kilometres, with --mode.")
    ] = None,
    times: Annotated[
        bool, typer.Option("--times", help="List every logged time and nil report as well.")
    ] = False,
    since: SinceOption = None,
    until: UntilOption = None,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Print for how long robots were exposed, with gaps and overlaps; first log what is given.

    Each episode of a trial is logged once, and so is each line of a table. Hours of a table are
    those of a day, month or quarter: what was logged by the clock in it is a part of them. With
    --mode the time from --since to --until, or to now, is logged for a robot that worked outside
    trials. What was logged by mistake is taken back with `robo-eval incidents withdraw`.

    Examples: robo-eval incidents exposure runs/matched; robo-eval incidents exposure --since -30d;
    robo-eval incidents exposure --mode teleoperated --robot arm_1 --since -8h
    """
    from robo_eval_incidents.hours import hours, logged_times
    from robo_eval_incidents.hours_table import HoursMap

    until = until or (None if mode is None else "now")
    start, end = period_of(since, until)
    _check_mode(mode, {"--robot": robot, "--side": side, "--task": task, "--km": km})
    sources = sorted(trials or (), key=lambda one: not one.is_file())  # tables first
    has_table = any(one.is_file() for one in sources)
    writer = author(by, json=json) if has_table or mode is not None else ""
    if columns is not None and not has_table:
        raise InputError("--map: is of a table; name one")
    of = None if columns is None else HoursMap.read(columns)
    robots = _checked_sources(sources, of)
    if mode is not None:
        what = {"robot": robot, "side": side or "real", "mode": mode, "task": task or "", "km": km}
        name = _log_time(log, station, what, since, until, writer)
        if not json:
            say(f"logged as {name}")
    added = {}
    for source in sources:
        known_robots = robots.get(source, ())
        with opened(log, station, make=True) as found, noting_robots(found, *known_robots):
            added[source] = _log_source(found, source, writer, of)
    with checked(log) as found:
        known = hours(found, start, end)
        listed, more = logged_times(found, start, end, limit=_MOST_TIMES) if times else ((), False)
        if json:
            counts = {str(source): count for source, count in added.items()}
            data = {"log": found.name, "added": counts, **known.as_dict()}
            as_json = {"times": [one.as_dict() for one in listed], "more_times": more}
            print_json(data | (as_json if times else {}))
            return
        for source, count in added.items():
            say(f"{source}: {_counted(count, source)} added")
        _print_hours(found.name, known)
        if times:
            _print_times(listed, more=more)


def _log_source(log: IncidentLog, source: Path, by: str, columns: HoursMap | None) -> int:
    """Log the hours of a table or trial; how much was added. What was withdrawn before is named."""
    from robo_eval_incidents.hours import log_exposure
    from robo_eval_incidents.hours_table import import_hours

    if source.is_file():
        logged = import_hours(log, source, by=by, columns=columns)
    else:
        logged = log_exposure(source, log)
    if count := logged.withdrawn:
        verbs = ("was", "is") if count == 1 else ("were", "are")
        typer.echo(
            f"robo-eval: {source}: {_counted(count, source)} {verbs[0]} logged before and"
            f" withdrawn, and {verbs[1]} not logged again",
            err=True,
        )
    return logged.added


def _counted(count: int, source: Path) -> str:
    """How many lines of a table, or episodes of a trial."""
    return counted(count, "line" if source.is_file() else "episode")


def _check_mode(mode: str | None, given: dict[str, object]) -> None:
    """Refuse what only says which time is to be logged where none is."""
    for option, value in given.items():
        if mode is None and value is not None:
            raise InputError(f"{option}: says what to log, which needs --mode as well")


def _checked_sources(sources: Sequence[Path], columns: HoursMap | None) -> dict[Path, list[str]]:
    """Refuse what cannot be read, before a log is made for it or another one is logged.

    Returns:
        Robots of each table.
    """
    from robo_eval_incidents.hours import exposure_of
    from robo_eval_incidents.hours_table import read_hours

    tables = [one for one in sources if one.is_file()]
    trials = [one for one in sources if not one.is_file()]
    for trial in trials:
        if trial.suffix and not trial.exists():
            raise InputError(f"{trial}: no such table of hours")
        check_there(trial)
    robots = {
        table: sorted({line.body.robot for line in read_hours(table, columns)}) for table in tables
    }
    for trial in trials:
        exposure_of(trial)
    return robots


def _log_time(
    log: str | None,
    station: str | None,
    what: dict[str, Any],
    since: str | None,
    until: str | None,
    by: str,
) -> str:
    """Log a time in which a robot worked outside trials; the name of its record."""
    if what["robot"] is None or since is None or until is None:
        raise InputError("--mode: needs --robot and --since as well")
    start, end = past_period(since, until)
    seconds = (end - start) / 1e9
    if seconds > MOST_SECONDS:
        raise InputError(f"--since: one entry covers {MOST_SECONDS / 86_400:.0f} days at most")
    body = section_of(Exposure, {**what, "start_ns": start, "seconds": seconds})
    with opened(log, station, make=True) as found, noting_robots(found, body.robot):
        return found.file(body, by=by, via=Via.CLI).name


def _print_hours(name: str, found: Hours) -> None:
    from robo_eval_incidents.hours import TITLES

    has_km = any(row.km is not None for row in found.rows)
    if not found.rows:
        say(f"{name}: no hours were logged")
    else:
        print_table(
            name,
            ("robot", "side", "mode", "task", "hours", "times", *(["km"] if has_km else [])),
            [
                (
                    row.robot,
                    row.side,
                    row.mode,
                    row.task,
                    "-" if row.hours is None else shown(row.hours),
                    row.times,
                    *(["-" if row.km is None else shown(row.km)] if has_km else []),
                )
                for row in found.rows
            ],
            right=(4, 5, 6),
        )
    for kind, title in TITLES.items():
        _print_some(title, [str(one) for one in found.of(kind)])


def _print_times(listed: Sequence[LoggedTime], *, more: bool) -> None:
    print_table(
        "logged times, newest first",
        ("name", "robot", "side", "from", "to", "what", "by"),
        [
            (
                one.name,
                one.robot or "all",
                one.side,
                when(one.start_ns),
                when(one.end_ns),
                _what(one),
                one.by,
            )
            for one in listed
        ],
        prose=(5,),
    )
    if more:
        say(f"the newest {_MOST_TIMES:,} are listed; --since and --until choose others")


def _what(one: LoggedTime) -> str:
    said = ("nil: " * bool(one.what) + one.what or "nil") if one.kind == "nil" else one.what
    if one.withdrawn_by is None:
        return said
    return f"{said}; withdrawn by {one.withdrawn_by}: {one.reason}"


def _print_some(what: str, found: Iterable[str]) -> None:
    lines = list(found)
    if lines:
        say(f"{what}: {len(lines)}")
        for line in lines[:_MOST]:
            say(f"  {line}")
        if len(lines) > _MOST:
            say("  ...")


# Taking back -----------------------------------------------------------------------------------


@verb(Withdrawal, ("reason",))
def withdraw(
    where: Where,
    given: Given,
    name: Annotated[
        str,
        typer.Argument(
            metavar="TIME", help="STATION/NUMBER of the hours or nil report.", show_default=False
        ),
    ],
) -> None:
    """Take back hours, or a shift without incidents, that were logged by mistake.

    They stay in the log and no longer count. `robo-eval incidents exposure --times` has the names.

    Example: robo-eval incidents withdraw lab/7 --reason "800 h instead of 8 h" --by NAME
    """
    from robo_eval_incidents.hours import find_time

    with opened(where.log, where.station) as found:
        time = find_time(found, name)
        values = said(Withdrawal, given) | {"withdrawn_id": time.record_id}
        record = found.file(section_of(Withdrawal, values), by=where.by, via=Via.CLI)
        text = (
            f"{time.name}: {_what(time)} of {time.robot or 'all robots'} ({time.side}),"
            f" {when(time.start_ns)} to {when(time.end_ns)}, no longer counts; recorded as"
            f" {record.name}"
        )
        say_filed(found, record, text, json=where.json)
