"""For how long robots were exposed, how often something happened, and what the score is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval_incidents.exposure import Hours, HoursRow, hours
from robo_eval_incidents.standing import SideStanding, Standing, standing
from robo_eval_incidents.taxonomy import Severity
from robo_eval_incidents.web.deps import Person, Site, ThisSite
from robo_eval_incidents.web.pages.answers import status_of
from robo_eval_incidents.web.templating import render
from robo_eval_incidents.web.words import time_of_day

router: Final = APIRouter(include_in_schema=False)
SHOWN: Final = 20
"""Gaps, overlaps and incidents outside all hours that are listed; all of them are counted."""
_WIDTH: Final = 100.0


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
) -> HTMLResponse:
    """Exposure, rates and score of a period."""
    asked = Asked(since=since.strip(), until=until.strip(), robot=robot.strip())
    problem, status, found, exposure = "", 200, None, None
    try:
        found, exposure = _found(site, asked)
    except InputError as err:
        problem, status = str(err), status_of(err)
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
        exposure=exposure,
        rows=() if exposure is None else _rows(exposure, asked.robot),
        shown=SHOWN,
        real=Side.REAL,
    )


def _found(site: Site, asked: Asked) -> tuple[Standing, Hours]:
    since_ns = time_of_day(asked.since, "from")
    until_ns = time_of_day(asked.until, "to", days_later=1)
    found = standing(site.log, since_ns, until_ns, asked.robot or None)
    return found, hours(site.log, since_ns, until_ns)


def _place(side: SideStanding) -> int:
    """Real robots first: what counts."""
    return (Side.REAL, Side.TWIN, Side.SIM).index(side.side)


def _rows(exposure: Hours, robot: str) -> tuple[HoursRow, ...]:
    return tuple(row for row in exposure.rows if robot in ("", row.robot))


def _rates(side: SideStanding) -> list[Rate]:
    highest = max((rate.high or 0.0 for rate in side.rates.values()), default=0.0)
    return [
        Rate(
            severity=severity,
            count=None if side.counts is None else side.counts[severity],
            rate=side.rates[severity],
            x=_places(side.rates[severity], highest),
        )
        for severity in reversed(Severity)
    ]


def _places(rate: Estimate, highest: float) -> tuple[float, float, float] | None:
    if rate.value is None or rate.low is None or rate.high is None or not highest:
        return None
    low, value, high = (
        round(_WIDTH * number / highest, 2) for number in (rate.low, rate.value, rate.high)
    )
    return low, value, high
