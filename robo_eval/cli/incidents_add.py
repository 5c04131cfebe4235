"""`robo-eval incidents add` and `nil`: what happened, and that nothing did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from robo_eval.cli.incidents_common import (
    ByOption,
    LogOption,
    StationOption,
    author,
    doubt_about,
    is_asking,
    is_there,
    noting_robot,
    opened,
    past_of,
    period_of,
    readable,
    say_filed,
    target_of,
    time_of,
    when,
)
from robo_eval.cli.incidents_evidence import CopyOption, check_evidence
from robo_eval.cli.output import JsonOption, next_steps, quoted, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import StrEnum

    from robo_eval.core.kinds import Side
    from robo_eval_incidents.kinds import Report
    from robo_eval_incidents.lists import Listed

_NOW: Final = "now"

RobotOption = Annotated[str | None, typer.Option("--robot", "-r", help="Robot.")]
SideOption = Annotated[
    str | None, typer.Option("--side", help="real, twin (a stand-in behind ROS 2), or sim.")
]
SeverityOption = Annotated[
    str | None, typer.Option("--severity", "-s", help="near_miss, minor, major or critical.")
]
CategoryOption = Annotated[
    str | None,
    typer.Option("--category", "-c", help="What kind of event; `incidents schema` lists them."),
]
EngagementOption = Annotated[
    str | None,
    typer.Option("--engagement", help="Who was in control: autonomous, assisted, manual, ..."),
]
EpisodeOption = Annotated[str | None, typer.Option("--episode", help="Episode it happened in.")]
PolicyOption = Annotated[str | None, typer.Option("--policy", help="Policy that was running.")]
TaskOption = Annotated[str | None, typer.Option("--task", help="Task.")]
QuantityOption = Annotated[
    list[str] | None,
    typer.Option(
        "--quantity", "-q", metavar="TEXT", help='Measured, such as "force=81.2 N (limit 80)".'
    ),
]
AnswerOption = Annotated[
    list[str] | None,
    typer.Option("--answer", metavar="QUESTION=ANSWER", help="Such as medical_treatment=no."),
]


def add(
    description: Annotated[
        str | None, typer.Argument(metavar="[WHAT HAPPENED]", show_default=False)
    ] = None,
    *,
    robot: RobotOption = None,
    severity: SeverityOption = None,
    category: CategoryOption = None,
    at: Annotated[
        str, typer.Option("--when", "-w", metavar="TIME", help="When: -10min, or ISO 8601.")
    ] = _NOW,
    side: SideOption = None,
    engagement: EngagementOption = None,
    episode: EpisodeOption = None,
    policy: PolicyOption = None,
    task: TaskOption = None,
    quantity: QuantityOption = None,
    answer: AnswerOption = None,
    evidence: Annotated[
        list[Path] | None, typer.Option("--evidence", "-e", help="File that shows it.")
    ] = None,
    copy: CopyOption = False,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Report an incident; at a terminal what is missing is asked, and Enter takes the default.

    Defaults: now, the robot of the newest incident, near_miss. The log is made if it is not there.

    Examples: robo-eval incidents add; robo-eval incidents add "gripper brushed the fixture"
    --robot arm_1 --severity minor --when -10min
    """
    given: dict[str, Any] = {
        "description": description,
        "severity": severity,
        "category": category,
        "robot": robot,
        "side": side,
        **context_of(engagement, episode, policy, task),
    }
    by = author(by, json=json)
    last = _newest(log)
    if description is None:
        at = _ask(given, last, at, log, json=json)
    values = _completed(given, last)
    values["happened_ns"] = past_of(at, "--when")
    values |= lists_of(quantity, answer)
    # Before a log is made for it.
    _report_of(values)
    check_evidence(target_of(log), evidence or [], copy=copy)
    if description is None and answer is None:
        values |= _asked_of_injuries(values["severity"])
    _file(values, evidence or [], by, log, station, robot=robot, copy=copy, json=json)


def _file(
    values: dict[str, Any],
    evidence: list[Path],
    by: str,
    log: str | None,
    station: str | None,
    *,
    robot: str | None,
    copy: bool,
    json: bool,
) -> None:
    from robo_eval.cli.incidents_evidence import evidence_given
    from robo_eval_incidents.words import Via

    with (
        opened(log, station, make=True) as found,
        evidence_given(found, evidence, copy=copy) as pieces,
        noting_robot(found, robot),
    ):
        report = _report_of({**values, "evidence": pieces})
        record = found.file(report, by=by, via=Via.CLI)
        name = f"{record.station}/{record.sequence}"
        text = (
            f"{name}: {report.severity} of {report.robot} ({report.side}), {report.category},"
            f" {when(report.happened_ns)}, by {by}"
        )
        say_filed(found, record, text, json=json)
        if not json:
            where = f" --log {quoted(log)}" if log else ""
            next_steps(f"robo-eval incidents show {name}{where}")


def _report_of(values: dict[str, Any]) -> Report:
    from robo_eval_incidents.kinds import Report, section_of

    return section_of(Report, values)


def context_of(
    engagement: str | None, episode: str | None, policy: str | None, task: str | None
) -> dict[str, str]:
    """What was given of the circumstances, by field."""
    values = {"engagement": engagement, "episode_id": episode, "policy": policy, "task": task}
    return {name: value for name, value in values.items() if value is not None}


