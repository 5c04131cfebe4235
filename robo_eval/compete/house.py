"""A server of a competition without its wires: who is in, how long they may take, what is kept."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from gymnasium import Space

import robo_eval
from robo_eval.compete.arena import Arena
from robo_eval.compete.budget import (
    ASKED,
    CONNECTED,
    CONNECTED_TRIALS,
    REHEARSED,
    REHEARSED_S,
    Budget,
    paced,
)
from robo_eval.compete.draw import EpisodeDraw, Secret, TrialDraw, cells_of, draw
from robo_eval.compete.ledger import Ledger, Refusal, Team, Turn
from robo_eval.compete.link import REPLACED_TEXT
from robo_eval.compete.messages import MOST_TRIALS, PROTOCOL, Hello, RefusedError
from robo_eval.compete.room import Room
from robo_eval.compete.spaces import space_of
from robo_eval.compete.times import measured, untold
from robo_eval.compete.worlds import Start, TrialSetting
from robo_eval.core.errors import RoboEvalError

_LOG: Final = logging.getLogger(__name__)
_LOOK_S: Final = 0.2
_THREADS: Final = 4
_BEAT_S: Final = 5.0
LEAST_OPENING_S: Final = 0.1


class House:
    """What all connections of one server share.

    Args:
        ledger: Where everything is kept.
        arena: Where the worlds are.
        name: What this server is called in the ledger.

    Attributes:
        numbers: Numbers of rooms and connections, each used once.
        tasks: What the environments say of their spaces.
        actions: The action space of each task.
        problem: Why it could not start.
        passes: Tokens of the server's own players, which are of this process alone.
        asked: Requests of each address.
        steps: Of each team, over all its connections.
        slowest_s: How long the worlds of a trial take to be made.
    """

    def __init__(self, ledger: Ledger, arena: Arena, name: str) -> None:
        self.ledger = ledger
        self.arena = arena
        self.competition = ledger.competition
        self.limits = ledger.competition.limits
        self.numbers = itertools.count(1)
        self.tasks: Sequence[Mapping[str, Any]] = ()
        self.actions: Sequence[Space[Any]] = ()
        self.passes: dict[str, Team] = {}
        self.open: Counter[str] = Counter()
        self.asked, self._connected = Budget(*ASKED), Budget(*CONNECTED)
        self.steps = paced(self.limits.steps_per_s)
        self._rehearsed = Budget(*REHEARSED)
        self.slowest_s = REHEARSED_S
        self._name = name
        self._entry_cost = 1.0
        self._usual: Mapping[int, TrialDraw] = {}
        self._meta: Mapping[str, str] = {}
        self.problem = ""
        self._rooms: dict[str, Room] = {}
        self._entering: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ledger")
        self._watches: list[asyncio.Task[None]] = []
        self._times = untold(ledger.competition, "not measured yet")
        self.evict: dict[int, Callable[[], None]] = {}
        """By the number of a connection: what closes it because another one has come."""

    async def start(self) -> None:
        """Start the simulators, and begin to watch the clock."""
        try:
            await self.arena.start()
            self.tasks = await self.arena.spaces(self.competition.tasks)
            self.actions = [space_of(task["action_space"]) for task in self.tasks]
            await self.store(self.ledger.serve, self._name)
            drawn = await self.store(draw, self.competition, Secret.new())
            self._entry_cost = max(1.0, len(drawn) / CONNECTED_TRIALS)
            self._usual = {one.task: one for one in reversed(drawn)}
            self._meta = await self.store(self.ledger.meta)
        except RoboEvalError as err:
            self.problem = str(err)
            await self.arena.close()
            raise
        self._watches.append(asyncio.create_task(self._look()))
        self._watches.append(asyncio.create_task(self._measure(drawn)))

    async def _measure(self, drawn: Sequence[TrialDraw]) -> None:
        """Find out what the times of answers tell, while teams may play already."""
        slowest_s = 0.0
        for place, space in enumerate(self.actions):
            number = next(self.numbers)
            try:
                found = await measured(self.arena, self.competition, place, drawn, space, number)
            except RoboEvalError as err:
                _LOG.warning("times of answers could not be measured: %s", err)
                found = untold(self.competition, f"not measured: {err}")[place]
            self._times[place] = found
            slowest_s = max(slowest_s, found.get("slowest_opening_s", REHEARSED_S))
        self.slowest_s = slowest_s

    async def close(self) -> None:
        """End everything; what is under way is played again from its seeds."""
        for task in self._watches:
            task.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await self.arena.close()
        with contextlib.suppress(RefusedError):  # it was logged; others find that it is silent
            await self.store(self.ledger.sign_off, self._name)
        self._threads.shutdown()
        self.ledger.close_connection()

    async def store(self, call: Callable[..., Any], *given: object) -> Any:
        """Have the ledger do something, in a thread of its own.

        Raises:
            RefusedError: If the rules do not allow it.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call, *given)
        except Refusal as err:
            raise RefusedError(err.code, str(err)) from err
        except (OSError, RoboEvalError) as err:
            _LOG.error("the competition's ledger: %s", err)
            raise RefusedError(
                "server", "the server cannot keep what was played; the organiser has to look after"
                " it, and nothing of yours is lost"
            ) from err  # fmt: skip

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
        if team.revoked_ns is not None:
            raise RefusedError("withdrawn", "the team was withdrawn; ask the organiser", ends=True)
        known = [task.env for task in self.competition.tasks]
        if hello.task is not None and hello.task not in known:
            raise RefusedError("bad_message", f"task: one of {known}", ends=True)
        if hello.rehearsal:
            return self._admit(Room(self, team, [self._rehearsal(hello)], hello), connection)
        async with self._entering[team.name]:
            room = self._rooms.get(team.name)
            is_taken = room is not None and room.connection is not None
            if room is not None and is_taken and hello.session not in (None, room.session):
                raise RefusedError("replaced", REPLACED_TEXT, ends=True)
            places = [] if room is None else room.places
            begun = [place.turn for place in places if place.has_begun]
            if room is not None and room.asked != (hello.trials, hello.task):
                self._empty(room, hello)
                room = None
            turns = await self.store(self.ledger.claim, team, self._name, begun)
            attempt = turns[0].attempt if turns else None
            turns = [turn for turn in turns if self._is_asked(turn, hello)]
            if room is None or not room.left or not room.holds(turns):
                if room is not None:
                    self._evict(room)
                    room.leave()
                room = self._rooms[team.name] = Room(self, team, turns, hello)
                if attempt is not None and hello.trials == 1:  # of more, whose place it was is lost
                    room.places[0].ended = await self.store(self.ledger.last_ended, attempt)
            return self._admit(room, connection)

    def opening_s(self, trials: int) -> float:
        """How long the worlds of so many trials may take to be made, whatever is in them."""
        # Twice the slowest: a machine that has become slower is not to tell which these were.
        return max(LEAST_OPENING_S, 2.0 * trials * self.slowest_s)

    async def may_connect(self, team: Team | None, address: str) -> bool:
        """Have a connection wait for its turn; False if that would take too long."""
        if team is None:
            return await self._connected.turn(address)
        # A name has no address's form, so that no team can be taken for one.
        return await self._connected.turn(f"team {team.name}", self._entry_cost)

    async def may_rehearse(self, team: Team) -> bool:
        """Have a team wait for its turn to rehearse; False if that would take too long."""
        return await self._rehearsed.turn(team.name, max(1.0, self.slowest_s / REHEARSED_S))

    async def given_back(self, team: Team, turn: Turn, why: str) -> Turn | None:
        """A turn of a trial that starts again by our fault; None if it was ended meanwhile."""
        _LOG.warning("a trial of team %s is given back: %s", team.name, why)
        place = (turn.attempt, turn.trial.number)
        await self.store(self.ledger.give_back, *place, why)
        turns: list[Turn] = await self.store(self.ledger.claim, team, self._name)
        found = [one for one in turns if (one.attempt, one.trial.number) == place]
        return found[0] if found else None

    def turn_of(self, team: Team) -> Turn:
        """What a team that plays one trial at a time is at."""
        turn = self._rooms[team.name].places[0].turn
        assert turn is not None
        return turn

    def _is_asked(self, turn: Turn, hello: Hello) -> bool:
        return hello.task in (None, self.competition.tasks[turn.trial.task].env)

    def _admit(self, room: Room, connection: int) -> Room:
        """Have a room's connection be this one; an older one of the team is closed."""
        self._evict(room)
        room.connection = connection
        room.heard_s = time.monotonic()
        return room

    def _evict(self, room: Room) -> None:
        """Close the connection of a room, if one is in."""
        before, room.connection = room.connection, None
        if before in self.evict:
            self.evict[before]()

    def _empty(self, room: Room, hello: Hello) -> None:
        """Give up a room that is asked for in another way.

        Raises:
            RefusedError: If an episode is under way, which could begin anew by that.
        """
        if any(place.is_playing for place in room.places):
            trials, task = room.asked
            raise RefusedError(
                "unfinished", f"episodes are under way with trials={trials} and task={task}; come"
                f" back in the same way to end them, and then with {hello.trials}", ends=True
            )  # fmt: skip
        self._evict(room)
        room.leave()
        del self._rooms[room.team.name]

    async def leave(self, room: Room, connection: int) -> None:
        """A connection has ended; its team may come back for a while."""
        if room.connection != connection:
            return
        room.connection = None
        room.heard_s = time.monotonic()
        if room.is_rehearsal:
            room.leave()
        else:
            turns = [place.turn for place in room.places if place.has_begun]
            await self.store(self.ledger.away, turns)

    def _rehearsal(self, hello: Hello) -> Turn:
        """One episode without novelty, of a seed that nobody has promised."""
        tasks = [task.env for task in self.competition.tasks]
        index = 0 if hello.task is None else tasks.index(hello.task)
        trial = self._usual[index]
        episode = EpisodeDraw(secrets.randbelow(2**31), is_novel=False)
        usual = trial.nominal_keywords
        trial = replace(trial, keywords=usual, onset=None, onset_tick=None, episodes=(episode,))
        return Turn(
            attempt=0, ordinal=0, team="", trial=trial, run=1, episode=0, due_ns=None, server=""
        )

    def setting_of(self, turn: Turn) -> TrialSetting:
        """What the worlds of a trial are made of: as many for each trial of the competition."""
        trial = turn.trial
        kinds: list[Mapping[str, Any]] = [trial.nominal_keywords, trial.keywords]
        if self.competition.trials.onset_tick is not None:
            kinds.append(trial.keywords_of(trial.onset or 0))
        return TrialSetting(task=self.competition.tasks[trial.task], keywords=kinds)

    def start_of(self, turn: Turn) -> Start:
        """How the next episode of a trial begins, and what its client is told of it."""
        trial, episode = turn.trial, turn.episode
        told: dict[str, Any] = {"episode_index": episode}
        if (indicator := trial.place(episode).indicator) is not None:
            told["novel"] = indicator
        kinds = self.setting_of(turn).keywords
        kind = kinds.index(trial.keywords_of(episode))
        hints = self.competition.hints + 1 if told.get("novel") else 0
        return Start(seed=trial.episodes[episode].seed, kind=kind, told=told, hints=hints)

    # The clock --------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Forfeit what was left or takes too long, forget who has gone, and say that we live."""
        beat_s = 0.0
        while True:
            await asyncio.sleep(_LOOK_S)
            try:
                if time.monotonic() >= beat_s:
                    beat_s = time.monotonic() + _BEAT_S
                    await self.store(self.ledger.beat, self._name)
                    self._meta = await self.store(self.ledger.meta)
                swept = await self.store(self.ledger.sweep)
                for room in list(self._rooms.values()):
                    await self._look_at(room, time.time_ns() if swept else 0)
            except RefusedError:
                pass  # it was logged where it came up, and is tried again

    async def _look_at(self, room: Room, late_ns: int) -> None:
        limits, now_s = self.limits, time.monotonic()
        silent_s = now_s - room.heard_s
        is_awaited = room.connection is not None and not room.is_busy
        for number, place in enumerate(room.places):
            due_ns = place.turn.due_ns if place.turn and place.has_begun else None
            if due_ns is not None and due_ns < late_ns:
                await room.forfeit(number, "its time is over")
            elif (
                is_awaited
                and place.is_playing
                and now_s - max(place.heard_s, room.heard_s) > limits.step_timeout_s
            ):
                await room.forfeit(number, f"no action came within {limits.step_timeout_s:g} s")
        if room.connection is None and silent_s > limits.idle_s + _BEAT_S:
            room.leave()
            if self._rooms.get(room.team.name) is room:
                del self._rooms[room.team.name]

    # What is public -------------------------------------------------------------------------------

    @property
    def rules(self) -> dict[str, Any]:
        """What everybody may know: nothing of levels, strengths, onsets and seeds."""
        its = self.competition
        names = (
            "name", "description", "attempts", "opens", "closes", "beacon", "answer_grid_ms",
            "hints", "feedback",
        )  # fmt: skip
        return {
            **{name: getattr(its, name) for name in names},
            "protocol": PROTOCOL,
            "version": robo_eval.__version__,
            "tasks": list(self.tasks),
            "trials_per_attempt": len(cells_of(its)),
            "episodes_per_trial": its.trials.episodes,
            "condition": its.trials.condition,
            "commitment": self._meta["commitment"],
            "public_value": self._meta.get("beacon"),
            "limits": its.limits.model_dump(),
            "most_trials_at_once": MOST_TRIALS,
            "answer_times": list(self._times),
        }
