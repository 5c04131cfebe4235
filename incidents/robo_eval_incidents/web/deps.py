"""What every page and every call of a program rests on: the log, and who asks."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from robo_eval.core.errors import InputError
from robo_eval_incidents.accounts import Accounts, User
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import View
from robo_eval_incidents.lists import Filter, robots
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.schema import INCIDENTS
from robo_eval_incidents.state import Incident
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.web.permissions import ForbiddenError
from robo_eval_incidents.web.sessions import COOKIE, Session, Sessions
from robo_eval_incidents.words import Severity, Via

if TYPE_CHECKING:
    from robo_eval_incidents.web.files import Folder

FORM_TYPE: Final = "application/x-www-form-urlencoded"
_MOST_FILES: Final = 20
_MOST_FIELDS: Final = 200
_PATIENCE_S: Final = 1.0
"""How long a page waits for a check of the log, and says after that what the last one found."""
_REST_S: Final = 60.0
"""How long no check follows another at least, and twenty times as long as that one took."""


class LoggedOutError(InputError):
    """Nobody is logged in, or the session is over."""


class NotFoundError(InputError):
    """There is no such page, incident or file."""


class Watch:
    """Whether a log still is what was recorded, checked beside the pages while somebody reads them.

    Args:
        target: Path or URL of the log.
    """

    def __init__(self, target: str | Path) -> None:
        self._target = target
        self._pool = ThreadPoolExecutor(1, "verify")
        self._found: Future[str] | None = None
        self._next_s = 0.0
        self._problem = ""

    def problem(self) -> str:
        """What was found to be wrong, in a line; empty if nothing was."""
        if self._found is None or (self._found.done() and time.monotonic() >= self._next_s):
            self._found = self._pool.submit(self._verify)
        with suppress(TimeoutError):
            self._problem = self._found.result(timeout=_PATIENCE_S)
        return self._problem

    def _verify(self) -> str:
        start_s = time.monotonic()
        try:
            return verify_log(self._target).first
        except InputError as err:
            return str(err)
        except (OSError, ValueError, SQLAlchemyError) as err:  # pages are read all the same
            return f"the log could not be verified: {err}"
        finally:
            now_s = time.monotonic()
            self._next_s = now_s + max(_REST_S, 20 * (now_s - start_s))

    def close(self) -> None:
        """Check no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class FormError(InputError):
    """A form is none, or not one that a page of this session showed."""


@dataclass(slots=True, kw_only=True)
class Site:
    """What the pages work with.

    Attributes:
        target: Its path or URL.
        log: The log.
        accounts: Its accounts.
        sessions: Who is logged in.
        evidence: Where files of evidence are; None if this machine has none.
        watch: Whether the log still is what was recorded.
    """

    target: str | Path
    log: IncidentLog
    accounts: Accounts
    sessions: Sessions
    evidence: Folder | None
    watch: Watch
    _robots: tuple[dict[str, int], list[str]] = field(default_factory=lambda: ({}, []))

    def robots(self) -> list[str]:
        """Every robot of the log; asked again only after something was recorded."""
        heads = {name: head.sequence for name, head in self.log.heads().items()}
        if self._robots[0] != heads:
            # Where nothing can be written forms still show what was typed, and robots known so far.
            with suppress(IncidentLogError):
                self._robots = (heads, robots(self.log))
        return self._robots[1]

    def incident(self, incident_id: str) -> Incident:
        """An incident as it stands.

        Raises:
            NotFoundError: If there is none.
        """
        try:
            return self.log.incident(incident_id)
        except IncidentLogError:
            raise
        except InputError as err:
            raise NotFoundError(f"there is no incident {incident_id:.60}") from err

    def note_view(self, session: Session, incident: Incident, via: Via = Via.WEB) -> None:
        """Record that an incident was looked at that is or was critical: once for a session.

        Raises:
            IncidentLogError: If it cannot be recorded; then it must not be shown.
        """
        if incident.highest_severity is not Severity.CRITICAL:
            return
        record_id = self.sessions.view_id(session, incident.incident_id)
        if any(record.record_id == record_id for record in incident.records):
            return
        self.log.file(
            View(),
            by=session.user.name,
            via=via,
            incident_id=incident.incident_id,
            record_id=record_id,
        )

    def note_views(self, session: Session, wanted: Filter, via: Via = Via.WEB) -> None:
        """Record that a list was taken out of the log, for each incident of it that needs it.

        Raises:
            IncidentLogError: If it cannot be recorded; then the list must not be given.
        """
        for incident_id in self._ever_critical():
            incident = self.incident(incident_id)
            counted = incident.counted
            too_early = wanted.since_ns is not None and counted.latest_ns < wanted.since_ns
            too_late = wanted.until_ns is not None and counted.happened_ns >= wanted.until_ns
            if not too_early and not too_late:
                self.note_view(session, incident, via)

    def _ever_critical(self) -> list[str]:
        """Incidents that are or were critical, whose report is here."""
        query = select(INCIDENTS.c.id).where(
            INCIDENTS.c.highest_severity == Severity.CRITICAL.value
        )
        return [incident_id for (incident_id,) in self.log.database.rows(query)]


