"""How much of the server each team and each address may ask for, so that others get their share."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Final

_MOST_S: Final = 30.0
_MOST_KNOWN: Final = 10_000


class Budget:
    """So much a second for each who asks; what was not used for a while may come at once.

    Args:
        per_s: How much; None sets no limit.
        burst: How much may come at once.
        most_s: Who would have to wait longer is refused.
    """

    def __init__(self, per_s: float | None, burst: float, most_s: float = _MOST_S) -> None:
        self.per_s = per_s
        self._burst = burst
        self._most_s = most_s
        self._free_s: dict[str, float] = {}

    def take(self, who: str, n: float = 1.0) -> float:
        """Take some of it; how long that has to be waited for, seconds.

        Nothing is taken where that is longer than anybody waits.
        """
        if self.per_s is None:
            return 0.0
        now_s = time.monotonic()
        full_s = now_s - self._burst / self.per_s
        if len(self._free_s) > _MOST_KNOWN:  # who has all of it again need not be known
            self._free_s = {one: at for one, at in self._free_s.items() if at > full_s}
        free_s = max(self._free_s.get(who, full_s), full_s)
        if free_s - now_s <= self._most_s:
            self._free_s[who] = free_s + n / self.per_s
        return max(0.0, free_s - now_s)

    async def turn(self, who: str, n: float = 1.0) -> bool:
        """Wait until so much is due; False, after a while, to whom it would take too long."""
        wait_s = self.take(who, n)
        if wait_s:
            await asyncio.sleep(min(wait_s, self._most_s))
        return wait_s <= self._most_s


def paced(per_s: float | None) -> Budget:
    """What holds teams to a number of steps a second on the average; nobody is refused by it."""
    return Budget(per_s, per_s or 0.0, math.inf)


ASKED: Final = (20.0, 100.0)
"""Requests over HTTP of an address: a second, and at once."""
CONNECTED: Final = (10.0, 50.0)
"""Connections that a team opens, or an address without a token that is known."""
CONNECTED_TRIALS: Final = 400
"""A team counts twice that has twice as many trials to be looked through."""
REHEARSED: Final = (1.0, 10.0)
"""Rehearsals of a team; those whose worlds take longer to make count more."""
REHEARSED_S: Final = 0.05
"""A rehearsal whose worlds take so long to make counts once."""
CONTROLLED: Final = (10.0, 100.0)
"""Pings, pongs and small parts of messages of a connection."""
