"""A server of a competition without its wires: who is in, how long they may take, what is kept."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

import robo_eval
from robo_eval.compete.arena import Arena
from robo_eval.compete.draw import EpisodeDraw, TrialDraw
from robo_eval.compete.ledger import Ledger, Refusal, Team, Turn
from robo_eval.compete.messages import MOST_TRIALS, PROTOCOL, Hello, RefusedError
from robo_eval.compete.room import Room
from robo_eval.compete.worlds import Start

_LOG: Final = logging.getLogger(__name__)
_LOOK_S: Final = 0.2
_THREADS: Final = 4


class House:
    """What all connections of one server share.

    Args:
        ledger: Where everything is kept.
        arena: Where the worlds are.
        name: What this server is called in the ledger.

    Attributes:
        numbers: Numbers of rooms and connections, each used once.
        tasks: What the environments say of their spaces.
        passes: Tokens of the server's own players, which are of this process alone.
    """

    def __init__(self, ledger: Ledger, arena: Arena, name: str) -> None:
        self.ledger = ledger
        self.arena = arena
        self.competition = ledger.competition
        self.limits = ledger.competition.limits
        self.numbers = itertools.count(1)
        self.tasks: Sequence[Mapping[str, Any]] = ()
        self.passes: dict[str, Team] = {}
        self.open: Counter[str] = Counter()
        self._name = name
        self._rooms: dict[str, Room] = {}
        self._entering: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ledger")
        self._watch: asyncio.Task[None] | None = None
        self.evict: dict[int, Callable[[str, str], None]] = {}
        """By the number of a connection: what tells it why it is closed."""

    async def start(self) -> None:
        """Start the simulators, and begin to watch the clock."""
        await self.arena.start()
        self.tasks = await self.arena.spaces(self.competition.tasks)
        self._watch = asyncio.create_task(self._look())

    async def close(self) -> None:
        """End everything; what is under way is played again from its seeds."""
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        await self.arena.close()
        self._threads.shutdown()

    async def store(self, call: Callable[..., Any], *given: object) -> Any:  # noqa: ANN401
        """Have the ledger do something, in a thread of its own.

        Raises:
            RefusedError: If the rules do not allow it.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call, *given)
        except Refusal as err:
            raise RefusedError(err.code, str(err)) from err

    async def note(self, team: Team | None, kind: str, detail: str) -> None:
        """Keep what was refused."""
        with contextlib.suppress(Exception):  # a full disk is no reason to hang up
            await self.store(self.ledger.note, team, kind, detail[:500])

    async def team_of(self, token: str) -> Team | None:
        """Whose token this is."""
        if token in self.passes:
            return self.passes[token]
        found: Team | None = await self.store(self.ledger.team_of, token)
        return found

    # Rooms ----------------------------------------------------------------------------------------

    async def enter(self, team: Team, hello: Hello, connection: int) -> Room:
        """Let a team in, where it left off if it was here.

        Raises:
            RefusedError: If it may not play, or not so.
        """
        if hello.protocol != PROTOCOL:
            raise RefusedError(
                "protocol", f"this server speaks protocol {PROTOCOL}, and you {hello.protocol};"
                f" robo-eval {robo_eval.__version__} plays here", ends=True
            )  # fmt: skip
        known = [task.env for task in self.competition.tasks]
        if hello.task is not None and hello.task not in known:
            raise RefusedError("bad_message", f"task: one of {known}", ends=True)
        if hello.rehearsal:
            return self._admit(Room(self, team, [self._rehearsal(hello)], hello), connection)
        async with self._entering[team.name]:
            room = self._rooms.get(team.name)
            if room is not None and room.asked != (hello.trials, hello.task, False):
                await self._empty(room, hello)
                room = None
            if room is None or not room.left:
                turns = await self.store(self.ledger.claim, team, self._name)
                turns = [turn for turn in turns if self._is_asked(turn, hello)]
                if room is not None:
                    await room.leave()
                room = self._rooms[team.name] = Room(self, team, turns, hello)
            return self._admit(room, connection)

    def _is_asked(self, turn: Turn, hello: Hello) -> bool:
        return hello.task in (None, self.competition.tasks[turn.trial.task].env)

    def _admit(self, room: Room, connection: int) -> Room:
        """Have a room's connection be this one; an older one of the team is closed."""
        before, room.connection = room.connection, connection
        if before in self.evict:
            self.evict[before]("replaced", "another connection of this team has taken over")
        room.heard_s = asyncio.get_running_loop().time()
        return room

    async def _empty(self, room: Room, hello: Hello) -> None:
        """Give up a room that is asked for in another way.

        Raises:
            RefusedError: If an episode is under way, which could begin anew by that.
        """
        if any(place.is_playing for place in room.places):
            trials, task, _ = room.asked
            raise RefusedError(
                "unfinished", f"episodes are under way with trials={trials} and task={task}; come"
                f" back in the same way to end them, and then with {hello.trials}", ends=True
            )  # fmt: skip
        await room.leave()
        del self._rooms[room.team.name]

    def leave(self, room: Room, connection: int) -> None:
        """A connection has ended; its team may come back for a while."""
        if room.connection == connection:
            room.connection = None
            room.heard_s = asyncio.get_running_loop().time()
            if room.is_rehearsal:
                task = asyncio.ensure_future(room.leave())
                task.add_done_callback(lambda _: None)

    def _rehearsal(self, hello: Hello) -> Turn:
        """One episode without novelty, of a seed that nobody has promised."""
        index = next(
            place for place, task in enumerate(self.competition.tasks)
            if hello.task in (None, task.env)
        )  # fmt: skip
        found: TrialDraw = self.ledger.nominal(index)
        episodes = (EpisodeDraw(secrets.randbelow(2**31), False),)
        found = replace(found, keywords=found.nominal_keywords, onset=None, episodes=episodes)
        return Turn(attempt=0, trial=found, episode=0, run=1, due_ns=0)

    def start_of(self, team: Team, turn: Turn) -> Start:
        """How the next episode of a trial begins, and what its client is told of it."""
        trial = turn.trial
        told: dict[str, Any] = {"episode": turn.episode}
        if trial.condition == "given":
            told["novel"] = trial.onset is not None and turn.episode >= trial.onset
        return Start(
            planned=trial.planned(team.name, turn.attempt, turn.episode, turn.run),
            is_novel=trial.episodes[turn.episode].is_novel,
            told=told,
        )

    # The clock --------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Forfeit what was left or takes too long, and forget who has gone."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_S)
            for room in list(self._rooms.values()):
                silent_s = loop.time() - room.heard_s
                try:
                    await self._look_at(room, silent_s)
                except Exception:
                    _LOG.exception("what team %s left could not be settled", room.team.name)

    async def _look_at(self, room: Room, silent_s: float) -> None:
        limits = self.limits
        if room.connection is None:
            if silent_s > limits.idle_s:
                for number, place in enumerate(room.places):
                    if place.has_begun:
                        await room.forfeit(number, f"nobody came back within {limits.idle_s:g} s")
                await room.leave()
                if self._rooms.get(room.team.name) is room:
                    del self._rooms[room.team.name]
            return
        if room.is_busy or silent_s <= limits.step_timeout_s:
            return
        for number, place in enumerate(room.places):
            if place.is_playing:
                await room.forfeit(number, f"no action came within {limits.step_timeout_s:g} s")

    # What is public -------------------------------------------------------------------------------

    @property
    def rules(self) -> dict[str, Any]:
        """What everybody may know: nothing of levels, strengths, onsets and seeds."""
        its = self.competition
        return {
            "name": its.name,
            "description": its.description,
            "protocol": PROTOCOL,
            "version": robo_eval.__version__,
            "tasks": list(self.tasks),
            "episodes_per_trial": its.trials.episodes,
            "condition": its.trials.condition,
            "hints": its.hints,
            "attempts": its.attempts,
            "opens": its.opens,
            "closes": its.closes,
            "commitment": self.ledger.commitment,
            "beacon": its.beacon,
            "limits": its.limits.model_dump(),
            "most_trials_at_once": MOST_TRIALS,
            "answer_grid_ms": its.answer_grid_ms,
        }
