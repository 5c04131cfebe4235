"""What somebody typed into a form, as what a record says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from robo_eval.core.errors import InputError
from robo_eval_incidents.kinds import (
    Action,
    Attachment,
    Closure,
    Correction,
    Effectiveness,
    Evidence,
    Nil,
    Reclassification,
    Report,
    Review,
    Withdrawal,
    section_of,
)
from robo_eval_incidents.moments import field_again, field_time, time_of_field
from robo_eval_incidents.state import Incident
from robo_eval_incidents.text import day_of, quantities_cell, quantities_of
from robo_eval_incidents.words import Answer, Question

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SECOND_NS: Final = 10**9
_MORE: Final = ("episode_id", "policy", "task")
_TIMES: Final = ("happened", "start", "end")

Fields = Mapping[str, str]


def record_id_of(fields: Fields) -> str:
    """The id of the record a form makes: sent twice, it makes one.

    Raises:
        InputError: If the form has none.
    """
    found = fields.get("record_id", "")
    if not _ID.fullmatch(found):
        raise InputError("the form has no id; open the page again and send it from there")
    return found


def report_of(fields: Fields) -> Report:
    """A report.

    Raises:
        InputError: If a field is none; the message names it.
    """
    values: dict[str, Any] = {
        "happened_ns": time_of_field(fields.get("happened", ""), "time"),
        "robot": _robot(fields),
        "side": fields.get("side") or "real",
        "severity": _chosen(fields, "severity"),
        "category": _chosen(fields, "category"),
        "description": _given(fields, "description"),
        "engagement": fields.get("engagement") or "unknown",
        "quantities": _quantities(fields),
        "answers": _answers(fields),
    }
    values |= {name: fields[name] for name in _MORE if fields.get(name, "").strip()}
    return section_of(Report, values)


def correction_of(fields: Fields, incident: Incident) -> Correction:
    """A correction of whatever differs from how an incident stands.

    Raises:
        InputError: If nothing differs, or a field is none; the message names it.
    """
    before = correction_fields(incident)
    changed: dict[str, Any] = {}
    happened_ns = time_of_field(fields.get("happened", before["happened"]), "time")
    if happened_ns != incident.report.happened_ns // _SECOND_NS * _SECOND_NS:
        changed["happened_ns"] = happened_ns
    for name in ("robot", "side", "description", "engagement", *_MORE):
        given = fields.get(name, before[name]).replace("\r\n", "\n").strip()
        if given != before[name].strip():
            changed[name] = given
    if fields.get("quantities", before["quantities"]).strip() != before["quantities"].strip():
        changed["quantities"] = _quantities(fields)
    answers = _answers(fields)
    if answers != {name: str(answer) for name, answer in incident.report.answers.items()}:
        changed["answers"] = answers
    if not changed:
        raise InputError("nothing was changed; change a field above, then say why")
    return section_of(Correction, {"fields": changed, "reason": _given(fields, "reason")})


def correction_fields(incident: Incident) -> dict[str, str]:
    """How an incident stands, as the form of a correction has it."""
    report = incident.report
    quantities = [one.model_dump(mode="json", exclude_none=True) for one in report.quantities]
    shown = {name: getattr(report, name) or "" for name in _MORE}
    return {
        **shown,
        "happened": field_time(report.happened_ns),
        "robot": report.robot,
        "side": str(report.side),
        "description": report.description,
        "engagement": str(report.engagement),
        "quantities": quantities_cell(quantities),
        **{f"answer_{name}": str(answer) for name, answer in report.answers.items()},
    }


def reclassification_of(fields: Fields) -> Reclassification:
    """Another severity or category.

    Raises:
        InputError: If a field is none; the message names it.
    """
    values = {name: _chosen(fields, name) for name in ("severity", "category")}
    return section_of(Reclassification, {**values, "reason": _given(fields, "reason")})


def review_of(fields: Fields) -> Review:
    """A review.

    Raises:
        InputError: If a field is none; the message names it.
    """
    values: dict[str, Any] = {
        "verdict": _chosen(fields, "verdict"),
        "note": _given(fields, "note"),
    }
    if duplicate_of := fields.get("duplicate_of", "").strip():
        values["duplicate_of"] = duplicate_of
    return section_of(Review, values)


def attachment_of(fields: Fields, evidence: Evidence) -> Attachment:
    """Further evidence.

    Args:
        fields: The form.
        evidence: The file, as it was found below the folder of evidence.
    """
    values = {"evidence": [evidence.model_dump(exclude_none=True)], "note": fields.get("note", "")}
    return section_of(Attachment, values)


def action_of(fields: Fields) -> Action:
    """A corrective action.

    Raises:
        InputError: If a field is none; the message names it.
    """
    values: dict[str, Any] = {name: _given(fields, name) for name in ("what", "owner")}
    if due := fields.get("due", "").strip():
        try:
            values["due"] = day_of(due)
        except ValueError as err:
            raise InputError(f"due: {err}") from err
    return section_of(Action, values)


def effectiveness_of(fields: Fields) -> Effectiveness:
    """A check of a corrective action.

    Raises:
        InputError: If a field is none; the message names it.
    """
    found = _chosen(fields, "is_effective")
    if found not in {"yes", "no"}:
        raise InputError("is_effective: say yes or no")
    values = {
        "action_id": _given(fields, "action_id"),
        "is_effective": found == "yes",
        "how": _given(fields, "how"),
    }
    return section_of(Effectiveness, values)


def closure_of(fields: Fields) -> Closure:
    """That nothing is left to do.

    Raises:
        InputError: If a field is none; the message names it.
    """
    return section_of(Closure, {"note": _given(fields, "note")})


def nil_of(fields: Fields) -> Nil:
    """A shift without incidents.

    Raises:
        InputError: If a field is none; the message names it.
    """
    values: dict[str, Any] = {
        "start_ns": time_of_field(fields.get("start", ""), "begin"),
        "end_ns": time_of_field(fields.get("end", ""), "end"),
        "side": fields.get("side") or "real",
        "note": fields.get("note", ""),
    }
    if robot := fields.get("robot", "").strip():
        values["robot"] = robot
    return section_of(Nil, values)


def again(fields: Fields) -> dict[str, str]:
    """What was sent, as the same form shows it again."""
    return {name: field_again(text) if name in _TIMES else text for name, text in fields.items()}


def withdrawal_of(fields: Fields, withdrawn_id: str) -> Withdrawal:
    """That hours or a shift were logged by mistake.

    Raises:
        InputError: If a field is none; the message names it.
    """
    values = {"withdrawn_id": withdrawn_id, "reason": _given(fields, "reason")}
    return section_of(Withdrawal, values)


# Fields ----------------------------------------------------------------------------------------


def _robot(fields: Fields) -> str:
    """A robot that was chosen, or another one that was typed."""
    robot = fields.get("other_robot", "").strip() or fields.get("robot", "").strip()
    if not robot:
        raise InputError("robot: say which robot it was")
    return robot


def _chosen(fields: Fields, name: str) -> str:
    found = fields.get(name, "").strip()
    if not found:
        raise InputError(f"{name}: choose one")
    return found


def _given(fields: Fields, name: str) -> str:
    found = fields.get(name, "")
    if not found.strip():
        raise InputError(f"{name}: is empty; say it in a few words")
    return found


def _quantities(fields: Fields) -> list[dict[str, Any]]:
    text = fields.get("quantities", "").strip()
    if not text:
        return []
    try:
        return quantities_of(text)
    except ValueError as err:
        raise InputError(f"quantities: {err}") from err


def _answers(fields: Fields) -> dict[str, str]:
    found = {name: fields.get(f"answer_{name}", "").strip() for name in Question}
    for name, answer in found.items():
        if answer and answer not in set(Answer):
            raise InputError(f"{name}: answers are {', '.join(Answer)}, given {answer!r:.40}")
    return {name: answer for name, answer in found.items() if answer}
