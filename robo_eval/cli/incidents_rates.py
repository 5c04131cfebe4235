"""`robo-eval incidents capture`, `exposure` and `rates`: what trials and hours say of safety."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from robo_eval.cli.incidents_common import (
    ByOption,
    LogOption,
    SinceOption,
    StationOption,
    UntilOption,
    author,
    opened,
    past_of,
    period_of,
    readable,
    when,
)
from robo_eval.cli.output import JsonOption, next_steps, print_json, print_table, quoted, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from robo_eval.core.estimate import Estimate
    from robo_eval_incidents.exposure import Hours, Overlap
    from robo_eval_incidents.standing import SideStanding, Standing
    from robo_eval_incidents.unlogged import Gap, Outside

_MOST: Final = 10
"""Gaps and the like that are printed; the JSON has more."""


def capture(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", metavar="DIR", help="Rules of your own; they go before ours."),
    ] = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Draft incidents from what guard and recorder noted in a trial, with cut-outs of its traces.

    They go into the trial's own incidents.db, or the log that --log names. What was drafted before
    is left alone.

    Example: robo-eval incidents capture runs/matched
    """
    from robo_eval.cli.checks import check_there

    check_there(trial)
    from robo_eval.log.directory import TrialDirectory
    from robo_eval_incidents.capture import capture as capture_from
    from robo_eval_incidents.rule import read_rules

    if log is None:
        done = capture_from(trial, rules=rules)
        name = str(trial)
    else:
        TrialDirectory.open(trial)  # before a log is made for it
        read_rules(rules)
        with opened(log, station, make=True) as found:
            done = capture_from(trial, found, rules=rules)
        name = log
    if json:
        print_json({"trial": str(trial), "drafted": list(done.drafted), "known": done.known})
        return
    count = len(done.drafted)
    new = f"{count} incident{'s' * (count != 1)} drafted" if count else "nothing new"
    say(f"{trial}: {new}, {done.known} draft{'s' * (done.known != 1)} known")
    if done.drafted:
        next_steps(f"robo-eval incidents list --log {quoted(name)}")


# Hours -----------------------------------------------------------------------------------------


