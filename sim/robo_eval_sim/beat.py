"""Whether a policy is being asked right now: counted in memory that another process watches."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

CELLS: Final = 6
_COUNT, _KIND, _FIRST, _STOP, _START_NS, _TICK_NS = range(CELLS)


class Asked(IntEnum):
    """What a policy is asked for."""

    MAKE = 0
    RESET = 1
    ACT = 2
    DECLARE = 3


class Beat:
    """Counts beginning and end of every call of a policy: odd means that one is under way.

    Who watches the count sees how long a call takes, and no message is needed for a step.

    Args:
        cells: Memory that both processes see, an array of `CELLS` c_uint64; none if nobody watches.
    """

    def __init__(self, cells: Any = None) -> None:
        # A view of the memory takes half as long to write to as the array itself.
        self._cells = [0] * CELLS if cells is None else memoryview(cells).cast("B").cast("Q")

    @property
    def count(self) -> int:
        """Beginnings and ends of calls so far."""
        count: int = self._cells[_COUNT]
        return count

    @property
    def asked(self) -> Asked | None:
        """What the policy is being asked for; None while it is not, as in a step of the world."""
        return Asked(self._cells[_KIND]) if self.count % 2 else None

    @property
    def ticks(self) -> int:
        """Ticks of the episode that are over."""
        if self._cells[_KIND] not in (Asked.ACT, Asked.DECLARE):
            return 0
        ticks: int = (self.count - self._cells[_FIRST] - 1) // 2
        return max(0, ticks)

    def begin(self, start_ns: int, tick_s: float | None) -> None:
        """An episode begins.

        Args:
            start_ns: When, UTC.
            tick_s: How long a tick is; None if the world does not say.
        """
        self._cells[_START_NS] = start_ns
        self._cells[_TICK_NS] = round((tick_s or 0.0) * 1e9)

    def so_far(self) -> dict[str, float]:
        """Start, ticks and duration of the episode under way, as a row says them."""
        start_ns: int = self._cells[_START_NS] or time.time_ns()
        tick_ns: int = self._cells[_TICK_NS]
        lasted_ns = self.ticks * tick_ns if tick_ns else time.time_ns() - start_ns
        return {"start_ns": start_ns, "ticks": self.ticks, "duration_s": max(0, lasted_ns) / 1e9}

    @property
    def stops(self) -> bool:
        """Whether no further episode is to begin."""
        return bool(self._cells[_STOP])

    def stop(self) -> None:
        """Begin no further episode."""
        self._cells[_STOP] = 1

    def ask(self, kind: Asked, call: Callable[..., Any], **given: object) -> Any:
        """Call a policy; the count stays odd if it raises, so that one knows who did."""
        self._cells[_KIND] = kind
        self._cells[_COUNT] += 1
        answer = call(**given)
        self._cells[_COUNT] += 1
        return answer

    def acting(self, act: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The same function, counted: what a step costs more is two writes to memory."""
        cells = self._cells
        cells[_KIND] = Asked.ACT
        count = cells[_FIRST] = self.count

        def counted(observation: Any) -> Any:
            nonlocal count
            cells[_COUNT] = count + 1
            answer = act(observation)
            count += 2
            cells[_COUNT] = count
            return answer

        return counted

    def rest(self) -> None:
        """The policy is not being asked any more, whatever it did."""
        self._cells[_KIND] = Asked.MAKE
        self._cells[_START_NS] = 0
        self._cells[_COUNT] += self.count % 2
