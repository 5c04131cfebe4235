"""Who may use a site, with which password and in which role, and how often one may guess."""

from __future__ import annotations

import math
import threading
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import sqlalchemy as sa

from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.names import person_key
from robo_eval.web.errors import BusyError, LoginError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

LEAST_PASSWORD: Final = 10
"""Characters a password has at least; NIST SP 800-63B asks for 8 and for no other rules."""
MOST_PASSWORD: Final = 512
_TRIES: Final = 5
"""Failures in a row before an account is locked."""
_LOCK_NS: Final = 60 * 10**9
"""For how long at first; each further failure doubles it."""
_LONGEST_LOCK_NS: Final = 3_600 * 10**9
_MOST_AT_ONCE: Final = 8
"""Logins that are under way at once; the server answers some forty requests at a time."""
_MOST_OF_ONE: Final = 4
"""Of them from one address."""
_TOGETHER_S: Final = 600.0
"""Refused logins of so long are one record."""
FLOOR_S: Final = 0.4
"""A refused login takes at least so long, whatever the reason, so that its time tells nothing."""


class AccountStore(Protocol):
    """Where a site keeps accounts and sessions; of an engine `connect` and `begin` would do."""

    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A connection to read by."""

    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction: on any error no change is made."""


TABLES: Final = sa.MetaData()
"""What a database needs for accounts and sessions; `to_metadata` puts each into a schema."""

