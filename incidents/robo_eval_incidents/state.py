"""How an incident stands after all its records, what may follow, and what is left to do."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal

from robo_eval.core.errors import InputError, said
from robo_eval.core.names import person_key
from robo_eval_incidents.kinds import (
    Action,
    Attachment,
    Body,
    Closure,
    Correction,
    Effectiveness,
    Evidence,
    Reclassification,
    Report,
    Review,
    plain,
)
from robo_eval_incidents.record import Record
from robo_eval_incidents.text import same_person
from robo_eval_incidents.words import (
    Answer,
    Category,
    Question,
    Severity,
    Status,
    Treatment,
    Via,
    worst,
)

OPEN: Final = (Status.DRAFT, Status.REPORTED, Status.CONFIRMED, Status.ACTING)
"""Statuses of incidents that something is left to do about."""
_SHOWN: Final = 60
"""Characters of an action that a step repeats."""


class RefusedError(InputError):
    """The record would not be one that may follow; nothing was added."""

    http_status = 409


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that comes next.

    Attributes:
        verb: The verb of `robo-eval incidents` that records it.
        text: What it is, in words.
        owner: Who sees to it, if it is a corrective action.
        not_by: Who may not do it, because somebody else has to.
        due: Until when; None if nobody said.
        action_id: Record of the corrective action, if it is one.
    """

    verb: Literal["review", "act", "check", "close"]
    text: str
    owner: str | None = None
    not_by: tuple[str, ...] = ()
    due: date | None = None
    action_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A corrective action, and whether it helped.

    Attributes:
        record: The record of the action.
        action: What is to be done.
        is_effective: What the last check found; None if nobody checked.
        checked_by: Who checked it last.
    """

    record: Record
    action: Action
    is_effective: bool | None = None
    checked_by: str = ""


@dataclass(slots=True)
class Incident:
    """An incident as it stands.

    Attributes:
        record: The record of its report.
        report: The report with its corrections, as it stands.
        counted: Where, when and with which severity it counts. Of an incident that needs two
            people, another robot, side or time counts once it is reviewed, and so does a milder
            severity of any.
        records: All its records, oldest first, the report included.
        highest_severity: The worst it ever was.
        evidence: All evidence, oldest first.
        classified_by: Who said how bad it is, last; None if a rule did.
        changed_by: Who reported it or changed it last; None if a rule did.
        reviews: Records of reviews since it was last changed, by people who knew of the change.
        measures: Corrective actions, by the id of their record.
        is_closed: Whether it was closed.
    """

    record: Record
    report: Report
    counted: Report
    records: list[Record]
    highest_severity: Severity
    evidence: list[Evidence]
    classified_by: str | None
    changed_by: str | None
    reviews: list[Record] = field(default_factory=list)
    measures: dict[str, Measure] = field(default_factory=dict)
    is_closed: bool = False
    _changes: int = 0
    """Bits of the records that changed it, see `told`."""
    _behind: tuple[str, ...] | None = None
    """`reviewers`, until a record changes them."""

    @property
    def incident_id(self) -> str:
        """Its id."""
        return self.record.record_id

    @property
    def name(self) -> str:
        """What people call it: station and number."""
        return self.record.name

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.report.severity

    @property
    def category(self) -> Category:
        """What kind of event it is."""
        return self.report.category

    @property
    def counted_severity(self) -> Severity:
        """How bad it counts: a milder one counts once it is reviewed."""
        return self.counted.severity

    @property
    def people_needed(self) -> int:
        """How many people have to stand behind a verdict."""
        return 2 if self.highest_severity.needs_two_people else 1

    @property
    def verdict(self) -> str | None:
        """The last verdict since it was last changed; None if there is none."""
        body = self.reviews[-1].body if self.reviews else None
        return body.verdict if isinstance(body, Review) else None

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Who stands behind the last verdict.

        Whoever reported an incident, or classified it last, stands behind its being one, and not
        behind its being none.
        """
        if self._behind is None:
            verdict = self.verdict
            names = {
                person_key(record.by): record.by
                for record in self.reviews
                if isinstance(record.body, Review) and record.body.verdict == verdict
            }
            if verdict == "confirmed" and self.classified_by is not None:
                names.setdefault(person_key(self.classified_by), self.classified_by)
            self._behind = tuple(names.values())
        return self._behind

    @property
    def reviewed_by(self) -> tuple[str, ...]:
        """Who reviewed it and stands behind the verdict; who only reported it did not."""
        reviewed = {person_key(record.by) for record in self.reviews}
        return tuple(name for name in self.reviewers if person_key(name) in reviewed)

    @property
    def is_reviewed(self) -> bool:
        """Whether enough people stand behind a verdict."""
        return self.verdict is not None and len(self.reviewers) >= self.people_needed

    @property
    def counts(self) -> bool:
        """Whether it counts: all do but those that were dismissed."""
        return not (self.is_reviewed and self.verdict == "dismissed")

    @property
    def status(self) -> Status:
        """How far it has got."""
        if not self.counts:
            return Status.DISMISSED
        if self.is_closed:
            return Status.CLOSED
        if not self.is_reviewed:
            is_draft = self.changed_by is None and not self.reviews
            return Status.DRAFT if is_draft else Status.REPORTED
        return Status.ACTING if any(self._unproven()) else Status.CONFIRMED

    @property
    def counts_elsewhere(self) -> bool:
        """Whether it still counts for another robot, side or time than its report says now."""
        now, counted = self.report, self.counted
        return (now.robot, now.side, now.happened_ns, now.until_ns) != (
            counted.robot, counted.side, counted.happened_ns, counted.until_ns,
        )  # fmt: skip

    # What is left ------------------------------------------------------------------------------

    def steps(self) -> list[Step]:
        """What comes next; nothing if it is closed or dismissed."""
        if self.status not in OPEN:
            return []
        found = [] if self.is_reviewed else [self._review()]
        if self.highest_severity.needs_two_people and not self.measures:
            was = self.highest_severity.label
            found.append(Step(verb="act", text=f"it needs a corrective action: it is or was {was}"))
        found += map(self._check, self._unproven())
        return found or [Step(verb="close", text="it can be closed")]

    def _unproven(self) -> Iterator[Measure]:
        """Actions that nobody found effective who may say so: of a bad incident not the owner."""
        for one in self.measures.values():
            own = self.people_needed > 1 and same_person(one.action.owner, one.checked_by)
            if not one.is_effective or own:
                yield one

    @property
    def open_points(self) -> list[str]:
        """What is missing until it may be closed, in words."""
        return [step.text for step in self.steps() if step.verb != "close"]

    def _review(self) -> Step:
        if self.people_needed == 1:
            return Step(verb="review", text="it needs a review")
        named = (self.changed_by, self.classified_by, *self.reviewers)
        not_by = tuple({person_key(name): name for name in named if name is not None}.values())
        names = " and ".join(not_by)
        # Who said how bad it is stands behind its being one, before anybody reviewed it.
        if self.verdict is not None or self.classified_by is not None:
            text = f"it needs a review by somebody else than {names}"
        else:
            text = "it needs reviews by two people" + (f" other than {names}" if names else "")
        return Step(verb="review", text=text, not_by=not_by)

    def _check(self, measure: Measure) -> Step:
        """An action is left until somebody found that it helped."""
        action = measure.action
        what = " ".join(action.what.split())
        what = what if len(what) <= _SHOWN else f"{what[: _SHOWN - 3]}..."
        text = f"action {what!r} of {action.owner}"
        if measure.is_effective is False:
            text += " was found not to be effective: act anew, or check it again"
        else:
            text += f", due {action.due}," if action.due else ""
            text += (
                " was not checked" if measure.is_effective is None else " was checked by its owner"
            )
        not_by = (action.owner,) if self.people_needed > 1 else ()
        if not_by and measure.is_effective is not False:
            text += f"; somebody else than {action.owner} has to check it"
        return Step(
            verb="check", text=text, owner=action.owner, not_by=not_by, due=action.due,
            action_id=measure.record.record_id,
        )  # fmt: skip

    # How it comes to stand so ------------------------------------------------------------------

    @classmethod
    def begun(cls, record: Record, report: Report, bit: int) -> Incident:
        """An incident of which only the report is known."""
        by = _person(record)
        return cls(
            record=record,
            report=report,
            counted=report,
            records=[record],
            highest_severity=report.severity,
            evidence=list(report.evidence),
            classified_by=by,
            changed_by=by,
            _changes=bit,
        )

    def take(self, record: Record, bit: int, known: int) -> None:  # noqa: C901 - one case a kind
        """Let one more record tell on it; see `told`."""
        body = record.body
        self.records.append(record)
        match body:
            case Correction():
                try:
                    self.report = corrected(self.report, body.fields)
                except ValueError:
                    return  # refused where it is filed; here it is one that somebody forged
                self._changed(record, bit)
            case Reclassification():
                self._classify(record, bit, body.severity, body.category)
            case Report():
                # Another station, offline, has drafted the same event: it is one, at its worst.
                self._take_evidence(body.evidence)
                if body.severity.rank > self.highest_severity.rank:
                    self._classify(record, bit, body.severity, self.category)
            case Attachment():
                self._take_evidence(body.evidence)
            case Review():
                # It says something about what was known where it was made.
                if not self._changes & ~known:
                    self.reviews.append(record)
                    self._behind = None
                    if self.is_reviewed:
                        self.counted = self.report
            case Action():
                self.measures[record.record_id] = Measure(record=record, action=body)
                self.is_closed = False
            case Effectiveness() if (own := self.measures.get(body.action_id)) is not None:
                self.measures[body.action_id] = Measure(
                    record=own.record,
                    action=own.action,
                    is_effective=body.is_effective,
                    checked_by=record.by,
                )
                self.is_closed = self.is_closed and body.is_effective
            case Closure():
                # Somewhere else, something may have been recorded that leaves it open.
                self.is_closed = self.is_closed or (self.counts and not self.open_points)
            case _:
                pass

    def _take_evidence(self, evidence: Iterable[Evidence]) -> None:
        self.evidence += [piece for piece in evidence if piece not in self.evidence]

    def _classify(self, record: Record, bit: int, severity: Severity, category: Category) -> None:
        self.report = self.report.model_copy(update={"severity": severity, "category": category})
        self.highest_severity = worst(self.highest_severity, severity)
        self.classified_by = _person(record)
        self._changed(record, bit)

    def _changed(self, record: Record, bit: int) -> None:
        self.changed_by = _person(record)
        self._behind = None
        self._changes |= bit
        self.reviews.clear()
        self.is_closed = False
        severity = worst(self.counted_severity, self.severity)
        where = self.report if self.people_needed == 1 else self.counted
        self.counted = where.model_copy(update={"severity": severity})


