"""Reporting an incident, or a shift without one."""

from __future__ import annotations

import time
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from robo_eval.core.errors import InputError
from robo_eval.web.templating import go_to, render
from robo_eval_incidents.hours import Finding, find_time, speaking_against
from robo_eval_incidents.kinds import Nil, Report
from robo_eval_incidents.moments import field_time
from robo_eval_incidents.web import forms
from robo_eval_incidents.web.deps import Person, Posted, Session, Site, ThisForm, ThisSite
from robo_eval_incidents.web.permissions import check_record

router: Final = APIRouter(include_in_schema=False)
_SHIFT_NS: Final = 8 * 3_600 * 10**9


@router.get("/incidents/new")
def show_report(request: Request, site: ThisSite, session: Person) -> HTMLResponse:
    """The form to report an incident with."""
    check_record(session.user, Report)
    return _form(request, site, session, "report.html.j2")


@router.post("/incidents")
def report(request: Request, site: ThisSite, form: ThisForm) -> Response:
    """Record an incident."""
    check_record(form.user, Report)
    try:
        record = forms.file(site, form, forms.report_of(form.fields))
    except InputError as err:
        return _again(request, site, form, "report.html.j2", err)
    return go_to(request, f"/incidents/{record.record_id}?recorded=report")


@router.get("/nil")
def show_nil(request: Request, site: ThisSite, session: Person, recorded: str = "") -> HTMLResponse:
    """The form to report a shift without incidents with."""
    check_record(session.user, Nil)
    recorded = recorded[:80]
    contrary = _contrary(site, recorded) if recorded else None
    return _form(request, site, session, "nil.html.j2", recorded=recorded, contrary=contrary)


@router.post("/nil")
def report_nil(request: Request, site: ThisSite, form: ThisForm) -> Response:
    """Record a shift without incidents."""
    check_record(form.user, Nil)
    try:
        record = forms.file(site, form, forms.body_of(Nil, form.fields))
    except InputError as err:
        return _again(request, site, form, "nil.html.j2", err)
    return go_to(request, f"/nil?recorded={record.station}/{record.sequence}")


def _contrary(site: Site, name: str) -> Finding | None:
    """What speaks against a shift that was reported to be quiet; None if nothing does."""
    try:
        shift = find_time(site.log, name)
    except InputError:
        return None  # an address that somebody made up
    record = site.log.find(shift.record_id)
    return None if record is None else speaking_against(site.log, record)


def _again(
    request: Request, site: Site, form: Posted, template: str, err: InputError
) -> HTMLResponse:
    """The form as it was sent, with what was wrong."""
    return _form(
        request,
        site,
        form.session,
        template,
        problem=str(err),
        typed=form.fields,
        status=err.http_status,
    )


def _form(
    request: Request,
    site: Site,
    session: Session,
    template: str,
    *,
    problem: str = "",
    recorded: str = "",
    contrary: Finding | None = None,
    typed: dict[str, str] | None = None,
    status: int = 200,
) -> HTMLResponse:
    now_ns = time.time_ns()
    robots = site.robots()
    defaults = {
        "happened": field_time(now_ns),
        "roughly": "",
        "start": field_time(now_ns - _SHIFT_NS),
        "end": field_time(now_ns),
        "robot": robots[0] if len(robots) == 1 else "",
        "side": "real",
    }
    return render(
        request,
        template,
        session,
        status=status,
        robots=robots,
        typed=defaults | forms.again(typed or {}),
        problem=problem,
        recorded=recorded,
        contrary=contrary,
    )
