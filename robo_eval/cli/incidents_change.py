"""Verbs that record something about an incident: corrections, reviews, actions, closure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robo_eval.cli.incidents_add import (
    AnswerOption,
    CategoryOption,
    EngagementOption,
    EpisodeOption,
    PolicyOption,
    QuantityOption,
    RobotOption,
    SeverityOption,
    SideOption,
    TaskOption,
    context_of,
    lists_of,
)
from robo_eval.cli.incidents_common import (
    ByOption,
    LogOption,
    NameArgument,
    StationOption,
    author,
    noting_robot,
    opened,
    past_of,
    period_of,
    say_filed,
    say_open,
)
from robo_eval.cli.incidents_evidence import CopyOption
from robo_eval.cli.output import JsonOption

if TYPE_CHECKING:
    from robo_eval_incidents.kinds import Body
    from robo_eval_incidents.log import IncidentLog
    from robo_eval_incidents.state import Incident

ReasonOption = Annotated[str, typer.Option("--reason", help="Why.")]


def correct(
    incident: NameArgument,
    *,
    reason: ReasonOption,
    description: Annotated[str | None, typer.Option("--description", help="What happened.")] = None,
    robot: RobotOption = None,
    side: SideOption = None,
    at: Annotated[
        str | None, typer.Option("--when", "-w", metavar="TIME", help="When it happened.")
    ] = None,
    engagement: EngagementOption = None,
    episode: EpisodeOption = None,
    policy: PolicyOption = None,
    task: TaskOption = None,
    quantity: QuantityOption = None,
    answer: AnswerOption = None,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Give other values for what a report says; what it said first stays in the log.

    Reviews begin anew, because they were of something else.

    Example: robo-eval incidents correct lab/2 --robot arm_2 --reason "read the wrong label"
    """
    from robo_eval.core.errors import InputError
    from robo_eval_incidents.kinds import Correction, section_of

    by = author(by, json=json)
    fields: dict[str, Any] = {"description": description, "robot": robot, "side": side}
    fields = {name: value for name, value in fields.items() if value is not None}
    fields |= context_of(engagement, episode, policy, task) | lists_of(quantity, answer)
    if at is not None:
        fields["happened_ns"] = past_of(at, "--when")
    if not fields:
        raise InputError("nothing to correct was given; name a field, such as --robot arm_2")
    body = section_of(Correction, {"fields": fields, "reason": reason})
    with opened(log, station) as found, noting_robot(found, robot):
        _file(found, incident, body, by, json=json)


