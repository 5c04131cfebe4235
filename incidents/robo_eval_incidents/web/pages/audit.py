"""Whether the log is what was recorded, who may use it, and who looked at what."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from sqlalchemy import URL, make_url, select

from robo_eval.core.errors import InputError
from robo_eval.log.sql import is_url, secrets_in
from robo_eval.web.errors import NotFoundError
from robo_eval.web.templating import render
from robo_eval_incidents.kinds import Account, Refusal, View
from robo_eval_incidents.record import Record, record_of
from robo_eval_incidents.schema import RECORDS
from robo_eval_incidents.state import Incident
from robo_eval_incidents.verify import LogReport
from robo_eval_incidents.web.deps import Person, Session, Site, ThisForm, ThisSite
from robo_eval_incidents.web.permissions import check_may

router: Final = APIRouter(include_in_schema=False)
_ROWS: Final = 200
_MOST_AFTER: Final = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A record for auditors.

    Attributes:
        number: Order of arrival.
        record: The record.
        incident: Incident that was looked at; None for what is about none.
    """

    number: int
    record: Record
    incident: Incident | None


@router.get("/verify")
def show_verify(request: Request, site: ThisSite, session: Person) -> HTMLResponse:
    """What verification is, and the button that runs it."""
    check_may(session.user, "verify")
    return _verified(request, site, session)


@router.post("/verify")
def verify(request: Request, site: ThisSite, form: ThisForm) -> HTMLResponse:
    """Verify the log, and say what was found."""
    check_may(form.user, "verify")
    started = time.monotonic()
    try:
        report = site.verify()
    except InputError as err:
        return _verified(request, site, form.session, problem=str(err))
    return _verified(request, site, form.session, report, took_s=time.monotonic() - started)


def _verified(
    request: Request,
    site: Site,
    session: Session,
    report: LogReport | None = None,
    *,
    took_s: float = 0.0,
    problem: str = "",
) -> HTMLResponse:
    return render(
        request,
        "verify.html.j2",
        session,
        status=409 if problem else 200,
        report=report,
        took_s=took_s,
        problem=problem,
        command=verify_command(site.target),
        is_server=is_url(site.target),
    )


def verify_command(target: str | Path) -> str:
    """What is typed into a shell to compare a log with a checkpoint that was kept elsewhere.

    A password in the URL of a server is left out: PGPASSWORD or ~/.pgpass gives it.

    Example:
        >>> verify_command("postgresql://lab@db.example/log")
        'robo-eval verify postgresql://lab@db.example/log --checkpoint FILE'
    """
    if is_url(target):
        url = make_url(str(target))
        # `URL.set` takes no None; what is not given is left out.
        url = URL.create(url.drivername, url.username, None, url.host, url.port, url.database,
                         url.difference_update_query(secrets_in(url)).query)  # fmt: skip
        named = url.render_as_string(hide_password=False)
    else:
        named = str(Path(target).absolute())
    return f"robo-eval verify {shlex.quote(named)} --checkpoint FILE"


@router.get("/audit")
def show_audit(
    request: Request, site: ThisSite, session: Person, before: int = _MOST_AFTER
) -> HTMLResponse:
    """Who looked at critical incidents, changed accounts and refused logins, newest first."""
    check_may(session.user, "audit")
    found = _records(site, min(max(before, 0), _MOST_AFTER))
    older = found[-1].number if len(found) == _ROWS else None
    return render(
        request,
        "audit.html.j2",
        session,
        found=found,
        older=older,
        accounts=site.accounts.list(),
    )


def _records(site: Site, before: int) -> list[Seen]:
    query = (
        select(RECORDS.c.number, RECORDS.c.content, RECORDS.c.texts)
        .where(
            RECORDS.c.number < before, RECORDS.c.kind.in_((View.kind, Account.kind, Refusal.kind))
        )
        .order_by(RECORDS.c.number.desc())
        .limit(_ROWS)
    )
    rows = site.log.database.rows(query)
    incidents: dict[str, Incident | None] = {}
    found = []
    for number, content, texts in rows:
        record = record_of(content, texts, where=f"{site.log.name}: record {number}")
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
