"""`robo-eval incidents todo`: what is left to do about incidents, what is overdue first."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.incidents_common import (
    LogOption,
    NameArgument,
    PlaceArgument,
    RobotOption,
    checked,
    named_log,
    now_ns,
    opened,
    say_filed,
)
from robo_eval.cli.incidents_fields import Given, Where, said, verb
from robo_eval.cli.output import JsonOption, print_json, print_table, say
from robo_eval.core.errors import InputError
from robo_eval.core.names import person_key, unknown_name
from robo_eval_incidents.kinds import Notice, section_of
from robo_eval_incidents.text import name_of
from robo_eval_incidents.words import Via

if TYPE_CHECKING:
    from robo_eval_incidents.rows import Listed


def todo(
    *,
    place: PlaceArgument = None,
    robot: RobotOption = None,
    owner: Annotated[
        str | None,
        typer.Option("--owner", metavar="NAME", help="Only corrective actions of this person."),
    ] = None,
    overdue: Annotated[
        bool, typer.Option("--overdue", help="Only actions whose day is over, UTC.")
    ] = False,
    log: LogOption = None,
    json: JsonOption = False,
) -> None:
    """List what is left to do about incidents: overdue first, then the worst, then the oldest.

    Before that come reporting clocks, if clocks.toml beside the log has some.

    Examples: robo-eval incidents todo; robo-eval incidents todo --owner "Operator B" --overdue
    """
    from robo_eval_incidents.clocks import FILE, due
    from robo_eval_incidents.lists import row_dict, utc_today
    from robo_eval_incidents.lists import todo as todo_of

    owner = None if owner is None else name_of(owner, "--owner")
    today = utc_today()
    with checked(named_log(place, log)) as found:
        rows = todo_of(found, robot=robot, owner=owner, overdue=overdue, today=today).rows
        # Nobody is the owner of a clock.
        clocks = due(found, robot=robot) if owner is None else []
        clocks = [one for one in clocks if not overdue or one.is_late(now_ns())]
        name = found.name
        if json:
            left = [row_dict(one, today) for one in rows]
            told = [one.as_dict(now_ns()) for one in clocks]
            print_json({"log": name, "today": today.isoformat(), "todo": left, "clocks": told})
            return
        if clocks:
            print_table(
                f"{name}: who has to be told, as {FILE} says",
                ("incident", "kind", "what comes next", "note"),
                [(one.incident.name, one.kind, one.text(now_ns()), one.clock.note)
                 for one in clocks],
            )  # fmt: skip
        if rows:
            _print(name, rows, today)
        elif not clocks:
            of = "" if robot is None else f" of {robot}"
            for_whom = "" if owner is None else f" for {owner}"
            say(f"{name}: nothing is {'overdue' if overdue else 'left to do'}{of}{for_whom}")


@verb(Notice, ("to", "text"), defaults={"text": ""})
def told(where: Where, given: Given, incident: NameArgument) -> None:
    """Record that somebody outside was told of an incident, which stops their clock.

    Example: robo-eval incidents told lab/2 --to "the inspectorate" --text "their number 4711"
    """
    from robo_eval_incidents.clocks import due

    with opened(where.log, where.station) as log:
        found = log.incident(incident)
        own = [one.clock.to for one in due(log) if one.incident.incident_id == found.incident_id]
        values = said(Notice, given) | {"to": name_of(given["to"], "--to"), "what": "reported"}
        body = section_of(Notice, {"text": "", **values})
        if own and person_key(body.to) not in map(person_key, own):
            raise InputError(f"--to: {unknown_name('recipient', body.to, own)}")
        record = log.file(body, by=where.by, via=Via.CLI, incident_id=found.incident_id)
        text = f"{found.name}: {body.to} was told, says {where.by}; recorded as {record.name}"
        say_filed(log, record, text, json=where.json)


def _print(name: str, rows: list[Listed], today: date) -> None:
    from robo_eval_incidents.lists import overdue_days

    print_table(
        f"{name}: what is left to do",
        ("incident", "overdue", "counts as", "robot", "status", "what comes next"),
        [
            (
                one.name,
                f"{days} d" if (days := overdue_days(step.due, today)) else "",
                one.counted_severity,
                one.robot,
                one.status,
                step.text,
            )
            for one in rows
            for step in one.steps
        ],
        right=(1,),
        prose=(5,),
    )
