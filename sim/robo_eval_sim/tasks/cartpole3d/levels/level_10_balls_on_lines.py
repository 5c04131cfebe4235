"""Level 10: balls slide on fixed horizontal lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Level, Novelty, Range, both, novelty
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.physics import CORRECT, REFERENCE, Physics
from robo_eval_sim.tasks.cartpole3d.start import Ball, Start, is_clear

if TYPE_CHECKING:
    import numpy as np

_ON_RAILS = Physics(ball_kind="rail")
_REACH_M = NOMINAL.arena_half_width_m - NOMINAL.ball_radius_m
_COMPAT_Z_M = (0.0, 2.0)
_TRIES = 2000


def _as_the_reference(angle: float) -> float:
    """Which way the quaternion (0, 0, angle, 1) turns once it is normalised."""
    return 2.0 * math.atan(angle)


@novelty("balls_on_lines", level=10, words=("block", "direction", None))
class BallsOnLines(Level):
    """Each ball has its line; walls send it back along it.

    The reference misses the intended distances and its own room (a quaternion is not
    normalised) and reports wrong positions and no velocity. Where its lines lie is repeated if
    that is asked for.

    Attributes:
        lines: `correct`, or `reference`: turned to twice the arc tangent of the drawn angle.
    """

    lines: str = CORRECT

    effects: ClassVar = {
        Profile.PAPER: "balls slide on horizontal lines at their radius above the floor's zero",
        Profile.COMPAT: "balls slide on horizontal lines between 0 and 2 m high",
    }
    span: ClassVar = (0.1, 4.0)  # farther away there may be no room for a line
    tables: ClassVar = both(
        {
            Difficulty.EASY: {
                "line_distance": Range(3.0, 4.0, "m"),
                "speed": Range(6.0, 10.0, "m/s"),
            },
            Difficulty.MEDIUM: {
                "line_distance": Range(2.0, 3.0, "m"),
                "speed": Range(6.0, 10.0, "m/s"),
            },
            Difficulty.HARD: {
                "line_distance": Range(1.5, 2.0, "m"),
                "speed": Range(6.0, 10.0, "m/s"),
            },
        }
    )

    def sample(
        self, difficulty: Difficulty, profile: Profile, rng: np.random.Generator, *, balls: int
    ) -> dict[str, list[float]]:
        """Draw distance and speed of each ball."""
        table = self.tables[profile][difficulty]
        return {
            name: [float(entry.draw(rng)) for _ in range(balls)] for name, entry in table.items()
        }

    def arrange(
        self, start: Start, drawn: Novelty, rng: np.random.Generator, *, balls: int | None
    ) -> None:
        """Put each ball on a line of its own."""
        del balls
        placed: list[Ball] = []
        turn = _as_the_reference if self.lines == REFERENCE else float
        for distance, speed in zip(
            drawn.parameters["line_distance"], drawn.parameters["speed"], strict=True
        ):
            z = NOMINAL.ball_radius_m if drawn.is_paper else float(rng.uniform(*_COMPAT_Z_M))
            placed.append(_on_a_line(start.cart_position, distance, speed, z, placed, rng, turn))
        start.balls[:] = placed

    def physics(self, drawn: Novelty) -> Physics:
        """Balls on rails."""
        del drawn
        return _ON_RAILS


def _on_a_line(
    cart: tuple[float, float],
    distance: float,
    speed: float,
    z: float,
    others: list[Ball],
    rng: np.random.Generator,
    turn: Callable[[float], float],
) -> Ball:
    """A ball on a line that passes the cart at this distance, within the room.

    About the ball it is then turned, which leaves the distance to chance.
    """
    for _ in range(_TRIES):
        angle, along = float(rng.uniform(-math.pi, math.pi)), float(rng.uniform(-1.0, 1.0))
        dx, dy = math.cos(angle), math.sin(angle)
        # Nearest point of the line to the cart, which is to be in the room as well.
        x, y = cart[0] - distance * dy, cart[1] + distance * dx
        if max(abs(x), abs(y)) > _REACH_M:
            continue
        step = along * 2.0 * _REACH_M * math.sqrt(2.0)
        at = (x + step * dx, y + step * dy, z)
        is_inside = max(abs(at[0]), abs(at[1])) <= _REACH_M
        if is_inside and is_clear(at, cart, others, 2.0 * NOMINAL.ball_radius_m):
            dx, dy = math.cos(turn(angle)), math.sin(turn(angle))
            return Ball(position=at, velocity=(speed * dx, speed * dy, 0.0))
    raise InputError(f"balls: there is no room for {len(others) + 1} balls on lines")
