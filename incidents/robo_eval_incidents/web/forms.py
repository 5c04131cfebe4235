"""What somebody typed into a form, as what a record says."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval_incidents.hours_table import amounts_of
from robo_eval_incidents.kinds import (
    MOST_INJURIES,
    RECORD_ID,
    Body,
    Correction,
    Exposure,
    Injury,
    Report,
    form_of,
    plain,
    section_of,
    times_of,
)
from robo_eval_incidents.moments import field_again, field_time, time_of_field
from robo_eval_incidents.record import Record
from robo_eval_incidents.state import Incident
from robo_eval_incidents.text import period_of, quantities_cell
from robo_eval_incidents.web.deps import Posted, Site
from robo_eval_incidents.words import Answer, Question, Via

_Body = TypeVar("_Body", bound=Body)

_SECOND_NS: Final = 10**9
_TIMES: Final = ("happened", "start", "end")
_OF_PROGRAMS: Final = {"evidence": (), "rule": None, "source_id": None}
"""Fields of a report that no form has."""

Fields = Mapping[str, str]
"""What a form sent: times without their unit (`happened`), and a field for each question."""


def record_id_of(fields: Fields) -> str:
    """The id of the record a form makes: sent twice, it makes one.

    Raises:
        InputError: If the form has none.
    """
    found = fields.get("record_id", "")
    if not RECORD_ID.fullmatch(found):
        raise InputError("the form has no id; open the page again and send it from there")
    return found


def file(site: Site, form: Posted, body: Body, incident: Incident | None = None) -> Record:
    """Record what a form says, as whoever sent it.

    Raises:
        InputError: If it has no id, or may not be recorded; the message says why.
        IncidentLogError: If the log cannot be written.
    """
    return site.log.file(
        body,
        by=form.user.name,
        via=Via.WEB,
        incident_id=None if incident is None else incident.incident_id,
        record_id=record_id_of(form.fields),
    )


def report_of(fields: Fields) -> Report:
    """A report, of a robot that was chosen or of another one that was typed.

    Raises:
        InputError: If a field is none; the message names it.
    """
    robot = fields.get("other_robot", "").strip() or fields.get("robot", "").strip()
    if not robot:
        raise InputError("robot: say which robot it was")
    known = {"robot": robot, "side": fields.get("side") or Side.REAL, **_OF_PROGRAMS}
    return body_of(Report, fields, **known, **_event_of(fields))


def _event_of(fields: Fields) -> dict[str, int | None]:
    """When it happened, as far as the form says."""
    if roughly := fields.get("roughly", "").strip():
        try:
            return times_of(roughly)
        except ValueError as err:
            raise InputError(f"when: {err}") from err
    return {"happened_ns": time_of_field(fields.get("happened", ""), "when"), "until_ns": None}


def exposure_of(fields: Fields) -> Exposure:
    """Hours: from a time to another one, or so many within a day or month.

    Raises:
        InputError: If a field is none; the message names it.
    """
    amounts = amounts_of(fields)
    known: dict[str, Any] = {"policy": None, "episode_id": None, "trial": None}
    known |= {"km": None, **amounts, "side": fields.get("side") or Side.REAL}
    if period := fields.get("period", "").strip():
        if not amounts:
            raise InputError("hours: say how many hours or kilometres there were")
        try:
            known["start_ns"], known["until_ns"] = period_of(period)
        except ValueError as err:
            raise InputError(f"period: {err}") from err
        return body_of(Exposure, fields, **known)
    start, end = (time_of_field(fields.get(name, ""), name) for name in ("start", "end"))
    if end <= start:
        raise InputError("end: is not after the begin")
    known |= {"start_ns": start, "until_ns": None, "seconds": (end - start) / 1e9}
    return body_of(Exposure, fields, **known)


def correction_of(fields: Fields, incident: Incident) -> Correction:
    """A correction of whatever differs from how an incident stands.

    Raises:
        InputError: If nothing differs, or a field is none; the message names it.
    """
    before, report = correction_fields(incident), incident.report
    changed: dict[str, Any] = {}
    time = _event_of(before | dict(fields))
    # A form shows whole seconds.
    shown = report.happened_ns // _SECOND_NS * _SECOND_NS
    if report.until_ns is not None:
        shown = report.happened_ns
    if time != {"happened_ns": shown, "until_ns": report.until_ns}:
        changed |= time
    both = before | dict(fields)
    injuries, answers = _injuries(both), _answers(fields)
    if injuries != _injuries(before):
        changed["injuries"] = injuries or None
    if answers != {one: str(said) for one, said in report.answers.items()}:
        changed["answers"] = answers
    for name in set(Correction.FIELDS) - {"happened_ns", "until_ns", "injuries", "answers"}:
        given = both[_key(name)].replace("\r\n", "\n").strip()
        if given != before[_key(name)].strip():
            changed[name] = _read(Report, name, given)
    if not changed:
        raise InputError("nothing was changed; change a field above, then say why")
    return body_of(Correction, fields, fields=changed)


def correction_fields(incident: Incident) -> dict[str, str]:
    """How an incident stands, as the form of a correction has it."""
    report = incident.report
    quantities = [one.model_dump(mode="json", exclude_none=True) for one in report.quantities]
    shown = {name: str(getattr(report, name) or "") for name in Correction.FIELDS}
    return {
        **shown,
        "happened": field_time(report.happened_ns),
        "roughly": "" if report.until_ns is None else report.time,
        "quantities": quantities_cell(quantities),
        **{f"answer_{name}": str(answer) for name, answer in report.answers.items()},
        **{
            f"injury_{number}_{name}": str(value)
            for number, one in enumerate(report.injuries or ())
            for name, value in plain(one).items()
            if value not in ("", "unknown")
        },
    }


def again(fields: Fields) -> dict[str, str]:
    """What was sent, as the same form shows it again."""
    return {name: field_again(text) if name in _TIMES else text for name, text in fields.items()}


def body_of(kind: type[_Body], fields: Fields, /, **known: object) -> _Body:
    """What a form says.

    Args:
        kind: What kind of record it makes.
        fields: The form.
        known: Fields that it does not have.

    Raises:
        InputError: If a field is none; the message names it.
    """
    values = dict(known)
    for name in kind.model_fields:
        if name not in known and (value := _value(kind, name, fields)) is not None:
            values[name] = value
    return section_of(kind, values)


def _value(kind: type[Body], name: str, fields: Fields) -> Any:
    """The value of a field; None if nothing is said."""
    field = kind.model_fields[name]
    form, text = form_of(field), fields.get(_key(name), "")
    if form.widget == "datetime-local":
        return time_of_field(text, str(field.title).lower())
    if form.widget == "answers":
        return _answers(fields)
    if form.widget == "injuries":
        return _injuries(fields) or None
    if text.strip():
        return _read(kind, name, text)
    if field.is_required():
        what = "choose one" if form.widget == "choice" else "is empty; say it in a few words"
        raise InputError(f"{name}: {what}")
    return None


def _read(kind: type[Body], name: str, text: str) -> Any:
    try:
        return form_of(kind.model_fields[name]).read(text, time.time_ns())
    except ValueError as err:
        raise InputError(f"{name}: {err}") from err


def _key(name: str) -> str:
    return name.removesuffix("_ns")


def _injuries(fields: Fields) -> list[dict[str, str]]:
    """What the form says of each person; rows in which nothing is said are none."""
    rows = []
    for number in range(MOST_INJURIES):
        row = {
            name: fields.get(f"injury_{number}_{name}", "").strip() for name in Injury.model_fields
        }
        if said := {name: text for name, text in row.items() if text}:
            rows.append(said)
    return rows


def _answers(fields: Fields) -> dict[str, str]:
    found = {name: fields.get(f"answer_{name}", "").strip() for name in Question}
    for name, answer in found.items():
        if answer and answer not in set(Answer):
            raise InputError(f"{name}: answers are {', '.join(Answer)}, given {answer!r:.40}")
    return {name: answer for name, answer in found.items() if answer}
