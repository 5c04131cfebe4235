"""Where the worlds of a competition are: processes of the server's own, one for each core."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from robo_eval.compete.worlds import AskTimes, Job, JobResult, enclosed, opened, work, work_far
from robo_eval.core.confined import Confined
from robo_eval.core.errors import CheckFailedError, RoboEvalError, said
from robo_eval.core.plan import TaskPlan
from robo_eval.core.spread import cluster_cores, own_address, placed
from robo_eval.web.serve import listening

_LOG: Final = logging.getLogger(__name__)
_START_S: Final = 120.0
_LOOK_S: Final = 0.25
_TRIES: Final = 3
_KEY_BYTES: Final = 32
_KEY_S: Final = 10.0


class WorldLostError(RoboEvalError):
    """A simulator process died or hung; what was played in it is given back."""


class Reply(asyncio.Future[JobResult]):
    """What a process will answer.

    Attributes:
        then: Called at once when it is there; a task of the loop has to wait for its next turn.
    """

    then: Callable[[], None] | None = None

    def arrive(self, answer: JobResult | None) -> None:
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
        except Exception:  # noqa: BLE001 - it would end the process that was just heard
            _LOG.exception("an answer failed")
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
        rooms: How many teams have their worlds in it.
        is_alive: Whether it can be asked.
        asked: Who has asked it for something.
    """

    def __init__(self) -> None:
        self.rooms = 0
        self.is_alive = True
        self.asked = AskTimes()
        self.ready = Reply()
        self._waiting: dict[int, Reply] = {0: self.ready}
        self._buffer = bytearray()
        self._transport: Any = None
        self._heard_s = time.monotonic()
        self._kill: Callable[[], None] | None = None

    async def start(self, far: Far | None) -> None:
        """Start the process, on this machine or far away; it is ready when `ready` says so."""
        if far is not None:
            self._kill = far.begin(self)
            return
        # A pair of sockets, because a full pipe would make the whole server wait.
        ours, theirs = socket.socketpair()
        try:
            self._kill = Confined(work, theirs, forks=False).end
        finally:
            theirs.close()
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
        self.asked[job.room] = time.perf_counter()
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
        for answer in opened(self._buffer, JobResult):
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
        if self._kill is not None:
            self._kill()
        if self._transport is not None:
            self._transport.abort()


class Far:
    """Processes on a Ray cluster, which connect to this server.

    Each is given a key of its own, and what comes without one is not even read.

    Args:
        address: Of the cluster.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._expected: dict[bytes, Hand] = {}
        self._listener = listening(own_address(address), 0)
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        """Let processes come."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Comer(self._expected), sock=self._listener)

    def begin(self, hand: Hand) -> Callable[[], None]:
        """Have a process begin; gives what ends it."""
        key = secrets.token_bytes(_KEY_BYTES)
        self._expected[key] = hand
        return placed(self._address, work_far, *self._listener.getsockname()[:2], key)

    def close(self) -> None:
        """Let nobody come any more."""
        if self._server is not None:
            self._server.close()


class _Comer(asyncio.Protocol):
    """Who has connected, until the key says which process it is."""

    def __init__(self, expected: dict[bytes, Hand]) -> None:
        self._expected = expected
        self._said = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the key, for a while."""
        self._transport = transport
        asyncio.get_running_loop().call_later(_KEY_S, self._leave)

    def data_received(self, data: bytes) -> None:
        """Hand over to the process's own end once the key is there."""
        self._said += data
        if len(self._said) < _KEY_BYTES:
            return
        hand = self._expected.pop(self._said[:_KEY_BYTES], None)
        transport, self._transport = self._transport, None
        if hand is None or not hand.is_alive:
            transport.abort()
            return
        transport.set_protocol(hand)
        hand.connection_made(transport)
        hand.data_received(self._said[_KEY_BYTES:])

    def _leave(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Arena:
    """The simulator processes, and who plays in which.

    Args:
        workers: How many; None for one a core.
        limit_s: How long one may say nothing while it is waited for, before it counts as hung.
        ray: Address of a Ray cluster that they are on; None for this machine.

    Raises:
        InputError: If the cluster cannot be reached.
        MissingExtraError: If Ray is asked for and not installed.

    Attributes:
        lost: How many have died or hung since the start.
        numbers: Those of jobs, each used once.
    """

    def __init__(
        self, workers: int | None = None, *, limit_s: float = 60.0, ray: str | None = None
    ) -> None:
        cores = len(os.sched_getaffinity(0)) if ray is None else cluster_cores(ray)
        self._count = workers or cores
        self._far = None if ray is None else Far(ray)
        self._limit_s = limit_s
        self.hands: list[Hand] = []
        self.numbers = itertools.count(1)
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
        if self._far is not None:
            await self._far.listen()
        self.hands = [Hand() for _ in range(self._count)]
        try:
            for hand in self.hands:
                await hand.start(self._far)
            await asyncio.wait_for(asyncio.gather(*(hand.ready for hand in self.hands)), _START_S)
        except (WorldLostError, TimeoutError) as err:
            await self.close()
            raise CheckFailedError(f"simulator processes cannot start: {said(err)}") from err
        self._watch = asyncio.create_task(self._look())

    async def close(self) -> None:
        """End the processes."""
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        for hand in self.hands:
            hand.end()
        if self._far is not None:
            self._far.close()

    async def seat(self) -> Hand:
        """The process with the fewest teams, for one team more."""
        while not (alive := [one for one in self.hands if one.is_alive]):
            await asyncio.sleep(_LOOK_S)
        hand = min(alive, key=lambda one: one.rooms)
        hand.rooms += 1
        return hand

    async def spaces(self, tasks: Sequence[TaskPlan]) -> list[Mapping[str, Any]]:
        """What the environment of each task says of its spaces, in JSON.

        Raises:
            CheckFailedError: If an environment cannot be made.
        """
        job = Job(next(self.numbers), 0, "spaces", range(len(tasks)), tasks)
        answer = await self.hands[0].ask(job)
        for place, why in answer.broken.items():
            raise CheckFailedError(f"tasks.{place}: {tasks[place].env} cannot be made: {why}")
        found: list[Mapping[str, Any]] = answer.found
        return found

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
                await self.hands[place].start(self._far)
