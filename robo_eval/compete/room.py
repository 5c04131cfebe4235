"""One team at play: which of its trials are open, and what each of its messages is answered."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from robo_eval.agents.wire import encode
from robo_eval.compete.arena import Hand, WorldLostError
from robo_eval.compete.messages import (
    PROTOCOL,
    Declare,
    Feedback,
    Hello,
    Message,
    RefusedError,
    Reset,
    Step,
)
from robo_eval.compete.spaces import action_of
from robo_eval.compete.worlds import OPENING_SHARE, Ended, Job, JobResult
from robo_eval.core.errors import InputError

if TYPE_CHECKING:
    from robo_eval.compete.house import House
    from robo_eval.compete.ledger import Team, Turn

PACE_S: Final = 0.05


@dataclass(slots=True)
class Place:
    """Where one trial after the other is played.

    Attributes:
        turn: What is to be played next; None if nothing is left.
        is_open: Whether the trial's worlds are made.
        is_playing: Whether an episode is under way.
        ended: The episode that has just ended: attempt, trial and number.
        said: What was declared of it.
        told: What its client does not know yet: a code and a sentence.
    """

    turn: Turn | None
    is_open: bool = False
    is_playing: bool = False
    ended: tuple[int, int, int] | None = None
    said: Mapping[str, Any] | None = None
    told: tuple[str, str] | None = None
    heard_s: float = 0.0
    """When its last step or reset that was taken was answered, on the clock of `heard_s`."""

    @property
    def has_begun(self) -> bool:
        """Whether anything of the trial was played."""
        return self.turn is not None and (self.is_playing or self.turn.episode > 0)


class Room:
    """One team's trials on this server.

    Args:
        house: The server.
        team: Whose.
        turns: Its open trials.
        hello: How many are played at once, and of which task.

    Attributes:
        session: By which a client that comes back is known.
        heard_s: When a connection came, or left, on the clock of `time.monotonic`.
        pace: Done when a reset may be answered that has worlds made; None before the first.
        alone: Held while something is answered or changed.
        connection: The number of the connection that is in; None while nobody is.
    """

    def __init__(self, house: House, team: Team, turns: Sequence[Turn], hello: Hello) -> None:
        self._house = house
        self.team = team
        self.is_rehearsal = hello.rehearsal
        self.asked = (hello.trials, hello.task)
        self._waiting = deque(turns)
        self.places = [Place(self._next()) for _ in range(hello.trials)]
        self.number = next(house.numbers)
        self.session = secrets.token_hex(8)
        self.heard_s = time.monotonic()
        self.connection: int | None = None
        self.is_text = hello.text
        self.pace: asyncio.Task[None] | None = None
        self.is_held = False  # while it waits for its turn, or for the moment to be answered
        self.alone = asyncio.Lock()
        self._last: tuple[int, str | bytes] = (-1, b"")
        self._hand: Hand | None = None
        self._left: int | None = None  # None where it is to be counted again

    def _next(self) -> Turn | None:
        return self._waiting.popleft() if self._waiting else None

    @property
    def left(self) -> int:
        """Episodes that are still to be played."""
        if self._left is None:
            turns = [place.turn for place in self.places] + list(self._waiting)
            self._left = sum(
                len(turn.trial.episodes) - turn.episode for turn in turns if turn is not None
            )
        return self._left

    @property
    def is_busy(self) -> bool:
        """Whether it waits for us."""
        return self.alone.locked() or self.is_held

    def is_new(self, message: Message) -> bool:
        """Whether a message has not been answered before."""
        return message.id != self._last[0]

    def hear(self, message: Message) -> None:
        """Note that a step or reset was taken and answered: the time to act begins anew."""
        for number in getattr(message, "trials", ()):
            self.places[number].heard_s = time.monotonic()

    def holds(self, turns: Sequence[Turn]) -> bool:
        """Whether these are the trials that are played here: nobody else has ended one."""
        own = [place.turn for place in self.places] + list(self._waiting)
        runs = {(turn.attempt, turn.trial.number): turn.run for turn in own if turn is not None}
        return runs == {(turn.attempt, turn.trial.number): turn.run for turn in turns}

    async def welcome(self, hello: Hello) -> str | bytes:
        """What a hello is answered; from here on messages are counted from its number."""
        async with self.alone:  # what the connection before has asked is answered first
            if hello.session != self.session:
                self._last = (hello.id, b"")
                self.session = secrets.token_hex(8)
            elif hello.id > self._last[0] + 1:  # its last message was none, or never came
                self._last = (hello.id - 1, b"")
        self.is_text = hello.text
        return encode(
            {
                "type": "hello",
                "id": hello.id,
                "protocol": PROTOCOL,
                "session": self.session,
                "left": self.left,
                "trials": hello.trials,
            }
        )

    async def answer(self, message: Message) -> str | bytes:
        """The frame that answers a message; the same again if it comes again.

        Raises:
            RefusedError: If it is not taken.
        """
        async with self.alone:
            last, frame = self._last
            if message.id == last and frame:
                return frame
            if message.id != last + 1:
                raise RefusedError(
                    "order", f"message {message.id} came after {last}; each number is used once",
                    number=message.id,
                )  # fmt: skip
            try:
                frame = await self._answer(message)
            except RefusedError as err:
                err.number = message.id
                self._last = (message.id, err.frame)
                raise
            self._last = (message.id, frame)
            return frame

    async def _answer(self, message: Message) -> str | bytes:
        if isinstance(message, Hello):
            raise RefusedError("order", "hello comes once, as the first message", ends=True)
        named = [message.trial] if isinstance(message, Declare | Feedback) else message.trials
        if max(named) >= len(self.places):
            raise RefusedError(
                "bad_message", f"trial {max(named)}: this connection plays 0 to"
                f" {len(self.places) - 1}; hello says how many"
            )  # fmt: skip
        if isinstance(message, Declare):
            return await self._declare(message)
        if isinstance(message, Feedback):
            return await self._feedback(message)
        for place in (self.places[number] for number in named):
            if place.told is not None:
                told, place.told = place.told, None
                raise RefusedError(*told)
        if isinstance(message, Reset):
            return await self._reset(message)
        return await self._step(message)

    async def _reset(self, message: Reset) -> str | bytes:
        over = [number for number in message.trials if self.places[number].turn is None]
        if over:
            said = f"trials {over}: no episode is left to be played there"
            raise RefusedError("over", said, trials=over)
        if fresh := sum(not self.places[number].is_open for number in message.trials):
            self.pace = asyncio.create_task(self._pace(fresh, await self._seated()))
        for number in message.trials:
            await self._open(number)
        starts = [  # None where an episode is under way, which goes on
            None if self.places[number].is_playing else self._house.start_of(self._turn(number))
            for number in message.trials
        ]
        reply = asyncio.ensure_future(self._ask("reset", message.trials, starts, message.id))
        try:  # both at once, since the worlds take their time
            await self._begin([self.places[number] for number in message.trials])
        finally:
            answer = await reply
        for number in message.trials:
            place = self.places[number]
            place.is_playing, place.ended = number not in answer.broken, None
        return await self._took(answer)

    async def _step(self, message: Step) -> str | bytes:
        idle = [number for number in message.trials if not self.places[number].is_playing]
        if idle:
            raise RefusedError("not_reset", f"trials {idle}: no episode is under way; reset first")
        actions = list(map(self._action, message.trials, message.given))
        return await self._took(await self._ask("step", message.trials, actions, message.id))

    def _turn(self, number: int) -> Turn:
        """What is played at a place that has something left."""
        turn = self.places[number].turn
        assert turn is not None
        return turn

    def _action(self, number: int, given: object) -> Any:
        try:
            return action_of(self._house.actions[self._turn(number).trial.task], given)
        except InputError as err:
            raise RefusedError("bad_action", f"trial {number}: {err}") from err

    async def _took(self, answer: JobResult) -> str | bytes:
        """Keep what has ended, before its client hears of it."""
        for ended in answer.ended:
            await self._keep(ended)
        for number, why in answer.broken.items():
            await self.give_back(number, f"the environment broke: {why}")
        if not answer.frame:
            raise RefusedError("given_back", "the environment broke; the trial starts again")
        return answer.frame

    async def _keep(self, ended: Ended) -> None:
        place, turn = self.places[ended.place], self._turn(ended.place)
        self._left = None
        place.is_playing = False  # if it cannot be kept, it is played again
        row = partial(self._house.ledger.row, turn, **ended.measured)

        def record() -> Turn | None:
            return self._house.ledger.record(turn, row(), ended.actions)

        following = await self._store(record)
        place.ended = (turn.attempt, turn.trial.number, turn.episode)
        place.said = None
        place.turn = following
        if place.turn is None:
            self._close(ended.place)
            place.turn = self._next()

    async def _declare(self, message: Declare) -> str | bytes:
        place = self.places[message.trial]
        if place.ended is None or place.said not in (None, message.checked):
            raise RefusedError(
                "no_episode", f"trial {message.trial}: no episode has just ended, or it was spoken"
                " for; declare once, after its last step and before the next reset"
            )  # fmt: skip
        await self._store(partial(self._house.ledger.declare, *place.ended, **message.checked))
        place.said = message.checked
        return encode({"type": "declared", "id": message.id})

    async def _feedback(self, message: Feedback) -> str | bytes:
        place = self.places[message.trial]
        if place.ended is None:
            raise RefusedError(
                "no_episode", f"trial {message.trial}: no episode has just ended; ask after its"
                " last step and before the next reset"
            )  # fmt: skip
        told = await self._store(self._house.ledger.feedback, *place.ended)
        novel, left = told or (False, self._house.competition.feedback)
        return encode({"type": "feedback", "id": message.id, "novel": novel, "left": left})

    # The worlds ---------------------------------------------------------------------------------

    async def _open(self, number: int) -> None:
        """Make the worlds of a trial, if that was not done."""
        if self.places[number].is_open:
            return
        setting = self._house.setting_of(self._turn(number))
        answer = await self._ask("open", [number], [setting], 0)
        for why in answer.broken.values():
            await self.give_back(number, f"the environment cannot be made: {why}")
            raise RefusedError("given_back", "the environment broke; the trial starts again")
        self.places[number].is_open = True

    async def _pace(self, trials: int, hand: Hand) -> None:
        """Let the time pass that worlds may take to be made, and once more until they are.

        It is longer while others ask, to whom the process is left then. How long these worlds take
        does not matter: that would tell which novelty is in them, or none.
        """
        while self.alone.locked():
            left_s = self._house.opening_s(trials)
            while left_s > 0.0:
                await asyncio.sleep(min(left_s, PACE_S))
                left_s -= PACE_S / (1.0 + OPENING_SHARE * hand.asked.beside(self.number))

    async def _begin(self, places: Sequence[Place]) -> None:
        """Have the time of episodes run that are not under way yet."""
        fresh = [(place, place.turn) for place in places if place.turn and not place.is_playing]

        def begin() -> list[Turn]:
            return [self._house.ledger.begin(turn) for _, turn in fresh]

        for (place, before), turn in zip(fresh, await self._store(begin) or (), strict=False):
            if place.turn is before:  # it may have been given back meanwhile
                place.turn = turn

    async def _seated(self) -> Hand:
        """The process that its worlds are in."""
        if self._hand is None:
            self._hand = await self._house.arena.seat()
        return self._hand

    async def _ask(
        self, kind: str, places: Sequence[int], given: Sequence[Any], number: int
    ) -> JobResult:
        hand = await self._seated()
        head = {"type": "state", "id": number, "trials": list(places), "left": self.left}
        arena = self._house.arena
        job = Job(next(arena.numbers), self.number, kind, places, given, head, self.is_text)
        try:
            return await hand.ask(job)
        except WorldLostError as err:
            hand.rooms -= 1
            self._hand = None
            for place in range(len(self.places)):
                self.places[place].is_open = False
                if self.places[place].is_playing or place in places:
                    await self.give_back(place, str(err))
            raise RefusedError(
                "given_back", "a simulator process was lost; the trial starts again from its first"
                " episode, at no cost"
            ) from err  # fmt: skip

    async def give_back(self, number: int, why: str) -> None:
        """The server's fault: the trial starts again."""
        if not self.is_rehearsal:
            turn = await self._house.given_back(self.team, self._turn(number), why)
            self.places[number].turn = turn
        self._drop(number)

    async def forfeit(self, number: int, why: str) -> None:
        """The team's fault: the trial ends by the rules, and the next one comes."""
        async with self.alone:
            place = self.places[number]
            turn = place.turn
            if turn is None:
                return
            await self._store(self._house.ledger.forfeit, turn.attempt, turn.trial.number, why)
            place.told = ("forfeited", f"trial {number}: {why}")
            place.turn = self._next()
            self._drop(number)

    def _drop(self, number: int) -> None:
        """End what is under way at a place."""
        self._left = None
        self.places[number].is_playing, self.places[number].ended = False, None
        self._close(number)

    def _close(self, number: int) -> None:
        place = self.places[number]
        if place.is_open and self._hand is not None and self._hand.is_alive:
            self._hand.ask(Job(next(self._house.arena.numbers), self.number, "close", [number]))
        place.is_open = False

    def leave(self) -> None:
        """Give its worlds up."""
        for number in range(len(self.places)):
            self._close(number)
        if self._hand is not None:
            self._hand.rooms -= 1
            self._hand = None

    async def _store(self, call: Callable[..., Any], *given: object) -> Any:
        """Have the ledger note something; a rehearsal leaves nothing there."""
        return None if self.is_rehearsal else await self._house.store(call, *given)
