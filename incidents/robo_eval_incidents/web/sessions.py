"""Who is logged in: sessions, how long they last, and the tokens that prove them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, delete, or_, select, update

from robo_eval_incidents.accounts import Accounts, User
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.schema import SESSIONS

COOKIE: Final = "robo_eval_session"
LOGIN_COOKIE: Final = "robo_eval_login"
IDLE_NS: Final = 60 * 60 * 10**9
"""A session ends when nothing was asked in it for so long."""
WHOLE_NS: Final = 12 * 3_600 * 10**9
"""A session ends after so long in any case: a shift with its handover."""
_DAY_NS: Final = 24 * 3_600 * 10**9
_SEEN_NS: Final = 60 * 10**9
"""How exactly it is kept when a session was last used."""
_SLACK_NS: Final = 60 * 10**9
"""How far a clock may have been set back without ending sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Somebody who is logged in.

    Attributes:
        digest: SHA-256 of the token.
        user: Who.
        csrf: What forms of this session carry; empty for a session of a program.
    """

    digest: bytes
    user: User
    csrf: str

    def has(self, token: str | None) -> bool:
        """Whether a form comes from a page of this session."""
        return bool(self.csrf) and hmac.compare_digest(self.csrf.encode(), (token or "").encode())


class Sessions:
    """The sessions of a log's web page.

    Args:
        log: The log.
        accounts: Its accounts.
    """

    def __init__(self, log: IncidentLog, accounts: Accounts) -> None:
        self._log = log
        self._accounts = accounts
        self._key = secrets.token_bytes(32)

    def begin(self, user: User, *, for_program: bool = False) -> str:
        """Begin a session; returns its token, which is kept nowhere else."""
        token = secrets.token_urlsafe(32)
        now_ns = time.time_ns()
        with self._log.database.writing() as connection:
            connection.execute(delete(SESSIONS).where(_is_over(now_ns)))
            connection.execute(
                SESSIONS.insert().values(
                    token_sha256=_digest(token),
                    user=user.key,
                    csrf="" if for_program else secrets.token_urlsafe(32),
                    started_ns=now_ns,
                    seen_ns=now_ns,
                )
            )
        return token

    def find(self, token: str | None, *, for_program: bool = False) -> Session | None:
        """The session of a token; None if there is none, or it is over.

        Args:
            token: Token of a cookie, or of a program.
            for_program: Whether a program sent it. A token of the one opens nothing to the other.
        """
        if not token or len(token) > 100 or not token.isascii():
            return None
        digest, now_ns = _digest(token), time.time_ns()
        with self._log.database.reading() as connection:
            row = connection.execute(
                select(SESSIONS).where(SESSIONS.c.token_sha256 == digest, ~_is_over(now_ns))
            ).first()
        if row is None or (row.csrf == "") != for_program:
            return None
        user = self._accounts.find(row.user)
        if user is None or not user.is_open:
            return None
        if abs(now_ns - row.seen_ns) > _SEEN_NS:
            self._touch(digest, now_ns)
        return Session(digest=digest, user=user, csrf=row.csrf)

    def _touch(self, digest: bytes, now_ns: int) -> None:
        # A log that cannot be written can still be read, until the session is over.
        with suppress(IncidentLogError), self._log.database.writing() as connection:
            connection.execute(
                update(SESSIONS).where(SESSIONS.c.token_sha256 == digest).values(seen_ns=now_ns)
            )

    def of_call(self, user: User) -> Session:
        """What stands for a session where a program sends name and password with every call.

        It is the same all day, so that what the program looked at is recorded once a day.
        """
        day = time.time_ns() // _DAY_NS
        digest = hashlib.sha256(f"call\n{day}\n{user.key}".encode()).digest()
        return Session(digest=digest, user=user, csrf="")

    def view_id(self, session: Session, incident_id: str) -> str:
        """Id of the record that an incident was looked at in a session: always the same.

        Nobody else can know it beforehand, and put another record in its place.
        """
        told = session.digest + incident_id.encode()
        digest = hmac.new(self._key, told, "sha256").digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))

    def end(self, session: Session) -> None:
        """End a session."""
        with self._log.database.writing() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.token_sha256 == session.digest))

    # Before somebody is logged in, a form is bound to a cookie of its own.

    def login_token(self, cookie: str) -> str:
        """What the login form carries that was shown with a cookie."""
        return hmac.new(self._key, cookie.encode(), "sha256").hexdigest()

    def fits_login(self, cookie: str | None, token: str | None) -> bool:
        """Whether a login form was shown to the browser that sends it."""
        if not cookie:
            return False
        return hmac.compare_digest(self.login_token(cookie).encode(), (token or "").encode())


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _is_over(now_ns: int) -> ColumnElement[bool]:
    return or_(
        SESSIONS.c.started_ns < now_ns - WHOLE_NS,
        SESSIONS.c.seen_ns < now_ns - IDLE_NS,
        # The clock was set back: how old it is cannot be known.
        SESSIONS.c.started_ns > now_ns + _SLACK_NS,
    )