def origin_of(request: Request) -> str:
    """Address a request came from: of the browser, where a proxy on this machine says so."""
    return "" if request.client is None else request.client.host


def site_of(request: Request) -> Site:
    """What the application was made with."""
    site: Site = request.app.state.site
    return site


ThisSite = Annotated[Site, Depends(site_of)]


# People ----------------------------------------------------------------------------------------


def visitor(request: Request, site: ThisSite) -> Session | None:
    """Who is logged in by the cookie of a browser; None if nobody is."""
    return site.sessions.find(request.cookies.get(COOKIE))


def person(found: Annotated[Session | None, Depends(visitor)]) -> Session:
    """Who is logged in by the cookie of a browser.

    Raises:
        LoggedOutError: If nobody is.
    """
    if found is None:
        raise LoggedOutError("please log in; a session ends after an hour without use")
    return found


Visitor = Annotated[Session | None, Depends(visitor)]
Person = Annotated[Session, Depends(person)]


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
class Posted:
    """A form that a person sent.

    Attributes:
        session: Who sent it.
        fields: What they gave, by name.
    """

    session: Session
    fields: dict[str, str]

    @property
    def user(self) -> User:
        """Who sent it."""
        return self.session.user


def posted(session: Person, fields: Annotated[dict[str, str], Depends(read_form)]) -> Posted:
    """A form of a page of this session.

    Raises:
        FormError: If it does not carry the session's token.
    """
    if not session.has(fields.get("csrf")):
        raise ForbiddenError(
            "this form does not belong to this session; open the page again and send it from there"
        )
    return Posted(session=session, fields=fields)


ThisForm = Annotated[Posted, Depends(posted)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded(Posted):
    """A form with files.

    Attributes:
        files: The files, by what they were called, in the order in which they were sent.
    """

    files: tuple[tuple[str, BinaryIO], ...]


async def uploaded(request: Request, session: Person) -> AsyncIterator[Uploaded]:
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


ThisUpload = Annotated[Uploaded, Depends(uploaded)]
AnyForm = Annotated[dict[str, str], Depends(read_form)]


# Programs --------------------------------------------------------------------------------------

_BEARER: Final = HTTPBearer(auto_error=False, description="Token of POST /api/v1/session.")


def program(
    request: Request,
    site: ThisSite,
    _described: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)] = None,
) -> Session:
    """On whose behalf a program calls: by a bearer token, or by name and password.

    Cookies open nothing here, so that no page of another site can call in somebody's name.

    Raises:
        LoggedOutError: If nobody is named.
        LoginError: If name and password open no account.
    """
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "basic":
        given = _name_and_password(value.strip())
        return site.sessions.of_call(site.accounts.log_in(*given, origin_of(request)))
    found = (
        site.sessions.find(value.strip(), for_program=True) if kind.lower() == "bearer" else None
    )
    if found is None:
        raise LoggedOutError("give a bearer token of POST /api/v1/session, or name and password")
    return found


Program = Annotated[Session, Depends(program)]


def _name_and_password(value: str) -> tuple[str, str]:
    try:
        name, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as err:
        raise LoggedOutError("the header Authorization cannot be read") from err
    if not colon:
        raise LoggedOutError("the header Authorization cannot be read")
    return name, password
