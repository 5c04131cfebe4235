"""Forces on balls that several levels share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robo_eval_sim.novelty.base import Effect

if TYPE_CHECKING:
    from robo_eval_sim.tasks.cartpole3d.scene import World
    from robo_eval_sim.tasks.cartpole3d.start import Vector3


def toward(point: Sequence[float], target: Sequence[float], size: float) -> Vector3:
    """A vector of this size from a point to a target; zero where both are the same place."""
    x, y, z = target[0] - point[0], target[1] - point[1], target[2] - point[2]
    distance = math.sqrt(x * x + y * y + z * z)
    if distance < 1e-9:
        return 0.0, 0.0, 0.0
    scale = size / distance
    return scale * x, scale * y, scale * z


def mean_point(points: Sequence[Sequence[float]]) -> Vector3:
    """The mean of at least one point."""
    n = len(points)
    return (
        sum(point[0] for point in points) / n,
        sum(point[1] for point in points) / n,
        sum(point[2] for point in points) / n,
    )


class BallPush(Effect[Any]):
    """A force on every ball in every tick; subclasses say which."""

    world: World

    def push(self, tick: int) -> None:
        """Push every ball."""
        world = self.world
        for index, force in enumerate(self.forces(world.ball_positions, tick)):
            world.push_ball(index, force)

    def forces(self, balls: Sequence[Vector3], tick: int) -> Sequence[Vector3]:
        """The force on each ball, newtons.

        Args:
            balls: Positions of the balls, metres.
            tick: Ticks that have passed; -1 in the hidden first one.
        """
        raise NotImplementedError
