"""What happened to an incident, record by record, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from robo_eval_incidents.kinds import (
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
from robo_eval_incidents.record import Record, content_digest
from robo_eval_incidents.state import Incident, corrected
from robo_eval_incidents.text import shown_time
from robo_eval_incidents.words import spoken

_MOST: Final = 120
"""Characters of an action beside its check; all of them are where it was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Another value of one field.

    Attributes:
        name: The field.
        before: Its value before.
        after: Its value since.
        times_ns: Both values of a field that is a time, UTC.
    """

    name: str
    before: str
    after: str
    times_ns: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One record of an incident, for people.

    Attributes:
        record: The record.
        sha256: Digest of its canonical form.
        title: What it did.
        text: What its author said; empty if nothing.
        changes: What it changed.
    """

    record: Record
    sha256: str
    title: str
    text: str = ""
    changes: tuple[Change, ...] = ()

    def lines(self, arrow: str) -> list[str]:
        """What it did, what it changed, and what its author said.

        Args:
            arrow: What stands between a value before and after.
        """
        changed = (f"{one.name}: {one.before} {arrow} {one.after}" for one in self.changes)
        return [self.title, *changed, *([self.text] if self.text else [])]


def history(incident: Incident, *, views: bool = False) -> Iterator[Step]:
    """Every record of an incident, oldest first.

    Args:
        incident: The incident.
        views: Who looked at it as well, which on the web page is for auditors.
    """
    report = incident.record.body
    assert isinstance(report, Report)
    for record in incident.records:
        if isinstance(record.body, View) and not views:
            continue
        title, text, changes = _said(record, report, incident)
        if isinstance(record.body, Correction):
            report = corrected(report, record.body.fields)
        elif isinstance(record.body, Reclassification):
            after = {"severity": record.body.severity, "category": record.body.category}
            report = corrected(report, after)
        sha256 = content_digest(record.content())
        yield Step(record=record, sha256=sha256, title=title, text=text, changes=tuple(changes))


def _said(record: Record, report: Report, incident: Incident) -> tuple[str, str, list[Change]]:
    match record.body:
        case Report() as body:
            how = f"Drafted by rule {body.rule}" if body.rule is not None else "Reported"
            return f"{how}: {body.severity.label}, {spoken(body.category)}", "", []
        case Correction() as body:
            after = corrected(report, body.fields)
            return "Corrected", body.reason, [_change(report, after, name) for name in body.fields]
        case Reclassification() as body:
            fields = {"severity": body.severity, "category": body.category}
            after = corrected(report, fields)
            changes = [_change(report, after, name) for name in fields]
            return "Reclassified", body.reason, [one for one in changes if one.before != one.after]
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
            return _checked(body, incident), body.how, []
        case Closure() as body:
            return "Closed", body.note, []
        case _:
            return spoken(record.kind).capitalize(), "", []


def _checked(check: Effectiveness, incident: Incident) -> str:
    measure = incident.measures.get(check.action_id)
    of = "" if measure is None else f": {measure.action.what}"
    word = "effective" if check.is_effective else "not effective"
    return f"Action found {word}{of if len(of) <= _MOST else of[: _MOST - 1] + '…'}"


def _change(before: Report, after: Report, name: str) -> Change:
    return Change(
        name=spoken(name.removesuffix("_ns")),
        before=_value(before, name),
        after=_value(after, name),
        times_ns=(before.happened_ns, after.happened_ns) if name == "happened_ns" else None,
    )


def _value(report: Report, name: str) -> str:
    value: Any = getattr(report, name)
    if name == "happened_ns":
        return shown_time(value)
    if name == "quantities":
        return "; ".join(f"{one.name} {one.value:g} {one.unit}".strip() for one in value) or "none"
    if name == "answers":
        return "; ".join(f"{spoken(one)}: {answer}" for one, answer in value.items()) or "none"
    if name == "severity":
        return report.severity.label
    is_word = name in {"side", "engagement", "category"}
    return spoken(value) if is_word else str(value or "not given")