def misfit(report: Report) -> str | None:
    """What of a report does not fit together, in a sentence; None if all does."""
    found = [_LEAST[one] for one, answer in report.answers.items() if answer is Answer.YES
             if one in _LEAST]  # fmt: skip
    for injury in report.injuries or ():
        days = injury.days_away or injury.days_restricted
        found.append(Severity.MAJOR if days else _LEAST.get(injury.treatment, Severity.MINOR))
    least = worst(report.severity, *found)
    if least is report.severity:
        return None
    return (
        f"what it says of injuries is {least.label} at least, and it is {report.severity.label}:"
        " reclassify it, or correct what it says"
    )


_LEAST: Final[dict[str, Severity]] = {
    **dict.fromkeys(set(Question) - {Question.WORK_RELATED}, Severity.MAJOR),
    Question.HOSPITAL: Severity.CRITICAL,
    Question.FATALITY: Severity.CRITICAL,
    Treatment.MEDICAL: Severity.MAJOR,
    Treatment.HOSPITAL: Severity.CRITICAL,
    Treatment.DEATH: Severity.CRITICAL,
}
"""How bad an event is at least, by what is said of injuries; see the meanings of severities."""


def _person(record: Record) -> str | None:
    """Who wrote a record; None if a rule did."""
    return None if record.via is Via.RULE else record.by


