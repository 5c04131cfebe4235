"""How an incident stands: what its report says after everything that was recorded since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from robo_eval.core.errors import InputError
from robo_eval_incidents.bodies import (
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
    plain,
)
from robo_eval_incidents.history import Told, told
from robo_eval_incidents.record import Record
from robo_eval_incidents.taxonomy import Category, Severity, Status, Via, worst
from robo_eval_incidents.text import person_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A corrective action, and whether it helped.

    Attributes:
        record: The record of the action.
        action: What is to be done.
        checks: Records of checks of its effectiveness, oldest first.
    """

    record: Record
    action: Action
    checks: tuple[Record, ...] = ()

    @property
    def is_effective(self) -> bool | None:
        """What the last check found; None if nobody checked."""
        body = self.checks[-1].body if self.checks else None
        return body.is_effective if isinstance(body, Effectiveness) else None


@dataclass(slots=True)
class Incident:
    """An incident as it stands.

    Attributes:
        record: The record of its report.
        report: The report with its corrections; severity and category are those of now.
        counted_report: Where and when it counts: robot, side, time, episode and policy. Of an
            incident that needs two people, another one's counts once it is reviewed.
        records: All its records, oldest first, the report included.
        severity: How bad it is.
        counted_severity: How bad it counts: a milder one counts once it is reviewed.
        highest_severity: The worst it ever was.
        category: What kind of event it is.
        evidence: All evidence, oldest first.
        classified_by: Who said how bad it is, last; None if a rule did.
        changed_by: Who reported it or changed it last; None if a rule did.
        reviews: Records of reviews since it was last changed, by people who knew of the change.
        reviewers: Who stands behind the last verdict, reporter included.
        verdict: The last verdict since it was last changed; None if there is none.
        measures: Corrective actions.
        is_closed: Whether it was closed.
    """

    record: Record
    report: Report
    counted_report: Report
    records: list[Record]
    severity: Severity
    counted_severity: Severity
    highest_severity: Severity
    category: Category
    evidence: list[Evidence]
    classified_by: str | None
    changed_by: str | None
    reviews: list[Record] = field(default_factory=list)
    measures: dict[str, Measure] = field(default_factory=dict)
    is_closed: bool = False
    _changes: int = 0
    """Bits of the records that changed it, see `history.Told`."""

    @property
    def incident_id(self) -> str:
        """Its id."""
        return self.record.record_id

    @property
    def name(self) -> str:
        """What people call it: station and number."""
        return f"{self.record.station}/{self.record.sequence}"

    @property
    def people_needed(self) -> int:
        """How many people have to stand behind a verdict."""
        return 2 if self.highest_severity.needs_two_people else 1

    @property
    def verdict(self) -> str | None:
        """The last verdict since it was last changed."""
        body = self.reviews[-1].body if self.reviews else None
        return body.verdict if isinstance(body, Review) else None

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Who stands behind the last verdict.

        Whoever reported an incident, or classified it last, stands behind its being one, and not
        behind its being none.
        """
        names = {
            person_key(record.by): record.by
            for record in self.reviews
            if isinstance(record.body, Review) and record.body.verdict == self.verdict
        }
        if self.verdict == "confirmed" and self.classified_by is not None:
            names.setdefault(person_key(self.classified_by), self.classified_by)
        return tuple(names.values())

    @property
    def is_reviewed(self) -> bool:
        """Whether enough people stand behind a verdict."""
        return self.verdict is not None and len(self.reviewers) >= self.people_needed

    @property
    def status(self) -> Status:
        """How far it has got."""
        if self.is_closed and self.counts:
            return Status.CLOSED
        if not self.is_reviewed:
            is_draft = self.changed_by is None and not self.reviews
            return Status.DRAFT if is_draft else Status.REPORTED
        if self.verdict == "dismissed":
            return Status.DISMISSED
        is_open = any(not measure.is_effective for measure in self.measures.values())
        return Status.ACTING if is_open else Status.CONFIRMED

    @property
    def counts(self) -> bool:
        """Whether it counts: all do but those that were dismissed, closed or not."""
        return not (self.is_reviewed and self.verdict == "dismissed")

    @property
    def counts_elsewhere(self) -> bool:
        """Whether it still counts for another robot, side or time than its report says now."""
        now, counted = self.report, self.counted_report
        return (now.robot, now.side, now.happened_ns) != (
            counted.robot, counted.side, counted.happened_ns,
        )  # fmt: skip

    @property
    def open_points(self) -> list[str]:
        """What is missing until it may be closed."""
        if self.is_closed:
            return ["it is closed already"]
        lacking = []
        if not self.is_reviewed:
            lacking.append(self._lacking_review())
        if self.verdict == "dismissed" and not lacking:
            return []
        if self.highest_severity.needs_two_people and not self.measures:
            severity = self.highest_severity.value.replace("_", " ")
            lacking.append(f"a {severity} incident needs a corrective action")
        lacking += [
            f"action {measure.action.what!r:.60} was "
            + ("not checked" if measure.is_effective is None else "found not to be effective")
            for measure in self.measures.values()
            if not measure.is_effective
        ]
        return lacking

    def _lacking_review(self) -> str:
        if self.people_needed == 1:
            return "it needs a review"
        if self.verdict is None and self.classified_by is not None:
            return f"a person other than {self.classified_by} has to review it"
        named = ", ".join(self.reviewers) or "nobody"
        return f"{self.people_needed} people have to stand behind one verdict; so far {named}"

    # How it comes to stand so ------------------------------------------------------------------

    @classmethod
    def begun(cls, first: Told) -> Incident:
        """An incident of which only the report is known."""
        record, report = first.record, first.record.body
        assert isinstance(report, Report)
        by = _person(record)
        return cls(
            record=record,
            report=report,
            counted_report=report,
            records=[record],
            severity=report.severity,
            counted_severity=report.severity,
            highest_severity=report.severity,
            category=report.category,
            evidence=list(report.evidence),
            classified_by=by,
            changed_by=by,
            _changes=first.bit,
        )

    def take(self, told: Told) -> None:
        """Let one more record tell on it."""
        record, body = told.record, told.record.body
        self.records.append(record)
        match body:
            case Correction():
                self._corrected(told, body)
            case Reclassification():
                self._reclassified(told, body)
            case Attachment():
                self._take_evidence(body.evidence)
            case Report():
                self._reported_again(told, body)
            case Review():
                self._reviewed(told)
            case Action():
                self.measures[record.record_id] = Measure(record=record, action=body)
                self.is_closed = False
            case Effectiveness():
                self._checked(record, body)
            case Closure():
                # Somewhere else, something may have been recorded that leaves it open.
                self.is_closed = not self.open_points
            case _:
                pass

    def _take_evidence(self, evidence: Iterable[Evidence]) -> None:
        self.evidence += [piece for piece in evidence if piece not in self.evidence]

    def _corrected(self, told: Told, body: Correction) -> None:
        try:
            self.report = corrected(self.report, body.fields)
        except ValueError:
            return  # refused where it is filed; here it is one that somebody forged
        self._changed(told)

    def _reclassified(self, told: Told, body: Reclassification) -> None:
        self.severity, self.category = body.severity, body.category
        self.counted_severity = worst(self.counted_severity, body.severity)
        self.highest_severity = worst(self.highest_severity, body.severity)
        self.report = corrected(self.report, {"severity": body.severity, "category": body.category})
        self.classified_by = _person(told.record)
        self._changed(told)

    def _reported_again(self, told: Told, report: Report) -> None:
        """Another station, offline, has drafted the same event: it is one, at its worst."""
        self._take_evidence(report.evidence)
        if report.severity.rank > self.highest_severity.rank:
            self.severity = self.counted_severity = self.highest_severity = report.severity
            self.report = corrected(self.report, {"severity": report.severity})
            self.classified_by = _person(told.record)
            self._changed(told)

    def _changed(self, told: Told) -> None:
        self.changed_by = _person(told.record)
        self._changes |= told.bit
        self.reviews.clear()
        self.is_closed = False
        if self.people_needed == 1:
            self.counted_report = self.report

    def _reviewed(self, told: Told) -> None:
        """A review says something about what was known where it was made."""
        if self._changes & ~told.known:
            return
        self.reviews.append(told.record)
        if self.is_reviewed:
            self.counted_severity = self.severity
            self.counted_report = self.report

    def _checked(self, record: Record, body: Effectiveness) -> None:
        measure = self.measures.get(body.action_id)
        if measure is not None:
            self.measures[body.action_id] = Measure(
                record=measure.record, action=measure.action, checks=(*measure.checks, record)
            )
            self.is_closed = self.is_closed and body.is_effective


def _person(record: Record) -> str | None:
    """Who wrote a record; None if a rule did."""
    return None if record.via is Via.RULE else record.by


def corrected(report: Report, fields: dict[str, Any]) -> Report:
    """A report with other values in some fields.

    Raises:
        ValidationError: If a value is none the field takes.
    """
    return Report.model_validate({**plain(report), **fields})


def incident_of(records: Sequence[Record]) -> Incident | None:
    """The incident that some records are about; None while its report has not arrived.

    Args:
        records: All records of one incident, in any order.
    """
    ordered = told(records)
    first = next((one for one in ordered if isinstance(one.record.body, Report)), None)
    if first is None:
        return None
    found = Incident.begun(first)
    taken = {first.record.record_id}
    for one in ordered:
        is_report = isinstance(one.record.body, Report)
        # What a rule said at two stations, in the same words, was said once.
        if one is not first and (is_report or one.record.record_id not in taken):
            taken.add(one.record.record_id)
            found.take(one)
    return found


def incidents_of(records: Iterable[Record]) -> list[Incident]:
    """All incidents of some records, by when they happened."""
    by_incident: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.incident_id is not None:
            by_incident[record.incident_id].append(record)
    found = [incident for own in by_incident.values() if (incident := incident_of(own))]
    return sorted(found, key=lambda one: (one.report.happened_ns, one.incident_id))


def nil_reports(records: Iterable[Record]) -> list[tuple[Record, Nil]]:
    """Reports of shifts without incidents among some records, without those that were withdrawn.

    Args:
        records: The records, withdrawals included.
    """
    found: list[tuple[Record, Nil]] = []
    withdrawn: set[str] = set()
    for record in records:
        if isinstance(record.body, Nil):
            found.append((record, record.body))
        elif isinstance(record.body, Withdrawal):
            withdrawn.add(record.body.withdrawn_id)
    return [(record, nil) for record, nil in found if record.record_id not in withdrawn]


def unknown_incident(name: str) -> InputError:
    """That there is no such incident."""
    return InputError(f"no incident {name!r:.80} in this log; `robo-eval incidents list` has them")
