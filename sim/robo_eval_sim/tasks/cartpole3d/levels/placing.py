"""Where balls are put at the start when a level does not leave them where they were drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robo_eval.core.errors import InputError
from robo_eval_sim.tasks.cartpole3d.start import (
    CART_CLEARANCE_M,
    Ball,
    Start,
    Vector3,
    ball_position,
    is_clear,
)

if TYPE_CHECKING:
    import numpy as np

_TRIES = 2000


def place(
    start: Start,
    rng: np.random.Generator,
    count: int,
    *,
    radius: float,
    cart_clearance: float = CART_CLEARANCE_M,
    z: float | None = None,
) -> None:
    """Give a start this many balls, none of which touches a wall, another ball or the cart.

    A ball that is already somewhere allowed stays there.

    Args:
        start: The start to change.
        rng: Where new places come from.
        count: Number of balls.
        radius: Their radius, metres.
        cart_clearance: Least horizontal distance to the centre of the cart, metres.
        z: Height of all centres, metres; none keeps the drawn height.

    Raises:
        InputError: If there is no room for so many.
    """
    placed: list[Ball] = []
    for index in range(count):
        known = start.balls[index] if index < len(start.balls) else None
        velocity = known.velocity if known else (0.0, 0.0, 0.0)
        position = _level(known.position if known else _somewhere(rng, radius), z)
        tries = 0
        while not _fits(position, start, placed, radius, cart_clearance, z):
            tries += 1
            if tries > _TRIES:
                raise InputError(f"balls: there is no room for {count} of radius {radius:g} m")
            position = _level(_somewhere(rng, radius), z)
        placed.append(Ball(position=position, velocity=velocity))
    start.balls[:] = placed


def _fits(
    position: Vector3,
    start: Start,
    placed: list[Ball],
    radius: float,
    cart_clearance: float,
    z: float | None,
) -> bool:
    inside = ball_position([1.0, 1.0, 1.0], radius)
    floor = ball_position([0.0, 0.0, 0.0], radius)
    if max(abs(position[0]), abs(position[1])) > inside[0]:
        return False
    if z is None and not floor[2] <= position[2] <= inside[2]:
        return False
    return is_clear(position, start.cart_position, placed, 2.0 * radius, cart_clearance)


def _somewhere(rng: np.random.Generator, radius: float) -> Vector3:
    return ball_position(rng.random(3).tolist(), radius)


def _level(position: Vector3, z: float | None) -> Vector3:
    return position if z is None else (position[0], position[1], z)
