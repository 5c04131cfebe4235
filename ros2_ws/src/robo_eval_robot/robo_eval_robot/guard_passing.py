"""How a request that passed goes out: in a thread of its own, which no stop waits for."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Final

_PATIENCE_S: Final = 0.005
"""How long a stop command waits for a request that is just being sent, so that none comes after."""


class Passing:
    """Sends commands in their order, until a stop takes their place.

    Args:
        send: Publishes a command; it may block.
        age_s: Oldest command that is still sent.
    """

    def __init__(self, send: Callable[[Sequence[float]], None], age_s: float) -> None:
        self._send = send
        self._age_s = age_s
        self._waiting: SimpleQueue[tuple[float, Sequence[float]]] = SimpleQueue()
        self._sending = threading.Lock()
        self._overtaken = -math.inf
        self._since: float | None = None
        threading.Thread(target=self._pass_on, daemon=True).start()

    def put(self, command: Sequence[float], now: float) -> None:
        """Have a command sent.

        Args:
            command: What to send.
            now: Monotonic time, s.
        """
        self._waiting.put((now, command))

    @contextmanager
    def overtaken(self) -> Iterator[None]:
        """Forget what waits, and send something else meanwhile."""
        self._overtaken = time.monotonic()
        is_mine = self._sending.acquire(timeout=_PATIENCE_S)
        try:
            yield
        finally:
            if is_mine:
                self._sending.release()

    def blocked_s(self, now: float) -> float:
        """How long a command has been on its way; 0 if none is.

        Args:
            now: Monotonic time, s.
        """
        since = self._since
        return 0.0 if since is None else now - since

    def _pass_on(self) -> None:
        while True:
            at, command = self._waiting.get()
            with self._sending:
                self._since = time.monotonic()
                if at > max(self._since - self._age_s, self._overtaken):
                    self._send(command)
                self._since = None
