"""What stands where on the table, seen from above, and what the arm can get to."""

from __future__ import annotations

import functools
import math
from typing import Final, NamedTuple

import numpy as np

from robo_eval.core.errors import InputError

REACH_M: Final = (0.28, 0.75)
"""How far from its base the arm brings a hand that points down, from the table to 0.25 m above."""
_HALF_M: Final = (0.01, 0.02)
"""Half edges of further things."""
_FIELD_M: Final = ((0.3, 0.65), (-0.3, 0.3))
"""Where they may stand, x and y."""
_GAP_M: Final = 0.003
_TRIES: Final = 20_000


class Footprint(NamedTuple):
    """A rectangle on the table.

    Attributes:
        x_m: Where its middle is.
        y_m: Where its middle is.
        turn_rad: How far it is turned about the vertical.
        half_m: Half of its edges, along x and y before it is turned.
    """

    x_m: float
    y_m: float
    turn_rad: float
    half_m: tuple[float, float]

    def grown(self, by_m: float) -> Footprint:
        """With so much more on every side."""
        return self._replace(half_m=(self.half_m[0] + by_m, self.half_m[1] + by_m))

    def overlaps(self, other: Footprint) -> bool:
        """Whether they share a place: no edge of either has them on different sides."""
        x, y = other.x_m - self.x_m, other.y_m - self.y_m
        if math.hypot(x, y) > math.hypot(*self.half_m) + math.hypot(*other.half_m):
            return False
        for one in (self, other):
            for angle in (one.turn_rad, one.turn_rad + math.pi / 2):
                apart = abs(x * math.cos(angle) + y * math.sin(angle))
                if apart > self._half_along(angle) + other._half_along(angle):
                    return False
        return True

    def _half_along(self, angle: float) -> float:
        cosine, sine = math.cos(angle - self.turn_rad), math.sin(angle - self.turn_rad)
        return self.half_m[0] * abs(cosine) + self.half_m[1] * abs(sine)


def is_reached(x_m: float, y_m: float) -> bool:
    """Whether the arm brings a hand that points down there."""
    return REACH_M[0] <= math.hypot(x_m, y_m) <= REACH_M[1]


@functools.lru_cache(maxsize=1)
def scattered(
    count: int, seed: int, taken: tuple[Footprint, ...]
) -> tuple[tuple[Footprint, ...], int]:
    """Where further things stand, which leave each other and what is taken free.

    Returns:
        The things, and how many places were drawn that were not free.

    Raises:
        InputError: If there is no room.
    """
    rng = np.random.default_rng(seed)
    found: list[Footprint] = []
    turned_down = 0
    while len(found) < count:
        half = float(rng.uniform(*_HALF_M))
        for _ in range(_TRIES):
            x, y = (float(rng.uniform(*ends)) for ends in _FIELD_M)
            place = Footprint(x, y, 0.0, (half, half))
            wide = place.grown(_GAP_M)
            if not any(wide.overlaps(other) for other in (*taken, *found)):
                break
            turned_down += 1
        else:
            raise InputError(f"reset: the table has no room for {count} things more")
        found.append(place)
    return tuple(found), turned_down
