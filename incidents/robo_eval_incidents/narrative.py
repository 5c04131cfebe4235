"""What happened to an incident, record by record, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from robo_eval_incidents.bodies import (
    Action,
    Attachment,
    Closure,
    Correction,
    Effectiveness,
    Reclassification,
    Report,
    Review,
    View,
)
from robo_eval_incidents.incident import Incident, corrected
from robo_eval_incidents.record import Record, content_digest
from robo_eval_incidents.web.words import SEVERITIES, shown_time, spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One record of an incident, for people.

    Attributes:
        record: The record.
        sha256: Digest of its canonical form.
        title: What it did.
        text: What its author said; empty if nothing.
        changes: Field, value before and value after, of what it changed.
    """

    record: Record
    sha256: str
    title: str
    text: str = ""
    changes: tuple[tuple[str, str, str], ...] = ()


def history(incident: Incident) -> Iterator[Step]:
    """Every record of an incident but views, oldest first; who viewed it is for auditors."""
    report = incident.record.body
    assert isinstance(report, Report)
    for record in incident.records:
        if isinstance(record.body, View):
            continue
        title, text, changes = _said(record, report, incident)
        if isinstance(record.body, Correction):
            report = corrected(report, record.body.fields)
        elif isinstance(record.body, Reclassification):
            after = {"severity": record.body.severity, "category": record.body.category}
            report = corrected(report, after)
        sha256 = content_digest(record.content())
        yield Step(record=record, sha256=sha256, title=title, text=text, changes=tuple(changes))


def _said(
    record: Record, report: Report, incident: Incident
) -> tuple[str, str, list[tuple[str, str, str]]]:
    match record.body:
        case Report() as body:
            how = f"Drafted by rule {body.rule}" if body.rule is not None else "Reported"
            return f"{how}: {SEVERITIES[body.severity]}, {spoken(body.category)}", "", []
        case Correction() as body:
            after = corrected(report, body.fields)
            changes = [
                (spoken(name.removesuffix("_ns")), _value(report, name), _value(after, name))
                for name in body.fields
            ]
            return "Corrected", body.reason, changes
        case Reclassification() as body:
            changes = [
                ("severity", SEVERITIES[report.severity], SEVERITIES[body.severity]),
                ("category", spoken(report.category), spoken(body.category)),
            ]
            return "Reclassified", body.reason, [one for one in changes if one[1] != one[2]]
        case Attachment() as body:
            named = ", ".join(one.uri for one in body.evidence)
            return f"Attached {named}", body.note, []
        case Review() as body:
            title = "Confirmed" if body.verdict == "confirmed" else "Dismissed"
            if body.duplicate_of is not None:
                title += f" as a duplicate of {body.duplicate_of}"
            return title, body.note, []
        case Action() as body:
            due = f", due {body.due}" if body.due is not None else ""
            return f"Corrective action for {body.owner}{due}", body.what, []
        case Effectiveness() as body:
            measure = incident.measures.get(body.action_id)
            of = "" if measure is None else f": {measure.action.what}"
            word = "effective" if body.is_effective else "not effective"
            return f"Action found {word}{of:.120}", body.how, []
        case Closure() as body:
            return "Closed", body.note, []
        case _:
            return spoken(record.kind).capitalize(), "", []


def _value(report: Report, name: str) -> str:
    value: Any = getattr(report, name)
    if name == "happened_ns":
        return shown_time(value)
    if name == "quantities":
        return "; ".join(f"{one.name} {one.value:g} {one.unit}".strip() for one in value) or "none"
    if name == "answers":
        return "; ".join(f"{spoken(one)}: {answer}" for one, answer in value.items()) or "none"
    return spoken(value) if name in {"side", "engagement"} else str(value or "not given")
