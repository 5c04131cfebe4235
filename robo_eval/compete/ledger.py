"""Everything of a competition that lasts: who takes part, who has which turn, what was played."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    true,
    union,
    update,
)

from robo_eval.compete.competition import (
    Competition,
    check_dates,
    moment_text,
    parse_competition,
)
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
from robo_eval.core.plain import plain
from robo_eval.core.plan import PlainName
from robo_eval.core.trials import checked_declaration
from robo_eval.core.wording import counted
from robo_eval.core.yaml_form import text_of
from robo_eval.log.chain import GENESIS, START, Link, break_text
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
_PLACE: Final = ("trial", "run", "episode")
_S: Final = 10**9
_Result = TypeVar("_Result")


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
        sha256: Digest of the newest link of its chain.
    """

    number: int
    team: int
    attempt: int
    started_ns: int
    ended_ns: int | None
    is_cut: bool
    sha256: str


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
class Played:
    """A link of an attempt's chain as it is stored.

    Attributes:
        link: Its place in the chain.
        kind: `episode` or `declare`.
        trial: Number of the trial.
        run: Which run of the trial.
        episode: Index within the trial.
        content: What it holds.
        actions: The actions of an episode, as they were given to `record`.
        problem: How it fails to follow the link before, or its own digest; None if it does not.
    """

    link: Link
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
class Standing:
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
class Progress:
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


class _Head(NamedTuple):
    """An attempt, held by whoever appends to its chain, and the newest link of that."""

    number: int
    team: int
    attempt: int
    sequence: int
    sha256: str


