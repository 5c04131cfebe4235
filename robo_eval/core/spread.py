"""Doing pieces of work on several processors, of this machine or of a Ray cluster."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Generic, TypeVar

from robo_eval.core.confined import Confined, can_fork
from robo_eval.core.errors import (
    CheckFailedError,
    InputError,
    InterruptedRunError,
    MissingExtraError,
    pip_install,
    said,
)

Piece = TypeVar("Piece")
"""A piece of work."""
Found = TypeVar("Found")
"""What comes of a piece of work."""
_TRIES: Final = 3
"""How often in a row workers may die without one result in between."""
_CONNECT_S: Final = 10.0
_HELLO: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""Preface and empty settings, by which a client of HTTP/2 begins (RFC 9113, section 3.4)."""
_FRAME, _SETTINGS = 9, 4
_WATCH_S: Final = 1.0
_PORTIONS: Final = 100
"""Portions that much work is handed out in: for one small piece, asking takes longer than doing."""
_GATHER_S: Final = 0.003
"""Results that come shortly after one another are taken together: waking up costs more than one."""
_DIED: Final = (
    f"workers died {_TRIES} times in a row; give fewer of them if memory is short. What was done is"
    " kept: the same command goes on"
)


def done(
    jobs: Sequence[Piece],
    doer: Callable[[Any], Found],
    *,
    workers: int = 1,
    ray: str | None = None,
    idle: Callable[[], None] | None = None,
) -> Iterator[tuple[Piece, Found]]:
    """Do pieces of work, and give each result as soon as it is there.

    Whatever does the work, the results are the same; their order is not. A worker that dies costs
    what it was working on, which is done again.

    Args:
        jobs: What is to be done.
        doer: Does a piece of work, a function of a module.
        workers: Processes; 1 works in this one.
        ray: Address of a Ray cluster, `auto` or `host:port`; None stays on this machine.
        idle: Called now and then while a cluster works; what it raises ends the work.

    Raises:
        InputError: If there are no workers, or the cluster cannot be reached.
        MissingExtraError: If Ray is asked for and not installed.
        InterruptedRunError: If workers die again and again.
    """
    if workers < 1:
        raise InputError(f"workers is {workers}; it must be 1 or more")
    if ray is not None:
        yield from _on_cluster(jobs, ray, doer, idle)
        return
    if workers == 1:
        for job in jobs:
            yield job, doer(job)
        return
    crew: _Hands[Piece, Found] = _Hands(doer)
    try:
        for _ in crew.do(deque([job] for job in jobs), workers):
            yield from crew.taken()
    finally:
        crew.end()


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker says of the piece of work that was next: what came of it."""

    found: Any


class Worker(Generic[Piece, Found]):
    """A process that does pieces of work, one after the other.

    Args:
        serve: A function of a module that hears lists of pieces, and says `Done` for each of them,
            or an exception; it says something else when it is ready.
        *given: What it is given further; see `Confined`.
        forks: Whether the process may be a copy of this one.

    Attributes:
        todo: What it was given and has not done; the first may be under way.
        is_ready: Whether it has said a word.
        pipe: Where it is heard.
    """

    def __init__(self, serve: Callable[..., None], *given: object, forks: bool) -> None:
        self.todo: deque[Piece] = deque()
        self.is_ready = False
        self._process = Confined(serve, *given, forks=forks)
        self.pipe = self._process.pipe

    def give(self, pieces: Sequence[Piece]) -> None:
        """Have it do pieces of work."""
        self.todo.extend(pieces)
        self._process.tell(list(pieces))

    def answers(self) -> Iterator[tuple[Piece, Found]]:
        """What came of the pieces that have ended since.

        Raises:
            Exception: What it could not go on for.
            EOFError: If it has died.
        """
        while self.pipe.poll():
            said_now = self.pipe.recv()
            self.is_ready = True
            if isinstance(said_now, Exception):
                raise said_now
            if isinstance(said_now, Done):
                yield self.todo.popleft(), said_now.found
            else:
                self.hear(said_now)
        if not self._process.is_alive and not self.pipe.poll():
            raise EOFError

    def hear(self, said_now: object) -> None:
        """Take note of anything else it says."""

    def stop(self) -> None:
        """Have it begin no further piece, if it can be told."""

    def problem(self) -> object | None:
        """Why it is to be ended, if it is."""
        return None

    def end(self) -> None:
        """Kill it, and what it has started."""
        self._process.end()


class Crew(Generic[Piece, Found]):
    """Workers who share pieces of work.

    Attributes:
        workers: Those there are.
        ended: What came of the pieces that have ended, for whoever takes it out.
        look_s: How long one waits for an answer before something else is looked at, seconds.
        ahead: A worker with fewer pieces left is given more.
    """

    look_s: float = _WATCH_S
    ahead: int = 1

    def __init__(self) -> None:
        self.workers: list[Worker[Piece, Found]] = []
        self.ended: list[tuple[Piece, Found]] = []
        self._may_fail = 0
        """How many workers in a row may die while they start: none before one has started."""

    def hire(self, *, is_alone: bool) -> Worker[Piece, Found]:
        """A new worker.

        Args:
            is_alone: Whether there will be no other.
        """
        raise NotImplementedError

    def lose(self, worker: Worker[Piece, Found], problem: object | None) -> None:
        """Deal with the piece that an ended worker had begun, the first of its `todo`.

        Args:
            worker: It; what stays in its `todo` is done by another.
            problem: Why it was ended; None if it died.
        """
        raise NotImplementedError

    def do(self, chunks: deque[list[Piece]], most: int) -> Iterator[None]:
        """Have pieces of work done; comes back after every look at the workers.

        Args:
            chunks: The pieces, in portions for one worker; taken out as they are handed out.
            most: Most workers.

        Raises:
            CheckFailedError: If a worker cannot start, so that no piece is blamed for it.
        """
        # One thread per worker: numpy's own threads would fight over the same cores.
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        while chunks or any(worker.todo for worker in self.workers):
            while chunks and len(self.workers) < most:
                self.workers.append(self.hire(is_alone=most == 1))
            for worker in self.workers:
                if chunks and len(worker.todo) < self.ahead:
                    worker.give(chunks.popleft())
            # The time-out lets the main thread notice a signal.
            wait([worker.pipe for worker in self.workers], timeout=self.look_s)
            time.sleep(_GATHER_S)
            for worker in list(self.workers):
                chunks.extendleft(self._look_at(worker))
            yield

    def end(self) -> None:
        """End the workers."""
        while self.workers:
            self.workers.pop().end()

    def _look_at(self, worker: Worker[Piece, Found]) -> list[list[Piece]]:
        """Take what a worker has done; what it leaves undone where it is to be ended."""
        try:
            self.ended.extend(worker.answers())
            problem = worker.problem()
        except EOFError:
            if not worker.is_ready and not self._may_fail:
                raise CheckFailedError(
                    "worker processes cannot start; a script that starts some needs"
                    " `if __name__ == '__main__':`, or gives their number as 1"
                ) from None
            problem = None
        else:
            if worker.is_ready:
                self._may_fail = _TRIES - 1
            if problem is None:
                return []
        self.workers.remove(worker)
        worker.end()
        if not worker.is_ready and problem is None:
            self._may_fail -= 1  # no piece is to blame: it had begun none
        elif worker.todo:
            self.lose(worker, problem)
        return [list(worker.todo)] if worker.todo else []


class _Hands(Crew[Piece, Found]):
    """Workers who call one function."""

    def __init__(self, doer: Callable[[Any], Found]) -> None:
        super().__init__()
        self._doer = doer
        self._deaths = 0

    def hire(self, *, is_alone: bool) -> Worker[Piece, Found]:  # noqa: ARG002
        return Worker(_serve, self._doer, forks=False)

    def lose(self, worker: Worker[Piece, Found], problem: object | None) -> None:  # noqa: ARG002
        self._deaths += 1
        if self._deaths == _TRIES:
            raise InterruptedRunError(_DIED)

    def taken(self) -> Iterator[tuple[Piece, Found]]:
        while self.ended:
            self._deaths = 0
            yield self.ended.pop(0)


class Limited(Crew[Piece, Found]):
    """Workers who call one function, which may take so long for a piece of work and no longer.

    Args:
        doer: The function; what it raises ends the work.
        limit_s: How long it may take, seconds.
        lost: What comes of a piece that took longer, if it is told True, or whose process ended.

    Attributes:
        waiting: Pieces nobody has begun, in portions; where it is cleared, no more are handed out.
    """

    def __init__(
        self, doer: Callable[[Any], Found], limit_s: float, lost: Callable[[Piece, bool], Found]
    ) -> None:
        super().__init__()
        self._doer, self._limit_s, self._lost = doer, limit_s, lost
        self.look_s = min(self.look_s, limit_s / 4)
        self.waiting: deque[list[Piece]] = deque()

    def done(
        self,
        jobs: Sequence[Piece],
        workers: int,
        is_last: Callable[[Found], bool] | None = None,
    ) -> Iterator[tuple[Piece, Found]]:
        """Do pieces of work, and give each result as soon as it is there.

        Args:
            jobs: What is to be done.
            workers: Processes.
            is_last: Whether a result ends the work. All pieces before it are done, and some after
                it, so that the first such piece is the same however many workers there are.
        """
        ended: dict[Piece, bool] = {}
        size = -(-len(jobs) // _PORTIONS)
        self.waiting.extend(list(jobs[at : at + size]) for at in range(0, len(jobs), size))
        most = min(workers, len(self.waiting))
        while len(self.workers) > most:
            self.workers.pop().end()
        for _ in self.do(self.waiting, most):
            while self.ended:
                piece, found = self.ended.pop(0)
                yield piece, found
                if is_last is not None:
                    ended[piece] = is_last(found)
                    if ended[piece]:
                        self.waiting.clear()
            if not self.waiting and is_last is not None:
                first = next((piece for piece in jobs if ended.get(piece) is not False), None)
                if first in ended:
                    self.end()
                    return

    def end(self) -> None:
        """End the workers, and what they do."""
        super().end()
        self.waiting.clear()
        self.ended.clear()

    def hire(self, *, is_alone: bool) -> Worker[Piece, Found]:  # noqa: ARG002
        """A worker whose time is limited."""
        return _Timed(self._doer, self._limit_s)

    def lose(self, worker: Worker[Piece, Found], problem: object | None) -> None:
        """Say what comes of a piece that is lost."""
        piece = worker.todo.popleft()
        self.ended.append((piece, self._lost(piece, problem is not None)))


class _Timed(Worker[Piece, Found]):
    """A worker who is ended when a piece takes too long."""

    def __init__(self, doer: Callable[[Any], Found], limit_s: float) -> None:
        super().__init__(_serve, doer, forks=can_fork())
        self._limit_s, self._since_s = limit_s, time.monotonic()

    def answers(self) -> Iterator[tuple[Piece, Found]]:
        for answer in super().answers():
            self._since_s = time.monotonic()
            yield answer

    def problem(self) -> object | None:
        if not (self.todo and self.is_ready):  # to start a process takes its time
            self._since_s = time.monotonic()
        return "late" if time.monotonic() - self._since_s > self._limit_s else None


def _serve(hears: Connection, speaks: Connection, doer: Callable[[Any], Any]) -> None:
    speaks.send(None)
    while True:
        for piece in hears.recv():
            try:
                speaks.send(Done(doer(piece)))
            except BaseException as err:  # noqa: BLE001 - raised where it can be told
                speaks.send(_portable(err))


def _portable(err: BaseException) -> Exception:
    """An error as it can be sent to another process, with where it was raised."""
    err.add_note("".join(traceback.format_exception(err)))
    try:
        found = pickle.loads(pickle.dumps(err))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - whatever a class of errors does when it is copied
        return RuntimeError(said(err))
    return found if isinstance(found, Exception) else RuntimeError(said(err))


def cluster_cores(address: str) -> int:
    """Cores of all nodes of a Ray cluster.

    Raises:
        InputError: If it cannot be reached.
        MissingExtraError: If Ray is not installed.
    """
    return max(1, int(_connect(address).cluster_resources().get("CPU", 1)))


def placed(address: str, work: Callable[..., Any], *given: object) -> Callable[[], None]:
    """Have a function of a module run on one core of a Ray cluster, until it comes back.

    It is not begun again if its process dies, and ends with this one.

    Args:
        address: Of the cluster.
        work: The function.
        *given: What it is given.

    Returns:
        What ends it.

    Raises:
        InputError: If the cluster cannot be reached.
        MissingExtraError: If Ray is not installed.
    """
    ray = _connect(address)
    return partial(ray.cancel, ray.remote(max_retries=0)(work).remote(*given), force=True)


def own_address(address: str) -> str:
    """Where the nodes of a Ray cluster reach this machine."""
    return str(_connect(address).util.get_node_ip_address())


def _on_cluster(
    jobs: Sequence[Piece],
    address: str,
    doer: Callable[[Any], Found],
    idle: Callable[[], None] | None,
) -> Iterator[tuple[Piece, Found]]:
    # Tasks of Ray itself and not joblib's backend for it: that one gives no result before the last
    # is there, so that a run that is stopped would lose them all. Ray does what a worker that died
    # was doing again by itself.
    ray = _connect(address)
    remote = ray.remote(max_retries=_TRIES)(doer)
    waiting = {remote.remote(job): job for job in jobs}
    try:
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=_WATCH_S)
            if idle is not None:
                idle()
            for one in ready:
                try:
                    found = ray.get(one)
                except ray.exceptions.WorkerCrashedError as err:
                    raise InterruptedRunError(_DIED) from err
                except ray.exceptions.RayTaskError as err:
                    raise err.cause from None
                yield waiting.pop(one), found
    finally:
        for one in waiting:  # nobody waits for these any more
            ray.cancel(one, force=True)


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError as err:
        raise MissingExtraError(f"Ray is not installed; `{pip_install('ray')}` adds it") from err
    if not ray.is_initialized():
        try:
            _check_reachable(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ValueError, RuntimeError, OverflowError, OSError) as err:
            raise InputError(
                f"--ray {address}: the cluster cannot be reached: {said(err, named=False):.200};"
                " start one by `ray start --head`, and name its address, or `auto` on the same"
                " machine"
            ) from err
    return ray


def _check_reachable(address: str) -> None:
    """Raise OSError or ValueError soon where Ray would try for minutes."""
    if address == "auto" or "://" in address:
        return
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit()):
        raise ValueError("an address is `auto` or host:port")
    with socket.create_connection((host, int(port)), timeout=_CONNECT_S / 2) as there:
        there.settimeout(_CONNECT_S / 2)
        there.sendall(_HELLO)
        answer = there.recv(_FRAME)
    # A cluster speaks HTTP/2, whose first frame says how it is to be spoken to.
    if len(answer) < _FRAME or answer[3] != _SETTINGS:
        raise ValueError("something else than Ray listens there")
