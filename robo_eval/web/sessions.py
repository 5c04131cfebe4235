"""Who is logged in: sessions, how long they last, and the tokens that prove them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from robo_eval.core.errors import InputError
from robo_eval.web.accounts import SESSIONS, AccountStore, User

_User = TypeVar("_User", bound=User)

COOKIE: Final = "robo_eval_session"
IDLE_NS: Final = 60 * 60 * 10**9
"""A session ends when nothing was asked in it for so long."""
WHOLE_NS: Final = 12 * 3_600 * 10**9
"""A session ends after so long in any case: a shift with its handover."""
_DAY_NS: Final = 24 * 3_600 * 10**9
_SEEN_NS: Final = 60 * 10**9
"""How exactly it is kept when a session was last used."""
_MOST_OF_ONE: Final = 1_000
"""Sessions of one account; the oldest ends where another begins."""
_SLACK_NS: Final = 60 * 10**9
"""How far a clock may have been set back without ending sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSession(Generic[_User]):
    """Somebody who is logged in.

    Attributes:
        digest: SHA-256 of the token.
        user: Who.
        csrf: What forms of this session carry; empty for a session of a program.
    """

    digest: bytes
    user: _User
    csrf: str

    def has(self, token: str | None) -> bool:
        """Whether a form comes from a page of this session."""
        return bool(self.csrf) and hmac.compare_digest(self.csrf.encode(), (token or "").encode())


class Sessions(Generic[_User]):
    """The sessions of a site.

    Args:
        database: Where they are kept.
        find_user: The account of a key; None if there is none.
        cookie: Name of the cookie with the token: browsers send one to each port of a machine, so
            that no two sites have the same.
    """

    def __init__(
        self,
        database: AccountStore,
        find_user: Callable[[str], _User | None],
        *,
        cookie: str = COOKIE,
    ) -> None:
        self._database = database
        self._find_user = find_user
        self._key = secrets.token_bytes(32)
        self.cookie: Final = cookie
        self.login_cookie: Final = cookie.removesuffix("_session") + "_login"

    def begin(self, user: _User, *, for_program: bool = False) -> str:
        """Begin a session; returns its token, which is kept nowhere else."""
        token = secrets.token_urlsafe(32)
        now_ns = time.time_ns()
        is_own = SESSIONS.c.user == user.key
        newest_first = select(SESSIONS.c.started_ns).order_by(SESSIONS.c.started_ns.desc())
        last = newest_first.where(is_own).offset(_MOST_OF_ONE - 1).limit(1).scalar_subquery()
        with self._database.writing() as connection:
            connection.execute(delete(SESSIONS).where(_is_over(now_ns)))
            connection.execute(delete(SESSIONS).where(is_own, SESSIONS.c.started_ns <= last))
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

    def find(self, token: str | None, *, for_program: bool = False) -> WebSession[_User] | None:
        """The session of a token; None if there is none, or it is over.

        Args:
            token: Token of a cookie, or of a program.
            for_program: Whether a program sent it. A token of the one opens nothing to the other.
        """
        if not token or len(token) > 100 or not token.isascii():
            return None
        digest, now_ns = _digest(token), time.time_ns()
        query = select(SESSIONS).where(_has(digest), ~_is_over(now_ns))
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        if row is None or (row.csrf == "") != for_program:
            return None
        user = self._find_user(row.user)
        if user is None or not user.is_open:
            return None
        if abs(now_ns - row.seen_ns) > _SEEN_NS:
            self._touch(digest, now_ns)
        return WebSession(digest=digest, user=user, csrf=row.csrf)

    def _touch(self, digest: bytes, now_ns: int) -> None:
        # What cannot be written can still be read, until the session is over.
        with suppress(InputError, SQLAlchemyError), self._database.writing() as connection:
            connection.execute(update(SESSIONS).where(_has(digest)).values(seen_ns=now_ns))

    def of_call(self, user: _User) -> WebSession[_User]:
        """What stands for a session where a program sends name and password with every call.

        It is the same all day, so that what the program looked at is recorded once a day.
        """
        day = time.time_ns() // _DAY_NS
        digest = hashlib.sha256(f"call\n{day}\n{user.key}".encode()).digest()
        return WebSession(digest=digest, user=user, csrf="")

    def seal(self, session: WebSession[_User], text: str) -> bytes:
        """What only this process can make of a session and a text: always the same."""
        return hmac.new(self._key, session.digest + text.encode(), "sha256").digest()

    def end(self, session: WebSession[_User]) -> None:
        """End a session."""
        with self._database.writing() as connection:
            connection.execute(delete(SESSIONS).where(_has(session.digest)))

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


def _has(digest: bytes) -> ColumnElement[bool]:
    return SESSIONS.c.token_sha256 == digest


def _is_over(now_ns: int) -> ColumnElement[bool]:
    return or_(
        SESSIONS.c.started_ns < now_ns - WHOLE_NS,
        SESSIONS.c.seen_ns < now_ns - IDLE_NS,
        # The clock was set back: how old it is cannot be known.
        SESSIONS.c.started_ns > now_ns + _SLACK_NS,
    )
