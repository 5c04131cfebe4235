"""The application of a site: its pages, its interface for programs, and what keeps both safe."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

import robo_eval
from robo_eval.core.errors import InputError
from robo_eval.web import login
from robo_eval.web.deps import Site, site_of, visitor
from robo_eval.web.errors import LoggedOutError
from robo_eval.web.security import MOST_BYTES, Guarded
from robo_eval.web.strict import problem
from robo_eval.web.templating import go_to, is_part, render

STATIC: Final = Path(__file__).with_name("static")


def make_app(
    site: Site[Any],
    pages: Iterable[APIRouter],
    api: APIRouter,
    *,
    names: Iterable[str] = (),
    most_message: int = MOST_BYTES,
) -> FastAPI:
    """A site: the given pages, those to log in and out, and its interface for programs.

    Args:
        site: What they work with; it is closed when the server stops.
        pages: Routers of the pages.
        api: Router of what programs call, below `site.api`; of the class `StrictRoute`, so that
            bodies are read strictly and errors are one line of JSON.
        names: Names it is reached by, beside `localhost` and any address.
        most_message: Bytes of one message of a WebSocket at most.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        site.close()

    app = FastAPI(
        title=f"robo-eval {site.name}",
        version=robo_eval.__version__,
        openapi_url=f"{site.api}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_middleware(Guarded, names=("localhost", *names), most_message=most_message)
    furnish(app, site, pages)
    app.include_router(api, prefix=site.api)
    return app


def furnish(app: FastAPI, site: Site[Any], pages: Iterable[APIRouter]) -> None:
    """Give an application that programs call the pages of a site: files, logins, errors.

    Args:
        app: The application; it is `Guarded`, and closes the site when it ends.
        site: What the pages work with.
        pages: Routers of the pages.
    """
    app.state.site = site
    # Programs that draw are those of a report.
    shared: list[str | tuple[str, str]] = [
        ("robo_eval.web", "static"),
        ("robo_eval.page", "static"),
    ]
    app.mount("/static", _Static(directory=site.static, packages=shared), name="static")
    for router in (login.router, *pages):
        app.include_router(router)
    app.add_exception_handler(InputError, _refused)
    app.add_exception_handler(HTTPException, _no_page)
    app.add_exception_handler(RequestValidationError, _no_request)


class _Static(StaticFiles):
    """Files of the page itself, which a browser asks for again after an hour."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One file."""
        answer = await super().get_response(path, scope)
        answer.headers["cache-control"] = "private, max-age=3600"
        return answer


async def _refused(request: Request, err: Exception) -> Response:
    assert isinstance(err, InputError)
    if isinstance(err, LoggedOutError) and not _is_program(request):
        return _to_login(request)
    return await _said(request, err.http_status, str(err))


async def _no_page(request: Request, err: Exception) -> Response:
    assert isinstance(err, HTTPException)
    texts = {404: "there is no such page", 405: "this page does not take that"}
    return await _said(request, err.status_code, texts.get(err.status_code, str(err.detail)))


async def _no_request(request: Request, err: Exception) -> Response:
    assert isinstance(err, RequestValidationError)
    first = err.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    return await _said(request, 422, f"{field}: {first['msg']}")


async def _said(request: Request, status: int, text: str) -> Response:
    if _is_program(request):
        return problem(status, text, is_logged_out=status == HTTPStatus.UNAUTHORIZED)
    return await run_in_threadpool(_page_of_error, request, status, text)


def _page_of_error(request: Request, status: int, text: str) -> Response:
    session = None
    with suppress(InputError):  # the database may be what cannot be read
        session = visitor(request, site_of(request))
    return render(request, "error.html.j2", session, status=status, text=text, code=status)


def _is_program(request: Request) -> bool:
    return request.url.path.startswith(f"{site_of(request).api}/")


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
