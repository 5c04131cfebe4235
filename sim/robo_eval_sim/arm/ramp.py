"""How the motors of the arm get up to speed and stop: within the Panda's limits."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robo_eval_sim.arm.layout import (
    ACCELERATION_RAD_S2,
    FASTEST_RAD_S,
    FINGER_SPEED_M_S,
    SUBSTEPS,
    TICK_S,
)

Array: TypeAlias = NDArray[np.float64]
Wish: TypeAlias = tuple[Array, Array | None]
"""Positions of 7 joints and 2 fingers to go to, and speeds of the joints on the way.

Without speeds the joints go as fast as they may so that they arrive together.
"""
STEP_S: Final = TICK_S / SUBSTEPS
"""Period of the engine."""
_SHARE: Final = 0.95
"""Of Franka's limits that is asked for, where the engine may miss it by some per cent."""
_ACCELERATION: Final = _SHARE * np.array(ACCELERATION_RAD_S2)
_CALM: Final = 0.7
"""Of that acceleration where speeds are given: more of all joints at once than the wrist can do."""
_GIVEN_RAD_S: Final = 0.9 * FASTEST_RAD_S
"""Greatest speed of joints whose speeds are given.

Nearer to its own bound the engine cuts off what gravity would add in a step, which shakes the arm.
"""
_EARLY: Final = 0.3
"""Of what is left of it by which stops at the end of a range are planned: the rest is a reserve."""
_FINGER_M_S: Final = _SHARE * FINGER_SPEED_M_S
_LEAST_RAD: Final = 1e-9
_COUNTED: Final = np.arange(1.0, SUBSTEPS + 1.0)[:, None]


def ramp(wish: Wish, at: Array, speed: Array, substeps: int) -> list[list[float]]:
    """Speeds in the next steps of the engine that bring joints and fingers nearer to a wish.

    The speeds of the joints change evenly, so that from one step to the next they stay within the
    limits of acceleration and of jerk, too; where speeds are given, far within them. Franka gives
    no acceleration of the fingers: theirs change at once.

    Args:
        wish: What is wanted.
        at: Where 7 joints and 2 fingers are, rad and m.
        speed: How fast they are, rad/s and m/s.
        substeps: How many steps; as many as the wish is followed before it is looked at again.
    """
    period, now, most = substeps * STEP_S, speed[:7], wish[1]
    left = wish[0] - at
    way, change = left[:7], _ACCELERATION * period
    if most is None:
        most, braking = _together(way, now, change, substeps), change
    else:
        most, change = np.minimum(most, _GIVEN_RAD_S), _CALM * change
        braking = _EARLY * change
    then = np.minimum(np.maximum(_stoppable(way, now, braking, substeps), -most), most)
    then = np.minimum(np.maximum(then, now - change), now + change)
    found = np.empty((substeps, 9))
    found[:, :7] = now + _COUNTED[:substeps] * ((then - now) / substeps)
    found[:, 7:] = np.minimum(np.maximum(left[7:] / period, -_FINGER_M_S), _FINGER_M_S)
    return found.tolist()


def _stoppable(left: Array, speed: Array | float, change: Array, substeps: int) -> Array:
    """Speeds after the next steps from which joints can stop just where a way that is left ends.

    From there on they need `n` times as many steps to stop, as few as the greatest change of speed
    in so many steps allows.
    """
    ahead = left * (2.0 / (substeps * STEP_S)) - speed * (1.0 - 1.0 / substeps)
    n = np.ceil(np.sqrt(abs(ahead) / change + 0.25) - 0.5)
    return ahead / (1.0 + np.maximum(n, 1.0))


def _together(left: Array, speed: Array, change: Array, substeps: int) -> Array:
    """Greatest speeds of joints of which each does the same share of its way that is left."""
    way = np.maximum(abs(left), _LEAST_RAD)
    toward = np.maximum(speed * np.sign(left), 0.0) + change
    able = np.minimum(_stoppable(way, 0.0, change, substeps), toward)
    return way * (np.minimum(able, FASTEST_RAD_S) / way).min()  # type: ignore[no-any-return]
