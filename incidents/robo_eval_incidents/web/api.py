"""The interface for programs: the same log, the same accounts and the same rules as the pages."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval_incidents.accounts import Role, User
from robo_eval_incidents.checkpoint import checkpoints_of
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.hours import check_period, hours, logged_times
from robo_eval_incidents.kinds import (
    Action,
    Attachment,
    Body,
    Closure,
    Correction,
    Effectiveness,
    Nil,
    Reclassification,
    Report,
    Review,
    Withdrawal,
)
from robo_eval_incidents.lists import Filter, list_incidents, todo, todo_dict, utc_today
from robo_eval_incidents.record import STATION, content_digest
from robo_eval_incidents.standing import standing
from robo_eval_incidents.state import RefusedError
from robo_eval_incidents.text import LATEST_NS
from robo_eval_incidents.text import Line as LineText
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.web.api_forms import (
    CheckpointShown,
    HeadShown,
    IncidentShown,
    Line,
    Lines,
    Login,
    NewAction,
    NewAttachment,
    NewClosure,
    NewCorrection,
    NewEffectiveness,
    NewNil,
    NewReclassification,
    NewReport,
    NewReview,
    NewWithdrawal,
    PageShown,
    Problem,
    RecordShown,
    RowShown,
    TimeShown,
    TimesShown,
    Token,
    Who,
    body_of,
)
from robo_eval_incidents.web.deps import NotFoundError, Program, Site, ThisSite
from robo_eval_incidents.web.permissions import (
    check_audit,
    check_export,
    check_record,
    check_verify,
)
from robo_eval_incidents.web.sessions import IDLE_NS, WHOLE_NS, Session
from robo_eval_incidents.web.strict import StrictRoute
from robo_eval_incidents.words import Category, Severity, Status, Via

MOST_ROWS: Final = 500
"""Incidents or records in one answer."""

_PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": Problem, "description": "The request cannot be read."},
    401: {"model": Problem, "description": "Nobody is logged in."},
    403: {"model": Problem, "description": "The account's roles do not include this."},
    404: {"model": Problem, "description": "There is no such thing."},
    409: {"model": Problem, "description": "This may not follow what is recorded."},
    413: {"description": "The request is too long."},
    422: {"model": Problem, "description": "A field cannot be used."},
    503: {"model": Problem, "description": "The log cannot be read or written at the moment."},
}

router: Final = APIRouter(route_class=StrictRoute, responses=_PROBLEMS)

_ID: Final = r"^([0-9a-f-]{8,36})$"
IncidentId = Annotated[
    str,
    Path(pattern=_ID, description="Id of an incident, or its beginning of 8 characters or more."),
]
_Time = Annotated[int | None, Query(ge=0, le=LATEST_NS, description="UTC, ns since 1970.")]
_Text = Annotated[LineText | None, Query()]
_Limit = Annotated[int, Query(ge=1, le=MOST_ROWS)]

_verifying: Final = threading.Lock()


# Sessions --------------------------------------------------------------------------------------


@router.post("/session", status_code=201)
def log_in(site: ThisSite, sent: Login) -> Token:
    """Begin a session: the token goes into the header of each call."""
    user = site.accounts.log_in(sent.name, sent.password)
    token = site.sessions.begin(user, for_program=True)
    return Token(
        **_who(user),
        token=token,
        idle_s=IDLE_NS // 10**9,
        whole_s=WHOLE_NS // 10**9,
    )


@router.get("/session")
def show_session(session: Program) -> Who:
    """Whose session this is."""
    return Who(**_who(session.user))


@router.delete("/session", status_code=204, response_class=Response)
def log_out(site: ThisSite, session: Program) -> None:
    """End the session; its token opens nothing any more."""
    site.sessions.end(session)


def _who(user: User) -> dict[str, Any]:
    return {"user": user.name, "roles": [role.value for role in Role if role in user.roles]}


# Incidents -------------------------------------------------------------------------------------


@router.get("/incidents")
def show_incidents(
    site: ThisSite,
    _session: Program,
    side: Side | None = None,
    robot: _Text = None,
    severity: Severity | None = None,
    category: Category | None = None,
    status: Status | None = None,
    text: _Text = None,
    episode_id: _Text = None,
    since_ns: _Time = None,
    until_ns: _Time = None,
    after: Annotated[str | None, Query(max_length=60)] = None,
    limit: _Limit = 50,
) -> PageShown:
    """Incidents as they stand, newest first."""
    wanted = Filter(
        side=side,
        robot=robot,
        severity=severity,
        category=category,
        status=status,
        text=text,
        episode_id=episode_id,
        since_ns=since_ns,
        until_ns=until_ns,
    )
    page = list_incidents(site.log, wanted, after=after, limit=limit)
    return PageShown(rows=[RowShown.model_validate(row) for row in page.rows], next=page.next)


@router.get("/todo")
def show_todo(
    site: ThisSite,
    _session: Program,
    *,
    robot: _Text = None,
    owner: _Text = None,
    overdue: bool = False,
    after: Annotated[int, Query(ge=0, le=LATEST_NS)] = 0,
    limit: _Limit = 50,
) -> dict[str, Any]:
    """What is left to do: overdue first, then the worst, then the oldest; `after` skips some."""
    today = utc_today()
    found = todo(
        site.log, robot=robot, owner=owner, overdue=overdue, today=today, after=after, limit=limit
    )
    end = after + len(found.rows)
    return {
        "today": today.isoformat(),
        "count": found.count,
        "rows": [todo_dict(one, today) for one in found.rows],
        "next": end if end < found.count else None,
    }


@router.post("/incidents", status_code=201)
def report(site: ThisSite, session: Program, sent: NewReport) -> RecordShown:
    """Report an incident; its id is that of the record."""
    return _file(site, session, body_of(Report, sent), sent.record_id)


@router.get("/incidents/{incident_id}")
def show_incident(site: ThisSite, session: Program, incident_id: IncidentId) -> IncidentShown:
    """An incident with all that was recorded about it; of a critical one this is recorded too."""
    incident = site.incident(incident_id)
    site.note_view(session, incident, Via.API)
    return IncidentShown.of(incident, with_views=session.user.may_audit)


@router.post("/incidents/{incident_id}/corrections", status_code=201)
def correct(
    site: ThisSite, session: Program, incident_id: IncidentId, sent: NewCorrection
) -> RecordShown:
    """Give fields of a report other values; operators do so for what they reported themselves."""
    return _file(site, session, body_of(Correction, sent), sent.record_id, incident_id)


@router.post("/incidents/{incident_id}/reclassifications", status_code=201)
def reclassify(
    site: ThisSite, session: Program, incident_id: IncidentId, sent: NewReclassification
) -> RecordShown:
    """Give an incident another severity or category."""
    return _file(site, session, body_of(Reclassification, sent), sent.record_id, incident_id)


@router.post("/incidents/{incident_id}/attachments", status_code=201)
def attach(
    site: ThisSite, session: Program, incident_id: IncidentId, sent: NewAttachment
) -> RecordShown:
    """Name further evidence."""
    return _file(site, session, body_of(Attachment, sent), sent.record_id, incident_id)


@router.post("/incidents/{incident_id}/reviews", status_code=201)
def review(
    site: ThisSite, session: Program, incident_id: IncidentId, sent: NewReview
) -> RecordShown:
    """Say what a review found; major and critical incidents need a second person."""
    return _file(site, session, body_of(Review, sent), sent.record_id, incident_id)


@router.post("/incidents/{incident_id}/actions", status_code=201)
def act(site: ThisSite, session: Program, incident_id: IncidentId, sent: NewAction) -> RecordShown:
    """Say what is going to be done about it."""
    return _file(site, session, body_of(Action, sent), sent.record_id, incident_id)


@router.post("/incidents/{incident_id}/checks", status_code=201)
def check(
    site: ThisSite, session: Program, incident_id: IncidentId, sent: NewEffectiveness
) -> RecordShown:
    """Say whether an action helped."""
    return _file(site, session, body_of(Effectiveness, sent), sent.record_id, incident_id)


@router.post("/incidents/{incident_id}/closures", status_code=201)
def close(
    site: ThisSite, session: Program, incident_id: IncidentId, sent: NewClosure
) -> RecordShown:
    """Say that nothing is left to do."""
    return _file(site, session, body_of(Closure, sent), sent.record_id, incident_id)


@router.post("/nils", status_code=201)
def report_nil(site: ThisSite, session: Program, sent: NewNil) -> RecordShown:
    """Report a shift in which nothing happened."""
    return _file(site, session, body_of(Nil, sent), sent.record_id)


@router.post("/withdrawals", status_code=201)
def withdraw(site: ThisSite, session: Program, sent: NewWithdrawal) -> RecordShown:
    """Take back hours, or a shift without incidents, that were logged by mistake."""
    return _file(site, session, body_of(Withdrawal, sent), sent.record_id)


def _file(
    site: Site,
    session: Session,
    body: Body,
    record_id: str | None,
    name: str | None = None,
) -> RecordShown:
    """Record something, if this account may."""
    # Whether there is such an incident is for those to know who may say something about it.
    incident = site.incident(name) if name is not None else None
    check_record(session.user, type(body), incident)
    try:
        record = site.log.file(
            body,
            by=session.user.name,
            via=Via.API,
            incident_id=None if incident is None else incident.incident_id,
            record_id=record_id,
        )
    except (RefusedError, IncidentLogError):
        raise
    except InputError as err:
        if record_id is not None and site.log.find(record_id) is not None:
            raise RefusedError(str(err)) from err
        raise
    return RecordShown.of(record)


# Exposure and how things stand -----------------------------------------------------------------


@router.get("/exposure")
def show_exposure(
    site: ThisSite, _session: Program, since_ns: _Time = None, until_ns: _Time = None
) -> dict[str, Any]:
    """Hours by robot, side, mode and task, with what was logged twice and what was not."""
    return hours(site.log, since_ns, until_ns).as_dict()


@router.get("/times")
def show_times(
    site: ThisSite,
    _session: Program,
    since_ns: _Time = None,
    until_ns: _Time = None,
    robot: _Text = None,
    limit: _Limit = 50,
) -> TimesShown:
    """Hours and shifts without incidents as they were logged, newest first."""
    check_period(since_ns, until_ns)
    times, more = logged_times(site.log, since_ns, until_ns, robot=robot or None, limit=limit)
    return TimesShown(times=[TimeShown.model_validate(one) for one in times], more=more)


@router.get("/standing")
def show_standing(
    site: ThisSite,
    _session: Program,
    since_ns: _Time = None,
    until_ns: _Time = None,
    robot: _Text = None,
) -> dict[str, Any]:
    """Counts, rates with exact intervals, and the safety score of each side."""
    return standing(site.log, since_ns, until_ns, robot).as_dict()


# What the log is made of -----------------------------------------------------------------------


@router.get("/records")
def show_records(
    site: ThisSite,
    session: Program,
    station: Annotated[str | None, Query(pattern=f"^{STATION.pattern}$")] = None,
    after: Annotated[int, Query(ge=0, le=LATEST_NS)] = 0,
    limit: _Limit = 100,
) -> Lines:
    """Records as they are kept, those of who viewed what included: for auditors."""
    check_audit(session.user)
    found = list(islice(_lines(site, station, after), limit + 1))
    _note_views(site, session, found[:limit])
    return Lines(
        records=found[:limit], next=found[limit - 1].number if len(found) > limit else None
    )


def _lines(site: Site, station: str | None, after: int) -> Iterator[Line]:
    for number, content, texts in site.log.stored(station=station, after=after):
        yield Line(number=number, sha256=content_digest(content), content=content, texts=texts)


def _note_views(site: Site, session: Session, lines: list[Line]) -> None:
    """Record that records were read, for each critical incident they are about."""
    for incident_id in {json.loads(line.content)["incident_id"] for line in lines} - {None}:
        try:
            incident = site.incident(incident_id)
        except NotFoundError:
            continue  # its report has not arrived here
        site.note_view(session, incident, Via.API)


@router.get("/verification")
def verify(site: ThisSite, session: Program) -> dict[str, Any]:
    """Whether the log still is what was recorded; reads all of it."""
    check_verify(session.user)
    if not _verifying.acquire(blocking=False):
        raise RefusedError("another verification is running; wait for it")
    try:
        return verify_log(site.target).as_dict()
    finally:
        _verifying.release()


@router.get("/heads")
def show_heads(site: ThisSite, _session: Program) -> dict[str, HeadShown]:
    """How far each station has got, by name."""
    return {
        name: HeadShown(sequence=head.sequence, sha256=head.sha256)
        for name, head in site.log.heads().items()
    }


@router.get("/checkpoints")
def show_checkpoints(site: ThisSite, session: Program) -> list[CheckpointShown]:
    """The checkpoints that the log keeps of itself, oldest first: keep them elsewhere."""
    check_export(session.user)
    return [
        CheckpointShown(checkpoint=one.content, signature=one.signature, stamp=one.stamp)
        for one in checkpoints_of(site.log)
    ]
