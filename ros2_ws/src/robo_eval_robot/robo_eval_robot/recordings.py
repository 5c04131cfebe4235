"""The conductor's side of the recorder: a bag begins, ends, or is rescued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.log.bag_restore import restore
from robo_eval.log.recorded import read_recorded
from robo_eval.log.trace_folder import trace_digest
from robo_eval_robot.link import RobotLink, RobotLostError

_ANSWER_S: Final = 5.0
_CLOSE_S: Final = 20.0
"""How long closing a bag may take on a slow disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A bag in the trial directory.

    Attributes:
        uri: Its folder, relative to the trial.
        sha256: Digest of the folder.
        recovered: Whether it was put together after its recorder died.
        dropped: Messages that were lost on the way, as far as the recorder can see.
    """

    uri: str
    sha256: str
    recovered: bool = False
    dropped: int = 0


@dataclass(slots=True)
class Recordings:
    """Tells the recorder by events what to do, and waits until it says that it is done.

    Attributes:
        link: Connection to the robot's graph.
        trial: The trial directory.
        check_alive: Raises if a process has died; called while waiting.
    """

    link: RobotLink
    trial: Path
    check_alive: Callable[[], None]
    _open: str | None = field(default=None, init=False)

    def connect(self, seconds: float) -> None:
        """Wait until the recorder is there.

        Raises:
            InputError: If it is not in time.
        """
        if not self._wait(lambda: self._state() in ("idle", "closed"), seconds):
            raise InputError(f"the recorder does not say that it is ready within {seconds:g} s")

    def begin(self, episode_id: str, **fields: object) -> None:
        """Start the bag of an episode.

        Raises:
            RobotLostError: If the recorder does not answer.
            TrialDirectoryError: If it cannot write.
        """
        self.link.event(event="start", episode_id=episode_id, uri=_uri(episode_id), **fields)
        self._open = episode_id
        self._await(episode_id, "recording", _ANSWER_S)

    def end(self, episode_id: str, **fields: object) -> Trace | None:
        """Close the bag; None if none was begun.

        Raises:
            RobotLostError: If the recorder does not answer.
            TrialDirectoryError: If it could not write all of it.
        """
        if self._open != episode_id:
            return None
        self.link.event(event="end", episode_id=episode_id, **fields)
        self._await(episode_id, "closed", _CLOSE_S)
        self._open = None
        dropped = self.link.recorder.get("dropped") or {}
        return self._trace(episode_id, dropped=sum(int(count) for count in dropped.values()))

    def lacks(self, trace: Trace, **row: float) -> str | None:
        """What a bag does not show of its episode, as `verify` will find it; None if nothing.

        A recorder that hung for a moment goes on as if nothing had been.

        Args:
            trace: The bag.
            row: Columns of its row.
        """
        try:
            return read_recorded(self.trial / trace.uri).doubt(row)
        except InputError as err:
            return f"cannot be read: {err}"

    def check(self) -> None:
        """Whether the bag that was begun can be written.

        Raises:
            TrialDirectoryError: If not; the message says why.
        """
        status = self.link.recorder
        if self._open is None or self._open != status.get("episode_id"):
            return
        if status.get("state") == "error":
            folder = self.trial / _uri(self._open)
            raise TrialDirectoryError(f"{folder}: cannot be recorded: {status.get('reason')}")

    def forget(self) -> None:
        """Tell the successor of a recorder that died that its episode is over.

        It hears the events of before, and would wait for an episode to go on that nobody plays.
        """
        if self._open is not None:
            self.link.event(event="end", episode_id=self._open, reason="the recorder died")
        self._open = None

    def rescue(self, episode_id: str) -> Trace | None:
        """What can be kept of a bag whose recorder died; None if there is nothing."""
        self._open = None
        if not (self.trial / _uri(episode_id)).is_dir():
            return None
        try:
            restore(self.trial / _uri(episode_id))
        except InputError:
            return None
        return self._trace(episode_id, recovered=True)

    def _trace(self, episode_id: str, *, recovered: bool = False, dropped: int = 0) -> Trace:
        uri = _uri(episode_id)
        return Trace(
            uri=uri,
            sha256=trace_digest(self.trial / uri),
            recovered=recovered,
            dropped=dropped,
        )

    def _state(self) -> str:
        return str(self.link.recorder.get("state", ""))

    def _await(self, episode_id: str, state: str, seconds: float) -> None:
        def is_there() -> bool:
            status = self.link.recorder
            return status.get("episode_id") == episode_id and status.get("state") in (
                state,
                "error",
            )

        if not self._wait(is_there, seconds):
            raise RobotLostError(f"the recorder does not say {state!r} within {seconds:g} s")
        self.check()

    def _wait(self, is_there: Callable[[], bool], seconds: float) -> bool:
        def look() -> bool:
            self.check_alive()
            return is_there()

        return self.link.wait(look, seconds)


def _uri(episode_id: str) -> str:
    return f"traces/{episode_id}"