class Ledger:
    """The ledger of a competition. Each method is one transaction.

    Args:
        folder: Folder of the competition.
        clock: Gives the time, ns since 1970, UTC.
        read_only: Refuse to change anything.

    Raises:
        InputError: If it is none, or its database cannot be opened.
    """

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
        target = text_of(url, "URL").strip() if url.exists() else folder / DATABASE
        self._database: Final = Database(target, FORM, read_only=read_only, durable=False)
        self._draw: Final = lru_cache(maxsize=64)(self._drawn)
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

    @property
    def database(self) -> Database:
        """Where it is kept, and who is logged in to its pages."""
        return self._database

    def close_connection(self) -> None:
        """Let go of the database; the competition goes on."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_connection()

    # What everybody may know ---------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        """`code_version`, `commitment`; once it is so `beacon`, `closed_ns` and `revealed_ns`."""
        return {
            row.name: row.value for row in self._read(lambda db: db.execute(select(META)).all())
        }

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
        return self._draw(attempt, self._read(self._beacon))

    def _drawn(self, attempt: int, beacon: str | None) -> tuple[TrialDraw, ...]:
        return draw(self.competition, self._secret, beacon, attempt)

    def _beacon(self, db: Connection) -> str | None:
        if self.competition.beacon is None:
            return None
        found = _value(db, "beacon")
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

        def work(db: Connection) -> None:
            known = _value(db, "beacon")
            if known not in (None, value):
                raise InputError(f"{self.folder}: was given another value before, {known!r:.80}")
            _put(db, "beacon", value)

        self._write(work)

    # Teams ---------------------------------------------------------------------------------------

    def add_team(self, name: str) -> str:
        """Add a team; gives its token, of which only a digest is kept.

        Raises:
            InputError: If there is a team of this name, it is no name, or the competition is
                closed.
        """
        with suppress(ValidationError):
            name = TypeAdapter(PlainName).validate_python(name)
            token = secrets.token_urlsafe(24)
            self._write(lambda db: self._add_team(db, name, text_digest(token)))
            return token
        raise InputError(
            f"{name!r:.80} is no name of a team; use up to 64 letters, digits, '.', '_', '+', '-'"
        )

    def _add_team(self, db: Connection, name: str, digest: str) -> None:
        known = db.execute(select(TEAMS).where(TEAMS.c.name == name)).first()
        if known is not None:
            if known.token_sha256 == digest:  # done before the answer was lost
                return
            raise InputError(
                f"there is a team {name!r} already; choose another name, or end its token by"
                " --revoke"
            )
        if _value(db, "closed_ns") is not None:
            said = f"{self.folder}: is closed, and nobody joins any more; begin a new competition"
            raise Refusal(said, "closed")
        db.execute(insert(TEAMS).values(name=name, token_sha256=digest, added_ns=self.now()))

    def revoke(self, name: str) -> int | None:
        """Withdraw a team: its token ends, its open trials are forfeited, its entries stay.

        Returns:
            When it had been withdrawn before, ns since 1970, UTC; None if it had not.

        Raises:
            InputError: If there is no such team.
        """

        def work(db: Connection) -> int | None:
            team = db.execute(select(TEAMS).where(TEAMS.c.name == name).with_for_update()).first()
            if team is None:
                raise InputError(f"there is no team {name!r:.80}")
            if team.revoked_ns is None:
                changed = update(TEAMS).where(TEAMS.c.number == team.number)
                db.execute(changed.values(revoked_ns=self.now()))
            for number in _unended(db, ATTEMPTS.c.team == team.number):
                self._forfeit_open(db, number, "the team was withdrawn")
            return team.revoked_ns  # type: ignore[no-any-return]

        return self._write(work)

    def team_of(self, token: str) -> Team | None:
        """The team with a token, withdrawn or not; None if there is none."""
        digest = text_digest(token)
        query = select(TEAMS).where(TEAMS.c.token_sha256 == digest)
        row = self._read(lambda db: db.execute(query).first())
        return None if row is None else _team(row)

    def teams(self) -> list[Team]:
        """All teams in the order they were added."""
        query = select(TEAMS).order_by(TEAMS.c.number)
        return [_team(row) for row in self._read(lambda db: db.execute(query).all())]

    def attempts(self) -> list[Attempt]:
        """All attempts in the order they began."""
        query = select(ATTEMPTS).order_by(ATTEMPTS.c.number)
        return [_attempt(row) for row in self._read(lambda db: db.execute(query).all())]

    # Playing -------------------------------------------------------------------------------------

    def serve(self, server: str) -> None:
        """Tell that a server plays from now on.

        If none did before, everybody who is within a trial has the time to come back again: that
        nobody answered was no team's fault.
        """

        def work(db: Connection) -> None:
            now = self.now()
            others = _alive(db, now) - {server}
            _beat(db, server, now)
            if not others:
                due = now + round(self.competition.limits.idle_s * _S)
                late = (TRIALS.c.state == "open", TRIALS.c.due_ns < due)
                db.execute(update(TRIALS).where(*late).values(due_ns=due))

        self._write(work)

    def beat(self, server: str) -> None:
        """Tell that a server is still there; one that is silent for 20 s has died."""
        self._write(lambda db: _beat(db, server, self.now()), keeps=False)

    def claim(self, team: Team, server: str) -> list[Turn]:
        """The turns of a team's current attempt, which this server plays from now on.

        An attempt begins if the team may start one. Turns that another server plays stay there,
        unless that has died.

        Raises:
            Refusal: If there are none: `unopened`, `beacon`, `closed`, `no_attempts`, `withdrawn`,
                `elsewhere`.
        """
        return self._write(lambda db: self._claim(db, team, server))

    def _claim(self, db: Connection, team: Team, server: str) -> list[Turn]:
        now = self.now()
        own = db.execute(select(TEAMS).where(TEAMS.c.number == team.number).with_for_update())
        self._check_may_play(db, own.one().revoked_ns, now)
        attempt = self._current(db, team, now)
        alive = _alive(db, now)
        _beat(db, server, now)
        mine, elsewhere = [], False
        for row in _open_trials(db, attempt.number):
            if row.server not in (None, server) and row.server in alive:
                elsewhere = True
                continue
            due = None if row.began_ns is None else self._due(row.began_ns, now)
            _change(db, row, server=server, due_ns=due)
            turn = self._turn(db, attempt, team.name, row)
            mine.append(replace(turn, server=server, due_ns=due))
        if not mine and elsewhere:
            raise Refusal(
                "another server plays all trials of this attempt; go on there, or end that"
                " connection first",
                "elsewhere",
            )
        return mine

    def _check_may_play(self, db: Connection, revoked_ns: int | None, now: int) -> None:
        opens = self.competition.opens_ns
        if revoked_ns is not None:
            raise Refusal("the team was withdrawn; ask the organiser", "withdrawn")
        if _value(db, "closed_ns") is not None:
            raise Refusal("the competition is closed; see the leaderboard", "closed")
        if opens is not None and now < opens:
            raise Refusal(f"the competition opens at {moment_text(opens)}", "unopened")
        self._beacon(db)

    @staticmethod
    def _past(db: Connection, team: Team) -> list[Attempt]:
        """The attempts of a team, the newest last."""
        own = select(ATTEMPTS).where(ATTEMPTS.c.team == team.number).order_by(ATTEMPTS.c.number)
        return [_attempt(row) for row in db.execute(own)]

    def _current(self, db: Connection, team: Team, now: int) -> Attempt:
        """The attempt of a team that goes on, or a new one."""
        past = self._past(db, team)
        if past and past[-1].ended_ns is None:
            return past[-1]
        most = self.competition.attempts
        if len(past) >= most:
            said = f"{counted(most, 'attempt')} may be played, and {len(past)} ended"
            raise Refusal(f"no attempt is left: {said}", "no_attempts")
        if now >= self.competition.closes_ns:
            closes = moment_text(self.competition.closes_ns)
            raise Refusal(f"no attempt begins after the closing date, {closes}", "closed")
        start = {"team": team.number, "attempt": len(past) + 1, "started_ns": now}
        db.execute(insert(ATTEMPTS).values(**start, sha256=GENESIS))
        found = self._past(db, team)[-1]
        drawn = self._draw(found.attempt, self._beacon(db))
        db.execute(insert(TRIALS), [{"attempt": found.number, "trial": t.number} for t in drawn])
        return found

    def begin(self, turn: Turn) -> Turn:
        """Tell that the episode of a turn begins: from now on its time runs.

        Raises:
            Refusal: If it is this server's turn no longer, `lost`.
        """

        def work(db: Connection) -> Turn:
            row = _trial_row(db, turn.attempt, turn.trial.number)
            self._check_held(row, turn)
            now = self.now()
            began = now if row.began_ns is None else row.began_ns
            due = self._due(began, now)
            _change(db, row, began_ns=began, due_ns=due, begun=turn.episode)
            return replace(turn, due_ns=due)

        return self._write(work, keeps=False)

    def away(self, turns: Sequence[Turn]) -> None:
        """Tell that a team's connection was lost: the time to come back runs."""

        def work(db: Connection) -> None:
            now = self.now()
            for turn in turns:
                row = _trial_row(db, turn.attempt, turn.trial.number)
                if row.state == "open" and row.began_ns is not None and row.server == turn.server:
                    _change(db, row, due_ns=now + round(self.competition.limits.idle_s * _S))

        self._write(work)

    def record(self, turn: Turn, row: Episode, actions: bytes) -> Turn | None:
        """Keep an episode that has ended; doing it again changes nothing.

        Args:
            turn: Its turn.
            row: Its row; `self.row` makes one.
            actions: Its actions, as `compete.replay.packed` gives them.

        Returns:
            The next turn of the trial; None after its last.

        Raises:
            Refusal: If it is this server's turn no longer, `lost`.
        """
        return self._write(lambda db: self._record(db, turn, row, actions), keeps=False)

    def _record(self, db: Connection, turn: Turn, row: Episode, actions: bytes) -> Turn | None:
        attempt = _lock(db, turn.attempt)
        trial = _trial_row(db, turn.attempt, turn.trial.number)
        following = replace(turn, episode=turn.episode + 1)
        is_last = following.episode == len(turn.trial.episodes)
        if trial.run == turn.run and trial.episode == following.episode:
            return None if is_last else replace(following, due_ns=trial.due_ns)
        self._check_held(trial, turn)
        now = self.now()
        due = None if is_last else self._due(now if trial.began_ns is None else trial.began_ns, now)
        place = (trial.trial, trial.run, trial.episode)
        self._append(db, attempt, "episode", place, self._cells(row, actions), actions)
        state = "done" if is_last else "open"
        began = now if trial.began_ns is None else trial.began_ns
        _change(db, trial, episode=following.episode, state=state, due_ns=due, began_ns=began)
        if is_last:
            self._end_if_done(db, turn.attempt)
        return None if is_last else replace(following, due_ns=due)

    def row(self, turn: Turn, **measured: Any) -> Episode:  # noqa: ANN401 - the fields of Episode
        """The row of an episode: what the competition says of it, and what was measured."""
        planned = turn.trial.planned(turn.team, turn.ordinal, turn.episode, turn.run)
        given = {
            "policy_digest": text_digest(f"team:{turn.team}"),
            "score_version": SCORE_VERSION,
            "software": software(),
            **measured,
        }
        return row_for(planned, self._plan(turn.team), self.digest, **given)

    def declare(
        self,
        attempt: int,
        trial: int,
        episode: int,
        probability: float,
        threshold: float = 0.5,
        report: dict[str, Any] | None = None,
    ) -> None:
        """Keep what a team says of the episode that has just ended; once.

        Args:
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
        if not isinstance(report, dict | None):
            raise InputError(f"report must be a mapping, given {report!r:.40}")
        stated = {**(report or {}), "probability": probability, "threshold": threshold}
        told = checked_declaration(stated) or {}

        def work(db: Connection) -> None:
            head = _lock(db, attempt)
            row = _trial_row(db, attempt, trial)
            said = _said(db, row, LINKS.c.episode == episode)
            before = said.get(("declare", episode))
            if before is not None:
                if before == told:
                    return
                raise Refusal(f"of episode {episode} something was declared before", "declared")
            self._check_just_ended(db, row, episode)
            if ("feedback", episode) in said:
                raise Refusal(f"whether episode {episode} was novel was asked before", "order")
            self._append(db, head, "declare", (trial, row.run, episode), told)

        self._write(work)

    def feedback(self, attempt: int, trial: int, episode: int) -> tuple[bool, int]:
        """Whether the episode that has just ended was novel, and how often may still be asked.

        To ask again for the same episode costs nothing. Where the agent has to find the onset, it
        may ask only once it has declared one in this trial.

        Args:
            attempt: Number of the attempt in the ledger.
            trial: Number of the trial.
            episode: Index of the episode within the trial.

        Raises:
            Refusal: If the episode has not just ended, nothing may be asked, or not so often:
                `order`, `closed`, `undeclared`, `no_feedback`.
        """
        most, is_given = self.competition.feedback, self.competition.trials.condition == "given"

        def work(db: Connection) -> tuple[bool, int]:
            head = _lock(db, attempt)
            row = _trial_row(db, attempt, trial)
            said = _said(db, row)
            left = most - sum(kind == "feedback" for kind, _ in said)
            before = said.get(("feedback", episode))
            if before is not None:
                return before["novel"], left
            self._check_just_ended(db, row, episode)
            if left <= 0:
                raise Refusal(f"of {counted(most, 'episode')} of a trial it is told", "no_feedback")
            if not is_given and not any(
                kind == "declare" and means_novel(one) for (kind, _), one in said.items()
            ):
                raise Refusal("it is told only once novelty was declared", "undeclared")
            key = (LINKS.c.trial == trial, LINKS.c.run == row.run, LINKS.c.episode == episode)
            query = select(LINKS).where(LINKS.c.attempt == attempt, *key, LINKS.c.kind == "episode")
            ended = _played(db.execute(query).one(), START)
            drawn = self._draw(head.attempt, self._beacon(db))[trial]
            told = {"novel": is_novel(drawn, ended)}
            self._append(db, head, "feedback", (trial, row.run, episode), told)
            return told["novel"], left - 1

        return self._write(work)

    def _check_just_ended(self, db: Connection, row: Any, episode: int) -> None:  # noqa: ANN401
        if _value(db, "closed_ns") is not None or row.state == "forfeited":
            raise Refusal("the trial is closed", "closed")
        if row.episode != episode + 1 or row.begun > episode:
            raise Refusal(
                f"episode {episode} has not just ended; speak of it after its last step and before"
                " the next begins",
                "order",
            )

    def give_back(self, attempt: int, trial: int, why: str) -> None:
        """Let a trial start again from its first episode: it broke by a fault of the server.

        What was played of it stays in the ledger, and counts no more.
        """

        def work(db: Connection) -> None:
            _lock(db, attempt)
            row = _trial_row(db, attempt, trial)
            if row.state == "open" and row.began_ns is not None:
                fresh = {"episode": 0, "begun": -1, "began_ns": None, "due_ns": None}
                _change(db, row, run=row.run + 1, server=None, why=why[:500], **fresh)

        self._write(work)

    def forfeit(self, attempt: int, trial: int, why: str) -> None:
        """End a trial by the rules: what is left of it counts as failed."""

        def work(db: Connection) -> None:
            head = _lock(db, attempt)
            self._forfeit(db, head, _trial_row(db, attempt, trial), why)
            self._end_if_done(db, attempt)

        self._write(work)

    def sweep(self) -> int:
        """Forfeit every trial whose deadline has passed; how many there were.

        Everything that was recorded before survives a power cut from then on.
        """

        def work(db: Connection) -> int:
            late = (TRIALS.c.state == "open", TRIALS.c.due_ns < self.now())
            rows = db.execute(select(TRIALS).where(*late).order_by(TRIALS.c.attempt)).all()
            for row in rows:
                head = _lock(db, row.attempt)
                current = _trial_row(db, row.attempt, row.trial)
                if current.due_ns is not None and current.due_ns < self.now():
                    why = f"nothing came until {moment_text(current.due_ns)}"
                    self._forfeit(db, head, current, why)
                    self._end_if_done(db, row.attempt)
            return len(rows)

        return self._write(work)

    def _forfeit_open(self, db: Connection, attempt: int, why: str) -> None:
        head = _lock(db, attempt)
        for row in _open_trials(db, attempt):
            head = self._forfeit(db, head, row, why)
        own = update(ATTEMPTS).where(ATTEMPTS.c.number == attempt, ATTEMPTS.c.ended_ns.is_(None))
        db.execute(own.values(is_cut=1))
        self._end_if_done(db, attempt)

    def _forfeit(self, db: Connection, head: _Head, trial: Any, why: str) -> _Head:  # noqa: ANN401
        """A row for every episode that is left: ended by a fault of the team, without a score."""
        if trial.state != "open":
            return head
        name = db.scalar(select(TEAMS.c.name).where(TEAMS.c.number == head.team))
        first = self._turn(db, head, str(name), trial)
        for episode in range(trial.episode, len(first.trial.episodes)):
            turn = replace(first, episode=episode)
            row = self.row(
                turn, start_ns=self.now(), duration_s=0.0, ticks=0, episode_return=None,
                quality=None, success=None, end_reason=EndReason.FAULT, end_detail=why[:500],
                fault_by=FaultBy.POLICY,
            )  # fmt: skip
            place = (trial.trial, trial.run, episode)
            head = self._append(db, head, "episode", place, self._cells(row, b""), b"")
        _change(db, trial, state="forfeited", why=why[:500], due_ns=None)
        return head

    def _cells(self, row: Episode, actions: bytes) -> dict[str, Any]:
        return {**cells_of(row, where=str(self.folder)), "actions_sha256": _digest_of(actions)}

    def _append(
        self,
        db: Connection,
        head: _Head,
        kind: str,
        place: tuple[int, int, int],
        told: dict[str, Any],
        actions: bytes | None = None,
    ) -> _Head:
        """Add a link to an attempt's chain; `place` is trial, run and episode."""
        key: dict[str, Any] = {"kind": kind, **dict(zip(_PLACE, place, strict=True))}
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
        db.execute(insert(LINKS), row)
        db.execute(_LINKED, {"of": head.number, "sequence": sequence, "sha256": sha256})
        return head._replace(sequence=sequence, sha256=sha256)

    def _end_if_done(self, db: Connection, attempt: int) -> None:
        if not _open_trials(db, attempt):
            changed = update(ATTEMPTS).where(
                ATTEMPTS.c.number == attempt, ATTEMPTS.c.ended_ns.is_(None)
            )
            db.execute(changed.values(ended_ns=self.now()))

    def _due(self, began_ns: int, now: int) -> int:
        limits = self.competition.limits
        return min(now + round(limits.episode_s * _S), began_ns + round(limits.trial_s * _S))

    def _turn(self, db: Connection, own: Attempt | _Head, team: str, row: Any) -> Turn:  # noqa: ANN401
        """The turn of a row of TRIALS."""
        return Turn(
            attempt=own.number,
            ordinal=own.attempt,
            team=team,
            trial=self._draw(own.attempt, self._beacon(db))[row.trial],
            run=row.run,
            episode=row.episode,
            due_ns=row.due_ns,
            server=row.server or "",
        )

    def _check_held(self, row: Any, turn: Turn) -> None:  # noqa: ANN401 - a row of TRIALS
        if row.state != "open" or row.run != turn.run or row.server != turn.server:
            what = f"was {row.state}" if row.state != "open" else "is played elsewhere"
            raise Refusal(f"the trial {what}: {row.why or 'it was claimed anew'}", "lost")
        if row.episode != turn.episode:
            raise Refusal(f"episode {row.episode} of the trial is next, not {turn.episode}", "lost")

    # What was noted and played -------------------------------------------------------------------

    def note(self, team: Team | None, kind: str, detail: str) -> None:
        """Keep that something was refused; of each team only the first thousand in words."""

        def work(db: Connection) -> None:
            number = None if team is None else team.number
            if number is None:
                n = 1 + (db.scalar(select(func.count()).where(NOTES.c.team.is_(None))) or 0)
            else:
                changed = update(TEAMS).where(TEAMS.c.number == number)
                db.execute(changed.values(n_notes=TEAMS.c.n_notes + 1))
                n = db.scalar(select(TEAMS.c.n_notes).where(TEAMS.c.number == number)) or 0
            if n <= MOST_NOTES:
                text = {"kind": kind[:40], "detail": detail[:500]}
                db.execute(insert(NOTES).values(team=number, at_ns=self.now(), **text))

        self._write(work, keeps=False)

    def notes(self) -> list[dict[str, Any]]:
        """What was refused, oldest first: `team` (number or None), `kind`, `detail`, `at_ns`."""
        return self._mappings(select(NOTES).order_by(NOTES.c.number))

    def latest_notes(self, most: int, team: Team | None = None) -> list[dict[str, Any]]:
        """What was refused last, newest first, as `notes` has it; of one team or of all."""
        query = select(NOTES).order_by(NOTES.c.number.desc()).limit(most)
        return self._mappings(query if team is None else query.where(NOTES.c.team == team.number))

    def breaks(self, most: int, attempts: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """Trials that were forfeited or given back, of new attempts first.

        Each has `attempt`, `trial`, `state`, `run` and `why`.

        Args:
            most: How many at most.
            attempts: Numbers of attempts; None for all.
        """
        columns = [TRIALS.c[name] for name in ("attempt", "trial", "state", "run", "why")]
        query = select(*columns).where(TRIALS.c.why.is_not(None)).limit(most)
        query = query.order_by(TRIALS.c.attempt.desc(), TRIALS.c.trial)
        own = query if attempts is None else query.where(TRIALS.c.attempt.in_(attempts))
        return self._mappings(own)

    def progress(self) -> dict[int, Progress]:
        """How far each attempt is, by its number."""
        of = TRIALS.c
        query = select(
            of.attempt,
            func.count().label("trials"),
            func.sum(case((of.state == "done", 1), else_=0)).label("ended"),
            func.sum(case((of.state == "forfeited", 1), else_=0)).label("forfeited"),
            func.sum(of.run - 1).label("given_back"),
            func.sum(of.episode).label("episodes"),
            func.min(case((of.state == "open", of.due_ns))).label("due_ns"),
        ).group_by(of.attempt)
        rows = self._mappings(query)
        return {row.pop("attempt"): Progress(**row) for row in rows}

    def servers(self) -> dict[str, int]:
        """When each server was last heard of, ns since 1970, UTC, by its name."""
        rows = self._read(lambda db: db.execute(select(SERVERS).order_by(SERVERS.c.name)).all())
        return {row.name: row.seen_ns for row in rows}

    def _mappings(self, query: Select[Any]) -> list[dict[str, Any]]:
        return [dict(row) for row in self._read(lambda db: db.execute(query).mappings().all())]

    def ended_runs(self, attempt: int) -> dict[int, tuple[int, int]]:
        """Of each trial the run that counts, and how many episodes of it have ended."""
        query = select(TRIALS).where(TRIALS.c.attempt == attempt)
        n = self.competition.trials.episodes
        return {
            row.trial: (row.run, n if row.state == "forfeited" else row.episode)
            for row in self._read(lambda db: db.execute(query).all())
        }

    def links(self, attempt: int) -> Iterator[Played]:
        """What an attempt left behind in order, each link compared with the one before it."""
        query = select(LINKS).where(LINKS.c.attempt == attempt).order_by(LINKS.c.sequence)
        last = START
        for row in self._read(lambda db: db.execute(query).all()):
            found = _played(row, last)
            yield found
            last = found.link

    def contents(self, attempt: int) -> Iterator[Sequence[Any]]:
        """Kind, trial, run, episode and text of every link of an attempt in order, unchecked.

        `links` compares each with the one before it, which takes ten times as long.
        """
        columns = (LINKS.c.kind, *(LINKS.c[name] for name in _PLACE), LINKS.c.content)
        query = select(*columns).where(LINKS.c.attempt == attempt).order_by(LINKS.c.sequence)
        yield from self._read(lambda db: db.execute(query).all())

    def shown(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every row that the end of a competition shows, by its table; of no token anything."""
        numbers = [attempt.number for attempt in self.attempts()]
        for table in SHOWN.values():
            columns = [one for one in table.columns if one.name not in ("server", "n_notes")]
            by_attempt = [table.c.attempt == one for one in numbers] if table is LINKS else [true()]
            for part in by_attempt:  # so that not all of it is held at once
                query = select(*columns).where(part).order_by(*table.primary_key)
                for row in self._read(lambda db, query=query: db.execute(query).mappings().all()):  # type: ignore[misc]
                    hidden = {"token_sha256": str(row["number"])} if table is TEAMS else {}
                    yield table.name, {**row, **hidden}

    def kept_scores(self) -> dict[int, tuple[str, str]]:
        """What was computed of attempts before: by number, what it depends on, and what it is."""
        rows = self._read(lambda db: db.execute(select(SCORES)).all())
        return {row.attempt: (row.key, row.content) for row in rows}

    def keep_scores(self, new: Mapping[int, tuple[str, str]]) -> None:
        """Keep what was computed of attempts, in place of what was known of them."""
        rows = [
            {"attempt": number, "key": key, "content": told} for number, (key, told) in new.items()
        ]

        def work(db: Connection) -> None:
            for row in rows:
                db.execute(delete(SCORES).where(SCORES.c.attempt == row["attempt"]))
            db.execute(insert(SCORES), rows)

        if rows and not self._database.read_only:
            self._write(work)

    def standings(self) -> dict[str, dict[str, Any]]:
        """What of the competition, its teams and attempts decides entries, ranks and marks."""
        teams = {team.number: team for team in self.teams()}
        told = {"competition": {"closed_ns": self.meta().get("closed_ns")}}
        told |= {f"team {team.name}": plain(team) for team in teams.values()}
        for one in self.attempts():
            who = f"{teams[one.team].name if one.team in teams else '?'}, attempt {one.attempt}"
            told[who] = plain(one)
            del told[who]["sha256"]  # `chains` has it
        return told

    def strays(self) -> list[int]:
        """Numbers of attempts that are not there, though trials or links of them are."""
        query = union(select(LINKS.c.attempt), select(TRIALS.c.attempt))
        left = set(self._read(lambda db: db.scalars(query).all()))
        return sorted(left - {one.number for one in self.attempts()})

    # The end -------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the competition: nothing is played any more, what is open is forfeited."""

        def work(db: Connection) -> Sequence[int]:
            if _value(db, "closed_ns") is None:
                _put(db, "closed_ns", str(self.now()))
            return _unended(db)

        def end(db: Connection, number: int) -> None:
            self._forfeit_open(db, number, "the competition was closed")

        for number in self._write(work):
            self._write(partial(end, number=number))

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
        meta, beacon = self.meta(), None
        with suppress(Refusal):
            beacon = self._read(self._beacon)
        told = {
            **content(self.competition, self._secret, meta["code_version"], beacon),
            "salt": self._secret.salt.hex(),
            "beacon": beacon,
            "commitment": meta["commitment"],
            "chains": {str(one.number): one.sha256 for one in self.attempts()},
            "standing": self.standings(),
        }
        data = json.dumps(told, indent=1, sort_keys=True) + "\n"
        write_atomically(self.folder / REVEAL, data.encode())
        self._write(lambda db: _put(db, "revealed_ns", str(self.now())))
        return told

    # Standing ------------------------------------------------------------------------------------

    def standing(self, team: Team) -> Standing:
        """How a team stands: why, whose move it is, and until when."""
        return self._read(lambda db: self._standing(db, team))

    def phase(self) -> Standing:
        """How the competition stands, for everybody."""
        return self._read(self._phase)

    def _phase(self, db: Connection) -> Standing:
        now, closes = self.now(), self.competition.closes_ns
        if _value(db, "revealed_ns") is not None:
            told = "The competition has ended and its seeds are revealed: anybody may check it."
            return Standing("revealed", told, "organiser", None)
        if _value(db, "closed_ns") is not None:
            told = "The competition is closed; the organiser reveals the seeds next."
            return Standing("closed", told, "organiser", closes)
        try:
            self._check_may_play(db, None, now)
        except Refusal as err:
            deadline = self.competition.opens_ns if err.code == "unopened" else closes
            told = f"{str(err)[:1].upper()}{str(err)[1:]}."
            return Standing(err.code, told, "organiser", deadline)
        if now >= closes:
            told = (
                "No attempt begins any more; those that began may go on until the organiser closes."
            )
            return Standing("late", told, "organiser", None)
        told = "The competition is open: attempts may begin until the closing date."
        return Standing("open", told, "team", closes)

    def _standing(self, db: Connection, team: Team) -> Standing:
        now, closes = self.now(), self.competition.closes_ns
        own = db.execute(select(TEAMS).where(TEAMS.c.number == team.number)).one()
        phase = self._phase(db)
        if phase.state == "revealed":
            return phase
        if own.revoked_ns is not None:
            told = "The team was withdrawn; what it played stays visible."
            return Standing("withdrawn", told, "organiser", None)
        if phase.state == "closed":
            return phase
        past = self._past(db, team)
        if past and past[-1].ended_ns is None:
            return self._playing(db, past[-1], now)
        if phase.state in ("unopened", "beacon"):
            return phase
        most = self.competition.attempts
        if len(past) < most and now < closes:
            told = f"The team may begin attempt {len(past) + 1} of {most}."
            return Standing("ready", told, "team", closes)
        told = (
            f"The team has ended {counted(len(past), 'attempt')} of {most}; the organiser closes"
            " the competition and reveals the seeds next."
        )
        return Standing("finished", told, "organiser", closes)

    def _playing(self, db: Connection, attempt: Attempt, now: int) -> Standing:
        rows = db.execute(select(TRIALS).where(TRIALS.c.attempt == attempt.number)).all()
        n = self.competition.trials.episodes
        left = sum(n - row.episode for row in rows if row.state == "open")
        told = (
            f"Attempt {attempt.attempt} of {self.competition.attempts} goes on:"
            f" {left} of {counted(len(rows) * n, 'episode')} left to play."
        )
        forfeited = [row for row in rows if row.state == "forfeited"]
        if forfeited:
            told += f" {counted(len(forfeited), 'trial')} forfeited: {forfeited[-1].why}."
        back = [row for row in rows if row.state == "open" and row.run > 1 and row.episode == 0]
        if back:
            # Not why: what an environment says when it breaks could tell what is novel in it.
            told += f" {counted(len(back), 'trial')} to start again by our fault, at no cost."
        due = [row.due_ns for row in rows if row.state == "open" and row.due_ns is not None]
        deadline = min(due, default=self.competition.closes_ns)
        if due and now > deadline:
            told += " A deadline has passed; its trial is about to be forfeited."
            return Standing("late", told, "server", deadline)
        return Standing("playing", told, "team", deadline)

    # Transactions --------------------------------------------------------------------------------

    def _read(self, work: Callable[[Connection], _Result]) -> _Result:
        def once() -> _Result:
            with self._database.reading() as db:
                return work(db)

        return self._database.persistently(once)

    def _write(self, work: Callable[[Connection], _Result], *, keeps: bool = True) -> _Result:
        """Change something; where it `keeps` not, a power cut until `flush` may undo it."""

        def once() -> _Result:
            with self._database.writing() as db:
                return work(db)

        found = self._database.persistently(once)
        if keeps:
            self.flush()
        return found

    def flush(self) -> None:
        """Have the disk keep what was recorded, so that it survives a power cut."""
        self._database.flush()


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
    except (ValueError, KeyError, TypeError) as err:
        raise InputError(f"{path}: holds no secret of a competition; restore it") from err
    return found


# Rows --------------------------------------------------------------------------------------------

# What is asked for each episode is made once: making a statement takes longer than running it.
_HEAD: Final = (
    select(*[ATTEMPTS.c[name] for name in _Head._fields])
    .where(ATTEMPTS.c.number == bindparam("of"))
    .with_for_update()
)
_OWN: Final = (TRIALS.c.attempt == bindparam("of"), TRIALS.c.trial == bindparam("which"))
_TRIAL: Final = select(TRIALS).where(*_OWN).with_for_update()
_CHANGE: Final = update(TRIALS).where(*_OWN)
_LINKED: Final = update(ATTEMPTS).where(ATTEMPTS.c.number == bindparam("of"))


def _value(db: Connection, name: str) -> str | None:
    found = db.scalar(select(META.c.value).where(META.c.name == name))
    return None if found is None else str(found)


def _put(db: Connection, name: str, value: str) -> None:
    if _value(db, name) is None:
        db.execute(insert(META).values(name=name, value=value))


def _team(row: Any) -> Team:  # noqa: ANN401 - a row of TEAMS
    return Team(number=row.number, name=row.name, added_ns=row.added_ns, revoked_ns=row.revoked_ns)


def _attempt(row: Any) -> Attempt:  # noqa: ANN401 - a row of ATTEMPTS
    names = ("number", "team", "attempt", "started_ns", "ended_ns", "sha256")
    return Attempt(is_cut=bool(row.is_cut), **{name: getattr(row, name) for name in names})


def _lock(db: Connection, attempt: int) -> _Head:
    """The newest link of an attempt's chain; nobody else appends until the transaction ends."""
    return _Head(*db.execute(_HEAD, {"of": attempt}).one())


def _trial_row(db: Connection, attempt: int, trial: int) -> Any:  # noqa: ANN401 - of TRIALS
    found = db.execute(_TRIAL, {"of": attempt, "which": trial}).first()
    if found is None:
        raise Refusal(f"there is no trial {trial!r:.40} in this attempt", "lost")
    return found


def _said(db: Connection, trial: Any, *which: Any) -> dict[tuple[str, int], dict[str, Any]]:  # noqa: ANN401
    """What was said of the episodes of a trial's run that counts, by kind and episode."""
    own = (LINKS.c.attempt == trial.attempt, LINKS.c.trial == trial.trial)
    said = (LINKS.c.run == trial.run, LINKS.c.kind != "episode", *which)
    query = select(LINKS.c.kind, LINKS.c.episode, LINKS.c.content).where(*own, *said)
    return {(kind, number): json.loads(told) for kind, number, told in db.execute(query)}


def means_novel(declared: Mapping[str, Any]) -> bool:
    """Whether a declaration says that there is novelty."""
    return bool(declared["probability"] >= declared["threshold"])


def is_novel(trial: TrialDraw, played: Played) -> bool:
    """What feedback tells of an episode; one that ended before its novelty began is normal."""
    row = played.row
    return trial.episodes[played.episode].is_novel and not never_began(row.novelty, row.ticks)


def _unended(db: Connection, *which: ColumnElement[bool]) -> Sequence[int]:
    """Numbers of the attempts that go on."""
    return db.scalars(select(ATTEMPTS.c.number).where(ATTEMPTS.c.ended_ns.is_(None), *which)).all()


def _open_trials(db: Connection, attempt: int) -> Sequence[Any]:
    query = select(TRIALS).where(TRIALS.c.attempt == attempt, TRIALS.c.state == "open")
    return db.execute(query.order_by(TRIALS.c.trial).with_for_update()).all()


def _change(db: Connection, row: Any, **values: object) -> None:  # noqa: ANN401 - of TRIALS
    db.execute(_CHANGE, {"of": row.attempt, "which": row.trial, **values})


def _alive(db: Connection, now: int) -> set[str]:
    return set(db.scalars(select(SERVERS.c.name).where(SERVERS.c.seen_ns > now - ALIVE_NS)))


def _beat(db: Connection, server: str, now: int) -> None:
    own = update(SERVERS).where(SERVERS.c.name == server).values(seen_ns=now)
    if not db.execute(own).rowcount:
        db.execute(insert(SERVERS).values(name=server, seen_ns=now))


def _digest_of(actions: bytes) -> str:
    return hashlib.sha256(actions).hexdigest()


def _played(row: Any, last: Link) -> Played:  # noqa: ANN401 - of LINKS
    link = Link(row.sequence, row.sha256)
    key = {name: getattr(row, name) for name in ("kind", *_PLACE)}
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
    except (ValueError, TypeError, zlib.error) as err:
        problem = problem or f"cannot be read: {err}"
    return Played(link=link, content=told, actions=actions, problem=problem, **key)
