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
from robo_eval.study.work import do


class _Piece(Protocol):
    @property
    def digest(self) -> str: ...


Piece = TypeVar("Piece", bound=_Piece)
"""A piece of work: anything with a digest of all that its result depends on."""
Doer = Callable[[Any], dict[str, Any]]
_TRIES: Final = 3
"""How often in a row workers may die without one result in between."""
_CONNECT_S: Final = 10.0
_WATCH_S: Final = 1.0
_DIED: Final = (
    f"workers died {_TRIES} times in a row; give fewer of them if memory is short. What was done is"
    " kept: the same command goes on"
)


def done(
    jobs: Sequence[Piece],
    *,
    workers: int = 1,
    ray: str | None = None,
    doer: Doer | None = None,
) -> Iterator[tuple[Piece, dict[str, Any]]]:
    """Do pieces of work, and give each result as soon as it is there.

    Whatever does the work, the results are the same; their order is not. A worker that dies costs
    what it was working on, which is done again.

    Args:
        jobs: What is to be done.
        workers: Processes; 1 works in this one.
        ray: Address of a Ray cluster, `auto` or `host:port`; None stays on this machine.
        doer: Does a piece of work, a function of a module; None is `work.do`.

    Raises:
        InputError: If there are no workers, or the cluster cannot be reached.
        MissingExtraError: If Ray is asked for and not installed.
        InterruptedRunError: If workers die again and again.
    """
    if workers < 1:
        raise InputError(f"workers is {workers}; it must be 1 or more")
    own: Doer = doer or do
    if ray is None and workers == 1:
        for job in jobs:
            yield job, own(job)
        return
    if ray is not None:
        yield from _on_cluster(jobs, ray, own)
        return
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left = {job.digest: job for job in jobs}
    tries = 0
    while left:
        try:
            for digest, found in _round(list(left.values()), workers, own):
                tries = 0
                yield left.pop(digest), found
        except TerminatedWorkerError as err:
            tries += 1
            if tries == _TRIES:
                raise InterruptedRunError(_DIED) from err


def _round(jobs: Sequence[Piece], workers: int, doer: Doer) -> Iterator[tuple[str, dict[str, Any]]]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        # One at a time: results are kept as they come, and a worker that dies loses no batch.
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        with warnings.catch_warnings():
            # Where keeping a result fails, the rest is let go, which is told by what failed.
            warnings.filterwarnings("ignore", message=".* tasks which were still being processed")
            yield from parallel(delayed(_with_digest)(doer, job, os.getpid()) for job in jobs)


def _with_digest(doer: Doer, job: _Piece, parent: int) -> tuple[str, dict[str, Any]]:
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


def _on_cluster(
    jobs: Sequence[Piece], address: str, doer: Doer
) -> Iterator[tuple[Piece, dict[str, Any]]]:
    # Tasks of Ray itself and not joblib's backend for it: that one gives no result before the last
    # is there, so that a run that is stopped would lose them all. Ray does what a worker that died
    # was doing again by itself.
    ray = _connect(address)
    remote = ray.remote(max_retries=_TRIES)(doer)
    waiting = {remote.remote(job): job for job in jobs}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        for one in ready:
            try:
                found = ray.get(one)
            except ray.exceptions.WorkerCrashedError as err:
                raise InterruptedRunError(_DIED) from err
            except ray.exceptions.RayTaskError as err:
                raise err.cause from None
            yield waiting.pop(one), found


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
    """Raise OSError or ValueError at once where Ray would try for minutes."""
    if address == "auto" or "://" in address:
        return
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit()):
        raise ValueError("an address is `auto` or host:port")
    socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
