"""Where the worlds of a competition are: processes of the server's own, one for each core."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import socket
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from robo_eval.compete.worlds import Answer, Job, enclosed, opened, work
from robo_eval.core.confined import Confined
from robo_eval.core.errors import CheckFailedError, RoboEvalError
from robo_eval.core.plan import TaskPlan

_LOG: Final = logging.getLogger(__name__)
_START_S: Final = 120.0
_LOOK_S: Final = 0.25
_TRIES: Final = 3


class WorldLostError(RoboEvalError):
    """A simulator process died or hung; what was played in it is given back."""


class Reply(asyncio.Future[Answer]):
    """What a process will answer.

    Attributes:
        then: Called at once when it is there; a task of the loop has to wait for its next turn.
    """

    then: Callable[[], None] | None = None

    def arrive(self, answer: Answer | None) -> None:
        """Be answered; None if the process has ended."""
        if self.done():
            return
        if answer is None:
            self.set_exception(WorldLostError("the simulator process has ended"))
            self.exception()  # perhaps nobody waits for it
        else:
            self.set_result(answer)
        if self.then is not None:
            self.then()


def at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine now, and on as soon as a reply that it waits for is there.

    A task of the loop would wait for the loop's next turn at its begin and after each reply.
    """

    def go_on(_done: object = None) -> None:
        try:
            waits = work.send(None)
        except StopIteration:
            return
        waits._asyncio_future_blocking = False  # noqa: SLF001 - as tasks do: it was seen
        if isinstance(waits, Reply):
            waits.then = go_on
        else:
            waits.add_done_callback(go_on)

    go_on()


class Hand(asyncio.Protocol):
    """One simulator process, as the server sees it.

    Attributes:
        seats: How many trials have their worlds in it.
        is_alive: Whether it can be asked.
    """

    def __init__(self) -> None:
        self.seats = 0
        self.is_alive = True
        self.ready = Reply()
        self._waiting: dict[int, Reply] = {0: self.ready}
        self._buffer = bytearray()
        self._transport: Any = None
        self._heard_s = 0.0
        self._process: Confined | None = None

    async def start(self) -> None:
        """Start the process; it is ready when `ready` says so."""
        # A pair of sockets, because a full pipe would make the whole server wait.
        ours, theirs = socket.socketpair()
        try:
            self._process = Confined(work, theirs, forks=False)
        finally:
            theirs.close()
        self._heard_s = time.monotonic()
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)

    def ask(self, job: Job) -> Reply:
        """Have a job done; the reply raises WorldLostError if the process is lost."""
        reply = Reply()
        if not self.is_alive:
            reply.arrive(None)
            return reply
        if not self._waiting:
            self._heard_s = time.monotonic()
        self._waiting[job.number] = reply
        self._transport.write(enclosed(job))
        return reply

    def silent_s(self) -> float:
        """For how long it has owed an answer."""
        if not self._waiting:
            return 0.0
        return time.monotonic() - self._heard_s

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It can be told something."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """It says something."""
        self._buffer += data
        self._heard_s = time.monotonic()
        for answer in opened(self._buffer, Answer):
            self._waiting.pop(answer.number).arrive(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        del exc
        self.is_alive = False
        while self._waiting:
            self._waiting.popitem()[1].arrive(None)

    def end(self) -> None:
        """Kill it; may be called again."""
        self.is_alive = False
        if self._process is not None:
            self._process.end()
        if self._transport is not None:
            self._transport.abort()


class Arena:
    """The simulator processes, and who plays in which.

    Args:
        workers: How many; None for one a core.
        limit_s: How long one may say nothing while it is waited for, before it counts as hung.

    Attributes:
        lost: How many have died or hung since the start.
    """

    def __init__(self, workers: int | None = None, *, limit_s: float = 60.0) -> None:
        self._count = workers or len(os.sched_getaffinity(0))
        self._limit_s = limit_s
        self.hands: list[Hand] = []
        self._numbers = itertools.count(1)
        self._watch: asyncio.Task[None] | None = None
        self.lost = 0

    async def start(self) -> None:
        """Start the processes.

        Raises:
            CheckFailedError: If one cannot start.
        """
        # One thread a process: numpy's own threads would fight over the same cores.
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        self.hands = [Hand() for _ in range(self._count)]
        try:
            for hand in self.hands:
                await hand.start()
            await asyncio.wait_for(asyncio.gather(*(hand.ready for hand in self.hands)), _START_S)
        except (WorldLostError, TimeoutError) as err:
            await self.close()
            raise CheckFailedError(f"simulator processes cannot start: {err}") from err
        self._watch = asyncio.create_task(self._look())

    async def close(self) -> None:
        """End the processes."""
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        for hand in self.hands:
            hand.end()

    async def seat(self) -> Hand:
        """The process with the fewest trials, for one more."""
        while not (alive := [one for one in self.hands if one.is_alive]):
            await asyncio.sleep(_LOOK_S)
        hand = min(alive, key=lambda one: one.seats)
        hand.seats += 1
        return hand

    def job(self, room: int, kind: str, **fields: Any) -> Job:  # noqa: ANN401 - of a Job
        """A job with a number of its own."""
        return Job(number=next(self._numbers), room=room, kind=kind, **fields)

    async def spaces(self, tasks: Sequence[TaskPlan]) -> list[Mapping[str, Any]]:
        """What the environment of each task says of its spaces, in JSON.

        Raises:
            CheckFailedError: If an environment cannot be made.
        """
        job = self.job(0, "spaces", places=range(len(tasks)), given=tasks)
        answer = await self.hands[0].ask(job)
        for place, why in answer.broken.items():
            raise CheckFailedError(f"tasks.{place}: {tasks[place].env} cannot be made: {why}")
        return list(answer.seen)

    async def _look(self) -> None:
        """End processes that hang, and start others in their place."""
        tries = 0
        while True:
            await asyncio.sleep(_LOOK_S)
            for place, hand in enumerate(self.hands):
                if hand.silent_s() > (self._limit_s if hand.ready.done() else _START_S):
                    _LOG.error("a simulator process hangs, and is ended")
                    hand.end()
                if hand.is_alive:
                    tries = 0 if hand.ready.done() else tries
                    continue
                self.lost += 1
                hand.end()
                tries += 1
                await asyncio.sleep(0.0 if tries < _TRIES else tries)  # not as fast as it can die
                self.hands[place] = Hand()
                await self.hands[place].start()
