"""Drawing the starts of level-0 episodes; levels change them afterwards.

The same generator draws the same start whatever the level, which changes only what it says, so that
a level-0 episode with the same seed is a matched control.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Profile
from robo_eval_sim.tasks.cartpole3d.layout import BALL_COUNT, BALL_WIDTH, FIRST_BALL, NOMINAL
from robo_eval_sim.tasks.cartpole3d.start import (
    BALL_COUNTS,
    BALL_SPEED_M_S,
    BALL_XY_M,
    BALL_Z_M,
    CART_CLEARANCE_M,
    CART_FORCE_N,
    CART_RANGE_M,
    POLE_QUAT_PART,
    POLE_RATE_RAD_S,
    Row,
    Vector3,
    pole_frame,
)

_HEAD: Final = 11
_PER_BALL: Final = 9
_ROW: Final = 9
"""Where a start's row begins among what is drawn together."""
_COUNTED: Final = _ROW + BALL_COUNT
_BALLS: Final = _ROW + FIRST_BALL
_FEWEST, _MOST = 64, 1024
"""Starts drawn at a time."""
_TRIES: Final = 1000


Drawn = tuple[Row, tuple[float, float], int, tuple[Vector3, Vector3]]
"""The start of a level-0 episode as it is drawn, not a class for the sake of speed.

In turn: its numbers in the order of the observation; force on the cart during the hidden first
tick, x, y in newtons; seed of what the level draws; direction of the pole, and its angular velocity
in its own axes.
"""


class Starts:
    """The starts of an environment's episodes, one after the other.

    Args:
        balls: Number of balls; none draws it.
        profile: In the `paper` profile balls do not overlap each other.
    """

    __slots__ = ("_at_once", "_balls", "_clearance", "_left", "_most", "_rng", "_table")

    def __init__(self, balls: int | None = None, profile: Profile = Profile.PAPER) -> None:
        self._balls = balls
        self._most = BALL_COUNTS[-1] if balls is None else balls
        self._clearance = 2.0 * NOMINAL.ball_radius_m if profile is Profile.PAPER else 0.0
        self._rng: np.random.Generator | None = None
        self._table = np.empty((0, 0))
        self._left = 0
        self._at_once = _FEWEST

    def take(self, rng: np.random.Generator, is_fresh: bool = True) -> Drawn:  # noqa: FBT001, FBT002
        """The next start.

        Just after a seed one start is drawn. Later ones are drawn together, more and more of them,
        which takes a third of the time for each.

        Args:
            rng: Where randomness comes from.
            is_fresh: Whether the generator was just seeded, so that nothing of it is left.

        Raises:
            InputError: If there is no room for so many balls.
        """
        if is_fresh or rng is not self._rng:
            self._rng, self._left, self._at_once = rng, 0, _FEWEST
            u = rng.random(_HEAD + _PER_BALL * self._most).tolist()
            return draw_start(rng, u, balls=self._balls, clearance=self._clearance)
        if not self._left:
            u = rng.random((_HEAD + _PER_BALL * self._most, self._at_once))
            self._table = _draw_starts(rng, u, self._balls, self._clearance)
            self._left, self._at_once = self._at_once, min(2 * self._at_once, _MOST)
        self._left -= 1
        drawn = self._table[self._left].tolist()
        row = drawn[_ROW : _BALLS + BALL_WIDTH * int(drawn[_COUNTED])]
        up, turning = drawn[3:6], drawn[6:9]
        return tuple(row), (drawn[0], drawn[1]), int(drawn[2]), (tuple(up), tuple(turning))


def draw_start(
    rng: np.random.Generator, u: Sequence[float], *, balls: int | None, clearance: float
) -> Drawn:
    """One start from uniform numbers.

    In plain Python: for a single start NumPy takes twice as long, the more so as the processor has
    forgotten its code during the last episode.

    Args:
        rng: Where further numbers come from if a ball must be drawn again.
        u: Uniform numbers in [0, 1), 11 and 9 for each ball that there can be.
        balls: Number of balls; none draws it.
        clearance: Least distance between the centres of two balls, metres.

    Raises:
        InputError: If there is no room for so many balls.
    """
    scale, offset = _scale_and_offset(len(u))
    numbers = [x * k + d for x, k, d in zip(u, scale, offset, strict=True)]
    x, y, force_x, force_y, a, b, c, rate_x, rate_y, choice, seed = numbers[:_HEAD]
    count = BALL_COUNTS[int(choice)] if balls is None else balls
    norm = math.sqrt(a * a + b * b + c * c + 1.0)
    row = [x, y, 0.0, 0.0, a / norm, b / norm, c / norm, 1.0 / norm, rate_x, rate_y, 0.0]
    row.append(float(count))
    for i in range(_HEAD, _HEAD + _PER_BALL * count, _PER_BALL):
        p, q, r, vx, vy, vz, sx, sy, sz = numbers[i : i + _PER_BALL]
        row += [p, q, r]
        row += [-vx if sx >= 0.5 else vx, -vy if sy >= 0.5 else vy, -vz if sz >= 0.5 else vz]
    _clear(rng, row, clearance)
    return tuple(row), (force_x, force_y), int(seed), pole_frame(row)