def corrected(report: Report, fields: dict[str, Any]) -> Report:
    """A report with other values in some fields.

    Raises:
        ValidationError: If a value is none the field takes.
    """
    return Report.model_validate({**plain(report), **fields})


def unknown_incident(name: str) -> InputError:
    """That there is no such incident."""
    return InputError(f"no incident {name!r:.80} in this log; `robo-eval incidents list` has them")


# Records in their order ------------------------------------------------------------------------


def incident_of(records: Sequence[Record]) -> Incident | None:
    """The incident that some records are about; None while its report has not arrived.

    Args:
        records: All records of one incident, in any order.
    """
    ordered = list(told(records))
    for first, bit, _ in ordered:
        if isinstance(first.body, Report):
            found = Incident.begun(first, first.body, bit)
            break
    else:
        return None
    taken = {first.record_id}
    for record, bit, known in ordered:
        # What a rule said at two stations, in the same words, was said once.
        is_new = record.record_id not in taken or isinstance(record.body, Report)
        if record is not first and is_new:
            taken.add(record.record_id)
            found.take(record, bit, known)
    return found


def incidents_of(records: Iterable[Record]) -> list[Incident]:
    """All incidents of some records, by when they happened."""
    by_incident: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.incident_id is not None:
            by_incident[record.incident_id].append(record)
    found = [incident for own in by_incident.values() if (incident := incident_of(own))]
    return sorted(found, key=lambda one: (one.report.happened_ns, one.incident_id))


