"""Whether the log is what was recorded, who may use it, and who looked at what."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from sqlalchemy import or_, select

from robo_eval.core.errors import InputError
from robo_eval_incidents.bodies import Account, View
from robo_eval_incidents.incident import Incident
from robo_eval_incidents.record import Record, record_of
from robo_eval_incidents.schema import RECORDS
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.web.deps import NotFoundError, Person, Site, ThisForm, ThisSite
from robo_eval_incidents.web.permissions import check_audit, check_verify
from robo_eval_incidents.web.templating import render

router: Final = APIRouter(include_in_schema=False)
_ROWS: Final = 200
_MOST_AFTER: Final = 2**62
_running: Final = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A record for auditors.

    Attributes:
        number: Order of arrival.
        record: The record.
        incident: Incident that was looked at; None for a change of an account.
    """

    number: int
    record: Record
    incident: Incident | None


@router.get("/verify")
def show_verify(request: Request, session: Person) -> HTMLResponse:
    """What verification is, and the button that runs it."""
    check_verify(session.user)
    return render(request, "verify.html.j2", session, report=None, took_s=0.0, problem="")


@router.post("/verify")
def verify(request: Request, site: ThisSite, form: ThisForm) -> HTMLResponse:
    """Verify the log, and say what was found."""
    check_verify(form.user)
    if not _running.acquire(blocking=False):
        return _not_verified(request, form.session, "another verification is running; wait for it")
    started = time.monotonic()
    try:
        report = verify_log(site.target)
    except InputError as err:
        return _not_verified(request, form.session, str(err))
    finally:
        _running.release()
    return render(
        request,
        "verify.html.j2",
        form.session,
        report=report,
        took_s=time.monotonic() - started,
        problem="",
    )


def _not_verified(request: Request, session: Person, problem: str) -> HTMLResponse:
    return render(
        request, "verify.html.j2", session, status=409, report=None, took_s=0.0, problem=problem
    )


@router.get("/audit")
def show_audit(
    request: Request, site: ThisSite, session: Person, before: int = _MOST_AFTER
) -> HTMLResponse:
    """Who looked at critical incidents, and which accounts were changed, newest first."""
    check_audit(session.user)
    found = _views_and_accounts(site, min(max(before, 0), _MOST_AFTER))
    older = found[-1].number if len(found) == _ROWS else None
    return render(
        request,
        "audit.html.j2",
        session,
        found=found,
        older=older,
        accounts=site.accounts.list(),
    )


def _views_and_accounts(site: Site, before: int) -> list[Seen]:
    kinds = [RECORDS.c.content.contains(f'"kind":"{body.kind}"') for body in (View, Account)]
    query = (
        select(RECORDS.c.number, RECORDS.c.content)
        .where(RECORDS.c.number < before, or_(*kinds))
        .order_by(RECORDS.c.number.desc())
        .limit(_ROWS)
    )
    with site.log.database.reading() as connection:
        rows = connection.execute(query).all()
    incidents: dict[str, Incident | None] = {}
    found = []
    for number, content in rows:
        record = record_of(content, where=f"{site.log.name}: record {number}")
        about = record.incident_id
        if about is not None and about not in incidents:
            incidents[about] = _incident(site, about)
        incident = incidents.get(about) if about is not None else None
        found.append(Seen(number=number, record=record, incident=incident))
    return found


def _incident(site: Site, incident_id: str) -> Incident | None:
    try:
        return site.incident(incident_id)
    except NotFoundError:
        return None
