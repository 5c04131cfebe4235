"""`robo-eval incidents add` and `nil`: what happened, and that nothing did."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from robo_eval.cli.incidents_common import (
    doubt_about,
    event_of,
    is_asking,
    is_there,
    note_of,
    noting_robots,
    opened,
    past_period,
    readable,
    say_filed,
    target_of,
    when,
)
from robo_eval.cli.incidents_evidence import CopyOption, check_evidence, evidence_given
from robo_eval.cli.incidents_fields import Given, Where, said, verb
from robo_eval.cli.output import next_steps, quoted, say
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval_incidents.kinds import Nil, Report, section_of
from robo_eval_incidents.words import Answer, Category, Question, Severity, Via

if TYPE_CHECKING:
    from robo_eval_incidents.rows import Listed

_NOW: Final = "now"
_FIELDS: Final = (
    "description", "robot", "severity", "category", "happened_ns", "side", "engagement",
    "episode_id", "policy", "task", "quantities", "answers", "injuries", "place",
)  # fmt: skip


@verb(
    Report,
    _FIELDS,
    defaults={**dict.fromkeys(_FIELDS), "happened_ns": _NOW},
    argument="description",
)
def add(
    where: Where,
    given: Given,
    *,
    evidence: Annotated[
        list[Path] | None, typer.Option("--evidence", "-e", help="File that shows it.")
    ] = None,
    copy: CopyOption = False,
) -> None:
    """Report an incident; at a terminal what is missing is asked, and Enter takes the default.

    Defaults: now, the robot of the newest incident, near_miss. The log is made if it is not there.

    Examples: robo-eval incidents add; robo-eval incidents add "gripper brushed the fixture"
    --robot arm_1 --severity minor --when -10min
    """
    files = evidence or []
    robot, is_asked = given["robot"], given["description"] is None
    last = _newest(where.log)
    if is_asked:
        _ask(given, last, where)
    values = _completed(said(Report, given), last)
    report = section_of(Report, values)  # before a log is made for it
    check_evidence(target_of(where.log), files, copy=copy)
    if is_asked and given["answers"] is None:
        values |= _asked_of_injuries(report.severity)
    with (
        opened(where.log, where.station, make=True) as found,
        evidence_given(found, files, copy=copy) as pieces,
        noting_robots(found, robot),
    ):
        report = section_of(Report, {**values, "evidence": pieces})
        record = found.file(report, by=where.by, via=Via.CLI)
        text = (
            f"{record.name}: {report.severity} of {report.robot} ({report.side}),"
            f" {report.category}, {when(report.happened_ns, report.until_ns)}, by {where.by}"
        )
        say_filed(found, record, text, json=where.json)
        if not where.json:
            note_of(report)
            log = f" --log {quoted(where.log)}" if where.log else ""
            next_steps(f"robo-eval incidents show {record.name}{log}")


def _no_answer(text: str) -> str:
    """What to say of a text that answers no question about injuries."""
    # None of the answers is likelier than another, so none is proposed.
    return f"unknown answer {text!r:.60}; valid: {', '.join(Answer)}"


# Defaults --------------------------------------------------------------------------------------


def _newest(log: str | None) -> Listed | None:
    """The newest incident; None if there is none."""
    from robo_eval_incidents.lists import list_incidents

    if not is_there(log):
        return None
    with readable(log) as found:
        rows = list_incidents(found, limit=1).rows
    return rows[0] if rows else None


def _completed(given: dict[str, Any], last: Listed | None) -> dict[str, Any]:

    values = dict(given)
    if "robot" not in values:
        if last is None:
            raise InputError("--robot: is missing; the log has no incident to take it from")
        values["robot"] = last.robot
        values.setdefault("side", last.side.value)
    return {"severity": "near_miss", "category": "other", "side": "real", **values}


def _ask(given: Given, last: Listed | None, where: Where) -> None:
    """Ask for what was not given.

    Raises:
        InputError: If there is nobody to ask.
    """
    if not is_asking(json=where.json):
        raise InputError(
            'say what happened: robo-eval incidents add "WHAT HAPPENED"; nobody can be asked,'
            " because standard input is not a terminal"
        )
    given["description"] = _asked_description()
    if given["severity"] is None:
        given["severity"] = _choice("Severity", Severity, Severity.NEAR_MISS)
    if given["category"] is None:
        given["category"] = _choice("Category", Category, Category.OTHER)
    if given["robot"] is None:
        robot = given["robot"] = _asked_robot(last, where.log)
        # A robot and its twin may have one name; only people know which of them it was.
        other = _other_side(robot, last, where.log)
        if other is not None and given["side"] is None:
            given["side"] = _choice("Side", Side, other)
    while given["happened_ns"] == _NOW:
        text = str(typer.prompt("When (-10min, or a time with its zone)", default=_NOW, err=True))
        try:
            event_of(text, "When")
        except InputError as err:
            typer.echo(str(err), err=True)
        else:
            given["happened_ns"] = text
            return


def _asked_description() -> str:
    """What happened, asked until something is said."""
    while True:
        text = str(typer.prompt("What happened?", prompt_suffix=" ", err=True))
        if text.strip():
            return text


def _asked_robot(last: Listed | None, log: str | None) -> str:
    """The robot; one that the log does not know is asked about once more."""
    while True:
        asked = typer.prompt("Robot", default=last.robot if last else None, err=True)
        robot = " ".join(str(asked).split())
        if (last is not None and robot == last.robot) or not is_there(log):
            return robot
        with readable(log) as found:
            doubt = doubt_about(found, robot)
        if doubt is None or typer.confirm(f"{doubt}. Use {robot}?", default=True, err=True):
            return robot


def _other_side(robot: str, last: Listed | None, log: str | None) -> Side | None:
    """Side of the newest incident of a robot, if it is none of the real one."""
    from robo_eval_incidents.lists import Filter, list_incidents

    newest = last
    if (last is None or robot != last.robot) and is_there(log):
        with readable(log) as found:
            newest = next(iter(list_incidents(found, Filter(robot=robot), limit=1).rows), None)
    return None if newest is None or newest.side is Side.REAL else newest.side


def _asked_of_injuries(severity: Severity) -> dict[str, Any]:
    """Answers to the questions about injuries, by field; a near miss has none."""
    asks = severity is not Severity.NEAR_MISS and typer.confirm(
        "Answer the questions about injuries now?", default=False, err=True
    )
    if not asks:
        return {}
    typer.echo("  Enter leaves a question out", err=True)
    answers = {one.value: _answer(one.meaning) for one in Question}
    return {"answers": {name: answer for name, answer in answers.items() if answer}}


def _answer(question: str) -> str:
    """An answer to a question, asked until it is one; empty if it was left out."""
    title = f"{question} ({', '.join(Answer)})"
    while True:
        text = str(typer.prompt(title, default="", show_default=False, err=True)).strip()
        # The first letter is enough.
        found = [answer.value for answer in Answer if answer.startswith(text.lower())]
        if not text or found:
            return found[0] if text else ""
        typer.echo(_no_answer(text), err=True)


def _choice(title: str, words: type[StrEnum], default: StrEnum) -> str:
    """One of some words, asked until it is one."""
    names = [word.value for word in words]
    typer.echo(f"  {', '.join(names)}", err=True)
    while True:
        text = str(typer.prompt(title, default=default.value, err=True)).strip()
        if text in names:
            return text
        typer.echo(str(unknown_name(title.lower(), text, names)), err=True)


# Nothing happened ------------------------------------------------------------------------------


@verb(Nil, Nil.model_fields, defaults={"end_ns": _NOW})
def nil(where: Where, given: Given) -> None:
    """Report a shift without incidents, so that nothing reported is not mistaken for nobody there.

    Example: robo-eval incidents nil --since -8h --by NAME
    """
    from robo_eval_incidents.hours import may_lie_in, speaking_against

    start, end = past_period(given.pop("start_ns"), given.pop("end_ns"))
    body = section_of(Nil, said(Nil, given) | {"start_ns": start, "end_ns": end})
    with (
        opened(where.log, where.station, make=True) as found,
        noting_robots(found, body.robot),
    ):
        record = found.file(body, by=where.by, via=Via.CLI)
        contrary, maybe = speaking_against(found, record), may_lie_in(found, record)
        whose = body.robot or f"any robot of {record.station}"
        text = (
            f"{record.name}: no incident of {whose} ({body.side}) from {when(body.start_ns)} to"
            f" {when(body.end_ns)}, says {where.by}"
        )
        count = 0 if contrary is None else contrary.count
        say_filed(found, record, text, json=where.json, incidents_in_it=count)
    if contrary is not None and not where.json:
        say(f"note: the log has incidents in that time: {contrary.names}")
    for one in [] if where.json else maybe:
        say(f"note: {one.name}, {one.time}, may lie in that time")