USERS: Final = sa.Table(
    "users",
    TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("shown_name", sa.Text, nullable=False),
    sa.Column("password_hash", sa.Text, nullable=False),
    sa.Column("roles", sa.Text, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
    sa.Column("locked_until_ns", sa.BigInteger, nullable=False, server_default="0"),
)
"""Accounts of web pages."""

SESSIONS: Final = sa.Table(
    "sessions",
    TABLES,
    sa.Column("token_sha256", sa.LargeBinary, primary_key=True),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("csrf", sa.Text, nullable=False),
    sa.Column("started_ns", sa.BigInteger, nullable=False),
    sa.Column("seen_ns", sa.BigInteger, nullable=False),
)
"""Who is logged in. Of a token only its digest is kept."""

sa.Index("sessions_by_user", SESSIONS.c.user)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """An account.

    Attributes:
        key: What its name is compared by.
        name: Its name as it was given.
        roles: What it may do; none for an account that was closed.
    """

    key: str
    name: str
    roles: frozenset[StrEnum]

    @property
    def is_open(self) -> bool:
        """Whether one can log in with it."""
        return bool(self.roles)


_User = TypeVar("_User", bound=User)


class Places:
    """Room to look at passwords and tokens, so that guessing leaves some to everybody else.

    Args:
        floor_s: How long a refused login takes at least.
    """

    def __init__(self, floor_s: float = FLOOR_S) -> None:
        self._floor_s = floor_s
        self._lock = threading.Lock()
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def place(self, origin: str) -> Iterator[None]:
        """Where one login is looked at; it is refused by a `LoginError` within.

        Args:
            origin: From where it came, such as an address.

        Raises:
            BusyError: If many others are being looked at.
        """
        started = time.monotonic()
        with self._lock:
            of_all, own = self._under_way.total(), self._under_way[origin]
            if of_all >= _MOST_AT_ONCE or own >= _MOST_OF_ONE:
                raise BusyError("many are logging in at this moment; try again in some seconds")
            self._under_way[origin] += 1
        try:
            yield
        except LoginError:
            time.sleep(max(0.0, self._floor_s - (time.monotonic() - started)))
            raise
        finally:
            with self._lock:
                self._under_way[origin] -= 1
                self._under_way += Counter()  # forgets who has none under way


@dataclass(slots=True)
class _Refused:
    """Refused logins of a name that are not recorded yet, and when some were last recorded."""

    attempts: int = 0
    since_ns: int = 0
    recorded_s: float = -math.inf


class Accounts(Generic[_User]):
    """The accounts of a site.

    Args:
        database: Where they are kept.
        floor_s: How long a refused login takes at least.

    Attributes:
        kind: What an account is made as; a site says it, as the others.
        roles: The roles there are.
        verbs: By which verbs of the command line accounts are changed.

    Raises:
        MissingExtraError: If passwords cannot be hashed.
    """

    kind: type[_User]
    roles: type[StrEnum]
    verbs: str

    # Each hash takes 64 MiB; many at once must not take the memory of the machine.
    _hashing: Final = threading.BoundedSemaphore(2)

    def __init__(self, database: AccountStore, *, floor_s: float = FLOOR_S) -> None:
        self._database = database
        self._places = Places(floor_s)
        self._hasher = _hasher()
        self._lock = threading.Lock()
        self._refused: defaultdict[str | None, _Refused] = defaultdict(_Refused)

    # What a site adds ---------------------------------------------------------------------------

    def check_name(self, name: str) -> str:
        """The name of a new account as it is kept; refuses what is none."""
        if not (name := " ".join(name.split())) or not name.isprintable() or len(name) > 120:
            raise InputError(f"name: has 1 to 120 letters, given {name!r:.80}")
        return name

    def note_change(self, name: str, roles: Sequence[str], by: str, via: str) -> None:
        """Record a change of an account before it is made."""

    def note_refused(self, user: str | None, attempts: int, since_ns: int) -> None:
        """Record refused logins of an account, or of names without one."""

    # Changing ----------------------------------------------------------------------------------

    def add(
        self, name: str, password: str, roles: Iterable[str], *, by: str, via: str = "cli"
    ) -> _User:
        """Make an account, or open one again that was closed.

        Args:
            name: Name of the person; their records carry it.
            password: Password.
            roles: One or more of those there are.
            by: Who makes it.
            via: By which door.

        Raises:
            InputError: If there is such an account, or name, password or a role is none.
        """
        name = self.check_name(name)
        wanted = self._wanted(roles)
        found = self.find(name)
        if found is not None and found.is_open:
            raise InputError(
                f"account {found.name!r} is there already; `{self.verbs} roles` gives it other"
                f" roles, `{self.verbs.rpartition(' ')[2]} passwd` another password"
            )
        hashed = self._hash(_password(password, name))
        self.note_change(name, self._sorted(wanted), by, via)
        row = {
            "shown_name": name,
            "password_hash": hashed,
            "roles": " ".join(self._sorted(wanted)),
            "failures": 0,
            "locked_until_ns": 0,
        }
        if found is not None:
            self._change(found.key, **row)
        else:
            with self._database.writing() as connection:
                connection.execute(USERS.insert().values(name=person_key(name), **row))
        return self.kind(key=person_key(name), name=name, roles=wanted)

    def set_roles(self, name: str, roles: Iterable[str], *, by: str, via: str = "cli") -> _User:
        """Give an account other roles, from its next click on.

        Raises:
            InputError: If there is no such account, or a role is none.
        """
        user = self._open(name)
        wanted = self._wanted(roles)
        self.note_change(user.name, self._sorted(wanted), by, via)
        self._change(user.key, roles=" ".join(self._sorted(wanted)))
        return self.kind(key=user.key, name=user.name, roles=wanted)

    def set_password(
        self, name: str, password: str, *, by: str, via: str = "cli", field: str = "password"
    ) -> None:
        """Give an account another password; whoever is logged in with it is logged out.

        Args:
            name: The account.
            password: The password.
            by: Who gives it.
            via: By which door.
            field: What messages call the password.

        Raises:
            InputError: If there is no such account, or the password is none.
        """
        user = self._open(name)
        hashed = self._hash(_password(password, user.name, field))
        self.note_change(user.name, self._sorted(user.roles), by, via)
        self._change(user.key, password_hash=hashed, failures=0, locked_until_ns=0)
        self._log_out(user.key)

    def remove(self, name: str, *, by: str, via: str = "cli") -> None:
        """Close an account; its records stay, and whoever is logged in with it is logged out.

        Raises:
            InputError: If there is no such account.
        """
        user = self._open(name)
        # Closed first: of all changes this is the one that must not wait for its record.
        self._change(user.key, roles="", password_hash="")
        self._log_out(user.key)
        self.note_change(user.name, (), by, via)

    def _change(self, key: str, **values: object) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.update(USERS).where(USERS.c.name == key).values(**values))

    def _log_out(self, key: str) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.user == key))

    # Asking ------------------------------------------------------------------------------------

    def list(self) -> Sequence[_User]:
        """All accounts, closed ones included, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(USERS).order_by(USERS.c.name)).all()
        return [self._user(row) for row in rows]

    def find(self, name: str) -> _User | None:
        """The account of a name; None if there is none."""
        query = sa.select(USERS).where(USERS.c.name == person_key(name))
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else self._user(row)

    def _user(self, row: Any) -> _User:
        roles = frozenset(role for role in self.roles if role.value in row.roles.split())
        return self.kind(key=row.name, name=row.shown_name, roles=roles)

    def _sorted(self, roles: frozenset[StrEnum]) -> Sequence[str]:
        return [role.value for role in self.roles if role in roles]

    def _wanted(self, roles: Iterable[str]) -> frozenset[StrEnum]:
        found = set()
        for role in roles:
            if role not in set(self.roles):
                raise InputError(f"role {role!r:.40}: roles are {', '.join(self.roles)}")
            found.add(self.roles(role))
        if not found:
            raise InputError(f"roles: give one or more of {', '.join(self.roles)}")
        return frozenset(found)

    def _open(self, name: str) -> _User:
        user = self.find(name)
        if user is None or not user.is_open:
            what = "there is no account" if user is None else "closed was the account"
            raise InputError(f"name: {what} {name!r:.80}; `{self.verbs} list` has them")
        return user

    # Logging in --------------------------------------------------------------------------------

    def log_in(self, name: str, password: str, origin: str = "") -> _User:
        """The account that a name and a password open.

        Args:
            name: Name.
            password: Password.
            origin: From where they came, such as an address.

        Raises:
            LoginError: If they open none, or the account is locked for a while. The message and
                the time it takes do not tell which.
            BusyError: If many others are being looked at.
        """
        with self._places.place(origin):
            user = self._checked(name, password)
            if user is None:
                self._count_refused(name)
                raise LoginError(
                    "name or password is wrong, or the account is locked for some minutes after"
                    f" {_TRIES} wrong passwords"
                )
        self._record_refused([user.name])
        return user

    def _count_refused(self, name: str) -> None:
        """Count a refused login; those of ten minutes are one record."""
        user = self.find(name)
        # A name without account is not kept: it might be a password.
        known = None if user is None else user.name
        with self._lock:
            refused = self._refused[known]
            refused.since_ns = refused.since_ns or time.time_ns()
            refused.attempts += 1
            is_due = time.monotonic() - refused.recorded_s >= _TOGETHER_S
        if is_due:
            self._record_refused([known])

    def record_refused(self) -> None:
        """Record every refused login that is not recorded yet."""
        self._record_refused(list(self._refused))

    def _record_refused(self, names: Iterable[str | None]) -> None:
        for name in names:
            with self._lock:
                refused = self._refused.get(name, _Refused())
                if not refused.attempts:
                    continue
                self._refused[name] = _Refused(recorded_s=time.monotonic())
            self.note_refused(name, refused.attempts, refused.since_ns)

    def _checked(self, name: str, password: str) -> _User | None:
        now_ns = time.time_ns()
        key = person_key(name)
        with self._database.writing() as connection:
            query = sa.select(USERS).where(USERS.c.name == key)
            row = connection.execute(query.with_for_update()).first()
            is_locked = row is not None and _is_locked(row.failures, row.locked_until_ns, now_ns)
            if row is not None and not is_locked:
                # Counted before the password is looked at, so that many tries at once count too.
                failures = row.failures + 1
                connection.execute(
                    sa.update(USERS)
                    .where(USERS.c.name == key)
                    .values(failures=failures, locked_until_ns=_locked_until(failures, now_ns))
                )
        can_open = row is not None and bool(row.password_hash)
        hashed = row.password_hash if row is not None and can_open else _no_hash()
        fits = self._fits(hashed, password)
        if row is None or not can_open or is_locked or not fits or not row.roles:
            return None
        renewed = {}
        if self._hasher.check_needs_rehash(hashed):
            renewed["password_hash"] = self._hash(_normal(password))
        self._change(key, failures=0, locked_until_ns=0, **renewed)
        return self._user(row)

    def _fits(self, hashed: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        if len(password) > MOST_PASSWORD:
            password = ""
        try:
            with self._hashing:
                return self._hasher.verify(hashed, _normal(password))
        except (VerificationError, InvalidHashError, UnicodeError):
            return False

    def _hash(self, password: str) -> str:
        with self._hashing:
            return self._hasher.hash(password)


def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ImportError as err:
        raise MissingExtraError(f"accounts need argon2-cffi: {pip_install('server')}") from err
    return PasswordHasher()


@cache
def _no_hash() -> str:
    """What the password of a name is compared with that has no account."""
    return _hasher().hash("nobody has this password")


def _is_locked(failures: int, until_ns: int, now_ns: int) -> bool:
    # A clock that was set back must not lock anybody for longer than the longest lock.
    return failures >= _TRIES and now_ns < until_ns <= now_ns + _LONGEST_LOCK_NS


def _locked_until(failures: int, now_ns: int) -> int:
    if failures < _TRIES:
        return 0
    doublings = min(failures - _TRIES, 10)
    return now_ns + min(_LOCK_NS << doublings, _LONGEST_LOCK_NS)


def _normal(password: str) -> str:
    """The same letters are the same password on every keyboard."""
    return unicodedata.normalize("NFKC", password)


def _password(password: str, name: str, field: str = "password") -> str:
    wanted = f"a password has {LEAST_PASSWORD} to {MOST_PASSWORD} characters"
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        raise InputError(f"{field}: has {len(password)} characters; {wanted}")
    if len(set(password)) < 4 or person_key(password) == person_key(name):
        raise InputError(f"{field}: is too easy to guess; some words in a row are a good one")
    try:
        password.encode()
    except UnicodeEncodeError as err:
        raise InputError(f"{field}: holds bytes that are not text") from err
    return _normal(password)
