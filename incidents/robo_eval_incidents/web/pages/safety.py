"""For how long robots were exposed, how often something happened, and what the score is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.web.errors import NotFoundError
from robo_eval.web.templating import go_to, render
from robo_eval_incidents.hours import (
    TITLES,
    Hours,
    HoursRow,
    find_time,
    hours,
    logged_times,
)
from robo_eval_incidents.kinds import Exposure, Withdrawal
from robo_eval_incidents.moments import time_of_day
from robo_eval_incidents.rows import LoggedTime
from robo_eval_incidents.standing import SideStanding, Standing, standing
from robo_eval_incidents.trends import trends
from robo_eval_incidents.web import forms
from robo_eval_incidents.web.deps import Person, Session, Site, ThisForm, ThisSite
from robo_eval_incidents.web.permissions import check_record, may_record
from robo_eval_incidents.words import SIDES, Severity

router: Final = APIRouter(include_in_schema=False)
SHOWN: Final = 20
"""Gaps, overlaps and incidents outside all hours that are listed; all of them are counted."""
TIMES: Final = 50
"""Logged times that are listed; a shorter period has others."""
_WIDTH: Final = 100.0
_MONTHS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One line of the table of rates.

    Attributes:
        severity: Severity.
        count: Incidents that count; None if nobody kept a record.
        rate: Incidents per 1,000 h with their interval.
        x: Place of low end, value and high end on the scale of the table, 0 to 100; None without
            an interval.
    """

    severity: Severity
    count: int | None
    rate: Estimate
    x: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the page was asked for.

    Attributes:
        since: First day; empty for all before.
        until: Last day; empty for all after.
        robot: Robot; empty for all.
    """

    since: str
    until: str
    robot: str


@router.get("/safety")
def show_safety(
    request: Request,
    site: ThisSite,
    session: Person,
    since: str = "",
    until: str = "",
    robot: str = "",
    withdrawn: str = "",
    logged: str = "",
) -> HTMLResponse:
    """Exposure, rates and score of a period."""
    asked = Asked(since=since.strip(), until=until.strip(), robot=robot.strip())
    return _page(request, site, session, asked, withdrawn=withdrawn[:80], logged=logged[:80])


@router.post("/times")
def log_hours(request: Request, site: ThisSite, form: ThisForm) -> Response:
    """Log hours that a robot worked."""
    check_record(form.user, Exposure)
    asked = Asked(since="", until="", robot="")
    try:
        record = forms.file(site, form, forms.exposure_of(form.fields))
    except InputError as err:
        return _page(
            request, site, form.session, asked,
            problem=str(err), status=err.http_status, failed="hours", typed=form.fields,
        )  # fmt: skip
    return go_to(request, f"/safety?logged={record.name}#times")


@router.post("/times/{record_id}/withdraw")
def withdraw(request: Request, site: ThisSite, form: ThisForm, record_id: str) -> Response:
    """Take back hours, or a shift without incidents, that were logged by mistake."""
    check_record(form.user, Withdrawal)
    asked = Asked(**{name: form.fields.get(name, "").strip() for name in Asked.__slots__})
    try:
        time = find_time(site.log, record_id)
    except InputError as err:
        raise NotFoundError(str(err)) from err
    try:
        body = forms.body_of(Withdrawal, form.fields, withdrawn_id=time.record_id)
        forms.file(site, form, body)
    except InputError as err:
        return _page(
            request,
            site,
            form.session,
            asked,
            problem=f"number {time.name}: {err}",
            status=err.http_status,
            failed=time.record_id,
            reason=form.fields.get("reason", ""),
        )
    query = urlencode({**asdict(asked), "withdrawn": time.name})
    return go_to(request, f"/safety?{query}#times")


@router.get("/trends")
def show_trends(
    request: Request, site: ThisSite, session: Person, robot: str = "", months: str = ""
) -> HTMLResponse:
    """Rates month by month, what the incidents were, and how long actions wait."""
    robot, problem, found = robot.strip(), "", None
    status = 200
    try:
        count = int(months) if months.isdecimal() and len(months) < 5 else _MONTHS
        zone = request.query_params.get("zone", "").strip() or "UTC"
        found = trends(site.log, months=count, robot=robot or None, zone=zone)
    except InputError as err:
        problem, status = str(err), err.http_status
    rates = [] if found is None else [one.rate for one in found.months]
    highest = max((one.high or 0.0 for one in rates), default=0.0)
    return render(
        request,
        "trends.html.j2",
        session,
        status=status,
        problem=problem,
        found=found,
        robot=robot,
        robots=site.robots(),
        places=[_places(one, highest) for one in rates],
        severities_listed=tuple(reversed(Severity)),
        total=0 if found is None else sum(count for _, count in found.categories),
    )


def _page(
    request: Request,
    site: Site,
    session: Session,
    asked: Asked,
    *,
    problem: str = "",
    status: int = 200,
    withdrawn: str = "",
    logged: str = "",
    failed: str = "",
    reason: str = "",
    typed: Mapping[str, str] | None = None,
) -> HTMLResponse:
    found: Standing | None = None
    exposure: Hours | None = None
    times: Sequence[LoggedTime] = ()
    more = False
    taken = _logged(site, withdrawn) if withdrawn else None
    try:
        found, exposure, times, more = _found(site, asked)
    except InputError as err:
        problem, status = str(err), err.http_status
    return render(
        request,
        "safety.html.j2",
        session,
        status=status,
        asked=asked,
        problem=problem,
        robots=site.robots(),
        sides=() if found is None else sorted(found.sides.values(), key=_place),
        rates={} if found is None else {side: _rates(one) for side, one in found.sides.items()},
        has_km=exposure is not None and any(row.km is not None for row in exposure.rows),
        exposure=exposure,
        rows=() if exposure is None else _rows(exposure, asked.robot),
        times=times,
        more_times=more,
        may_withdraw=may_record(session.user, Withdrawal),
        may_log=may_record(session.user, Exposure),
        typed=forms.again(typed or {}),
        logged=logged if logged and _logged(site, logged) else "",
        withdrawn=withdrawn if taken is not None and taken.withdrawn_by is not None else "",
        failed=failed,
        reason=reason,
        shown=SHOWN,
        titles=TITLES,
        real=Side.REAL,
        sides_known=SIDES,
    )


def _logged(site: Site, name: str) -> LoggedTime | None:
    """What was logged under a name; None for an address that somebody made up."""
    with suppress(InputError):
        return find_time(site.log, name)
    return None


def _found(site: Site, asked: Asked) -> tuple[Standing, Hours, Sequence[LoggedTime], bool]:
    since_ns = time_of_day(asked.since, "from")
    until_ns = time_of_day(asked.until, "to", days_later=1)
    robot = asked.robot or None
    found = standing(site.log, since_ns, until_ns, robot)
    times = logged_times(site.log, since_ns, until_ns, robot=robot, limit=TIMES)
    return found, hours(site.log, since_ns, until_ns), *times


def _place(side: SideStanding) -> int:
    """Real robots first: what counts."""
    return (Side.REAL, Side.TWIN, Side.SIM).index(side.side)


def _rows(exposure: Hours, robot: str) -> tuple[HoursRow, ...]:
    return tuple(row for row in exposure.rows if robot in ("", row.robot))


def _rates(side: SideStanding) -> dict[str, list[Rate]]:
    """Rates by hour and, of robots that went some, by kilometre."""
    found = {}
    for unit, rates in (("h", side.rates), ("km", side.rates_km)):
        highest = max((rate.high or 0.0 for rate in rates.values()), default=0.0)
        found[unit] = [
            Rate(
                severity=severity,
                count=None if side.counts is None else side.counts[severity],
                rate=rates[severity],
                x=_places(rates[severity], highest),
            )
            for severity in reversed(Severity)
            if rates
        ]
    return found


def _places(rate: Estimate, highest: float) -> tuple[float, float, float] | None:
    if rate.value is None or rate.low is None or rate.high is None or not highest:
        return None
    low, value, high = (
        round(_WIDTH * number / highest, 2) for number in (rate.low, rate.value, rate.high)
    )
    return low, value, high
