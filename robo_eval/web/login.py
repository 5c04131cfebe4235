"""Logging in and out."""

from __future__ import annotations

import re
import secrets
from typing import Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from robo_eval.web.accounts import User
from robo_eval.web.deps import AnyForm, Site, ThisForm, ThisSite, Visitor, origin_of
from robo_eval.web.errors import BusyError, LoginError
from robo_eval.web.sessions import WHOLE_NS
from robo_eval.web.templating import go_to, render

router: Final = APIRouter(include_in_schema=False)
_OWN_PATH: Final = re.compile(r"/(?!/)[!-\[\]-~]{0,2000}")
"""A path with its query: printable, and without a backslash, which browsers read as a slash."""
_LOGIN_S: Final = 3_600


@router.get("/login")
def show_login(request: Request, site: ThisSite, found: Visitor, next: str = "/") -> Response:  # noqa: A002 - in the URL
    """The page to log in."""
    if found is not None:
        return RedirectResponse(own_path(next), status_code=303)
    return _login_page(request, site, next)


@router.post("/login")
def log_in(request: Request, site: ThisSite, found: Visitor, fields: AnyForm) -> Response:
    """Open a session, or say that name and password open none."""
    cookie = request.cookies.get(site.sessions.login_cookie)
    if not site.sessions.fits_login(cookie, fields.get("csrf")):
        problem = "this page was open for too long; please try again"
        return _login_page(request, site, fields.get("next", "/"), problem=problem, status=403)
    try:
        user = site.log_in(fields.get("name", ""), fields.get("password", ""), origin_of(request))
    except (LoginError, BusyError) as err:
        next_path = fields.get("next", "/")
        return _login_page(
            request,
            site,
            next_path,
            problem=str(err),
            name=fields.get("name", ""),
            status=err.http_status,
        )
    if found is not None:
        site.sessions.end(found)
    answer = RedirectResponse(own_path(fields.get("next", "/")), status_code=303)
    stay_logged_in(request, site, user, answer)
    answer.delete_cookie(site.sessions.login_cookie)
    return answer


def stay_logged_in(request: Request, site: Site[Any], user: User, answer: Response) -> None:
    """Begin a session, whose token goes along with an answer."""
    # No `max_age`: closing the browser ends it, the server does after a shift. `lax`: a link in an
    # e-mail finds whoever is logged in; forms of other sites still come without it.
    answer.set_cookie(
        site.sessions.cookie,
        site.sessions.begin(user),
        httponly=True,
        samesite="lax",
        secure=_is_tls(request),
    )


@router.post("/logout")
def log_out(request: Request, site: ThisSite, form: ThisForm) -> Response:
    """End the session."""
    site.sessions.end(form.session)
    answer = go_to(request, "/login")
    answer.delete_cookie(site.sessions.cookie)
    return answer


def _login_page(
    request: Request,
    site: Site[Any],
    next_path: str,
    *,
    problem: str = "",
    name: str = "",
    status: int = 200,
) -> HTMLResponse:
    cookie = request.cookies.get(site.sessions.login_cookie) or secrets.token_urlsafe(24)
    page = render(
        request,
        "login.html.j2",
        status=status,
        token=site.sessions.login_token(cookie),
        next_path=own_path(next_path),
        problem=problem,
        name=name,
        hours=WHOLE_NS // (3_600 * 10**9),
    )
    page.set_cookie(
        site.sessions.login_cookie,
        cookie,
        max_age=_LOGIN_S,
        httponly=True,
        samesite="strict",
        secure=_is_tls(request),
    )
    return page


def own_path(path: str) -> str:
    """A path of this site; the first page if it is none.

    Example:
        >>> own_path("/incidents/new"), own_path("//elsewhere.example/x")
        ('/incidents/new', '/')
    """
    is_own = _OWN_PATH.fullmatch(path) and ".." not in unquote(path.partition("?")[0])
    return path if is_own else "/"


def _is_tls(request: Request) -> bool:
    """Whether the browser came by TLS, to here or to a proxy on this machine."""
    return request.url.scheme == "https"
