"""`robo-eval incidents todo`: what is left to do about incidents, what is overdue first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.incidents_common import (
    LogOption,
    RobotOption,
    readable,
)
from robo_eval.cli.output import JsonOption, print_json, print_table, say

if TYPE_CHECKING:
    from datetime import date

    from robo_eval_incidents.lists import Listed


def todo(
    *,
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

    Examples: robo-eval incidents todo; robo-eval incidents todo --owner "Operator B" --overdue
    """
    from robo_eval_incidents.lists import row_dict, utc_today
    from robo_eval_incidents.lists import todo as todo_of
    from robo_eval_incidents.text import name_of

    owner = None if owner is None else name_of(owner, "--owner")
    today = utc_today()
    with readable(log) as found:
        rows = todo_of(found, robot=robot, owner=owner, overdue=overdue, today=today).rows
        name = found.name
    if json:
        left = [row_dict(one, today) for one in rows]
        print_json({"log": name, "today": today.isoformat(), "todo": left})
    elif rows:
        _print(name, rows, today)
    else:
        of = "" if robot is None else f" of {robot}"
        for_whom = "" if owner is None else f" for {owner}"
        say(f"{name}: nothing is {'overdue' if overdue else 'left to do'}{of}{for_whom}")


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
    )
