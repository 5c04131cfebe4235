"""What every page and every call of a program rests on: the site, and who asks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Generic, TypeVar
from urllib.parse import parse_qsl

import jinja2
from fastapi import Depends, Request
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from robo_eval.web.accounts import User
from robo_eval.web.errors import ForbiddenError, FormError, LoggedOutError
from robo_eval.web.sessions import Sessions, WebSession

_User = TypeVar("_User", bound=User)

FORM_TYPE: Final = "application/x-www-form-urlencoded"
_MOST_FILES: Final = 20
_MOST_FIELDS: Final = 200


@dataclass(slots=True, kw_only=True)
class Site(Generic[_User]):
    """What the pages of a site work with; a site of its own kind adds to it.

    Attributes:
        name: What people call it, such as `incident log`.
        log_in: Opens an account, by name, password and where they come from, or is a `LoginError`.
        sessions: Who is logged in.
        templates: Of `environment`.
        static: Folder of its own style sheets and programs, which come before those of this room.
        api: Below which path programs call.
        is_public: Whether there are pages for those who are not logged in.
    """

    name: str
    log_in: Callable[[str, str, str], _User]
    sessions: Sessions[_User]
    templates: jinja2.Environment
    static: Path | None = None
    api: str = "/api/v1"
    is_public: bool = False

    @property
    def title(self) -> str:
        """Its name as a title has it."""
        return self.name[:1].upper() + self.name[1:]

    def shown(self, session: WebSession[_User] | None) -> dict[str, Any]:  # noqa: ARG002
        """What every page shows beside its own."""
        return {}

    def close(self) -> None:
        """Let go of what is open, when the server stops."""


def origin_of(request: HTTPConnection) -> str:
    """Address a request came from: of the browser, where a proxy on this machine says so."""
    return "" if request.client is None else request.client.host


def site_of(request: HTTPConnection) -> Site[Any]:
    """What the application was made with."""
    site: Site[Any] = request.app.state.site
    return site


ThisSite = Annotated[Site[Any], Depends(site_of)]


# People ----------------------------------------------------------------------------------------


def visitor(request: Request, site: ThisSite) -> WebSession[Any] | None:
    """Who is logged in by the cookie of a browser; None if nobody is."""
    return site.sessions.find(request.cookies.get(site.sessions.cookie))


Visitor = Annotated[WebSession[Any] | None, Depends(visitor)]


def person(found: Visitor) -> WebSession[Any]:
    """Who is logged in by the cookie of a browser.

    Raises:
        LoggedOutError: If nobody is.
    """
    if found is None:
        raise LoggedOutError("please log in; a session ends after an hour without use")
    return found


Person = Annotated[WebSession[Any], Depends(person)]


async def read_form(request: Request) -> dict[str, str]:
    """Fields of a form, each given once.

    Raises:
        FormError: If it is none, is not UTF-8, or comes from another site.
    """
    _check_site(request)
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != FORM_TYPE:
        raise FormError(f"a form comes as {FORM_TYPE}")
    try:
        pairs = parse_qsl(
            (await request.body()).decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError as err:
        raise FormError("the form cannot be read: it is not UTF-8, or has too many fields") from err
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise FormError("the form gives a field twice")
    return fields


def _check_site(request: Request) -> None:
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise FormError("this form was sent by a page of another site; nothing was changed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted(Generic[_User]):
    """A form that a person sent.

    Attributes:
        session: Who sent it.
        fields: What they gave, by name.
    """

    session: WebSession[_User]
    fields: dict[str, str]

    @property
    def user(self) -> _User:
        """Who sent it."""
        return self.session.user


def posted(session: Person, fields: Annotated[dict[str, str], Depends(read_form)]) -> Posted[Any]:
    """A form of a page of this session.

    Raises:
        FormError: If it does not carry the session's token.
    """
    if not session.has(fields.get("csrf")):
        raise ForbiddenError(
            "this form does not belong to this session; open the page again and send it from there"
        )
    return Posted(session=session, fields=fields)


ThisForm = Annotated[Posted[Any], Depends(posted)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded(Posted[_User]):
    """A form with files.

    Attributes:
        files: The files, by what they were called, in the order in which they were sent.
    """

    files: tuple[tuple[str, BinaryIO], ...]


async def uploaded(request: Request, session: Person) -> AsyncIterator[Uploaded[Any]]:
    """A form with files of a page of this session.

    Raises:
        FormError: If it cannot be read, or comes from another site.
        ForbiddenError: If it does not carry the session's token.
    """
    _check_site(request)
    try:
        form = await request.form(max_files=_MOST_FILES, max_fields=_MOST_FIELDS)
    except HTTPException as err:  # what the library says of a body that is none
        raise FormError(f"the form cannot be read: {err.detail:.200}") from err
    try:
        given = list(form.multi_items())
        fields = {name: one for name, one in given if isinstance(one, str)}
        files = [(one.filename or "", one.file) for _, one in given if not isinstance(one, str)]
        # A browser sends a file without a name where none was chosen.
        chosen = tuple(one for one in files if one[0])
        sent = posted(session, fields)
        yield Uploaded(session=sent.session, fields=sent.fields, files=chosen)
    finally:
        await form.close()


ThisUpload = Annotated[Uploaded[Any], Depends(uploaded)]
AnyForm = Annotated[dict[str, str], Depends(read_form)]


# Programs --------------------------------------------------------------------------------------


def session_of_program(call: HTTPConnection, asks_for: str) -> WebSession[Any]:
    """On whose behalf a program calls: by a bearer token, or by name and password.

    Cookies open nothing here, so that no page of another site can call in somebody's name.

    Args:
        call: The request, or the WebSocket.
        asks_for: What a program is told to give.

    Raises:
        LoggedOutError: If nobody is named.
        LoginError: If name and password open no account.
    """
    site = site_of(call)
    kind, _, value = call.headers.get("authorization", "").partition(" ")
    if kind.lower() == "basic":
        given = _name_and_password(value.strip())
        return site.sessions.of_call(site.log_in(*given, origin_of(call)))
    found = (
        site.sessions.find(value.strip(), for_program=True) if kind.lower() == "bearer" else None
    )
    if found is None:
        raise LoggedOutError(asks_for)
    return found


def _name_and_password(value: str) -> tuple[str, str]:
    try:
        name, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as err:
        raise LoggedOutError("the header Authorization cannot be read") from err
    if not colon:
        raise LoggedOutError("the header Authorization cannot be read")
    return name, password
