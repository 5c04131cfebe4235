"""What records and incidents say, field by field: for pages, for the terminal, and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from robo_eval_incidents.kinds import (
    Correction,
    Effectiveness,
    Reclassification,
    Report,
    View,
    form_of,
)
from robo_eval_incidents.record import Record
from robo_eval_incidents.state import Incident, corrected, misfit
from robo_eval_incidents.text import shown_span
from robo_eval_incidents.words import spoken

_ABOVE: Final = frozenset({"description", "severity", "category", "evidence"})
"""What stands above the facts of an incident, or below them."""


class Fact(NamedTuple):
    """Something that is said: under which label, as which text, and for a time its ns.

    Of a time of which only a day or so is known, `until_ns` is where that ends.
    """

    label: str
    text: str
    time_ns: int | None = None
    until_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One record of an incident.

    Attributes:
        record: The record.
        title: What it did.
        facts: What it says.
    """

    record: Record
    title: str
    facts: tuple[Fact, ...]

    def lines(self) -> list[str]:
        """What it did and says, line by line."""
        return [self.title, *(f"{one.label}: {one.text}" for one in self.facts)]


def facts(body: BaseModel, without: frozenset[str] = frozenset()) -> Iterator[Fact]:
    """Everything a body says.

    Args:
        body: The body.
        without: Fields that are said elsewhere.
    """
    for name in type(body).model_fields:
        value = getattr(body, name)
        if name == "until_ns" and isinstance(body, Report):
            continue  # said with its begin
        if name not in without and value not in (None, "", (), {}):
            yield Fact(label_of(type(body), name), *_shown(body, name, value))


def label_of(model: type[BaseModel], name: str) -> str:
    """What people call a field."""
    return model.model_fields[name].title or spoken(name)


def _shown(body: BaseModel, name: str, value: Any) -> tuple[str, int | None, int | None]:
    form = form_of(type(body).model_fields[name])
    if name == "happened_ns" and isinstance(body, Report) and body.until_ns is not None:
        return shown_span(value, body.until_ns), value, body.until_ns
    text = "none" if value in (None, "", (), {}) else form.show(value)
    return text, value if form.widget == "datetime-local" else None, None


def of_incident(incident: Incident) -> Iterator[Fact]:
    """How an incident stands: what its report says now, where it counts, who stands behind it."""
    report, counted = incident.report, incident.counted
    for one in facts(report, _ABOVE):
        yield one
        if one.label == label_of(Report, "side") and incident.counts_elsewhere:
            time = shown_span(counted.happened_ns, counted.until_ns)
            where = f"{counted.robot} ({counted.side}), {time}"
            yield Fact("Counts as", f"{where}, until it is reviewed")
    if (text := misfit(report)) is not None:
        yield Fact("Does not fit", text)
    if report.rule is None:
        yield Fact("Reported by", incident.record.by)
    if incident.verdict is not None:
        reviewed = incident.reviewed_by
        other = next((one for one in incident.reviewers if one not in reviewed), None)
        reporter = f"; {other} reported it or changed it last" if other else ""
        yield Fact("Verdict", f"{incident.verdict} by {', '.join(reviewed)}{reporter}")
    for piece in incident.evidence:
        yield Fact("Evidence", str(piece))


def history(incident: Incident, *, views: bool = False) -> Iterator[Step]:
    """Every record of an incident, oldest first.

    Args:
        incident: The incident.
        views: Who looked at it as well, which on the web page is for auditors.
    """
    report = incident.record.body
    assert isinstance(report, Report)
    for record in incident.records:
        body = record.body
        found: list[Fact] = []
        match body:
            case View() if not views:
                continue
            case Correction() | Reclassification():
                try:
                    after = corrected(report, _changes(body))
                except ValueError:
                    # Two stations that were apart corrected what no longer fits together.
                    found = [Fact("Not taken", "it does not fit what was corrected before")]
                else:
                    found = list(_changed(report, after, list(_changes(body))))
                    report = after
                found += facts(body, frozenset({"fields", *_changes(body)}))
            case Report():
                found = [Fact("What happened", body.description)] * (record is not incident.record)
            case Effectiveness():
                action = incident.measures.get(body.action_id)
                found = [Fact("Action", action.action.what)] if action is not None else []
                found += facts(body, frozenset({"action_id"}))
            case _:
                found = list(facts(body))
        yield Step(record, _title(body), tuple(found))


def _title(body: BaseModel) -> str:
    if not isinstance(body, Report):
        return str(getattr(body, "title", ""))
    how = "Reported" if body.rule is None else f"Drafted by rule {body.rule}"
    return f"{how}: {body.severity.label}, {body.category.label}"


def _changes(body: Correction | Reclassification) -> dict[str, Any]:
    if isinstance(body, Correction):
        return body.fields
    return {"severity": body.severity, "category": body.category}


def _changed(before: Report, after: Report, names: list[str]) -> Iterator[Fact]:
    for name in names:
        if name == "until_ns":
            continue  # said with its begin
        old, new = (_shown(one, name, getattr(one, name))[0] for one in (before, after))
        if old != new:
            yield Fact(label_of(Report, name), f"{old} → {new}")