def _draw_starts(
    rng: np.random.Generator, u: NDArray[np.float64], balls: int | None, clearance: float
) -> NDArray[np.float64]:
    """As `draw_start` of each column of `u`, with the same bits.

    Returns:
        Force, level's seed, frame and row of each start, shape (N, 21 + 6 B). Numbers of balls that
        are not there follow those of balls that are.
    """
    scale, offset = map(np.array, _scale_and_offset(len(u)))
    numbers = u * scale[:, None]
    numbers += offset[:, None]
    x, y, force_x, force_y, a, b, c, rate_x, rate_y, choice, seed = numbers[:_HEAD]
    norm = np.sqrt(a * a + b * b + c * c + 1.0)
    still = np.zeros_like(x)
    count = still + balls if balls is not None else np.array(BALL_COUNTS)[choice.astype(np.int64)]
    row = [x, y, still, still, a / norm, b / norm, c / norm, 1.0 / norm, rate_x, rate_y, still]
    parts = numbers[_HEAD:].reshape(-1, _PER_BALL, u.shape[1])
    parts[:, 3:6] *= np.where(parts[:, 6:9] >= 0.5, -1.0, 1.0)
    up, turning = pole_frame(row)
    head = [force_x, force_y, seed, *up, *turning, *row, count]
    balls_drawn = parts[:, :BALL_WIDTH].reshape(-1, u.shape[1])
    drawn = np.concatenate([head, balls_drawn])
    table = np.ascontiguousarray(drawn.T)
    is_bad = _are_bad(drawn[_ROW:], clearance)
    n, starts = is_bad.nonzero()
    # Balls come in order: from the end, the first of each start is the one that stays.
    first = dict(zip(starts[::-1].tolist(), n[::-1].tolist(), strict=True))
    for start, n in sorted(first.items()):
        placed = table[start, _ROW:].tolist()
        del placed[FIRST_BALL + BALL_WIDTH * int(placed[BALL_COUNT]) :]
        for i in _clear(rng, placed, clearance, FIRST_BALL + BALL_WIDTH * n):
            table[start, _ROW + i : _ROW + i + 3] = placed[i : i + 3]
    return table


def _clear(
    rng: np.random.Generator, row: list[float], clearance: float, first: int = FIRST_BALL
) -> list[int]:
    """Draw balls of a row again until they are as `is_clear` wants them.

    Args:
        rng: Where further numbers come from.
        row: Numbers of a start; positions in it are changed.
        clearance: Least distance between the centres of two balls, metres.
        first: Where in the row the first ball begins that may have to move.

    Returns:
        Where the balls that moved are in the row.
    """
    moved = []
    for i in range(first, len(row), BALL_WIDTH):
        if _is_clear(row, i, clearance):
            continue
        moved.append(i)
        for _ in range(_TRIES):
            a, b, c = rng.random(3).tolist()
            row[i : i + 3] = a * _XY[0] + _XY[1], b * _XY[0] + _XY[1], c * _Z[0] + _Z[1]
            if _is_clear(row, i, clearance):
                break
        else:
            n = (i - FIRST_BALL) // BALL_WIDTH
            raise InputError(f"balls: there is no room for more than {n} of them")
    return moved


def _is_clear(row: list[float], i: int, clearance: float) -> bool:
    """Whether the ball at a place in a row is far enough from the cart and balls before it."""
    p, q, r = row[i : i + 3]
    a, b = p - row[0], q - row[1]
    if a * a + b * b < CART_CLEARANCE_M * CART_CLEARANCE_M:
        return False
    if clearance:
        for j in range(FIRST_BALL, i, BALL_WIDTH):
            a, b, c = p - row[j], q - row[j + 1], r - row[j + 2]
            if a * a + b * b + c * c < clearance * clearance:
                return False
    return True


def _are_bad(rows: NDArray[np.float64], clearance: float) -> NDArray[np.bool_]:
    """Which balls are not as `_is_clear` wants them, shape (B, N) for N columns of `rows`."""
    at = rows[FIRST_BALL:].reshape(-1, BALL_WIDTH, rows.shape[1])[:, :3]
    n = len(at)
    a, b = at[:, 0] - rows[0], at[:, 1] - rows[1]
    is_bad = a * a + b * b < CART_CLEARANCE_M * CART_CLEARANCE_M
    for j in range(1, n):
        a, b, c = (at[j] - at[:j]).swapaxes(0, 1)
        is_bad[j] |= (a * a + b * b + c * c < clearance * clearance).any(axis=0)
    result: NDArray[np.bool_] = is_bad & (np.arange(n)[:, None] < rows[BALL_COUNT])
    return result


@functools.cache
def _scale_and_offset(size: int) -> tuple[Row, Row]:
    """What turns so many uniform numbers into metres, newtons and so on."""
    head = [*_CART, *_CART, *_PUSH, *_PUSH, *_TURN, *_TURN, *_TURN, *_RATE, *_RATE, *_COUNT, *_SEED]
    ball = [*_XY, *_XY, *_Z, *_SPEED, *_SPEED, *_SPEED, *_SIGN, *_SIGN, *_SIGN]
    both = head + ball * ((size - _HEAD) // _PER_BALL)
    return tuple(both[::2]), tuple(both[1::2])


def _about(reach: float) -> tuple[float, float]:
    """Scale and offset of what lies between minus and plus a value."""
    return 2.0 * reach, -reach


_CART: Final = _about(CART_RANGE_M)
_PUSH: Final = _about(CART_FORCE_N)
_TURN: Final = _about(POLE_QUAT_PART)
_RATE: Final = _about(POLE_RATE_RAD_S)
_COUNT: Final = (len(BALL_COUNTS), 0.0)
_SEED: Final = (2.0**53, 0.0)
_XY: Final = _about(BALL_XY_M)
_Z: Final = (BALL_Z_M[1] - BALL_Z_M[0], BALL_Z_M[0])
_SPEED: Final = (BALL_SPEED_M_S[1] - BALL_SPEED_M_S[0], BALL_SPEED_M_S[0])
_SIGN: Final = (1.0, 0.0)
