"""Level 14: a wind blows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Effect, Fixed, Level, Novelty, novelty
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.physics import CART_HEIGHT_M, CART_SHAPE_Z_M, POLE_FOOT_M

if TYPE_CHECKING:
    import numpy as np

    from robo_eval_sim.tasks.cartpole3d.scene import World
    from robo_eval_sim.tasks.cartpole3d.start import Vector3

AIR_KG_M3 = 1.225
ROOM_HEIGHT_M = 10.0
_POWER = 1.0 / 7.0
"""Mean speed in a turbulent channel grows about with this power of the distance to the wall."""
_BALL_DRAG = 0.47
_BLUFF_DRAG = 1.0

# What the reference does to balls: ten cells around the centre each count fully, and the drag
# coefficient and a factor are both a half.
_COMPAT_CELLS = 10
_COMPAT_CELL_M = 0.05
_COMPAT_BALL_N = 0.5 * AIR_KG_M3 * 0.5 * math.pi * 0.5**2 * 0.5
_COMPAT_CART_N = 5.0 / 16.0**2
"""Force on the cart per square of the wind's x component: 1.4 to 4.8 N were measured at a peak
of 16 m/s, 2.2 to 7.5 N at 20 m/s, for four directions."""


def wind_speed(peak_m_s: float, z_m: float) -> float:
    """Speed of the wind at a height: 0 at floor and ceiling, its peak half way.

    Example:
        >>> round(wind_speed(10.0, 5.0), 6), round(wind_speed(10.0, 0.2), 2)
        (10.0, 6.31)
    """
    wall_m = max(0.0, min(z_m, ROOM_HEIGHT_M - z_m))
    return peak_m_s * math.pow(2.0 * wall_m / ROOM_HEIGHT_M, _POWER)


def drag(air: Vector3, velocity: Sequence[float], coefficient: float, area_m2: float) -> Vector3:
    """Force of moving air on a moving body, newtons."""
    x, y, z = air[0] - velocity[0], air[1] - velocity[1], air[2] - velocity[2]
    scale = 0.5 * AIR_KG_M3 * coefficient * area_m2 * math.sqrt(x * x + y * y + z * z)
    return scale * x, scale * y, scale * z


class _Wind(Effect[Any]):
    def __init__(self, drawn: Novelty, world: World) -> None:
        super().__init__(drawn, world)
        angle = drawn.parameters["direction"]
        self._peak = drawn.parameters["peak_speed"]
        self._toward = (-math.sin(angle), math.cos(angle))

    def push(self, tick: int) -> None:
        del tick
        if self.drawn.is_paper:
            self._blow()
        else:
            self._blow_as_the_reference()

    def _air(self, z_m: float) -> Vector3:
        speed = wind_speed(self._peak, z_m)
        return speed * self._toward[0], speed * self._toward[1], 0.0

    def _blow(self) -> None:
        world = self.world
        radius = world.physics.ball_radius_m
        area = math.pi * radius * radius
        for index, (at, velocity) in enumerate(
            zip(world.ball_positions, world.ball_velocities, strict=True)
        ):
            world.push_ball(index, drag(self._air(at[2]), velocity, _BALL_DRAG, area))
        cart_area = 2.0 * NOMINAL.cart_radius_m * CART_HEIGHT_M
        cart_air = self._air(CART_SHAPE_Z_M)
        world.push_cart(drag(cart_air, world.cart_velocity, _BLUFF_DRAG, cart_area))
        length = world.physics.pole_length_m
        at, velocity = world.pole_point(POLE_FOOT_M + length / 2.0)
        pole_area = 2.0 * NOMINAL.pole_radius_m * length
        world.push_pole(drag(self._air(at[2]), velocity, _BLUFF_DRAG, pole_area), at)

    def _blow_as_the_reference(self) -> None:
        world = self.world
        for index, at in enumerate(world.ball_positions):
            squares = _squares_around(self._peak, at[2])
            # The sign of the wind is lost, and the ball's own frame is turned half round.
            world.push_ball(
                index,
                (
                    -_COMPAT_BALL_N * squares * self._toward[0] ** 2,
                    -_COMPAT_BALL_N * squares * self._toward[1] ** 2,
                    0.0,
                ),
            )
        u_x = self._peak * self._toward[0]
        world.push_cart((_COMPAT_CART_N * u_x * abs(u_x), 0.0, 0.0))


def _squares_around(peak_m_s: float, z_m: float) -> float:
    """Sum of squared speeds in the cells within 0.25 m of a height."""
    first = z_m - (_COMPAT_CELLS - 1) / 2.0 * _COMPAT_CELL_M
    return sum(
        wind_speed(peak_m_s, first + cell * _COMPAT_CELL_M) ** 2 for cell in range(_COMPAT_CELLS)
    )


@novelty("wind", level=14, words=("location", "force", "increase"))
class Wind(Level):
    """A horizontal wind that is weaker near floor and ceiling."""

    effects: ClassVar = {
        Profile.PAPER: "a horizontal wind drags balls, cart and pole",
        Profile.COMPAT: "a wind pushes balls into one corner, and the cart along x",
    }
    tables: ClassVar = {
        Profile.PAPER: {
            Difficulty.EASY: {"peak_speed": Fixed(6.0, "m/s")},
            Difficulty.MEDIUM: {"peak_speed": Fixed(8.0, "m/s")},
            Difficulty.HARD: {"peak_speed": Fixed(10.0, "m/s")},
        },
        Profile.COMPAT: {
            Difficulty.EASY: {"peak_speed": Fixed(16.0, "m/s")},
            Difficulty.MEDIUM: {"peak_speed": Fixed(18.0, "m/s")},
            Difficulty.HARD: {"peak_speed": Fixed(20.0, "m/s")},
        },
    }
    effect: ClassVar = _Wind

    def sample(
        self, difficulty: Difficulty, profile: Profile, rng: np.random.Generator, *, balls: int
    ) -> dict[str, Any]:
        """The peak, and one direction: an angle from +y to -x, radians."""
        drawn = super().sample(difficulty, profile, rng, balls=balls)
        return {**drawn, "direction": float(rng.uniform(0.0, 2.0 * math.pi))}
