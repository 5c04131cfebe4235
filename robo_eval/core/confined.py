"""A process that ends with this one, and can be ended whatever it does."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from robo_eval.core.errors import InputError

_UNFORKABLE: Final = ("torch", "tensorflow", "jax")
"""Libraries whose threads do not survive a fork: beside them a process starts anew."""
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What people and systems send to end a run."""
_END_S: Final = 5.0
_POLL_S: Final = 0.05


def can_fork() -> bool:
    """Whether a copy of this process works."""
    return sys.platform == "linux" and not any(name in sys.modules for name in _UNFORKABLE)


class Confined:
    """A process that dies with this one, and can be ended whatever it does.

    Args:
        work: A function of a module; its first arguments are where it hears and where it speaks.
        *given: The further ones.
        forks: Whether the process is a copy of this one, which takes no time; else it starts anew.

    Attributes:
        pipe: Where it is heard.

    Raises:
        InputError: If a process that starts anew cannot be given what it needs.
    """

    def __init__(self, work: Callable[..., None], *given: object, forks: bool) -> None:
        context = multiprocessing.get_context("fork" if forks else "spawn")
        # Two pipes and no pair of sockets, which forget what a process said before it died.
        hears, self._tell = context.Pipe(duplex=False)
        self.pipe, speaks = context.Pipe(duplex=False)
        arguments = (work, hears, speaks, os.getpid(), *given)
        self._process: Any = context.Process(target=_begin, args=arguments)  # type: ignore[attr-defined]
        if not forks:
            resource_tracker.ensure_running()  # its start would end the mask below
        # Such signals reach the whole process group; only the parent decides what they mean. The
        # mask is inherited from the first moment.
        previous = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        try:
            self._process.start()
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)
        except BaseException as err:
            self.end()
            if not forks and isinstance(err, pickle.PicklingError | AttributeError | TypeError):
                remedy = "define it in a module, under its own name"
                raise InputError(f"another process cannot be given it: {err}; {remedy}") from err
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)
            hears.close()
            speaks.close()

    def tell(self, what: object) -> None:
        """Send it something; a dead one is found out by listening."""
        with contextlib.suppress(BrokenPipeError):
            self._tell.send(what)

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        alive: bool = self._process.is_alive()
        return alive

    @property
    def is_stopped(self) -> bool:
        """Whether a debugger or a signal has stopped it, so that it cannot be said to hang."""
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{self._process.pid}/stat").read_bytes().rpartition(b")")[2]
            return state.split()[0] in b"Tt"
        return False

    @property
    def queued_s(self) -> float:
        """How long it and this process were ready to run and had no processor, seconds (Linux)."""
        with contextlib.suppress(OSError, IndexError):
            files = (Path(f"/proc/{pid}/schedstat") for pid in ("self", self._process.pid))
            return sum(int(file.read_bytes().split()[1]) for file in files) / 1e9
        return 0.0

    def end(self) -> None:
        """Kill it and what it has started; may be called again."""
        if self._process.pid is not None and self.is_alive:
            _kill(self._process.pid, signal.SIGSTOP)  # it starts no more from here on
            for pid in [*_descendants(self._process.pid), self._process.pid]:
                _kill(pid, signal.SIGKILL)
            self._process.join(_END_S)
        self.pipe.close()
        self._tell.close()


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those these have started (Linux)."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_descendants(child)]
    return found


def _begin(
    work: Callable[..., None], hears: Connection, speaks: Connection, parent: int, *given: object
) -> None:
    if sys.platform == "linux":
        # Die when the parent dies, even by SIGKILL.
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel was asked
            os._exit(1)
    worker = os.getpid()

    def leave_to_parent(number: int, _frame: object) -> None:
        if os.getpid() != worker:  # a process that a policy has forked ends as it would anywhere
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in _STOPPING:
        signal.signal(number, leave_to_parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    # A copy of our parent has a copy of its progress bar, whose locks nobody would release.
    out = open(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stderr = out
    os.dup2(2, 1)  # what is compiled writes there by itself
    with contextlib.suppress(BrokenPipeError, EOFError):
        work(hears, speaks, *given)


def wait_for(
    process: Confined,
    limit_s: float,
    check: Callable[[], None] | None = None,
    *,
    even_stopped: bool = False,
) -> bool:
    """Wait until a process has said something; False if it did not within the limit.

    Time in which this process was stopped does not count.

    Args:
        process: Which.
        limit_s: The limit.
        check: Called many times a second; what it raises ends the waiting.
        even_stopped: Whether time counts in which that process was stopped.

    Raises:
        EOFError: If the process has died.
    """
    waited_s, last_s = 0.0, time.monotonic()
    while not process.pipe.poll(min(_POLL_S, limit_s)):
        if not process.is_alive and not process.pipe.poll():
            raise EOFError
        if check is not None:
            check()
        now_s = time.monotonic()
        if even_stopped or not process.is_stopped:
            waited_s += min(now_s - last_s, 4 * _POLL_S)
        last_s = now_s
        if waited_s >= limit_s:
            return process.pipe.poll()
    return True
