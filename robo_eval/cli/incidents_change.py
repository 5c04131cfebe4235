"""Verbs that record something about an incident: corrections, reviews, actions, closure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from robo_eval.cli.incidents_common import (
    NameArgument,
    note_of,
    noting_robots,
    opened,
    period_of,
    say_filed,
    say_open,
)
from robo_eval.cli.incidents_evidence import CopyOption, evidence_given
from robo_eval.cli.incidents_fields import Given, Where, said, verb
from robo_eval.core.errors import InputError
from robo_eval_incidents.kinds import (
    Action,
    Attachment,
    Body,
    Closure,
    Correction,
    Effectiveness,
    Reclassification,
    Redaction,
    Report,
    Review,
    plain,
    section_of,
)
from robo_eval_incidents.record import Record
from robo_eval_incidents.state import Incident
from robo_eval_incidents.words import Via

if TYPE_CHECKING:
    from robo_eval_incidents.log import IncidentLog

    Finish = Callable[[IncidentLog, Incident, dict[str, Any]], None]
    """Completes what options said by what is known of the incident."""

ReasonOption = Annotated[str, typer.Option("--reason", help="Why.")]


def _about(
    kind: type[Body],
    text: str,
    finish: Finish | None = None,
    **how: Any,
) -> Callable[..., None]:
    """A verb that records one kind about an incident."""

    @verb(kind, kind.model_fields, **how)
    def run(where: Where, given: Given, incident: NameArgument) -> None:
        values = said(kind, given)
        with opened(where.log, where.station) as log:
            if finish is not None:
                finish(log, log.incident(incident), values)
            _record(log, incident, section_of(kind, values), where)

    run.__doc__ = text
    return run


def _record(log: IncidentLog, name: str, body: Body, where: Where) -> None:
    """Record a body, and say how the incident stands then."""
    incident_id = log.incident(name).incident_id
    record = log.file(body, by=where.by, via=Via.CLI, incident_id=incident_id)
    after = log.incident(incident_id)
    text = (
        f"{after.name}: {body.kind} recorded as {record.name}; it is {after.severity} and"
        f" {after.status} now"
    )
    if after.counted_severity is not after.severity:
        text += f", and counts as {after.counted_severity} until it is reviewed"
    say_filed(log, record, text, json=where.json)
    if not where.json:
        note_of(after.report)
        say_open(after)


# Other values ----------------------------------------------------------------------------------


_CORRECTED: Final = tuple(name for name in Correction.FIELDS if name != "until_ns")


@verb(Report, _CORRECTED, defaults=dict.fromkeys(_CORRECTED))
def correct(where: Where, given: Given, incident: NameArgument, *, reason: ReasonOption) -> None:
    """Give other values for what a report says; what it said first stays in the log.

    Reviews begin anew, because they were of something else. Answers and quantities that are not
    named stay as they are; --injury names all injured people again.

    Example: robo-eval incidents correct lab/2 --robot arm_2 --reason "read the wrong label"
    """
    fields = said(Report, given)
    if not fields:
        raise InputError("nothing to correct was given; name a field, such as --robot arm_2")
    section_of(Correction, {"fields": fields, "reason": reason})  # before a log is opened for it
    with opened(where.log, where.station) as log, noting_robots(log, given["robot"]):
        fields |= _beside_known(log.incident(incident).report, fields)
        body = section_of(Correction, {"fields": fields, "reason": reason})
        _record(log, incident, body, where)


def _beside_known(report: Report, fields: dict[str, Any]) -> dict[str, Any]:
    """Answers and quantities with those that a report has beside them."""
    known, found = plain(report), {}
    if "answers" in fields:
        found["answers"] = known["answers"] | fields["answers"]
    if "quantities" in fields:
        named = {one["name"]: one for one in known["quantities"]}
        for one in fields["quantities"]:
            before = named.get(one["name"], {})
            # A limit in another unit is not that of the new value.
            is_same = not one["unit"] or one["unit"] == before.get("unit")
            said_ = {name: value for name, value in one.items() if value != ""}
            named[one["name"]] = (before if is_same else {}) | said_
        found["quantities"] = list(named.values())
    return found


def _reclassified(_log: IncidentLog, incident: Incident, values: dict[str, Any]) -> None:
    if not {"severity", "category"} & set(values):
        raise InputError("nothing to change was given; name --severity, --category or both")
    values |= {"severity": incident.severity, "category": incident.category} | values


reclassify = _about(
    Reclassification,
    """Give an incident another severity or category; a milder one counts once it is reviewed.

    Example: robo-eval incidents reclassify lab/2 --severity major --reason "first aid was given"
    """,
    _reclassified,
    defaults={"severity": None, "category": None},
)


# Verdicts and actions --------------------------------------------------------------------------


def _reviewed(log: IncidentLog, _incident: Incident, values: dict[str, Any]) -> None:
    if "verdict" not in values:
        raise InputError("say what you found: --confirm or --dismiss")
    if "duplicate_of" in values:
        values["duplicate_of"] = log.incident(values["duplicate_of"]).incident_id


review = _about(
    Review,
    """Confirm or dismiss an incident after looking at it.

    A major or critical incident needs two people who agree. Whoever reported it, or changed it
    last, counts as one who confirms it.

    Example: robo-eval incidents review lab/2 --confirm --note "seen in the trace" --by NAME
    """,
    _reviewed,
)
act = _about(
    Action,
    """Record a corrective action; the incident stays open until it was found effective.

    Example: robo-eval incidents act lab/2 "longer gripper guard" --owner NAME --due 2026-04-01
    """,
    argument="what",
)


@verb(Effectiveness, ("is_effective", "how"))
def check(
    where: Where,
    given: Given,
    incident: NameArgument,
    *,
    action: Annotated[
        int | None,
        typer.Option("--action", min=1, help="Which action, by its number in `incidents show`."),
    ] = None,
) -> None:
    """Say whether a corrective action helped.

    Of a major or critical incident somebody else than its owner has to say so.

    Example: robo-eval incidents check lab/2 --effective --how "200 cycles without contact"
    """
    values = said(Effectiveness, given)
    if "is_effective" not in values:
        raise InputError("say whether it helped: --effective or --not-effective")
    with opened(where.log, where.station) as log:
        values["action_id"] = _action_of(log.incident(incident), action)
        _record(log, incident, section_of(Effectiveness, values), where)


def _action_of(incident: Incident, number: int | None) -> str:
    """Record of an action: the one of a number, or the only one that is not yet effective.

    Raises:
        InputError: If there is none, or several and no number.
    """
    measures = list(incident.measures.values())
    if number is not None:
        if number > len(measures):
            raise InputError(
                f"--action: incident {incident.name} has {len(measures)} actions, given {number}"
            )
        return measures[number - 1].record.record_id
    due = [measure for measure in measures if not measure.is_effective]
    if len(due) != 1:
        if not due:
            raise InputError(f"incident {incident.name} has no action that is open")
        raise InputError(
            f"--action: incident {incident.name} has {len(due)} actions that are open; name one by"
            " its number"
        )
    return due[0].record.record_id


close = _about(
    Closure,
    """Close an incident that was reviewed and whose actions were found effective.

    Example: robo-eval incidents close lab/2 --note "guard replaced"
    """,
)


# Evidence, and texts that go -------------------------------------------------------------------


@verb(Attachment, ("note",))
def attach(
    where: Where,
    given: Given,
    incident: NameArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Files that show it.")],
    *,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="First instant that matters.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Last instant that matters.")
    ] = None,
    copy: CopyOption = False,
) -> None:
    """Name further evidence; the SHA-256 of each file goes into the record.

    Evidence lies in incidents/ beside the log, so that both can be copied together.

    Example: robo-eval incidents attach lab/2 photo.jpg --copy
    """
    if (since is None) != (until is None):
        raise InputError("--since and --until are both given or both left out")
    start, end = period_of(since, until)
    with opened(where.log, where.station) as log:
        log.incident(incident)  # before anything is copied
        with evidence_given(log, files, copy=copy, start_ns=start, end_ns=end) as pieces:
            values = said(Attachment, given) | {"evidence": pieces}
            _record(log, incident, section_of(Attachment, values), where)


@verb()
def redact(
    where: Where,
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD", help="STATION/NUMBER of the record, as `incidents show` lists it."
        ),
    ],
    *,
    field: Annotated[str, typer.Option("--field", help="Its text to take out: description, ...")],
    reason: ReasonOption,
) -> None:
    """Take a free text out of the log; it is out once two people have asked for it.

    The record stays, with the digest of the text, and says who asked and why; `verify` says so too.
    Copies elsewhere (exports, backups, logs of other stations) have to be seen to where they are.

    Example: robo-eval incidents redact lab/2 --field description --reason "names a person"
    """
    with opened(where.log, where.station) as log:
        made, is_out = log.redact(record, field, reason, by=where.by, via=Via.CLI)
        text = f"{record}: {field} is taken out" if is_out else (
            f"{record}: a second person has to ask for {field} as well before it is taken out"
        )  # fmt: skip
        if is_out and (left := _texts_left(log, made)):
            text += f"; other free texts of the same: {', '.join(left)}"
        say_filed(log, made, text, json=where.json, taken_out=is_out)


def _texts_left(log: IncidentLog, redaction: Record) -> list[str]:
    """Free texts that are in the log of what a redaction is about, by record and field."""
    if redaction.incident_id is None:
        return []
    records = log.incident(redaction.incident_id).records
    return [f"{one.name} {path}" for one in records for path in one.salts
            if one.kind != Redaction.kind]  # fmt: skip