def lists_of(quantity: list[str] | None, answer: list[str] | None) -> dict[str, Any]:
    """What was measured and answered, by field.

    Raises:
        InputError: If a text is not a quantity, or no answer.
    """
    from robo_eval.core.errors import InputError
    from robo_eval_incidents.text import answers_of, quantities_of
    from robo_eval_incidents.words import Answer

    found: dict[str, Any] = {}
    readers: tuple[tuple[str, list[str] | None, Callable[[str], Any]], ...] = (
        ("quantities", quantity, quantities_of),
        ("answers", answer, answers_of),
    )
    for field, texts, read in readers:
        if texts is not None:
            try:
                found[field] = read("; ".join(texts))
            except ValueError as err:
                raise InputError(f"{field}: {err}") from err
    for question, text in found.get("answers", {}).items():
        if text not in set(Answer):
            raise InputError(f"answers.{question}: {_no_answer(text)}")
    return found


def _no_answer(text: str) -> str:
    """What to say of a text that answers no question about injuries."""
    from robo_eval_incidents.words import Answer

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
    from robo_eval.core.errors import InputError

    values = {name: value for name, value in given.items() if value is not None}
    if "description" not in values:
        raise InputError('say what happened: robo-eval incidents add "WHAT HAPPENED"')
    if "robot" not in values:
        if last is None:
            raise InputError("--robot: is missing; the log has no incident to take it from")
        values["robot"] = last.robot
        values.setdefault("side", last.side.value)
    return {"severity": "near_miss", "category": "other", "side": "real", **values}


def _ask(
    given: dict[str, Any], last: Listed | None, at: str, log: str | None, *, json: bool
) -> str:
    """Ask for what was not given.

    Returns:
        When it happened, as it was written.

    Raises:
        InputError: If there is nobody to ask.
    """
    from robo_eval.core.errors import InputError
    from robo_eval.core.kinds import Side
    from robo_eval_incidents.words import Category, Severity

    if not is_asking(json=json):
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
        robot = given["robot"] = _asked_robot(last, log)
        # A robot and its twin may have one name; only people know which of them it was.
        other = _other_side(robot, last, log)
        if other is not None and given["side"] is None:
            given["side"] = _choice("Side", Side, other)
    if at != _NOW:
        return at
    while True:
        text = str(typer.prompt("When (-10min, or a time with its zone)", default=at, err=True))
        try:
            past_of(text, "When")
        except InputError as err:
            typer.echo(str(err), err=True)
        else:
            return text


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
    from robo_eval.core.kinds import Side
    from robo_eval_incidents.lists import Filter, list_incidents

    newest = last
    if (last is None or robot != last.robot) and is_there(log):
        with readable(log) as found:
            newest = next(iter(list_incidents(found, Filter(robot=robot), limit=1).rows), None)
    return None if newest is None or newest.side is Side.REAL else newest.side


def _asked_of_injuries(severity: str) -> dict[str, Any]:
    """Answers to the questions about injuries, by field; a near miss has none."""
    from robo_eval_incidents.words import Question, Severity

    asks = severity != Severity.NEAR_MISS and typer.confirm(
        "Answer the questions about injuries now?", default=False, err=True
    )
    if not asks:
        return {}
    typer.echo("  Enter leaves a question out", err=True)
    answers = {one.value: _answer(one.meaning) for one in Question}
    return {"answers": {name: answer for name, answer in answers.items() if answer}}


def _answer(question: str) -> str:
    """An answer to a question, asked until it is one; empty if it was left out."""
    from robo_eval_incidents.words import Answer

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
    from robo_eval.core.names import unknown_name

    names = [word.value for word in words]
    typer.echo(f"  {', '.join(names)}", err=True)
    while True:
        text = str(typer.prompt(title, default=default.value, err=True)).strip()
        if text in names:
            return text
        typer.echo(str(unknown_name(title.lower(), text, names)), err=True)


# Nothing happened ------------------------------------------------------------------------------


def nil(
    *,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Begin of the shift, such as -8h.")
    ],
    until: Annotated[str, typer.Option("--until", metavar="TIME", help="End of the shift.")] = _NOW,
    robot: Annotated[
        str | None, typer.Option("--robot", "-r", help="Only of this robot; all if left out.")
    ] = None,
    side: Annotated[str, typer.Option("--side", help="real, twin or sim.")] = "real",
    note: Annotated[str, typer.Option("--note", help="A line to go with it.")] = "",
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Report a shift without incidents, so that nothing reported is not mistaken for nobody there.

    Example: robo-eval incidents nil --since -8h --by NAME
    """
    from robo_eval_incidents.hours import speaking_against
    from robo_eval_incidents.kinds import Nil, section_of
    from robo_eval_incidents.words import Via

    by = author(by, json=json)
    period_of(since, until)  # its message names the options
    start, end = time_of(since, "--since"), past_of(until, "--until")
    body = section_of(
        Nil, {"start_ns": start, "end_ns": end, "robot": robot, "side": side, "note": note}
    )
    with opened(log, station, make=True) as found, noting_robot(found, robot):
        record = found.file(body, by=by, via=Via.CLI)
        contrary = speaking_against(found, record)
        whose = robot or f"any robot of {record.station}"
        text = (
            f"{record.station}/{record.sequence}: no incident of {whose} ({body.side}) from"
            f" {when(start)} to {when(end)}, says {by}"
        )
        count = 0 if contrary is None else contrary.count
        say_filed(found, record, text, json=json, incidents_in_it=count)
    if contrary is not None and not json:
        say(f"note: the log has incidents in that time: {contrary.names}")