def exposure(
    trials: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR...]", help="Trials to take hours from.", show_default=False),
    ] = None,
    *,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode", help="Log hours outside trials: autonomous, teleoperated, idle, off, ..."
        ),
    ] = None,
    robot: Annotated[str | None, typer.Option("--robot", "-r", help="Robot, with --mode.")] = None,
    side: Annotated[str, typer.Option("--side", help="Side, with --mode.")] = "real",
    task: Annotated[str, typer.Option("--task", help="Task, with --mode.")] = "",
    since: SinceOption = None,
    until: UntilOption = None,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Print for how long robots were exposed, with gaps and overlaps; first log what is given.

    Each episode of a trial is logged once. With --mode the time from --since to --until is logged
    for a robot that worked outside trials.

    Examples: robo-eval incidents exposure runs/matched; robo-eval incidents exposure --since -30d;
    robo-eval incidents exposure --mode teleoperated --robot arm_1 --since -8h --until now
    """
    from robo_eval_incidents.exposure import hours

    start, end = period_of(since, until)
    added: dict[str, int] = {}
    if mode is not None:
        author_name = author(by, json=json)
        _log_time(log, station, robot, side, mode, task, since, until, author_name)
    for trial in trials or []:
        added[str(trial)] = _log_trial(trial, log, station)
    with readable(log) as found:
        known = hours(found, start, end)
        name = found.name
    if json:
        print_json({"log": name, "added": added, **known.as_dict()})
        return
    for trial_name, count in added.items():
        say(f"{trial_name}: {count} episodes were logged")
    _print_hours(name, known)


def _log_trial(trial: Path, log: str | None, station: str | None) -> int:
    from robo_eval.cli.checks import check_there

    check_there(trial)
    from robo_eval_incidents.exposure import exposure_of, log_exposure

    exposure_of(trial)  # before a log is made for it
    with opened(log, station, make=True) as found:
        return log_exposure(trial, found)


def _log_time(
    log: str | None,
    station: str | None,
    robot: str | None,
    side: str,
    mode: str,
    task: str,
    since: str | None,
    until: str | None,
    by: str,
) -> None:
    """Log a time in which a robot worked outside trials."""
    from robo_eval.core.errors import InputError
    from robo_eval_incidents.bodies import Exposure
    from robo_eval_incidents.given import section_of
    from robo_eval_incidents.taxonomy import Via

    if robot is None or since is None or until is None:
        raise InputError("--mode: needs --robot, --since and --until as well")
    start, end = past_of(since, "--since"), past_of(until, "--until")
    values = {"robot": robot, "side": side, "mode": mode, "task": task, "start_ns": start}
    body = section_of(Exposure, {**values, "seconds": (end - start) / 1e9})
    with opened(log, station, make=True) as found:
        found.file(body, by=by, via=Via.CLI)


def _print_hours(name: str, found: Hours) -> None:
    if not found.rows:
        say(f"{name}: no hours were logged")
    else:
        print_table(
            name,
            ("robot", "side", "mode", "task", "hours", "times"),
            [
                (row.robot, row.side, row.mode, row.task, f"{row.hours:.4g}", row.times)
                for row in found.rows
            ],
            right=(4, 5),
        )
    _print_some("logged twice", map(_overlap_line, found.overlaps))
    _print_some("not logged", map(_gap_line, found.gaps))
    _print_some("incidents at times that were not logged", map(_outside_line, found.outside))


def _overlap_line(one: Overlap) -> str:
    what = f"{one.robot} ({one.side}), {_span(one.start_ns, one.end_ns)}"
    return f"{what}: {one.first}, {one.second}"


def _gap_line(one: Gap) -> str:
    robot = one.robot or "any robot"
    return f"{robot} ({one.side}), {_span(one.start_ns, one.end_ns)}, within a {one.within}"


def _outside_line(one: Outside) -> str:
    return f"{one.name}, {one.robot} ({one.side}), {when(one.happened_ns)}"


def _print_some(what: str, found: Iterable[str]) -> None:
    lines = list(found)
    if lines:
        say(f"{what}: {len(lines)}")
        for line in lines[:_MOST]:
            say(f"  {line}")
        if len(lines) > _MOST:
            say("  ...")


def _span(start_ns: int, end_ns: int) -> str:
    return f"{when(start_ns)} to {when(end_ns)}"


# Rates -----------------------------------------------------------------------------------------


def rates(
    *,
    robot: Annotated[str | None, typer.Option("--robot", "-r", help="Only this robot.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    log: LogOption = None,
    json: JsonOption = False,
) -> None:
    """Print incidents per 1,000 hours with exact intervals, and the safety score.

    Drafts count until they are reviewed. Nothing is divided by hours that were not logged, and
    hours of a twin or of simulation never count for a robot.

    Example: robo-eval incidents rates --since -90d
    """
    from robo_eval_incidents.standing import standing

    start, end = period_of(since, until)
    with readable(log) as found:
        stands = standing(found, start, end, robot)
        name = found.name
    if json:
        print_json({"log": name, **stands.as_dict()})
        return
    _print_standing(name, stands)


def _print_standing(name: str, stands: Standing) -> None:
    for side, one in stands.sides.items():
        hours = "no hours were logged" if one.hours is None else f"{one.hours:.4g} h"
        say(f"{name}, {side}: {hours}")
        if one.counts is not None:
            _print_counts(one)
        say(f"  safety score {_text(one.score)}")
        if not one.is_valid:
            say("  a critical incident ends this period: it supports no level")
        if one.unreviewed:
            say(f"  {one.unreviewed} of the incidents are not reviewed; they count as well")


def _print_counts(one: SideStanding) -> None:
    print_table(
        "incidents per 1,000 h",
        ("severity", "count", "rate", "95 % interval", "why"),
        [
            (
                severity,
                (one.counts or {}).get(severity, 0),
                "-" if rate.value is None else f"{rate.value:.4g}",
                _interval(rate),
                rate.reason or "",
            )
            for severity, rate in one.rates.items()
        ],
        right=(1, 2, 3),
    )


def _interval(found: Estimate) -> str:
    if found.low is None and found.high is None:
        return "-"
    ends = ("-" if end is None else f"{end:.4g}" for end in (found.low, found.high))
    return f"[{', '.join(ends)}]"


def _text(found: Estimate) -> str:
    if found.value is None:
        return f"- ({found.reason})"
    return f"{found.value:.4g} {_interval(found)}"
