"""How a request that passed goes out: in a thread of its own, which no stop waits for."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

_WAITING: Final = 10
"""As many as requests may wait to be judged."""
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
        self._waiting: deque[tuple[float, Sequence[float]]] = deque(maxlen=_WAITING)
        self._news = threading.Condition()
        self._sending = threading.Lock()
        self._since: float | None = None
        threading.Thread(target=self._pass_on, daemon=True).start()

    def put(self, command: Sequence[float], now: float) -> None:
        """Have a command sent.

        Args:
            command: What to send.
            now: Monotonic time, s.
        """
        with self._news:
            self._waiting.append((now, command))
            self._news.notify()

    @contextmanager
    def overtaken(self) -> Iterator[None]:
        """Forget what waits, and send something else meanwhile."""
        with self._news:
            self._waiting.clear()
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
            with self._news:
                self._news.wait_for(lambda: self._waiting)
            with self._sending:
                with self._news:
                    at, command = self._waiting.popleft() if self._waiting else (-math.inf, ())
                self._since = time.monotonic()
                if self._since - at <= self._age_s:
                    self._send(command)
                self._since = None
