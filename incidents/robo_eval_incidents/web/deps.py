"""What every page and every call of a program rests on: the log, and who asks."""

from __future__ import annotations

import threading
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from robo_eval.core.errors import InputError
from robo_eval.web import deps, sessions
from robo_eval.web.errors import NotFoundError
from robo_eval_incidents.accounts import Accounts, User
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import View
from robo_eval_incidents.lists import Filter, filtered, robots
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.schema import INCIDENTS
from robo_eval_incidents.state import Incident, RefusedError
from robo_eval_incidents.verify import LogReport, verify_log
from robo_eval_incidents.web.files import Folder
from robo_eval_incidents.words import Severity, Via

_PATIENCE_S: Final = 1.0
"""How long a page waits for a check of the log, and says after that what the last one found."""
_REST_S: Final = 60.0
"""How long no check follows another at least, and twenty times as long as that one took."""


Session: TypeAlias = sessions.WebSession[User]


class Sessions(sessions.Sessions[User]):
    """The sessions of a log's web page.

    Args:
        log: The log.
        accounts: Its accounts.
    """

    def __init__(self, log: IncidentLog, accounts: Accounts) -> None:
        super().__init__(log.database, accounts.find)

    def view_id(self, session: Session, incident_id: str) -> str:
        """Id of the record that an incident was looked at in a session: always the same.

        Nobody else can know it beforehand, and put another record in its place.
        """
        return str(uuid.UUID(bytes=self.seal(session, incident_id)[:16], version=4))


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


@dataclass(slots=True, kw_only=True)
class Site(deps.Site[User]):
    """What the pages work with.

    Attributes:
        accounts: Who may use it.
        target: Its path or URL.
        log: The log.
        evidence: Where files of evidence are; None if this machine has none.
        watch: Whether the log still is what was recorded.
    """

    accounts: Accounts
    sessions: Sessions
    target: str | Path
    log: IncidentLog
    evidence: Folder | None
    watch: Watch
    _verifying: threading.Lock = field(default_factory=threading.Lock)
    _robots: tuple[dict[str, int], list[str]] = field(default_factory=lambda: ({}, []))

    def shown(self, session: Session | None) -> dict[str, Any]:
        """What the watch found, for those who may read the log."""
        return {"changed": "" if session is None else self.watch.problem()}

    def close(self) -> None:
        """Check no more, record what is left, and close the log."""
        self.watch.close()
        self.accounts.record_refused()
        self.log.close()

    def verify(self) -> LogReport:
        """Whether the log still is what was recorded; reads all of it, for one caller at a time.

        Raises:
            RefusedError: If somebody else is waiting for that.
        """
        if not self._verifying.acquire(blocking=False):
            raise RefusedError("another verification is running; wait for it")
        try:
            return verify_log(self.target)
        finally:
            self._verifying.release()

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
        worst = INCIDENTS.c.highest_severity
        query = select(INCIDENTS.c.id).where(worst == Severity.CRITICAL.value)
        for (incident_id,) in self.log.database.rows(filtered(query, wanted)):
            self.note_view(session, self.incident(incident_id), via)


Posted: TypeAlias = deps.Posted[User]
ThisSite = Annotated[Site, Depends(deps.site_of)]
Person = Annotated[Session, Depends(deps.person)]
ThisForm = Annotated[Posted, Depends(deps.posted)]
ThisUpload = Annotated[deps.Uploaded[User], Depends(deps.uploaded)]

_BEARER: Final = HTTPBearer(auto_error=False, description="Token of POST /api/v1/session.")


def program(
    request: Request,
    _described: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)] = None,
) -> Session:
    """On whose behalf a program calls."""
    asks_for = "give a bearer token of POST /api/v1/session, or name and password"
    return deps.session_of_program(request, asks_for)


Program = Annotated[Session, Depends(program)]
