"""Everything of a competition that lasts: who takes part, who has which turn, what was played."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial, wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeAlias, TypeVar

import sqlalchemy as sa
import yaml
from pydantic import TypeAdapter, ValidationError

from robo_eval.compete.competition import Competition, check_dates, moment_text, parse_competition
from robo_eval.compete.draw import Secret, TrialDraw, commitment, content, draw
from robo_eval.compete.tables import (
    ATTEMPTS,
    FORM,
    LINKS,
    META,
    NOTES,
    SCORES,
    SERVERS,
    SHOWN,
    TEAMS,
    TRIALS,
)
from robo_eval.core.canonical import canonical_json, text_digest
from robo_eval.core.episode import COLUMNS, Episode, never_began
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, FaultBy
from robo_eval.core.plain import UNSAID, plain
from robo_eval.core.plan import PlainName
from robo_eval.core.trials import checked_declaration
from robo_eval.core.wording import counted
from robo_eval.core.yaml_form import text_of
from robo_eval.log.chain import GENESIS, START, ChainLink, break_text
from robo_eval.log.files import explained, part_of, sync_folder, write_atomically
from robo_eval.log.planned_row import row_for
from robo_eval.log.provenance import software
from robo_eval.log.rows import cells_of, episode_of, row_digest
from robo_eval.log.sql import Database, create
from robo_eval.metrics.scoring import SCORE_VERSION

FILE: Final = "competition.yaml"
SECRET: Final = "secret.json"  # noqa: S105 - name of a file
DATABASE: Final = "competition.db"
URL: Final = "database_url"
REVEAL: Final = "reveal.json"
KEY: Final = "organiser_key"
"""What opens the organiser's page; for its owner alone."""
ALIVE_NS: Final = 20 * 10**9
"""A server that was not heard of for so long has died, and others take over its trials."""
MOST_NOTES: Final = 1_000
"""Refused messages kept of each team; later ones are only counted."""
_PLACE: Final = ("kind", "trial", "run", "episode")
_S: Final = 10**9
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Method: TypeAlias = Callable[Concatenate["Ledger", sa.Connection, _Given], _Result]


