"""Taking the incidents of a period out of the log, as a table or as a document."""

from __future__ import annotations

import io
import tempfile
from typing import Any, BinaryIO, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from robo_eval.core.errors import InputError
from robo_eval.web.errors import NotFoundError
from robo_eval.web.templating import render
from robo_eval_incidents import tables
from robo_eval_incidents.lists import Filter
from robo_eval_incidents.moments import time_of_day
from robo_eval_incidents.paper import printed
from robo_eval_incidents.web.deps import Person, Site, ThisSite
from robo_eval_incidents.web.files import pieces_of
from robo_eval_incidents.web.permissions import check_may

router: Final = APIRouter(include_in_schema=False)
_KINDS: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
}


@router.get("/export")
def show_export(request: Request, session: Person) -> HTMLResponse:
    """Which period, and as what."""
    check_may(session.user, "export")
    return render(request, "export.html.j2", session, problem="", since="", until="")


@router.get("/export/incidents.{kind}")
def export(
    request: Request,
    site: ThisSite,
    session: Person,
    kind: str,
    since: str = "",
    until: str = "",
) -> Response:
    """The incidents of a period."""
    check_may(session.user, "export")
    if kind not in _KINDS:
        raise NotFoundError(f"there is no export as {kind:.20}; there are {', '.join(_KINDS)}")
    try:
        wanted = Filter(
            since_ns=time_of_day(since, "from"),
            until_ns=time_of_day(until, "to", days_later=1),
        )
        _check_order(wanted)
        site.note_views(session, wanted)
        file = _written(site, kind, wanted)
    except InputError as err:
        return render(
            request,
            "export.html.j2",
            session,
            status=err.http_status,
            problem=str(err),
            since=since,
            until=until,
        )
    # A day may come with its zone, which is for no name of a file.
    period = "_".join(day.strip()[:10] for day in (since, until) if day.strip()) or "all"
    headers = {"content-disposition": f'attachment; filename="incidents_{period}.{kind}"'}
    return StreamingResponse(pieces_of(file), media_type=_KINDS[kind], headers=headers)


def _check_order(wanted: Filter) -> None:
    since_ns, until_ns = wanted.since_ns, wanted.until_ns
    if since_ns is not None and until_ns is not None and since_ns >= until_ns:
        raise InputError("from: is after the last day; a period begins before it ends")


def _written(site: Site, kind: str, wanted: Filter) -> BinaryIO:
    file: Any = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was sent
    try:
        if kind == "html":
            file.write(printed(site.log, wanted.since_ns, wanted.until_ns).encode())
        else:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            write = tables.write_csv if kind == "csv" else tables.write_json
            write(site.log, text, wanted)
            text.flush()
            text.detach()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    found: BinaryIO = file
    return found
