"""The interface for programs: the same log, the same accounts and the same rules as the pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, WrapValidator, create_model

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.yaml_form import Section
from robo_eval.web.deps import origin_of
from robo_eval.web.errors import NotFoundError
from robo_eval.web.sessions import IDLE_NS, WHOLE_NS
from robo_eval.web.strict import StrictRoute
from robo_eval_incidents.accounts import Role, User
from robo_eval_incidents.checkpoint import checkpoints_of
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.hours import check_period, hours, logged_times
from robo_eval_incidents.kinds import KINDS, Body, RecordId, section_of
from robo_eval_incidents.lists import Filter, list_incidents, row_dict, todo, utc_today
from robo_eval_incidents.record import STATION, content_digest
from robo_eval_incidents.standing import standing
from robo_eval_incidents.state import RefusedError
from robo_eval_incidents.tables import Whole
from robo_eval_incidents.text import LATEST_NS, Line, Name
from robo_eval_incidents.web.deps import Program, Site, ThisSite
from robo_eval_incidents.web.permissions import check_may, check_record
from robo_eval_incidents.words import Category, Severity, Status, Via

MOST_ROWS: Final = 500
"""Incidents or records in one answer."""


class Problem(BaseModel):
    """Why nothing was done, in one line."""

    detail: str


_PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": Problem, "description": "The request cannot be read."},
    401: {"model": Problem, "description": "Nobody is logged in."},
    403: {"model": Problem, "description": "The account's roles do not include this."},
    404: {"model": Problem, "description": "There is no such thing."},
    409: {"model": Problem, "description": "This may not follow what is recorded."},
    413: {"description": "The request is too long."},
    422: {"model": Problem, "description": "A field cannot be used."},
    429: {"model": Problem, "description": "Many others are logging in."},
    503: {"model": Problem, "description": "The log cannot be read or written at the moment."},
}


class _Route(StrictRoute):
    body = "{kind, fields, about, record_id}"


router: Final = APIRouter(route_class=_Route, responses=_PROBLEMS)

_ID: Final = r"^([0-9a-f-]{8,36})$"
_ABOUT: Final = "Id of an incident, or its beginning of 8 characters or more."
_Time = Annotated[int | None, Query(ge=0, le=LATEST_NS, description="UTC, ns since 1970.")]
_Text = Annotated[Line | None, Query()]
_Limit = Annotated[int, Query(ge=1, le=MOST_ROWS)]
_Skipped = Annotated[int, Query(ge=0, le=LATEST_NS)]


# Sessions --------------------------------------------------------------------------------------


class Login(Section):
    """Name and password of an account."""

    # The library warns of what it does itself where such a model is built late.
    model_config = ConfigDict(defer_build=False)

    name: Name
    password: Annotated[str, Field(min_length=1, max_length=512)]


class Who(BaseModel):
    """An account, and what it may do."""

    user: str
    roles: list[str]


class Token(Who):
    """A session that began."""

    token: str = Field(description="Goes into the header `Authorization: Bearer TOKEN`.")
    idle_s: int = Field(description="The session ends after so long without a call.")
    whole_s: int = Field(description="The session ends after so long in any case.")


@router.post("/session", status_code=201)
def log_in(request: Request, site: ThisSite, sent: Login) -> Token:
    """Begin a session: the token goes into the header of each call."""
    user = site.accounts.log_in(sent.name, sent.password, origin_of(request))
    token = site.sessions.begin(user, for_program=True)
    return Token(**_who(user), token=token, idle_s=IDLE_NS // 10**9, whole_s=WHOLE_NS // 10**9)


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


# Recording -------------------------------------------------------------------------------------


def _sent(kind: str, body: type[Body]) -> type[Section]:
    """What is sent to record something of a kind."""

    def read(values: Any, _handler: Any) -> Body:
        made = section_of(body, values)
        if getattr(made, "rule", None) is not None:
            raise InputError("rule: only a rule drafts; leave it out of what a person reports")
        return made

    fields: dict[str, Any] = {
        "kind": (Literal[kind], ...),
        "fields": (Annotated[body, WrapValidator(read)], ...),
        "record_id": (RecordId | None, Field(None, description="Sent twice, it is one record.")),
    }
    if body.about_incident:
        fields["about"] = (str, Field(pattern=_ID, description=_ABOUT))
    return create_model(f"New{body.__name__}", __base__=Section, __doc__=body.__doc__, **fields)


if TYPE_CHECKING:
    Sent = Any
else:
    Sent = Annotated[
        Union[tuple(_sent(kind, body) for kind, body in KINDS.items() if body.role)],  # noqa: UP007
        Field(discriminator="kind"),
    ]
    """Anything that a person records, by its kind."""


@router.post("/records", status_code=201)
def record(site: ThisSite, session: Program, sent: Sent) -> dict[str, Any]:
    """Record something: a report, whose id is that of the incident, or what is said about one."""
    about = getattr(sent, "about", None)
    # Whether there is such an incident is for those to know who may say something about it.
    incident = None if about is None else site.incident(about)
    check_record(session.user, type(sent.fields), incident)
    try:
        made = site.log.file(
            sent.fields,
            by=session.user.name,
            via=Via.API,
            incident_id=None if incident is None else incident.incident_id,
            record_id=sent.record_id,
        )
    except (RefusedError, IncidentLogError):
        raise
    except InputError as err:
        if sent.record_id is not None and site.log.find(sent.record_id) is not None:
            raise RefusedError(str(err)) from err
        raise
    return made.as_dict()


# How things stand ------------------------------------------------------------------------------


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
) -> dict[str, Any]:
    """Incidents as they stand, newest first; `next`, given as `after`, asks for the older ones."""
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
    today = utc_today()
    return {"rows": [row_dict(one, today) for one in page.rows], "next": page.next}


@router.get("/incidents/{incident_id}")
def show_incident(
    site: ThisSite,
    session: Program,
    incident_id: Annotated[str, Path(pattern=_ID, description=_ABOUT)],
) -> Whole:
    """An incident with all that was recorded about it; of a critical one this is recorded too."""
    incident = site.incident(incident_id)
    site.note_view(session, incident, Via.API)
    return Whole.of(incident, views=session.user.may_audit)


@router.get("/todo")
def show_todo(
    site: ThisSite,
    _session: Program,
    *,
    robot: _Text = None,
    owner: _Text = None,
    overdue: bool = False,
    after: _Skipped = 0,
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
        "rows": [row_dict(one, today) for one in found.rows],
        "next": end if end < found.count else None,
    }


@router.get("/hours")
def show_hours(
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
) -> dict[str, Any]:
    """Hours and shifts without incidents as they were logged, newest first."""
    check_period(since_ns, until_ns)
    times, more = logged_times(site.log, since_ns, until_ns, robot=robot or None, limit=limit)
    return {"times": [one.as_dict() for one in times], "more": more}


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
    after: _Skipped = 0,
    limit: _Limit = 100,
) -> dict[str, Any]:
    """Records as they are kept, those of who viewed what included: for auditors.

    Each has its number (of arrival here, or in the chain of the station that was asked for), its
    canonical form, the digest of that, and its free texts with their salts.
    """
    check_may(session.user, "audit")
    found = list(islice(_lines(site, station, after), limit + 1))
    shown = found[:limit]
    # That they were read is recorded for each critical incident they are about.
    for incident_id in {json.loads(line["content"])["incident_id"] for line in shown} - {None}:
        try:
            incident = site.incident(incident_id)
        except NotFoundError:
            continue  # its report has not arrived here
        site.note_view(session, incident, Via.API)
    return {"records": shown, "next": shown[-1]["number"] if len(found) > limit else None}


def _lines(site: Site, station: str | None, after: int) -> Iterator[dict[str, Any]]:
    for number, content, texts in site.log.stored(station=station, after=after):
        digest = content_digest(content)
        yield {"number": number, "sha256": digest, "content": content, "texts": texts}


@router.get("/verification")
def verify(site: ThisSite, session: Program) -> dict[str, Any]:
    """Whether the log still is what was recorded; reads all of it."""
    check_may(session.user, "verify")
    return site.verify().as_dict()


@router.get("/checkpoints")
def show_checkpoints(site: ThisSite, session: Program) -> list[dict[str, str]]:
    """The checkpoints that the log keeps of itself, oldest first: keep them elsewhere."""
    check_may(session.user, "export")
    return [one.as_dict() for one in checkpoints_of(site.log)]