class Refusal(InputError):  # noqa: N818 - an answer, not a fault
    """What a team asks for is against the rules, or not yet possible; nothing was changed.

    Attributes:
        code: One word for programs, such as `closed`.
    """

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Who takes part.

    Attributes:
        number: Its number in the ledger.
        name: Its name.
        added_ns: When it was added, ns since 1970, UTC.
        revoked_ns: When it was withdrawn; None if it was not.
    """

    number: int
    name: str
    added_ns: int
    revoked_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One of the times a team plays the whole.

    Attributes:
        number: Its number in the ledger, over all teams.
        team: Number of the team.
        attempt: 1 for the first of the team.
        started_ns: When it began, ns since 1970, UTC.
        ended_ns: When its last trial ended; None while it goes on.
        is_cut: Whether it was ended by closing the competition, or withdrawing the team.
        sequence: Number of the newest link of its chain.
        sha256: Digest of that; both are told by the chain itself.
    """

    number: int
    team: int
    attempt: int
    started_ns: int
    ended_ns: int | None
    is_cut: bool
    sequence: int = field(metadata=UNSAID)
    sha256: str = field(metadata=UNSAID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An episode that a team may play next.

    Attributes:
        attempt: Number of the attempt in the ledger.
        ordinal: 1 for the first attempt of the team.
        team: Name of the team.
        trial: The trial.
        run: 1, or more after the trial was given back.
        episode: Index of the episode within the trial.
        due_ns: When it has to have ended, ns since 1970, UTC; None until the trial has begun.
        server: Who plays it.
    """

    attempt: int
    ordinal: int
    team: str
    trial: TrialDraw
    run: int
    episode: int
    due_ns: int | None
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainRow:
    """A link of an attempt's chain as it is stored.

    Attributes:
        link: Its place in the chain.
        kind: `episode`, `declare`, `feedback`, or `given_back`, with which a run begins.
        trial: Number of the trial.
        run: Which run of the trial.
        episode: Index within the trial.
        content: What it holds.
        actions: The actions of an episode, as they were given to `record`.
        problem: How it fails to follow the link before, or its own digest; None if it does not.
    """

    link: ChainLink
    kind: str
    trial: int
    run: int
    episode: int
    content: dict[str, Any]
    actions: bytes | None
    problem: str | None

    @property
    def row(self) -> Episode:
        """The row of an episode.

        Raises:
            InputError: If a cell holds something its column cannot.
        """
        where = f"link {self.link.sequence} of the attempt"
        return episode_of([self.content.get(name) for name in COLUMNS], where=lambda: where)


@dataclass(frozen=True, slots=True)
class TeamStanding:
    """How a team stands.

    Attributes:
        state: One word.
        sentence: The same for people.
        owner: Whose move it is: `team`, `organiser` or `server`.
        deadline_ns: Until when, ns since 1970, UTC; None if nothing ends then.
    """

    state: str
    sentence: str
    owner: str
    deadline_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptProgress:
    """How far an attempt is.

    Attributes:
        trials: How many it has.
        ended: Of them those that were played to their end.
        forfeited: Those that were forfeited.
        given_back: How often one was given back.
        episodes: Episodes played in runs that count.
        due_ns: The nearest deadline, ns since 1970, UTC; None where no trial is under way.
    """

    trials: int
    ended: int
    forfeited: int
    given_back: int
    episodes: int
    due_ns: int | None


def _changes(
    *, keeps: bool = True
) -> Callable[[_Method[_Given, _Result]], Callable[Concatenate[Ledger, _Given], _Result]]:
    """Make a method a transaction that changes something; callers leave its connection out.

    Args:
        keeps: Whether it survives a power cut at once; else it does from the next `flush` on.
    """

    def whole(
        method: _Method[_Given, _Result],
    ) -> Callable[Concatenate[Ledger, _Given], _Result]:
        @wraps(method)
        def changed(self: Ledger, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            def once() -> _Result:
                with self.database.writing() as db:
                    return method(self, db, *args, **kwargs)

            found = self.database.persistently(once)
            if keeps:
                self.flush()
            return found

        return changed

    return whole


class Ledger:
    """The ledger of a competition. Each method is one transaction.

    Args:
        folder: Folder of the competition.
        clock: Gives the time, ns since 1970, UTC.
        read_only: Refuse to change anything.

    Attributes:
        folder: Folder of the competition.
        now: Gives the time.
        competition: What is played.
        digest: Of the file of the competition.
        url: Of the database; None for a file in the folder.
        database: Where it is kept, and who is logged in to its pages.

    Raises:
        InputError: If it is none, or its database cannot be opened.
    """

    database: Database

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], int] = time.time_ns,
        *,
        read_only: bool = False,
    ) -> None:
        self.folder: Final = folder
        self.now: Final = clock
        if not (folder / FILE).is_file():
            raise InputError(
                f"{folder}: is no competition; `robo-eval compete serve FILE --out {folder}` makes"
                " one"
            )
        text = text_of(folder / FILE, "competition")
        self.competition: Final = parse_competition(text, source=str(folder / FILE))
        self.digest: Final = text_digest(text)
        # Who checks a competition has what was revealed, and not the file with the secret.
        held = folder / SECRET
        self._secret: Final = _read_secret(held if held.exists() else folder / REVEAL)
        url = folder / URL
        self.url: Final = text_of(url, "URL").strip() if url.exists() else None
        target = self.url or folder / DATABASE
        self.database = Database(target, FORM, read_only=read_only, durable=False)
        self._draw: Final = lru_cache(maxsize=64)(partial(draw, self.competition, self._secret))
        self._plan: Final = lru_cache(maxsize=64)(lambda team: self.competition.plan((team,)))

    @classmethod
    def create(cls, folder: Path, competition: Competition, url: str | None = None) -> Self:
        """Make the folder of a new competition, and draw its secret.

        Raises:
            InputError: If it is there already, has closed already, or cannot be written.
        """
        check_dates(competition, str(folder))
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder}: is there already; name a new folder, or serve that one")
        part = part_of(folder)
        with explained(folder, "cannot be created"):
            part.mkdir(parents=True)
            try:
                secret = Secret.new()
                _write_files(part, competition, secret, url)
                meta = {
                    "code_version": software(),
                    "commitment": commitment(competition, secret, software()),
                }
                create(url or part / DATABASE, FORM, meta)
                sync_folder(part)
                part.replace(folder)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
            sync_folder(folder.absolute().parent)
        return cls(folder)

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False) -> Self:
        """The ledger of a competition that is there."""
        return cls(folder, read_only=read_only)

    def close_connection(self) -> None:
        """Let go of the database; the competition goes on."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_connection()

    # What everybody may know ---------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        """`code_version`, `commitment`; once it is so `beacon`, `closed_ns` and `revealed_ns`."""
        return self._read(_meta)

    def commitment(self) -> str:
        """The commitment as it follows from the secret and the file of the competition."""
        return commitment(self.competition, self._secret, self.meta()["code_version"])

    def promised(self, code_version: str, beacon: str | None) -> dict[str, Any]:
        """What was promised, see `compete.draw.content`."""
        return content(self.competition, self._secret, code_version, beacon)

    def trials(self, attempt: int = 1) -> tuple[TrialDraw, ...]:
        """What an attempt meets; `attempt` is 1 for the first of a team.

        Raises:
            Refusal: If the public value that is to be mixed in is not known yet.
        """
        return self._read(lambda db: self._trials(db, attempt))

    def _trials(self, db: sa.Connection, attempt: int) -> tuple[TrialDraw, ...]:
        return self._draw(self._beacon(db), attempt)

    def _beacon(self, db: sa.Connection) -> str | None:
        if self.competition.beacon is None:
            return None
        found = _meta(db).get("beacon")
        if found is None:
            said = f"the seeds wait for a public value: {self.competition.beacon}"
            raise Refusal(said, "beacon")
        return found

    def mix_in(self, beacon: str) -> None:
        """Give the public value that the competition waits for; once, before anything is played.

        Raises:
            InputError: If it waits for none, or was given another one.
        """
        value = beacon.strip()
        if self.competition.beacon is None or not value:
            raise InputError(
                f"{self.folder}: `beacon` of the competition names no value; leave it out"
                if value
                else "the public value is empty; give it as it was published"
            )
        known = self._put("beacon", value)
        if known != value:
            raise InputError(f"{self.folder}: was given another value before, {known!r:.80}")

    def receipt(self, sha256: str) -> str:
        """What a team may be told of a link: it names it, and tells nothing of it before the end.

        It is the HMAC-SHA256 of the link's digest with the salt as key: a digest alone could be
        searched for what it hides.
        """
        return hmac.digest(self._secret.salt, sha256.encode(), "sha256").hex()

    def newest_receipt(self, team: Team) -> str | None:
        """Receipt of all that a team's newest attempt left behind; None where that is nothing."""
        past = self._read(lambda db: _past(db, team))
        return self.receipt(past[-1].sha256) if past and past[-1].sequence else None

    # Teams ---------------------------------------------------------------------------------------

    def add_team(self, name: str) -> str:
        """Add a team; gives its token, of which only a digest is kept.

        Raises:
            InputError: If there is a team of this name, it is no name, or the competition is
                closed.
        """
        try:
            name = TypeAdapter(PlainName).validate_python(name)
        except ValidationError as err:
            raise InputError(
                f"{name!r:.80} is no name of a team; use up to 64 letters, digits, '.', '_', '+',"
                " '-'"
            ) from err
        token = secrets.token_urlsafe(24)
        self._add_team(name, text_digest(token))
        return token

    @_changes()
    def _add_team(self, db: sa.Connection, name: str, digest: str) -> None:
        known = db.execute(_of(TEAMS, name=name)).first()
        if known is not None:
            if known.token_sha256 == digest:  # done before the answer was lost
                return
            raise InputError(
                f"there is a team {name!r} already; choose another name, or end its token by"
                " --revoke"
            )
        if "closed_ns" in _meta(db):
            said = f"{self.folder}: is closed, and nobody joins any more; begin a new competition"
            raise Refusal(said, "closed")
        db.execute(sa.insert(TEAMS).values(name=name, token_sha256=digest, added_ns=self.now()))

    @_changes()
    def revoke(self, db: sa.Connection, name: str) -> int | None:
        """Withdraw a team: its token ends, its open trials are forfeited, its entries stay.

        Returns:
            When it had been withdrawn before, ns since 1970, UTC; None if it had not.

        Raises:
            InputError: If there is no such team.
        """
        team = db.execute(_of(TEAMS, name=name).with_for_update()).first()
        if team is None:
            raise InputError(f"there is no team {name!r:.80}")
        if team.revoked_ns is None:
            changed = sa.update(TEAMS).where(TEAMS.c.number == team.number)
            db.execute(changed.values(revoked_ns=self.now()))
        for attempt in db.execute(_of(ATTEMPTS, team=team.number, ended_ns=None)).all():
            self._forfeit(db, attempt.number, "the team was withdrawn", is_cut=True)
        revoked_ns: int | None = team.revoked_ns
        return revoked_ns

    def team_of(self, token: str) -> Team | None:
        """The team with a token, withdrawn or not; None if there is none."""
        return next(map(_team, self._all(_of(TEAMS, token_sha256=text_digest(token)))), None)

    def teams(self) -> list[Team]:
        """All teams in the order they were added."""
        return [_team(row) for row in self._all(_of(TEAMS))]

    def attempts(self) -> list[Attempt]:
        """All attempts in the order they began."""
        return [_attempt(row) for row in self._all(_of(ATTEMPTS))]

    # Playing -------------------------------------------------------------------------------------

    @_changes()
    def serve(self, db: sa.Connection, server: str) -> None:
        """Tell that a server plays from now on.

        If none did before, everybody who is within a trial has the time to come back again: that
        nobody answered was no team's fault.
        """
        others = self._alive(db) - {server}
        self._beat(db, server)
        if not others:
            due = self._back_ns()
            late = (TRIALS.c.state == "open", TRIALS.c.due_ns < due)
            db.execute(sa.update(TRIALS).where(*late).values(due_ns=due))

    @_changes(keeps=False)
    def beat(self, db: sa.Connection, server: str) -> None:
        """Tell that a server is still there; one that is silent for 20 s has died."""
        self._beat(db, server)

    @_changes()
    def sign_off(self, db: sa.Connection, server: str) -> None:
        """Tell that a server plays no more: nobody waits for it."""
        db.execute(sa.delete(SERVERS).where(SERVERS.c.name == server))

    def _beat(self, db: sa.Connection, server: str) -> None:
        own = sa.update(SERVERS).where(SERVERS.c.name == server).values(seen_ns=self.now())
        if not db.execute(own).rowcount:
            db.execute(sa.insert(SERVERS).values(name=server, seen_ns=self.now()))

    def _alive(self, db: sa.Connection) -> set[str]:
        heard = SERVERS.c.seen_ns > self.now() - ALIVE_NS
        return set(db.scalars(sa.select(SERVERS.c.name).where(heard)))

    @_changes()
    def claim(
        self, db: sa.Connection, team: Team, server: str, known: Sequence[Turn] = ()
    ) -> list[Turn]:
        """The turns of a team's current attempt, which this server plays from now on.

        Those that are `known` keep their deadline: to come back puts none off.

        An attempt begins if the team may start one. Turns that another server plays stay there,
        unless that has died.

        Raises:
            Refusal: If there are none: `unopened`, `beacon`, `closed`, `no_attempts`, `withdrawn`,
                `elsewhere`.
        """
        own = db.execute(_of(TEAMS, number=team.number).with_for_update()).one()
        if own.revoked_ns is not None:
            raise Refusal("the team was withdrawn; ask the organiser", "withdrawn")
        self._check_may_play(db)
        attempt = self._current(db, team)
        others = self._alive(db) - {server}
        self._beat(db, server)
        rows = db.execute(_of(TRIALS, attempt=attempt.number, state="open").with_for_update()).all()
        mine = [row for row in rows if row.server not in others]
        if rows and not mine:
            raise Refusal(
                "another server plays all trials of this attempt; go on there, or end that"
                " connection first",
                "elsewhere",
            )
        # All at once, and nothing where nothing changes: there may be thousands.
        free = (TRIALS.c.attempt == attempt.number, TRIALS.c.state == "open")
        taken = TRIALS.c.server.is_(None) | TRIALS.c.server.not_in({server, *others})
        db.execute(sa.update(TRIALS).where(*free, taken).values(server=server))
        kept = {(one.attempt, one.trial.number, one.run): one.due_ns for one in known}
        drawn, turns = self._trials(db, attempt.attempt), []
        for row in mine:
            due = kept.get((row.attempt, row.trial, row.run))
            if due is None and row.began_ns is not None:
                due = self._due(row.began_ns)
            if due is not None:
                _change(db, row, due_ns=due)
            changed = {"server": server, "due_ns": due}
            turns.append(_turn(attempt, team.name, drawn[row.trial], row, **changed))
        return turns

    def _check_may_play(self, db: sa.Connection) -> None:
        opens = self.competition.opens_ns
        if "closed_ns" in _meta(db):
            raise Refusal("the competition is closed; see the leaderboard", "closed")
        if opens is not None and self.now() < opens:
            raise Refusal(f"the competition opens at {moment_text(opens)}", "unopened")
        self._beacon(db)

    def _current(self, db: sa.Connection, team: Team) -> Attempt:
        """The attempt of a team that goes on, or a new one."""
        past = _past(db, team)
        if past and past[-1].ended_ns is None:
            return past[-1]
        most = self.competition.attempts
        if len(past) >= most:
            said = f"{counted(most, 'attempt')} may be played, and {len(past)} ended"
            raise Refusal(f"no attempt is left: {said}", "no_attempts")
        if self.now() >= self.competition.closes_ns:
            closes = moment_text(self.competition.closes_ns)
            raise Refusal(f"no attempt begins after the closing date, {closes}", "closed")
        start = {"team": team.number, "attempt": len(past) + 1, "started_ns": self.now()}
        db.execute(sa.insert(ATTEMPTS).values(**start, sha256=GENESIS))
        found = _past(db, team)[-1]
        drawn = self._trials(db, found.attempt)
        db.execute(sa.insert(TRIALS), [{"attempt": found.number, "trial": t.number} for t in drawn])
        return found

    @_changes(keeps=False)
    def begin(self, db: sa.Connection, turn: Turn) -> Turn:
        """Tell that the episode of a turn begins: from now on its time runs.

        Raises:
            Refusal: If it is this server's turn no longer, `lost`.
        """
        row = _trial_row(db, turn.attempt, turn.trial.number)
        _check_held(row, turn)
        began = self.now() if row.began_ns is None else row.began_ns
        due = self._due(began)
        _change(db, row, began_ns=began, due_ns=due, begun=turn.episode)
        return replace(turn, due_ns=due)

    @_changes()
    def away(self, db: sa.Connection, turns: Sequence[Turn]) -> None:
        """Tell that a team's connection was lost: the time to come back runs."""
        for turn in turns:
            row = _trial_row(db, turn.attempt, turn.trial.number)
            if row.state == "open" and row.began_ns is not None and row.server == turn.server:
                _change(db, row, due_ns=min(row.due_ns, self._back_ns()))

    @_changes(keeps=False)
    def record(self, db: sa.Connection, turn: Turn, row: Episode, actions: bytes) -> Turn | None:
        """Keep an episode that has ended; doing it again changes nothing.

        Args:
            db: Of the transaction.
            turn: Its turn.
            row: Its row; `self.row` makes one.
            actions: Its actions, as `compete.replay.packed` gives them.

        Returns:
            The next turn of the trial; None after its last.

        Raises:
            Refusal: If it is this server's turn no longer, `lost`.
        """
        attempt = _lock(db, turn.attempt)
        trial = _trial_row(db, turn.attempt, turn.trial.number)
        following = replace(turn, episode=turn.episode + 1, due_ns=trial.due_ns)
        is_last = following.episode == len(turn.trial.episodes)
        if trial.run != turn.run or trial.episode != following.episode:
            _check_held(trial, turn)
            began = self.now() if trial.began_ns is None else trial.began_ns
            due = None if is_last else self._due(began)
            told = self._cells(row, actions)
            _append(db, attempt, "episode", trial, turn.episode, told, actions)
            state = "done" if is_last else "open"
            _change(db, trial, episode=following.episode, state=state, due_ns=due, began_ns=began)
            following = replace(following, due_ns=due)
            if is_last:
                self._end_if_done(db, turn.attempt)
        return None if is_last else following

    def row(self, turn: Turn, **measured: Any) -> Episode:
        """The row of an episode: what the competition says of it, and what was measured."""
        planned = turn.trial.planned(turn.team, turn.ordinal, turn.episode, turn.run)
        given = {
            "policy_digest": text_digest(f"team:{turn.team}"),
            "score_version": SCORE_VERSION,
            "software": software(),
            **measured,
        }
        return row_for(planned, self._plan(turn.team), self.digest, **given)

    @_changes()
    def declare(
        self,
        db: sa.Connection,
        attempt: int,
        trial: int,
        episode: int,
        probability: float,
        threshold: float = 0.5,
        report: dict[str, Any] | None = None,
    ) -> None:
        """Keep what a team says of the episode that has just ended; once.

        Args:
            db: Of the transaction.
            attempt: Number of the attempt in the ledger.
            trial: Number of the trial.
            episode: Index of the episode within the trial.
            probability: That the world has changed, in [0, 1].
            threshold: From which probability on the team takes it to have changed, in [0, 1].
            report: `levels`, `entity`, `attribute` and `change`, as `core.trials.Declaration` has
                them.

        Raises:
            Refusal: If the episode has not just ended, or something else was said of it before:
                `order`, `declared`, `closed`.
            InputError: If a number or a word is none that a declaration has; it names the field.
        """
        stated = {**(report or {}), "probability": probability, "threshold": threshold}
        told = checked_declaration(stated) or {}
        head = _lock(db, attempt)
        row = _trial_row(db, attempt, trial)
        said = _said(db, row, episode=episode)
        before = said.get(("declare", episode))
        if before == told:
            return
        if before is not None:
            raise Refusal(f"of episode {episode} something was declared before", "declared")
        _check_just_ended(db, row, episode)
        if ("feedback", episode) in said:
            raise Refusal(f"whether episode {episode} was novel was asked before", "order")
        _append(db, head, "declare", row, episode, told)

    def last_ended(self, attempt: int) -> tuple[int, int, int] | None:
        """Attempt, trial and number of the episode of an attempt that has ended last."""
        query = _of(LINKS, attempt=attempt, kind="episode").order_by(None)
        newest = query.order_by(LINKS.c.sequence.desc()).limit(1)
        return next(((attempt, row.trial, row.episode) for row in self._all(newest)), None)

    @_changes()
    def feedback(
        self, db: sa.Connection, attempt: int, trial: int, episode: int
    ) -> tuple[bool, int]:
        """Whether the episode that has just ended was novel, and how often may still be asked.

        To ask again for the same episode costs nothing. Where the agent has to find the onset, it
        may ask only once it has declared one in this trial.

        Args:
            db: Of the transaction.
            attempt: Number of the attempt in the ledger.
            trial: Number of the trial.
            episode: Index of the episode within the trial.

        Raises:
            Refusal: If the episode has not just ended, nothing may be asked, or not so often:
                `order`, `closed`, `undeclared`, `no_feedback`.
        """
        head = _lock(db, attempt)
        row = _trial_row(db, attempt, trial)
        said, most = _said(db, row), self.competition.feedback
        left = most - sum(kind == "feedback" for kind, _ in said)
        before = said.get(("feedback", episode))
        if before is not None:
            return before["novel"], left
        _check_just_ended(db, row, episode)
        if left <= 0:
            raise Refusal(
                f"whether an episode was novel is told of {counted(most, 'episode')} of each trial,"
                " and no more is left",
                "no_feedback",
            )
        declared = (one for (kind, _), one in said.items() if kind == "declare")
        is_given = self.competition.trials.condition == "given"
        if not is_given and not any(map(means_novel, declared)):
            raise Refusal(
                "whether an episode was novel is told only once novelty was declared in its trial",
                "undeclared",
            )
        place = {"trial": trial, "run": row.run, "episode": episode}
        ended = db.execute(_of(LINKS, attempt=attempt, kind="episode", **place)).one()
        novel = is_novel(self._trials(db, head.attempt)[trial], _played(ended, START))
        _append(db, head, "feedback", row, episode, {"novel": novel})
        return novel, left - 1

    @_changes()
    def give_back(self, db: sa.Connection, attempt: int, trial: int, why: str) -> None:
        """Let a trial start again from its first episode: it broke by a fault of the server.

        What was played of it stays in the ledger, and counts no more.
        """
        head = _lock(db, attempt)
        row = _trial_row(db, attempt, trial)
        if row.state == "open" and row.began_ns is not None:
            fresh = {"episode": 0, "begun": -1, "began_ns": None, "due_ns": None}
            _change(db, row, run=row.run + 1, server=None, why=why[:500], **fresh)
            # A link of its own, so that which run counts follows from the chain alone.
            again = _trial_row(db, attempt, trial)
            _append(db, head, "given_back", again, 0, {"why": why[:500]})

    @_changes()
    def forfeit(self, db: sa.Connection, attempt: int, trial: int, why: str) -> None:
        """End a trial by the rules: what is left of it counts as failed."""
        self._forfeit(db, attempt, why, TRIALS.c.trial == trial)

    @_changes()
    def sweep(self, db: sa.Connection) -> int:
        """Forfeit every trial whose deadline has passed; how many there were.

        Everything that was recorded before survives a power cut from then on.
        """
        is_late = TRIALS.c.due_ns < self.now()
        late = sa.select(TRIALS.c.attempt).where(TRIALS.c.state == "open", is_late)
        found = sorted(set(db.scalars(late)))
        return sum(self._forfeit(db, attempt, "", is_late) for attempt in found)

    def _forfeit(
        self,
        db: sa.Connection,
        number: int,
        why: str,
        *which: sa.ColumnElement[bool],
        is_cut: bool = False,
    ) -> int:
        """End those trials of an attempt that are open, and the attempt with its last one.

        Each episode that is left has a row: ended by a fault of the team, without a score.

        Args:
            db: Of the transaction.
            number: Number of the attempt in the ledger.
            why: Is told; empty says which deadline has passed.
            *which: Of which trials; none are all.
            is_cut: Whether the attempt could have gone on.

        Returns:
            How many trials there were.
        """
        head = _lock(db, number)
        name = db.scalar(sa.select(TEAMS.c.name).where(TEAMS.c.number == head.team))
        trials = _of(TRIALS, attempt=number, state="open").where(*which).with_for_update()
        rows = db.execute(trials).all()
        drawn = self._trials(db, head.attempt) if rows else ()
        for trial in rows:
            reason = why[:500] or f"nothing came until {moment_text(trial.due_ns)}"
            first = _turn(head, str(name), drawn[trial.trial], trial)
            for episode in range(trial.episode, len(first.trial.episodes)):
                row = self.row(
                    replace(first, episode=episode), start_ns=self.now(), duration_s=0.0, ticks=0,
                    episode_return=None, quality=None, success=None, end_reason=EndReason.FAULT,
                    end_detail=reason, fault_by=FaultBy.POLICY,
                )  # fmt: skip
                head = _append(db, head, "episode", trial, episode, self._cells(row, b""), b"")
            _change(db, trial, state="forfeited", why=reason, due_ns=None)
        self._end_if_done(db, number, is_cut=is_cut)
        return len(rows)

    def _cells(self, row: Episode, actions: bytes) -> dict[str, Any]:
        return {**cells_of(row, where=str(self.folder)), "actions_sha256": _digest_of(actions)}

    def _end_if_done(self, db: sa.Connection, attempt: int, *, is_cut: bool = False) -> None:
        if not db.execute(_of(TRIALS, attempt=attempt, state="open").with_for_update()).first():
            own = (ATTEMPTS.c.number == attempt, ATTEMPTS.c.ended_ns.is_(None))
            ended = {"ended_ns": self.now(), "is_cut": int(is_cut)}
            db.execute(sa.update(ATTEMPTS).where(*own).values(**ended))

    def _due(self, began_ns: int) -> int:
        limits = self.competition.limits
        return min(self.now() + round(limits.episode_s * _S), began_ns + round(limits.trial_s * _S))

    def _back_ns(self) -> int:
        """Until when who lost a connection now has to be back."""
        return self.now() + round(self.competition.limits.idle_s * _S)

    # What was noted and played -------------------------------------------------------------------

    @_changes(keeps=False)
    def note(self, db: sa.Connection, team: Team | None, kind: str, detail: str) -> None:
        """Keep that something was refused; of each team only the first thousand in words."""
        number = None if team is None else team.number
        if number is None:
            n = 1 + (db.scalar(sa.select(sa.func.count()).where(NOTES.c.team.is_(None))) or 0)
        else:
            changed = sa.update(TEAMS).where(TEAMS.c.number == number)
            db.execute(changed.values(n_notes=TEAMS.c.n_notes + 1))
            n = db.scalar(sa.select(TEAMS.c.n_notes).where(TEAMS.c.number == number)) or 0
        if n <= MOST_NOTES:
            text = {"kind": kind[:40], "detail": detail[:500]}
            db.execute(sa.insert(NOTES).values(team=number, at_ns=self.now(), **text))

    def notes(self) -> list[dict[str, Any]]:
        """What was refused, oldest first: `team` (number or None), `kind`, `detail`, `at_ns`."""
        return self._dicts(_of(NOTES))

    def latest_notes(self, most: int, team: Team | None = None) -> list[dict[str, Any]]:
        """What was refused last, newest first, as `notes` has it; of one team or of all."""
        query = _of(NOTES) if team is None else _of(NOTES, team=team.number)
        return self._dicts(query.order_by(None).order_by(NOTES.c.number.desc()).limit(most))

    def breaks(self, most: int, attempts: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """Trials that were forfeited or given back, of new attempts first.

        Each has `attempt`, `trial`, `state`, `run` and `why`.

        Args:
            most: How many at most.
            attempts: Numbers of attempts; None for all.
        """
        columns = [TRIALS.c[name] for name in ("attempt", "trial", "state", "run", "why")]
        query = sa.select(*columns).where(TRIALS.c.why.is_not(None)).limit(most)
        query = query.order_by(TRIALS.c.attempt.desc(), TRIALS.c.trial)
        own = query if attempts is None else query.where(TRIALS.c.attempt.in_(attempts))
        return self._dicts(own)

    def progress(self) -> dict[int, AttemptProgress]:
        """How far each attempt is, by its number."""
        of = TRIALS.c
        query = sa.select(
            of.attempt,
            sa.func.count().label("trials"),
            sa.func.sum(sa.case((of.state == "done", 1), else_=0)).label("ended"),
            sa.func.sum(sa.case((of.state == "forfeited", 1), else_=0)).label("forfeited"),
            sa.func.sum(of.run - 1).label("given_back"),
            sa.func.sum(of.episode).label("episodes"),
            sa.func.min(sa.case((of.state == "open", of.due_ns))).label("due_ns"),
        ).group_by(of.attempt)
        return {row.pop("attempt"): AttemptProgress(**row) for row in self._dicts(query)}

    def servers(self) -> dict[str, int]:
        """When each server was last heard of, ns since 1970, UTC, by its name."""
        return {row.name: row.seen_ns for row in self._all(_of(SERVERS))}

    def ended_runs(self, attempt: int) -> dict[int, tuple[int, int]]:
        """Of each trial that an attempt's chain names its last run, and how many episodes ended.

        That run counts: a trial that was given back begins a new one by a link.
        """
        own, of = (LINKS.c.trial, LINKS.c.run), LINKS.c
        n = sa.func.sum(sa.case((of.kind == "episode", 1), else_=0)).label("n")
        query = sa.select(*own, n).where(of.attempt == attempt).group_by(*own).order_by(*own)
        return {row.trial: (row.run, row.n) for row in self._all(query)}

    def trial_states(self, attempt: int) -> dict[int, tuple[int, int, str]]:
        """Run, episodes played in it and state of each trial, as servers go on from them."""
        rows = self._all(_of(TRIALS, attempt=attempt))
        return {row.trial: (row.run, row.episode, row.state) for row in rows}

    def links(self, attempt: int) -> Iterator[ChainRow]:
        """What an attempt left behind in order, each link compared with the one before it."""
        last = START
        for row in self._all(_of(LINKS, attempt=attempt)):
            found = _played(row, last)
            yield found
            last = found.link

    def contents(self, attempt: int) -> Iterator[Sequence[Any]]:
        """Kind, trial, run, episode and text of every link of an attempt in order, unchecked.

        `links` compares each with the one before it, which takes ten times as long.
        """
        columns = [LINKS.c[name] for name in (*_PLACE, "content")]
        yield from self._all(_of(LINKS, attempt=attempt).with_only_columns(*columns))

    def shown(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every row that the end of a competition shows, by its table; of no token anything."""
        for table in SHOWN.values():
            columns = [one for one in table.columns if one.name not in ("server", "n_notes")]
            parts = [_of(table)]
            if table is LINKS:  # so that not all of it is held at once
                parts = [_of(table, attempt=one.number) for one in self.attempts()]
            for part in parts:
                for row in self._dicts(part.with_only_columns(*columns)):
                    hidden = {"token_sha256": str(row["number"])} if table is TEAMS else {}
                    yield table.name, {**row, **hidden}

    def kept_scores(self) -> dict[int, tuple[str, str]]:
        """What was computed of attempts before: by number, what it depends on, and what it is."""
        return {row.attempt: (row.key, row.content) for row in self._all(_of(SCORES))}

    @_changes()
    def keep_scores(self, db: sa.Connection, new: Mapping[int, tuple[str, str]]) -> None:
        """Keep what was computed of attempts, in place of what was known of them."""
        for number, (key, told) in new.items():
            db.execute(sa.delete(SCORES).where(SCORES.c.attempt == number))
            db.execute(sa.insert(SCORES).values(attempt=number, key=key, content=told))

    def standings(self) -> dict[str, dict[str, Any]]:
        """What of the competition, its teams and attempts decides entries, ranks and marks."""
        teams = self.teams()
        names = {team.number: team.name for team in teams}
        told = {"competition": {"closed_ns": self.meta().get("closed_ns")}}
        told |= {f"team {team.name}": plain(team) for team in teams}
        for one in self.attempts():
            told[f"{names.get(one.team, '?')}, attempt {one.attempt}"] = plain(one)
        return told

    def strays(self) -> list[int]:
        """Numbers of attempts that are not there, though trials or links of them are."""
        left = self._all(sa.union(sa.select(LINKS.c.attempt), sa.select(TRIALS.c.attempt)))
        return sorted({row.attempt for row in left} - {one.number for one in self.attempts()})

    # The end -------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the competition: nothing is played any more, what is open is forfeited."""
        self._put("closed_ns", str(self.now()))
        for attempt in self._all(_of(ATTEMPTS, ended_ns=None)):
            self._close(attempt.number)

    @_changes()
    def _close(self, db: sa.Connection, number: int) -> None:
        self._forfeit(db, number, "the competition was closed", is_cut=True)

    def reveal(self) -> dict[str, Any]:
        """What was promised, every attempt's end, and who stood how; closes what is open.

        Raises:
            Refusal: If the competition is neither closed nor past its closing date, `unclosed`.
        """
        closes = self.competition.closes_ns
        if "closed_ns" not in self.meta() and self.now() < closes:
            raise Refusal(
                f"{self.folder}: it goes on until {moment_text(closes)}; `robo-eval compete close"
                f" {self.folder}` ends it before",
                "unclosed",
            )
        self.close()
        meta = self.meta()
        told = {
            **self.promised(meta["code_version"], meta.get("beacon")),
            "salt": self._secret.salt.hex(),
            "beacon": meta.get("beacon"),
            "commitment": meta["commitment"],
            "chains": {str(one.number): one.sha256 for one in self.attempts()},
            "standing": self.standings(),
        }
        data = json.dumps(told, indent=1, sort_keys=True) + "\n"
        write_atomically(self.folder / REVEAL, data.encode())
        self._put("revealed_ns", str(self.now()))
        return told

    # Standing ------------------------------------------------------------------------------------

    def standing(self, team: Team) -> TeamStanding:
        """How a team stands: why, whose move it is, and until when."""
        return self._read(lambda db: self._standing(db, team))

    def phase(self) -> TeamStanding:
        """How the competition stands, for everybody."""
        return self._read(self._standing)

    def _standing(self, db: sa.Connection, team: Team | None = None) -> TeamStanding:
        meta, now, closes = _meta(db), self.now(), self.competition.closes_ns
        if "revealed_ns" in meta:
            told = "The competition has ended and its seeds are revealed: anybody may check it."
            return TeamStanding("revealed", told, "organiser", None)
        own = None if team is None else db.execute(_of(TEAMS, number=team.number)).one()
        if own is not None and own.revoked_ns is not None:
            told = "The team was withdrawn; what it played stays visible."
            return TeamStanding("withdrawn", told, "organiser", None)
        if "closed_ns" in meta:
            told = "The competition is closed; the organiser reveals the seeds next."
            return TeamStanding("closed", told, "organiser", closes)
        past = [] if team is None else _past(db, team)
        if past and past[-1].ended_ns is None:
            return self._playing(db, past[-1])
        try:
            self._check_may_play(db)
        except Refusal as err:
            deadline = self.competition.opens_ns if err.code == "unopened" else closes
            told = f"{str(err)[:1].upper()}{str(err)[1:]}."
            return TeamStanding(err.code, told, "organiser", deadline)
        most, is_late = self.competition.attempts, now >= closes
        if team is None and is_late:
            told = (
                "No attempt begins any more; those that began may go on until the organiser closes."
            )
            return TeamStanding("late", told, "organiser", None)
        if team is None:
            told = "The competition is open: attempts may begin until the closing date."
            return TeamStanding("open", told, "team", closes)
        if len(past) < most and not is_late:
            told = f"The team may begin attempt {len(past) + 1} of {most}."
            return TeamStanding("ready", told, "team", closes)
        told = (
            f"The team has ended {counted(len(past), 'attempt')} of {most}; the organiser closes"
            " the competition and reveals the seeds next."
        )
        return TeamStanding("finished", told, "organiser", closes)

    def _playing(self, db: sa.Connection, attempt: Attempt) -> TeamStanding:
        rows = db.execute(_of(TRIALS, attempt=attempt.number)).all()
        n, still = self.competition.trials.episodes, [row for row in rows if row.state == "open"]
        told = (
            f"Attempt {attempt.attempt} of {self.competition.attempts} goes on:"
            f" {sum(n - row.episode for row in still)} of {counted(len(rows) * n, 'episode')} left"
            " to play."
        )
        forfeited = [row for row in rows if row.state == "forfeited"]
        if forfeited:
            told += f" {counted(len(forfeited), 'trial')} forfeited: {forfeited[-1].why}."
        back = sum(row.run > 1 and row.episode == 0 for row in still)
        if back:
            # Not why: what an environment says when it breaks could tell what is novel in it.
            told += f" {counted(back, 'trial')} to start again by our fault, at no cost."
        due = [row.due_ns for row in still if row.due_ns is not None]
        deadline = min(due, default=self.competition.closes_ns)
        if due and self.now() > deadline:
            told += " A deadline has passed; its trial is about to be forfeited."
            return TeamStanding("late", told, "server", deadline)
        return TeamStanding("playing", told, "team", deadline)

    # Transactions --------------------------------------------------------------------------------

    def _read(self, work: Callable[[sa.Connection], _Result]) -> _Result:
        def once() -> _Result:
            with self.database.reading() as db:
                return work(db)

        return self.database.persistently(once)

    def _all(self, query: sa.Executable) -> Sequence[Any]:
        return self.database.persistently(partial(self.database.rows, query))

    def _dicts(self, query: sa.Executable) -> list[dict[str, Any]]:
        return [row._asdict() for row in self._all(query)]

    @_changes()
    def _put(self, db: sa.Connection, name: str, value: str) -> str:
        """Keep a value once; gives the one that is kept."""
        if name not in (meta := _meta(db)):
            db.execute(sa.insert(META).values(name=name, value=value))
        return meta.get(name, value)

    def flush(self) -> None:
        """Have the disk keep what was recorded, so that it survives a power cut."""
        self.database.flush()


# Files -------------------------------------------------------------------------------------------


def _write_files(folder: Path, competition: Competition, secret: Secret, url: str | None) -> None:
    """Write what the folder of a competition holds beside its database."""
    held = {name: getattr(secret, name).hex() for name in ("master", "salt")}
    for name, text in ((SECRET, json.dumps(held)), (URL, url)):
        if text is not None:  # a URL holds a password
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(text + "\n", encoding="utf-8")
    head = "# A competition that has begun. Change nothing here: its commitment covers it.\n"
    text = yaml.safe_dump(competition.parameters, sort_keys=False, allow_unicode=True, width=100)
    (folder / FILE).write_text(head + text, encoding="utf-8")


def _read_secret(path: Path) -> Secret:
    try:
        held = json.loads(text_of(path, "secret"))
        found = Secret(bytes.fromhex(held["master"]), bytes.fromhex(held["salt"]))
    except (ValueError, KeyError, TypeError, RecursionError) as err:
        raise InputError(f"{path}: holds no secret of a competition; restore it") from err
    return found


# Rows --------------------------------------------------------------------------------------------

# What is asked for each episode is made once: making a statement takes longer than running it.
_HEAD: Final = sa.select(ATTEMPTS).where(ATTEMPTS.c.number == sa.bindparam("of")).with_for_update()
_OWN: Final = (TRIALS.c.attempt == sa.bindparam("of"), TRIALS.c.trial == sa.bindparam("which"))
_TRIAL: Final = sa.select(TRIALS).where(*_OWN).with_for_update()
_CHANGE: Final = sa.update(TRIALS).where(*_OWN)
_LINKED: Final = sa.update(ATTEMPTS).where(ATTEMPTS.c.number == sa.bindparam("of"))


def _of(table: sa.Table, **equal: object) -> sa.Select[Any]:
    """The rows of a table in the order of its key, of which some columns are known."""
    return sa.select(table).filter_by(**equal).order_by(*table.primary_key)


def _meta(db: sa.Connection) -> dict[str, str]:
    return {row.name: row.value for row in db.execute(_of(META))}


def _team(row: Any) -> Team:
    return Team(**{one.name: getattr(row, one.name) for one in fields(Team)})


def _attempt(row: Any) -> Attempt:
    return Attempt(**{**row._asdict(), "is_cut": bool(row.is_cut)})


def _past(db: sa.Connection, team: Team) -> list[Attempt]:
    """The attempts of a team, the newest last."""
    return [_attempt(row) for row in db.execute(_of(ATTEMPTS, team=team.number))]


def _lock(db: sa.Connection, attempt: int) -> Attempt:
    """An attempt, to whose chain nobody else appends until the transaction ends."""
    return _attempt(db.execute(_HEAD, {"of": attempt}).one())


def _append(
    db: sa.Connection,
    head: Attempt,
    kind: str,
    trial: Any,
    episode: int,
    told: dict[str, Any],
    actions: bytes | None = None,
) -> Attempt:
    """Add a link to an attempt's chain; gives the attempt with it."""
    key = {"kind": kind, "trial": trial.trial, "run": trial.run, "episode": episode}
    sequence = head.sequence + 1
    sha256 = row_digest({**told, **key}, sequence=sequence, previous_sha256=head.sha256)
    row = {
        "attempt": head.number,
        "sequence": sequence,
        **key,
        "content": canonical_json(told).decode(),
        "actions": None if actions is None else zlib.compress(actions),
        "sha256": sha256,
    }
    db.execute(sa.insert(LINKS), row)
    db.execute(_LINKED, {"of": head.number, "sequence": sequence, "sha256": sha256})
    return replace(head, sequence=sequence, sha256=sha256)


def _trial_row(db: sa.Connection, attempt: int, trial: int) -> Any:
    found = db.execute(_TRIAL, {"of": attempt, "which": trial}).first()
    if found is None:
        raise Refusal(f"there is no trial {trial!r:.40} in this attempt", "lost")
    return found


def _change(db: sa.Connection, row: Any, **values: object) -> None:
    db.execute(_CHANGE, {"of": row.attempt, "which": row.trial, **values})


def _turn(own: Attempt, team: str, drawn: TrialDraw, row: Any, **changed: Any) -> Turn:
    """The turn of a row of TRIALS, of which some fields have changed since it was read."""
    return Turn(
        attempt=own.number,
        ordinal=own.attempt,
        team=team,
        trial=drawn,
        run=row.run,
        episode=row.episode,
        **{"due_ns": row.due_ns, "server": row.server or "", **changed},
    )


def _check_held(row: Any, turn: Turn) -> None:
    if row.state != "open" or row.run != turn.run or row.server != turn.server:
        what = f"was {row.state}" if row.state != "open" else "is played elsewhere"
        raise Refusal(f"the trial {what}: {row.why or 'it was claimed anew'}", "lost")
    if row.episode != turn.episode:
        raise Refusal(f"episode {row.episode} of the trial is next, not {turn.episode}", "lost")


def _check_just_ended(db: sa.Connection, row: Any, episode: int) -> None:
    if "closed_ns" in _meta(db) or row.state == "forfeited":
        raise Refusal("the trial is closed", "closed")
    if row.episode != episode + 1 or row.begun > episode:
        raise Refusal(
            f"episode {episode} has not just ended; speak of it after its last step and before"
            " the next begins",
            "order",
        )


def _said(db: sa.Connection, trial: Any, **which: object) -> dict[tuple[str, int], dict[str, Any]]:
    """What was said of the episodes of a trial's run that counts, by kind and episode."""
    own = _of(LINKS, attempt=trial.attempt, trial=trial.trial, run=trial.run, **which)
    said = db.execute(own.where(LINKS.c.kind != "episode"))
    return {(row.kind, row.episode): json.loads(row.content) for row in said}


def means_novel(declared: Mapping[str, Any]) -> bool:
    """Whether a declaration says that there is novelty."""
    return bool(declared["probability"] >= declared["threshold"])


def is_novel(trial: TrialDraw, played: ChainRow) -> bool:
    """What feedback tells of an episode; one that ended before its novelty began is normal."""
    row = played.row
    return trial.episodes[played.episode].is_novel and not never_began(row.novelty, row.ticks)


def _digest_of(actions: bytes) -> str:
    return hashlib.sha256(actions).hexdigest()


def _played(row: Any, last: ChainLink) -> ChainRow:
    link = ChainLink(row.sequence, row.sha256)
    key = {name: getattr(row, name) for name in _PLACE}
    told: dict[str, Any] = {}
    actions, problem = None, break_text(last, row.sequence, last.sha256, "link")
    try:
        told = dict(json.loads(row.content))
        digest = row_digest({**told, **key}, sequence=row.sequence, previous_sha256=last.sha256)
        actions = None if row.actions is None else zlib.decompress(row.actions)
        if digest != row.sha256:
            problem = problem or "is not what was recorded: its digest differs"
        elif told.get("actions_sha256") != (None if actions is None else _digest_of(actions)):
            problem = problem or "its actions are not those that were recorded"
    except (ValueError, TypeError, RecursionError, zlib.error) as err:
        problem = problem or f"cannot be read: {err}"
    return ChainRow(link=link, content=told, actions=actions, problem=problem, **key)
