"""`robo-eval incidents capture` and `rates`: what trials and hours say of safety."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.checks import check_there
from robo_eval.cli.incidents_common import (
    LogOption,
    SinceOption,
    StationOption,
    UntilOption,
    checked,
    opened,
    period_of,
)
from robo_eval.cli.output import (
    JsonOption,
    interval,
    next_steps,
    print_json,
    print_table,
    quoted,
    say,
)
from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import counted, shown
from robo_eval.log.directory import TrialDirectory

if TYPE_CHECKING:
    from robo_eval_incidents.standing import Standing
    from robo_eval_incidents.trends import Trends


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
    check_there(trial)
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
    new = f"{counted(count, 'incident')} drafted" if count else "nothing new"
    say(f"{trial}: {new}, {counted(done.known, 'draft')} known")
    if done.drafted:
        next_steps(f"robo-eval incidents list --log {quoted(name)}")


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
    with checked(log) as found:
        stands = standing(found, start, end, robot)
        if json:
            print_json({"log": found.name, **stands.as_dict()})
        else:
            _print_standing(found.name, stands)


def trends(
    *,
    months: Annotated[
        int, typer.Option("--months", min=1, max=120, help="How many, this one included.")
    ] = 12,
    robot: Annotated[str | None, typer.Option("--robot", "-r", help="Only this robot.")] = None,
    zone: Annotated[str, typer.Option("--zone", help="Whose months: Europe/Berlin, ...")] = "UTC",
    log: LogOption = None,
    json: JsonOption = False,
) -> None:
    """Print rates month by month, what the incidents were, and how long actions wait.

    Only incidents and hours of real robots count.

    Example: robo-eval incidents trends --months 6
    """
    from robo_eval_incidents.trends import trends as found_in

    with checked(log) as opened_log:
        found = found_in(opened_log, months=months, robot=robot, zone=zone)
        if json:
            print_json({"log": opened_log.name, **found.as_dict()})
        else:
            _print_trends(opened_log.name, found)


def _print_trends(name: str, found: Trends) -> None:
    print_table(
        f"{name}: incidents per 1,000 hours",
        ("month", "hours", *found.months[0].counts, "rate", "95 % interval"),
        [
            (
                one.month,
                shown(one.hours),
                *one.counts.values(),
                *_cells(one.rate),
            )
            for one in found.months
        ],
        right=(1, 2, 3, 4, 5, 6, 7),
    )
    for total in found.left_out:
        say(f"sum not counted: {total}")
    for text in found.unknown:
        say(text)
    if found.undecided:
        say(f"{counted(found.undecided, 'incident')} may lie in one of these months or in another")
    print_table("what they were", ("category", "incidents"), found.categories, right=(1,))
    print_table("open corrective actions", ("due", "actions"), list(found.ages.items()), right=(1,))


def _print_standing(name: str, stands: Standing) -> None:
    for side, one in stands.sides.items():
        hours = "no hours were logged" if one.hours is None else f"{shown(one.hours)} h"
        say(f"{name}, {side}: {hours}")
        if one.hours is not None:
            say(f"  {shown(one.nil_hours)} h of them in shifts reported without incidents")
        if one.counts is not None:
            _print_rates("incidents per 1,000 hours", one.rates, one.counts)
            if one.km is not None and one.rates_km:
                title = f"incidents per 1,000 km, of robots that went {shown(one.km)} km"
                _print_rates(title, one.rates_km, one.counts)
        is_marked = one.is_valid and one.score.value is not None and one.score.reason
        say(
            f"  safety score {interval(one.score, None)}{f', {one.score.reason}' * bool(is_marked)}"
        )
        if not one.is_valid:
            say("  a critical incident ends this period: it supports no level")
        for total in one.left_out:
            say(f"  sum not counted: {total}")
        for left in one.unknown:
            say(f"  {left}")
        for maybe in one.undecided:
            say(f"  not counted: {maybe.name}, {maybe.time}, may lie in this period or outside")
        if one.unreviewed:
            is_one = one.unreviewed == 1
            they = "is not reviewed; it counts" if is_one else "are not reviewed; they count"
            say(f"  {one.unreviewed} of the incidents {they} as well")


def _print_rates(title: str, rates: Mapping[str, Estimate], counts: Mapping[str, int]) -> None:
    print_table(
        title,
        ("severity", "count", "rate", "95 % interval", "why"),
        [
            (
                severity,
                counts[severity],
                *_cells(rate),
                rate.reason or "",
            )
            for severity, rate in rates.items()
        ],
        right=(1, 2, 3),
        prose=(4,),
    )


def _cells(rate: Estimate) -> tuple[str, str]:
    """A rate and its interval, for two columns."""
    value, _, ends = interval(rate, None).partition(" ")
    return value, "-" if rate.value is None else ends
