"""Who may write into a trial directory: one process at a time, enforced by the kernel."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from robo_eval.core import door
from robo_eval.core.errors import TrialDirectoryError
from robo_eval.log.files import explained

LOCK: Final = "run.lock"
"""Name of the lock file; it stays, what counts is the kernel's lock on it."""

_PATIENCE_S: Final = 0.3
"""How long to wait for a lock: whoever merely asks for the state of a run holds it for moments."""


class RunLock:
    """A lock on a trial directory that ends with its process, however that ends.

    Args:
        trial: The trial directory.

    Raises:
        TrialDirectoryError: On entering, if another process holds it; the message names it.
    """

    def __init__(self, trial: Path) -> None:
        self._trial = trial
        self._path = trial / LOCK
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        with explained(self._path, "cannot be locked"):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                self._acquire(descriptor)
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, _signature(), 0)
            except BaseException:
                os.close(descriptor)
                raise
        self._descriptor = descriptor
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _acquire(self, descriptor: int) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as err:
                if time.monotonic() < deadline:
                    time.sleep(0.02)
                    continue
                raise TrialDirectoryError(
                    f"{self._trial}: {_holder(self._path)} is writing here; wait for it to end"
                ) from err
            return


def is_locked(trial: Path) -> bool:
    """Whether a live process holds the lock of a trial directory."""
    try:
        descriptor = os.open(trial / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as err:
        raise TrialDirectoryError(f"{trial / LOCK}: cannot be read: {err.strerror}") from err
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks: nobody can hold one
        return False
    finally:
        os.close(descriptor)
    return False


def _signature() -> bytes:
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode() + b"\n"


def _holder(path: Path) -> str:
    try:
        data = door.json_of(door.bytes_of(path))
        return f"process {int(data['pid'])} on {str(data['host'])[:80]}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
