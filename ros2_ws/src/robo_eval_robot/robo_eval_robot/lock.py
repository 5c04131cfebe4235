"""One robot, one run: a lock for the whole machine, whoever asks."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from robo_eval.core.errors import InputError

_FOLDERS: Final = ("/run/lock", tempfile.gettempdir())
"""Where locks lie: the same for every user, unlike a home."""


def lock_file(robot: str) -> Path:
    """The lock of a robot on this machine."""
    folder = next((Path(name) for name in _FOLDERS if os.access(name, os.W_OK)), Path("/tmp"))  # noqa: S108
    return folder / f"robo-eval-robot-{robot}.lock"


@contextmanager
def robot_lock(robot: str) -> Iterator[None]:
    """Hold a robot; the kernel lets go when the process ends, however it ends.

    Raises:
        InputError: If another process holds it; the message names it.
    """
    path = lock_file(robot)
    # Readable and writable for all: another user must be refused by the lock, not by permissions.
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as err:
        raise InputError(f"{path}: the robot cannot be locked: {err.strerror}") from err
    with suppress(PermissionError):
        os.fchmod(descriptor, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise InputError(
                f"robot {robot!r}: {holder(path)} is using it; wait for it to end"
            ) from err
        os.ftruncate(descriptor, 0)
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
        said = {"pid": os.getpid(), "user": os.getuid(), "command": command}
        os.pwrite(descriptor, json.dumps(said).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def holder(path: Path) -> str:
    """Who holds a lock, as its file says, which everybody may write."""
    try:
        data = json.loads(path.read_bytes())
        process = f"process {int(data['pid'])}"
        user = f" of user {int(data['user'])}" if "user" in data else ""
        return process + user + (f" ({data['command']!a:.200})" if "command" in data else "")
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
