"""Doing pieces of work on several processors, of this machine or of a Ray cluster."""

from __future__ import annotations

import functools
import logging
import os
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeVar

from robo_eval.core.errors import (
    InputError,
    InterruptedRunError,
    MissingExtraError,
    pip_install,
    said,
)


class _Piece(Protocol):
    @property
    def digest(self) -> str: ...


Piece = TypeVar("Piece", bound=_Piece)
"""A piece of work: anything with a digest of all that its result depends on."""
Found = TypeVar("Found")
"""What comes of a piece of work."""
_TRIES: Final = 3
"""How often in a row workers may die without one result in between."""
_CONNECT_S: Final = 10.0
_HELLO: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""Preface and empty settings, by which a client of HTTP/2 begins (RFC 9113, section 3.4)."""
_FRAME, _SETTINGS = 9, 4
_WATCH_S: Final = 1.0
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
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left = {job.digest: job for job in jobs}
    tries = 0
    while left:
        try:
            for digest, found in _round(list(left.values()), workers, doer):
                tries = 0
                yield left.pop(digest), found
        except TerminatedWorkerError as err:
            tries += 1
            if tries == _TRIES:
                raise InterruptedRunError(_DIED) from err


def _round(
    jobs: Sequence[Piece], workers: int, doer: Callable[[Any], Found]
) -> Iterator[tuple[str, Found]]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        # One at a time: results are kept as they come, and a worker that dies loses no batch.
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        with warnings.catch_warnings():
            # Where keeping a result fails, the rest is let go, which is told by what failed.
            warnings.filterwarnings("ignore", message=".* tasks which were still being processed")
            yield from parallel(delayed(_with_digest)(doer, job, os.getpid()) for job in jobs)


def _with_digest(doer: Callable[[Any], Found], job: _Piece, parent: int) -> tuple[str, Found]:
    _end_with(parent)
    return job.digest, doer(job)


@functools.cache  # one watch in a process
def _end_with(parent: int) -> None:
    """End this worker once the process that started it is gone.

    After `kill -9` of that one, workers would wait for minutes for work that never comes, and hold
    open the pipes they inherited.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


def cluster_cores(address: str) -> int:
    """Cores of all nodes of a Ray cluster.

    Raises:
        InputError: If it cannot be reached.
        MissingExtraError: If Ray is not installed.
    """
    return max(1, int(_connect(address).cluster_resources().get("CPU", 1)))


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


def _connect(address: str) -> Any:  # noqa: ANN401 - the module
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