def newest(records: Sequence[Record]) -> tuple[str, ...]:
    """Ids of the records that no other one knows of: what the next one comes after."""
    known = {record_id for record in records for record_id in record.after}
    return tuple(sorted({record.record_id for record in records} - known))


def told(records: Sequence[Record]) -> Iterator[tuple[Record, int, int]]:
    """Records so that each comes after all that it knew of.

    What was made apart, at stations that had not been merged, is in the order of their clocks.

    Yields:
        A record, the bit that marks it, and the bits of all records that were known at its station
        when it was made.
    """
    if len({record.station for record in records}) == 1:
        for number, record in enumerate(sorted(records, key=lambda one: one.sequence)):
            yield record, 1 << number, (1 << number) - 1
        return
    before = _before(records)
    known = [0] * len(records)
    for number, place in enumerate(_sorted(records, before)):
        own = 0
        for other in before[place]:
            own |= known[other]
        known[place] = own | 1 << number
        yield records[place], 1 << number, own


def _before(records: Sequence[Record]) -> list[set[int]]:
    """What each record comes after: those it names, and those of its station before it."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        places[record.record_id].append(place)
    before = [
        {other for record_id in record.after for other in places.get(record_id, ())} - {place}
        for place, record in enumerate(records)
    ]
    last: dict[str, int] = {}
    for place in sorted(range(len(records)), key=lambda one: records[one].sequence):
        station = records[place].station
        if station in last:
            before[place].add(last[station])
        last[station] = place
    return before


def _sorted(records: Sequence[Record], before: Sequence[set[int]]) -> list[int]:
    after: defaultdict[int, list[int]] = defaultdict(list)
    waiting = [len(own) for own in before]
    for place, own in enumerate(before):
        for other in own:
            after[other].append(place)

    def key(place: int) -> tuple[int, str, int, int]:
        record = records[place]
        return record.at.time_ns, record.station, record.sequence, place

    ready = [key(place) for place, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    found: list[int] = []
    while ready:
        place = heapq.heappop(ready)[-1]
        found.append(place)
        for later in after[place]:
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, key(later))
    # Records that name each other in a circle are forged; they are shown all the same.
    left = set(range(len(records))) - set(found)
    return found + sorted(left, key=key)


# What may follow -------------------------------------------------------------------------------


def check(incident: Incident, body: Body, by: str, same_as: Incident | None = None) -> None:
    """Refuse a record that may not follow.

    Args:
        incident: The incident as it stands.
        body: What is to be recorded about it.
        by: By whom.
        same_as: The incident it is said to be the same event as, if it is.

    Raises:
        RefusedError: If it may not follow; the message says why and what would do.
    """
    problem = _problem(incident, body, by)
    if problem is None and same_as is not None:
        problem = _problem_of_duplicate(incident, same_as)
    if problem is not None:
        raise RefusedError(problem)


def _problem(incident: Incident, body: Body, by: str) -> str | None:  # noqa: C901 - a case a kind
    name = f"incident {incident.name}"
    match body:
        case Correction():
            try:
                after = corrected(incident.report, body.fields)
            except ValueError as err:
                return f"{name}: the correction fails: {said(err, named=False)}"
            return f"{name}: the correction changes nothing" if after == incident.report else None
        case Reclassification():
            is_same = (body.severity, body.category) == (incident.severity, incident.category)
            return f"{name} is {body.severity} and {body.category} already" if is_same else None
        case Review():
            return _problem_of_review(incident, body, by)
        case Action() if incident.status is Status.DISMISSED:
            return f"{name} was dismissed; it asks for no action"
        case Effectiveness():
            measure = incident.measures.get(body.action_id)
            if measure is None:
                return f"{name} has no action {body.action_id}"
            if incident.people_needed > 1 and same_person(measure.action.owner, by):
                return (
                    f"{by} owns this action; of an incident that was {incident.highest_severity}"
                    " another person has to check whether it helped"
                )
        case Closure():
            if incident.status is Status.DISMISSED:
                return f"{name} was dismissed; nothing is left to do about it"
            if incident.is_closed:
                return f"{name} cannot be closed: it is closed already"
            if lacking := incident.open_points:
                return f"{name} cannot be closed: {lacking[0]}"
        case _:
            pass
    return None


def _problem_of_review(incident: Incident, body: Review, by: str) -> str | None:
    name = f"incident {incident.name}"
    if incident.is_closed and incident.counts:
        return f"{name} is closed; correct or reclassify it first"
    if body.duplicate_of == incident.incident_id:
        return f"{name} cannot be a duplicate of itself"
    behind = incident.reviewers if incident.verdict == body.verdict else ()
    if any(same_person(one, by) for one in behind):
        return f"{by} stands behind {body.verdict!r} already; a second person has to look at {name}"
    own = (incident.changed_by, incident.classified_by)
    if incident.people_needed > 1 and any(one and same_person(one, by) for one in own):
        return (
            f"{by} reported or last changed {name}, which was {incident.highest_severity}; another"
            " person has to review it"
        )
    return None


def _problem_of_duplicate(incident: Incident, same_as: Incident) -> str | None:
    """The other one has to count for this one as well."""
    if not same_as.counts:
        return f"incident {same_as.name} does not count itself; it was dismissed"
    if same_as.counted.side is not incident.counted.side:
        return (
            f"incident {same_as.name} happened on side {same_as.counted.side}, {incident.name} on"
            f" {incident.counted.side}; they are not the same"
        )
    if same_as.counted_severity.rank < incident.counted_severity.rank:
        return (
            f"incident {same_as.name} counts as {same_as.counted_severity}, {incident.name} as"
            f" {incident.counted_severity}; reclassify {same_as.name} first"
        )
    return None
