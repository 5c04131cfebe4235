"""The application: the pages, the interface for programs, and what keeps both safe."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

import robo_eval
from robo_eval.core.errors import InputError
from robo_eval_incidents.accounts import Accounts
from robo_eval_incidents.log import open_log
from robo_eval_incidents.web import api
from robo_eval_incidents.web.deps import LoggedOutError, Site, Watch
from robo_eval_incidents.web.files import Folder
from robo_eval_incidents.web.pages import (
    account,
    audit,
    export,
    incident,
    lists,
    login,
    report,
    safety,
    todo,
)
from robo_eval_incidents.web.pages.answers import go_to, status_of
from robo_eval_incidents.web.security import Guarded
from robo_eval_incidents.web.sessions import COOKIE, Sessions
from robo_eval_incidents.web.templating import is_part, render

API: Final = "/api/v1"
STATIC: Final = Path(__file__).with_name("static")
_PAGES: Final = (login, account, report, lists, todo, incident, safety, export, audit)


def make_app(
    target: str | Path,
    *,
    station: str | None = None,
    evidence: Path | None = None,
    names: Iterable[str] = (),
) -> FastAPI:
    """The web page of an incident log.

    Args:
        target: Path of the log, a folder that holds `incidents.db`, or URL.
        station: As whom to write; None for the log's own station.
        evidence: Folder of evidence; None for `incidents/` beside the log.
        names: Names it is reached by, beside `localhost` and any address.

    Raises:
        IncidentLogError: If the log cannot be opened.
        MissingExtraError: If passwords cannot be hashed.
    """
    log = open_log(target, station=station)
    accounts = Accounts(log)
    site = Site(
        target=target,
        log=log,
        accounts=accounts,
        sessions=Sessions(log, accounts),
        evidence=Folder.of(log, evidence),
        watch=Watch(target),
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        site.watch.close()
        accounts.record_refused()
        log.close()

    app = FastAPI(
        title="robo-eval incident log",
        version=robo_eval.__version__,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.site = site
    app.add_middleware(Guarded, names=("localhost", *names))
    app.mount("/static", _Static(directory=STATIC), name="static")
    for module in _PAGES:
        app.include_router(module.router)
    app.include_router(api.router, prefix=API)
    app.add_exception_handler(InputError, _refused)
    app.add_exception_handler(HTTPException, _no_page)
    app.add_exception_handler(RequestValidationError, _no_request)
    return app


class _Static(StaticFiles):
    """Files of the page itself, which a browser asks for again after an hour."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One file."""
        answer = await super().get_response(path, scope)
        answer.headers["cache-control"] = "private, max-age=3600"
        return answer


async def _refused(request: Request, err: Exception) -> Response:
    assert isinstance(err, InputError)
    status = status_of(err)
    if isinstance(err, LoggedOutError) and not _is_program(request):
        return _to_login(request)
    return _said(request, status, str(err))


async def _no_page(request: Request, err: Exception) -> Response:
    assert isinstance(err, HTTPException)
    texts = {404: "there is no such page", 405: "this page does not take that"}
    return _said(request, err.status_code, texts.get(err.status_code, str(err.detail)))


async def _no_request(request: Request, err: Exception) -> Response:
    assert isinstance(err, RequestValidationError)
    first = err.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    return _said(request, 422, f"{field}: {first['msg']}")


def _said(request: Request, status: int, text: str) -> Response:
    if _is_program(request):
        # Not `Basic`: a browser would ask for a password, keep it, and send it with every call.
        headers = {"www-authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
        return JSONResponse({"detail": text}, status_code=status, headers=headers)
    site: Site = request.app.state.site
    session = site.sessions.find(request.cookies.get(COOKIE))
    return render(request, "error.html.j2", session, status=status, text=text, code=status)


def _is_program(request: Request) -> bool:
    return request.url.path.startswith(f"{API}/")


def _to_login(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    back = request.url.path + query
    if request.method != "GET":
        # Back to the page with the form, which has kept what was typed.
        page = urlsplit(request.headers.get("referer", ""))
        back = page.path or "/"
    url = f"/login?next={quote(back, safe='/')}"
    if is_part(request):
        headers = {"HX-Redirect": url}
        return Response(status_code=HTTPStatus.UNAUTHORIZED, headers=headers)
    return go_to(request, url)