def reclassify(
    incident: NameArgument,
    *,
    severity: SeverityOption = None,
    category: CategoryOption = None,
    reason: ReasonOption,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Give an incident another severity or category; a milder one counts once it is reviewed.

    Example: robo-eval incidents reclassify lab/2 --severity major --reason "first aid was given"
    """
    from robo_eval.core.errors import InputError
    from robo_eval_incidents.kinds import Reclassification, section_of

    by = author(by, json=json)
    if severity is None and category is None:
        raise InputError("nothing to change was given; name --severity, --category or both")
    with opened(log, station) as found:
        before = found.incident(incident)
        values = {
            "severity": before.severity if severity is None else severity,
            "category": before.category if category is None else category,
            "reason": reason,
        }
        _file(found, incident, section_of(Reclassification, values), by, json=json)


def attach(
    incident: NameArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Files that show it.")],
    *,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="First instant that matters.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Last instant that matters.")
    ] = None,
    note: Annotated[str, typer.Option("--note", help="A line to go with it.")] = "",
    copy: CopyOption = False,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Name further evidence; the SHA-256 of each file goes into the record.

    Evidence lies in incidents/ beside the log, so that both can be copied together.

    Example: robo-eval incidents attach lab/2 photo.jpg --copy
    """
    from robo_eval.cli.incidents_evidence import evidence_given
    from robo_eval.core.errors import InputError
    from robo_eval_incidents.kinds import Attachment, section_of

    by = author(by, json=json)
    if (since is None) != (until is None):
        raise InputError("--since and --until are both given or both left out")
    start, end = period_of(since, until)
    with opened(log, station) as found:
        found.incident(incident)  # before anything is copied
        with evidence_given(found, files, copy=copy, start_ns=start, end_ns=end) as pieces:
            body = section_of(Attachment, {"evidence": pieces, "note": note})
            _file(found, incident, body, by, json=json)


def review(
    incident: NameArgument,
    *,
    confirm: Annotated[
        bool | None, typer.Option("--confirm/--dismiss", help="It happened, or it was no incident.")
    ] = None,
    note: Annotated[str, typer.Option("--note", help="What you found.")],
    duplicate_of: Annotated[
        str | None,
        typer.Option("--duplicate-of", metavar="INCIDENT", help="The one it is the same event as."),
    ] = None,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Confirm or dismiss an incident after looking at it.

    A major or critical incident needs two people who agree. Whoever reported it, or changed it
    last, counts as one who confirms it.

    Example: robo-eval incidents review lab/2 --confirm --note "seen in the trace" --by NAME
    """
    from robo_eval.core.errors import InputError
    from robo_eval_incidents.kinds import Review, section_of

    by = author(by, json=json)
    if confirm is None:
        raise InputError("say what you found: --confirm or --dismiss")
    values: dict[str, Any] = {"verdict": "confirmed" if confirm else "dismissed", "note": note}
    with opened(log, station) as found:
        if duplicate_of is not None:
            values["duplicate_of"] = found.incident(duplicate_of).incident_id
        _file(found, incident, section_of(Review, values), by, json=json)


def act(
    incident: NameArgument,
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="What is going to be done.", show_default=False)
    ],
    *,
    owner: Annotated[str, typer.Option("--owner", help="Who sees to it.")],
    due: Annotated[str | None, typer.Option("--due", metavar="DATE", help="Until when.")] = None,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Record a corrective action; the incident stays open until it was found effective.

    Example: robo-eval incidents act lab/2 "longer gripper guard" --owner NAME --due 2026-04-01
    """
    from robo_eval.core.errors import InputError
    from robo_eval_incidents.kinds import Action, section_of
    from robo_eval_incidents.text import day_of

    by = author(by, json=json)
    values = {"what": what, "owner": owner}
    if due is not None:
        try:
            values["due"] = day_of(due).isoformat()
        except ValueError as err:
            raise InputError(f"--due: {err}") from err
    body = section_of(Action, values)
    with opened(log, station) as found:
        _file(found, incident, body, by, json=json)


def check(
    incident: NameArgument,
    *,
    effective: Annotated[
        bool | None, typer.Option("--effective/--not-effective", help="Whether it helped.")
    ] = None,
    how: Annotated[str, typer.Option("--how", help="How that was found out.")],
    action: Annotated[
        int | None,
        typer.Option("--action", min=1, help="Which action, by its number in `incidents show`."),
    ] = None,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Say whether a corrective action helped.

    Of a major or critical incident somebody else than its owner has to say so.

    Example: robo-eval incidents check lab/2 --effective --how "200 cycles without contact"
    """
    from robo_eval.core.errors import InputError
    from robo_eval_incidents.kinds import Effectiveness, section_of

    by = author(by, json=json)
    if effective is None:
        raise InputError("say whether it helped: --effective or --not-effective")
    with opened(log, station) as found:
        action_id = _action_of(found.incident(incident), action)
        values = {"action_id": action_id, "is_effective": effective, "how": how}
        _file(found, incident, section_of(Effectiveness, values), by, json=json)


def close(
    incident: NameArgument,
    *,
    note: Annotated[str, typer.Option("--note", help="Why nothing is left to do.")],
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Close an incident that was reviewed and whose actions were found effective.

    Example: robo-eval incidents close lab/2 --note "guard replaced"
    """
    from robo_eval_incidents.kinds import Closure, section_of

    by = author(by, json=json)
    body = section_of(Closure, {"note": note})
    with opened(log, station) as found:
        _file(found, incident, body, by, json=json)


def redact(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD", help="STATION/NUMBER of the record, as `incidents show` lists it."
        ),
    ],
    *,
    field: Annotated[str, typer.Option("--field", help="Its text to take out: description, ...")],
    reason: ReasonOption,
    by: ByOption = None,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Take a free text out of the log; it is out once two people have asked for it.

    The record stays, with the digest of the text, and says who asked and why; `verify` says so too.
    Copies elsewhere (exports, backups, logs of other stations) have to be seen to where they are.

    Example: robo-eval incidents redact lab/2 --field description --reason "names a person"
    """
    from robo_eval_incidents.redaction import redact as ask
    from robo_eval_incidents.words import Via

    by = author(by, json=json)
    with opened(log, station) as found:
        made, is_out = ask(found, record, field, reason, by=by, via=Via.CLI)
        text = f"{record}: {field} is taken out" if is_out else (
            f"{record}: a second person has to ask for {field} as well before it is taken out"
        )  # fmt: skip
        say_filed(found, made, text, json=json, taken_out=is_out)


def _action_of(incident: Incident, number: int | None) -> str:
    """Record of an action: the one of a number, or the only one that is not yet effective.

    Raises:
        InputError: If there is none, or several and no number.
    """
    from robo_eval.core.errors import InputError

    measures = list(incident.measures.values())
    if number is not None:
        if number > len(measures):
            raise InputError(
                f"--action: incident {incident.name} has {len(measures)} actions, given {number}"
            )
        return measures[number - 1].record.record_id
    due = [measure for measure in measures if not measure.is_effective]
    if len(due) != 1:
        found = "no action that is open" if not due else f"{len(due)} actions that are open"
        raise InputError(f"--action: incident {incident.name} has {found}; name one by its number")
    return due[0].record.record_id


def _file(log: IncidentLog, name: str, body: Body, by: str, *, json: bool) -> None:
    """Record a body, and say how the incident stands then."""
    from robo_eval_incidents.words import Via

    incident_id = log.incident(name).incident_id
    record = log.file(body, by=by, via=Via.CLI, incident_id=incident_id)
    after = log.incident(incident_id)
    text = (
        f"{after.name}: {body.kind} recorded as {record.station}/{record.sequence}; it is"
        f" {after.severity} and {after.status} now"
    )
    say_filed(log, record, text, json=json)
    if not json:
        say_open(after)
