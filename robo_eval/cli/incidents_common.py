"""What the verbs of the incident log share: which log, which station, who writes, and when."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from robo_eval.cli.output import print_json, say
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.core.names import listing
from robo_eval.log.files import home_folder
from robo_eval_incidents.words import Status

if TYPE_CHECKING:
    from robo_eval_incidents.kinds import Report
    from robo_eval_incidents.log import IncidentLog
    from robo_eval_incidents.record import Record
    from robo_eval_incidents.state import Incident

LOG_VARIABLE: Final = "ROBO_EVAL_INCIDENTS"
"""Environment variable that names the incident log."""
STATION_VARIABLE: Final = "ROBO_EVAL_STATION"
"""Environment variable that names the station that writes."""
OPERATOR_VARIABLE: Final = "ROBO_EVAL_OPERATOR"
"""Environment variable that names who writes."""
LogOption = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="PATH|URL",
        help=f"File, trial directory, or PostgreSQL URL. Default: {LOG_VARIABLE}, or your own.",
        show_default=False,
    ),
]
PlaceArgument = Annotated[
    str | None,
    typer.Argument(metavar="[PATH|URL]", help="The same as --log.", show_default=False),
]
StationOption = Annotated[
    str | None,
    typer.Option(
        "--station",
        help=f"Station that writes. Default: {STATION_VARIABLE}, or the log's own.",
        show_default=False,
    ),
]
ByOption = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help=f"Who says so. Default: {OPERATOR_VARIABLE}."),
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="From this time on: -8h, 2026-03, ..."),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Before this time, or until that day has ended."),
]
RobotOption = Annotated[str | None, typer.Option("--robot", "-r", help="Robot.")]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="INCIDENT", help="STATION/NUMBER, or the beginning of its id.", show_default=False
    ),
]


# Which log -------------------------------------------------------------------------------------


def named_log(place: str | None, log: str | None) -> str | None:
    """The log that the argument or `--log` names.

    Raises:
        InputError: If both do.
    """
    if place is not None and log is not None:
        raise InputError(f"--log: is {log}, and {place} is named as well; name one log")
    return log if place is None else place


def default_log() -> Path:
    """Where the incident log of this user lies if none is named.

    Raises:
        InputError: If there is no home folder to look in.
    """
    data = os.environ.get("XDG_DATA_HOME") or home_folder(LOG_VARIABLE) / ".local" / "share"
    return Path(data) / "robo-eval" / "incidents.db"


def target_of(log: str | None) -> str | Path:
    """The log that is meant: a URL, or the path of its file.

    Args:
        log: What `--log` said.

    Raises:
        InputError: If it is empty, or there is no place for a log of this user.
    """
    from robo_eval.log.sql import is_url
    from robo_eval_incidents.log import DATABASE

    if log == "":
        raise InputError("--log: is empty; name a file or a URL, or leave it out")
    check_text(os.environ.get(LOG_VARIABLE, ""), LOG_VARIABLE)
    named = log or os.environ.get(LOG_VARIABLE) or str(default_log())
    if is_url(named):
        return named
    path = Path(named)
    return path / DATABASE if path.is_dir() or named.endswith("/") else path


@contextmanager
def opened(
    log: str | None, station: str | None = None, *, read_only: bool = False, make: bool = False
) -> Iterator[IncidentLog]:
    """Open the log that is meant; one that was made on the way is mentioned.

    Raises:
        IncidentLogError: If it cannot be opened.
    """
    from robo_eval_incidents.log import open_log

    station = station_of(station)
    with open_log(target_of(log), station=station, read_only=read_only, make=make) as found:
        yield found
    if found.is_new:
        typer.echo(f"robo-eval: a new incident log was made: {found.name}", err=True)


def station_of(station: str | None) -> str | None:
    """The station that writes: by option, or by environment; None for the log's own.

    Raises:
        InputError: If it has no name of a station.
    """
    from robo_eval_incidents.log import station_name

    named = os.environ.get(STATION_VARIABLE) or None if station is None else station
    return None if named is None else station_name(named)


def readable(log: str | None) -> AbstractContextManager[IncidentLog]:
    """Open the log that is meant to look at it, on write-protected media as well.

    Raises:
        IncidentLogError: If it cannot be opened.
    """
    target = target_of(log)
    return opened(log, read_only=isinstance(target, Path) and _is_protected(target))


@contextmanager
def checked(log: str | None) -> Iterator[IncidentLog]:
    """Open the log that is meant to say what is in it, and fail after that if it was changed.

    Raises:
        IncidentLogError: If it cannot be opened.
        CheckFailedError: If its records, or the lists that follow them, are not as recorded.
    """
    from robo_eval_incidents.verify import verify_log

    with readable(log) as found:
        yield found
    if problem := verify_log(target_of(log)).first:
        raise CheckFailedError(f"{problem}; do not trust what is said above")


def _is_protected(file: Path) -> bool:
    """Whether a log cannot be written: it, or its folder, where SQLite puts files beside it."""
    return file.exists() and not all(
        os.access(place, os.W_OK) for place in (file, file.resolve().parent)
    )


def is_there(log: str | None) -> bool:
    """Whether the log that is meant has been made; of a server that is not asked."""
    target = target_of(log)
    return not isinstance(target, Path) or target.exists()


def check_text(text: str, what: str) -> None:
    """Refuse bytes that are no UTF-8, which no log can keep.

    Raises:
        InputError: If there are such; the message names what was given.
    """
    try:
        text.encode()
    except UnicodeEncodeError as err:
        raise InputError(f"{what}: {text!r:.60} is not UTF-8 text") from err


# Who and when ----------------------------------------------------------------------------------


def is_asking(*, json: bool) -> bool:
    """Whether there is somebody at a terminal who can be asked."""
    return not json and sys.stdin.isatty()


def author(by: str | None, *, json: bool = False) -> str:
    """Who writes: by option, by environment, or asked at a terminal.

    Raises:
        InputError: If it is nobody, or no name.
    """
    from robo_eval_incidents.text import name_of

    given = by if by is not None else os.environ.get(OPERATOR_VARIABLE)
    if given is None and is_asking(json=json):
        given = str(typer.prompt("Who are you? (name, kept in the log)", err=True))
    if given is None:
        raise InputError(f"--by: say who this is by: --by NAME, or {OPERATOR_VARIABLE}")
    return name_of(given, "--by" if by is not None else OPERATOR_VARIABLE)


def time_of(text: str, option: str) -> int:
    """A time as ns since 1970.

    Args:
        text: ISO 8601 with its zone, `now`, or how long ago, such as `-10min`.
        option: What asked for it, for messages.

    Raises:
        InputError: If it is none.
    """
    from robo_eval_incidents.text import instant_of

    try:
        return instant_of(text, now_ns())
    except ValueError as err:
        raise InputError(f"{option}: {err}") from err


@cache
def now_ns() -> int:
    """Now, the same for all times of one command: `-8h` to `now` are eight hours."""
    return time.time_ns()


def past_of(text: str, option: str) -> int:
    """A time that is over; see `time_of`.

    Raises:
        InputError: If it is none, or is still to come.
    """
    return _checked_past(time_of(text, option), text, option)


def event_of(text: str, option: str) -> dict[str, int | None]:
    """When something happened, as fields of a report, as far as it is known.

    Raises:
        InputError: If it is no time, or one still to come.
    """
    from robo_eval_incidents.kinds import times_of

    try:
        found = times_of(text, now_ns())
    except ValueError as err:
        raise InputError(f"{option}: {err}") from err
    _checked_past(found["happened_ns"] or 0, text, option)
    return found


def _checked_past(time_ns: int, text: str, option: str) -> int:
    from robo_eval_incidents.kinds import AHEAD_NS

    if time_ns > now_ns() + AHEAD_NS:
        raise InputError(f"{option}: {text} is still to come; give the time at which it happened")
    return time_ns


def period_of(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Begin and end of a period, ns since 1970; None for an end that is open.

    Raises:
        InputError: If one is not a time, or the end is before the begin.
    """
    start = None if since is None else _span_of(since, "--since")[0]
    end = None if until is None else _span_of(until, "--until")[1]
    if start is not None and end is not None and start >= end:
        raise InputError(f"--until: {until} is not after --since {since}")
    return start, end


