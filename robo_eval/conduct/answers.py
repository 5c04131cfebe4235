"""When a robot did what it was asked: the time from a command to the state that shows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_ANSWER_S: Final = 1.0
"""A command that shows later than this was overtaken by others."""
_SETTLED: Final = 0.1
"""A state shows the last command if it is no further from it than this share of the way."""
_Values = NDArray[np.float64]


class Answers:
    """Finds of each command the first state that has gone half of the way to it.

    The way is from the command before, in the quantity that is commanded. Commands that change
    nothing, that others overtook, or that are not measured have no latency.

    Attributes:
        latencies_s: From each command to the state that shows it, seconds.

    Example:
        >>> answers = Answers()
        >>> for at_s, newtons in ((0.0, 0.0), (0.1, 8.0)):
        ...     answers.asked([newtons], at_s)
        >>> for at_s, newtons in ((0.09, 0.0), (0.11, 1.0), (0.13, 7.0)):
        ...     answers.shown([newtons], at_s)
        >>> [round(seconds, 3) for seconds in answers.latencies_s]
        [0.03]
    """

    def __init__(self) -> None:
        self.latencies_s: list[float] = []
        self._open: deque[tuple[float, _Values, _Values]] = deque()
        self._command: _Values | None = None
        self._state: _Values = np.array(np.nan)

    def asked(self, command: Sequence[float], at_s: float) -> None:
        """A command went out; one number a joint."""
        before, self._command = self._command, np.array(command)
        if before is not None and (before != self._command).any():
            self._open.append((at_s, before, self._command))

    def shown(self, state: Sequence[float | None], at_s: float) -> None:
        """A state arrived, by the same clock; None or NaN for a joint that is not measured."""
        before, self._state = self._state, np.array(state, dtype=np.float64)
        while self._open and self._open[0][0] < at_s - _ANSWER_S:
            self._open.popleft()
        for place, (asked_s, old, new) in enumerate(self._open):
            if _way(self._state, old, new) >= 0.5 > _way(before, old, new):
                self.latencies_s.append(at_s - asked_s)
                for _ in range(place + 1):
                    self._open.popleft()
                return
        if self._open and abs(_way(self._state, *self._open[-1][1:]) - 1.0) < _SETTLED:
            self._open.clear()


def _way(state: _Values, old: _Values, new: _Values) -> float:
    """Which share of the way from one command to the next a state has gone.

    Example:
        >>> _way(np.array([2.0, 0.0]), np.array([0.0, 0.0]), np.array([4.0, 0.0]))
        0.5
    """
    with np.errstate(all="ignore"):  # squares of the smallest ways are 0: nobody sees half of them
        return float(np.sum((state - old) * (new - old)) / np.sum((new - old) ** 2))
