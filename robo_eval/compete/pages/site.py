"""Who may look at which page of a competition, and what its pages work with."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import jinja2
from fastapi import Depends

from robo_eval.compete.competition import moment_text
from robo_eval.compete.house import House
from robo_eval.compete.ledger import KEY, Ledger, Team
from robo_eval.compete.pages.desk import Desk
from robo_eval.compete.scores import Board, heading, number_text
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import counted
from robo_eval.core.yaml_form import text_of
from robo_eval.log.files import explained
from robo_eval.web import deps, sessions
from robo_eval.web.accounts import Places, User
from robo_eval.web.errors import ForbiddenError, LoginError
from robo_eval.web.templating import environment

_LEAST_KEY: Final = 20
_MOST_KEPT: Final = 20
_LOGIN_S: Final = 0.1
"""How long each login takes at least: nobody keeps the ledger busy by logging in."""
EVERY: str = "5s"
"""How often an open page asks again."""


class Role(StrEnum):
    """Whose pages there are beside those for everybody."""

    TEAM = "team"
    ORGANISER = "organiser"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn(User):
    """Who is logged in.

    Attributes:
        team: The team; None for the organiser.
    """

    team: Team | None = None

    @classmethod
    def of(cls, team: Team) -> LoggedIn:
        """A team, withdrawn or not."""
        roles = frozenset({Role.TEAM})
        return cls(key=f"team {team.number}", name=team.name, roles=roles, team=team)


_ORGANISER: Final = LoggedIn(key="organiser", name="Organiser", roles=frozenset({Role.ORGANISER}))
Session: TypeAlias = sessions.WebSession[LoggedIn]


class Members:
    """Lets teams in by their token, and the organiser by a key.

    Args:
        ledger: Who takes part.

    Raises:
        InputError: If the organiser's key cannot be read or made.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._places = Places()
        self._key_sha256 = _digest(organiser_key(ledger.folder))
        self._known: dict[str, LoggedIn] = {}

    def log_in(self, _name: str, given: str, origin: str) -> LoggedIn:
        """Whose token or key it is.

        Raises:
            LoginError: If it is nobody's.
            BusyError: If many others are being looked at.
        """
        with self._places.place(origin):
            time.sleep(_LOGIN_S)
            if _digest(given.strip()) == self._key_sha256:
                return _ORGANISER
            team = self._ledger.team_of(given.strip())
            if team is None:
                with suppress(InputError):  # a full disk is no reason to say something else
                    self._ledger.note(None, "refused", "a login to the pages")
                raise LoginError(
                    "this is no team's token and not the organiser's key; copy it again, or ask the"
                    " organiser for another"
                )
            return LoggedIn.of(team)

    def find(self, key: str) -> LoggedIn | None:
        """Who has a key of a session; a team keeps its number and name."""
        if key not in self._known:
            members = [_ORGANISER, *map(LoggedIn.of, self._ledger.teams())]
            self._known = {one.key: one for one in members}
        return self._known.get(key)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def organiser_key(folder: Path) -> str:
    """What opens the organiser's page; it is made where there is none.

    Raises:
        InputError: If it cannot be read or made, or is too short to be one.
    """
    path = folder / KEY
    with explained(path, "cannot be made"), suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(24) + "\n")
    key = text_of(path, "key").strip()
    if len(key) < _LEAST_KEY:
        raise InputError(
            f"{path}: a key has {_LEAST_KEY} characters at least, and this one {len(key)}; delete"
            " the file, and the next start makes another"
        )
    return key


@dataclass(slots=True, kw_only=True)
class CompetitionSite(deps.Site[LoggedIn]):
    """What the pages work with.

    Attributes:
        house: The server.
        ledger: Its ledger, by a connection of the pages' own: no player waits for them.
        desk: Makes leaderboards and films.
    """

    house: House
    ledger: Ledger
    desk: Desk
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[str, tuple[float, bytes]] = field(default_factory=dict)

    @classmethod
    def of(cls, house: House) -> CompetitionSite:
        """The site of a server.

        Raises:
            InputError: If the ledger or the organiser's key cannot be read.
        """
        ledger = Ledger.open(house.ledger.folder)
        members = Members(ledger)
        # Browsers send cookies to every port of a machine: each competition has one of its own.
        cookie = f"robo_eval_{ledger.meta()['commitment'][:8]}_session"
        return cls(
            name=house.competition.name,
            log_in=members.log_in,
            sessions=sessions.Sessions(ledger.database, members.find, cookie=cookie),
            templates=_environment(),
            static=Path(__file__).with_name("static"),
            api="/v1",
            is_public=True,
            house=house,
            ledger=ledger,
            desk=Desk(ledger.folder),
        )

    def board(self) -> Board | None:
        """The leaderboard as it was some seconds ago, as far as it may be seen.

        None while the first one is made.
        """
        ledger = self.ledger
        meta = tuple(sorted(ledger.meta().items()))
        found = self.desk.board((meta, tuple(ledger.teams()), tuple(ledger.attempts())))
        return found if found is None or self.is_revealed else found.before_reveal()

    def once(self, key: str, make: Callable[[], bytes]) -> bytes:
        """What is made once a second at most, however many ask: players share this process."""
        with self._lock:
            until_s, found = self._kept.get(key, (0.0, b""))
            if time.monotonic() >= until_s:
                found = make()
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = time.monotonic() + 1.0, found
            return found

    @property
    def is_revealed(self) -> bool:
        """Whether nothing is hidden any more."""
        return "revealed_ns" in self.ledger.meta()

    def close(self) -> None:
        """End what is being made, and close the ledger."""
        self.desk.close()
        self.ledger.close_connection()


ThisSite = Annotated[CompetitionSite, Depends(deps.site_of)]
Visitor = Annotated[Session | None, Depends(deps.visitor)]
Person = Annotated[Session, Depends(deps.person)]


def team_of(session: Person) -> Team:
    """The team that is logged in.

    Raises:
        ForbiddenError: If it is the organiser.
    """
    if session.user.team is None:
        raise ForbiddenError("this page is of a team: log in with its token")
    return session.user.team


def organiser(session: Person) -> Session:
    """The organiser's session.

    Raises:
        ForbiddenError: If it is a team's.
    """
    if session.user.team is not None:
        raise ForbiddenError("this page is the organiser's")
    return session


ThisTeam = Annotated[Team, Depends(team_of)]
Organiser = Annotated[Session, Depends(organiser)]


# Words -------------------------------------------------------------------------------------------


def _environment() -> jinja2.Environment:
    env = environment("robo_eval.compete.pages", styles=("base", "player", "competition"))
    env.filters.update(
        moment=moment_text,
        machine=lambda time_ns: (
            f"{datetime.fromtimestamp(time_ns // 10**9, UTC):%Y-%m-%dT%H:%M:%SZ}"
        ),
        estimate=partial(number_text, none="–"),
        heading=heading,
        ends=_ends,
        tenth=lambda found: "" if found.value is None else f"h{round(10 * found.value)}",
    )
    env.globals.update(counted=counted, every=EVERY)
    return env


def _ends(found: Estimate) -> tuple[float, float, float] | None:
    """Low end, value and high end in percent; None without an interval."""
    if found.value is None or found.low is None or found.high is None:
        return None
    low, value, high = (round(100 * one, 2) for one in (found.low, found.value, found.high))
    return low, value, high