def past_period(since: str, until: str) -> tuple[int, int]:
    """Begin and end of a period that is over; see `period_of`.

    Raises:
        InputError: If it is none, or is still to come.
    """
    start, end = period_of(since, until)
    assert start is not None
    assert end is not None
    return start, _checked_past(end, until, "--until")


def _span_of(text: str, option: str) -> tuple[int, int]:
    """Begin and end of a time; of a known one both are it."""
    from robo_eval_incidents.text import UNKNOWN, span_of

    try:
        if text.strip() == UNKNOWN:
            raise ValueError("'unknown' is no time that a period begins or ends at")
        begin, end = span_of(text, now_ns())
    except ValueError as err:
        raise InputError(f"{option}: {err}") from err
    return begin, begin if end is None else end


def when(time_ns: int, until_ns: int | None = None) -> str:
    """A time for people: UTC, to the second, or as far as it is known."""
    from robo_eval_incidents.text import when as shown

    return shown(time_ns, until_ns)


# Which robot -----------------------------------------------------------------------------------


def doubt_about(log: IncidentLog, robot: str) -> str | None:
    """What to say of a robot that may be a slip of the pen; None if the log knows it, or none yet.

    Args:
        log: The log, before something of the robot is filed.
        robot: Its name, as it was given.
    """
    from robo_eval_incidents.hours import shifts
    from robo_eval_incidents.lists import robots

    name = " ".join(robot.split())
    known = sorted({*robots(log), *(shift.robot for shift in shifts(log) if shift.robot)})
    if not known or name in known:
        return None
    return f"{name} is new in this log; known: {listing(known)}"


@contextmanager
def noting_robots(log: IncidentLog, *robots: str | None) -> Iterator[None]:
    """Say on standard error, once the body has filed something, which of its robots are new ones.

    Args:
        log: The log.
        robots: Robots that were named; None or blank where none was.
    """
    # Asked before: what is filed makes a robot a known one.
    doubts = [doubt_about(log, one) for one in dict.fromkeys(robots) if one and one.strip()]
    yield
    for doubt in filter(None, doubts):
        typer.echo(f"note: {doubt}", err=True)


# What was done ---------------------------------------------------------------------------------


def say_filed(log: IncidentLog, record: Record, text: str, *, json: bool, **more: object) -> None:
    """Confirm a record; as JSON with its place in the chain, and what else there is to say."""
    if json:
        print_json(
            {
                "log": log.name,
                "station": record.station,
                "sequence": record.sequence,
                "record_id": record.record_id,
                "incident_id": record.incident_id,
                "kind": record.kind,
                **more,
            }
        )
    else:
        say(text)


def note_of(report: Report) -> None:
    """Say on standard error that a report does not fit together, if it does not."""
    from robo_eval_incidents.state import misfit

    text = misfit(report)
    if text is not None:
        typer.echo(f"note: {text}", err=True)


def say_open(incident: Incident) -> None:
    """What is left to do until an incident may be closed."""
    if incident.status in (Status.CLOSED, Status.DISMISSED):
        return
    lacking = incident.open_points
    for point in lacking:
        say(f"  open: {point}")
    if not lacking:
        say(f"  it can be closed: robo-eval incidents close {incident.name}")
