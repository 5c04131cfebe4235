"""The list of incidents, with filters, a page at a time."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from robo_eval.core.errors import InputError
from robo_eval.web.templating import is_part, render
from robo_eval_incidents.lists import WORDS, Filter, Page, list_incidents
from robo_eval_incidents.moments import time_of_day
from robo_eval_incidents.text import name_of
from robo_eval_incidents.web.deps import Person, ThisSite

router: Final = APIRouter(include_in_schema=False)
FILTERS: Final = (
    "text", "severity", "status", "category", "robot", "side", "since", "until", "episode",
)  # fmt: skip
_ROWS: Final = 50


@router.get("/")
def home() -> Response:
    """The first page is the list."""
    return RedirectResponse("/incidents", status_code=303)


@router.get("/incidents")
def show_list(
    request: Request, site: ThisSite, session: Person, after: str | None = None
) -> HTMLResponse:
    """Incidents, newest first."""
    asked = asked_of(request)
    problem, status, page = "", 200, Page(rows=(), next=None)
    try:
        page = list_incidents(site.log, filter_of(asked), after=after, limit=_ROWS)
    except InputError as err:
        problem, status = str(err), err.http_status
    older = None if page.next is None else f"/incidents?{urlencode({**asked, 'after': page.next})}"
    # htmx asks for further rows only to put them below those that are there.
    template = "rows.html.j2" if is_part(request) and after is not None else "list.html.j2"
    return render(
        request,
        template,
        session,
        status=status,
        page=page,
        asked=asked,
        older=older,
        is_first=after is None,
        problem=problem,
        robots=site.robots(),
    )


def asked_of(request: Request) -> dict[str, str]:
    """What was asked for, by the name of the filter; nothing that was left empty."""
    given = request.query_params
    return {name: given[name].strip() for name in FILTERS if given.get(name, "").strip()}


def filter_of(asked: dict[str, str]) -> Filter:
    """Which incidents are asked for.

    Raises:
        InputError: If a filter is none; the message names it.
    """
    values: dict[str, Any] = {}
    for name, kind in WORDS.items():
        if name in asked:
            if asked[name] not in set(kind):
                raise InputError(f"{name}: {asked[name]!r:.60} is none of {', '.join(kind)}")
            values[name] = kind(asked[name])
    for name, field in (("robot", "robot"), ("episode", "episode_id"), ("text", "text")):
        if name in asked:
            values[field] = name_of(asked[name], name)
    return Filter(
        since_ns=time_of_day(asked.get("since", ""), "since"),
        until_ns=time_of_day(asked.get("until", ""), "until", days_later=1),
        **values,
    )
