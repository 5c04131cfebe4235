"""What programs send to the incident log, and what they get back."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from robo_eval.core.kinds import Side
from robo_eval.core.yaml_form import Section
from robo_eval_incidents.kinds import (
    Action,
    Attachment,
    Body,
    Closure,
    Correction,
    Effectiveness,
    Evidence,
    Nil,
    Reclassification,
    RecordId,
    Report,
    Review,
    Withdrawal,
    plain,
)
from robo_eval_incidents.record import Record, content_digest
from robo_eval_incidents.state import Incident, Measure
from robo_eval_incidents.text import Name
from robo_eval_incidents.words import Category, Engagement, Severity, Status, Via

_Body = TypeVar("_Body", bound=Body)

Sent = Annotated[
    RecordId | None,
    Field(description="Id of the record, a UUID in lower case: sent twice, it is one record."),
]
"""An id that a program may give."""


def body_of(kind: type[_Body], sent: Section) -> _Body:
    """What a record is to say, without what is about the sending.

    Args:
        kind: What kind of record.
        sent: What was sent: such a body, and an id.
    """
    return kind.model_validate(sent.model_dump(exclude={"record_id"}, exclude_unset=True))


# What comes in ---------------------------------------------------------------------------------


class NewReport(Report):
    """A report of an incident."""

    record_id: Sent = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rule is not None:
            raise ValueError("rule: only a rule drafts; leave it out of what a person reports")
        return self


class NewCorrection(Correction):
    """Other values for fields of a report."""

    record_id: Sent = None


class NewReclassification(Reclassification):
    """Another severity or category."""

    record_id: Sent = None


class NewAttachment(Attachment):
    """Further evidence."""

    record_id: Sent = None


class NewReview(Review):
    """What a reviewer found."""

    record_id: Sent = None


class NewAction(Action):
    """A corrective action."""

    record_id: Sent = None


class NewEffectiveness(Effectiveness):
    """Whether a corrective action helped."""

    record_id: Sent = None


class NewClosure(Closure):
    """That nothing is left to do."""

    record_id: Sent = None


class NewNil(Nil):
    """A time in which nothing happened."""

    record_id: Sent = None


class NewWithdrawal(Withdrawal):
    """That hours or a shift were logged by mistake."""

    record_id: Sent = None


class Login(Section):
    """Name and password of an account."""

    name: Name
    password: Annotated[str, Field(min_length=1, max_length=512)]


# What goes out ---------------------------------------------------------------------------------


class Shown(BaseModel):
    """Something that is shown."""

    model_config = ConfigDict(from_attributes=True)


class Problem(Shown):
    """Why nothing was done."""

    detail: str
    """One line."""


class Who(Shown):
    """An account, and what it may do."""

    user: str
    roles: list[str]


class Token(Who):
    """A session that began."""

    token: str
    """Goes into the header `Authorization: Bearer TOKEN` of each call."""
    idle_s: int
    """The session ends after so long without a call."""
    whole_s: int
    """The session ends after so long in any case."""


class RecordShown(Shown):
    """A record."""

    station: str
    sequence: int
    record_id: str
    incident_id: str | None
    kind: str
    time_ns: int
    by: str
    via: Via
    previous_sha256: str
    sha256: str
    """Digest of its canonical form."""
    body: dict[str, Any]

    @classmethod
    def of(cls, record: Record) -> RecordShown:
        """A record as it is shown."""
        return cls(
            station=record.station,
            sequence=record.sequence,
            record_id=record.record_id,
            incident_id=record.incident_id,
            kind=record.kind,
            time_ns=record.at.time_ns,
            by=record.by,
            via=record.via,
            previous_sha256=record.previous_sha256,
            sha256=content_digest(record.content()),
            body=plain(record.body),
        )


class RowShown(Shown):
    """An incident in a list."""

    incident_id: str
    name: str
    """Station and number."""
    happened_ns: int
    robot: str
    side: Side
    severity: Severity
    counted_severity: Severity
    category: Category
    status: Status
    engagement: Engagement
    episode_id: str | None
    policy: str | None
    by: str
    description: str
    """The beginning of it."""
    counts: bool


class TimeShown(Shown):
    """Hours, or a shift without incidents, as somebody logged them."""

    record_id: str
    name: str
    """Station and number."""
    kind: Literal["exposure", "nil"]
    by: str
    robot: str | None
    side: Side
    start_ns: int
    end_ns: int
    what: str
    """Mode and task of exposure, the note of a nil report."""
    withdrawn_by: str | None
    """Who took it back; none if it counts."""
    reason: str | None


class TimesShown(Shown):
    """Some logged times, newest first."""

    times: list[TimeShown]
    more: bool
    """Whether there are older ones."""


class PageShown(Shown):
    """Some incidents, newest first."""

    rows: list[RowShown]
    next: str | None
    """Give this as `after` for the older ones; none if there are none."""


class ActionShown(Shown):
    """A corrective action."""

    action_id: str
    what: str
    owner: str
    due: date | None
    by: str
    is_effective: bool | None
    """What the last check found; none if nobody checked."""

    @classmethod
    def of(cls, measure: Measure) -> ActionShown:
        """An action as it is shown."""
        return cls(
            action_id=measure.record.record_id,
            what=measure.action.what,
            owner=measure.action.owner,
            due=measure.action.due,
            by=measure.record.by,
            is_effective=measure.is_effective,
        )


class IncidentShown(Shown):
    """An incident as it stands."""

    incident_id: str
    name: str
    status: Status
    severity: Severity
    counted_severity: Severity
    """How bad it counts: a milder one counts once it is reviewed."""
    highest_severity: Severity
    category: Category
    counts: bool
    report: dict[str, Any]
    """The report with its corrections."""
    evidence: list[Evidence]
    verdict: str | None
    reviewers: list[str]
    """Who stands behind the verdict."""
    people_needed: int
    actions: list[ActionShown]
    open_points: list[str]
    """What is missing until it may be closed."""
    records: list[RecordShown]
    """All its records, oldest first; who viewed it is for auditors."""

    @classmethod
    def of(cls, incident: Incident, *, with_views: bool) -> IncidentShown:
        """An incident as it is shown."""
        return cls(
            incident_id=incident.incident_id,
            name=incident.name,
            status=incident.status,
            severity=incident.severity,
            counted_severity=incident.counted_severity,
            highest_severity=incident.highest_severity,
            category=incident.category,
            counts=incident.counts,
            report=plain(incident.report),
            evidence=incident.evidence,
            verdict=incident.verdict,
            reviewers=list(incident.reviewers),
            people_needed=incident.people_needed,
            actions=[ActionShown.of(one) for one in incident.measures.values()],
            open_points=incident.open_points,
            records=[
                RecordShown.of(one) for one in incident.records if with_views or one.kind != "view"
            ],
        )


class Line(Shown):
    """A record as it is kept."""

    number: int
    """Order of arrival here, or place in the chain of the station that was asked for."""
    sha256: str
    content: str
    """Canonical form, over which the digest is taken."""
    texts: str | None
    """Free texts and their salts, whose digests the canonical form holds; a JSON object."""


class Lines(Shown):
    """Some records, in their order."""

    records: list[Line]
    next: int | None
    """Give this as `after` for the newer ones; none if there are none."""


class HeadShown(Shown):
    """How far a station has got."""

    sequence: int
    sha256: str


class CheckpointShown(Shown):
    """A checkpoint, as `robo-eval verify --checkpoint` reads it from a file."""

    checkpoint: str
    """Its canonical form."""
    signature: str
    stamp: str | None
