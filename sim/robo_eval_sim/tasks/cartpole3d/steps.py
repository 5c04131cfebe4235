"""What one tick makes of each of many measured states, as calibration replays them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import ShapeError
from robo_eval.core.names import unknown_name
from robo_eval_sim.spare import give_back, take
from robo_eval_sim.tasks.cartpole3d.motion import joints_of
from robo_eval_sim.tasks.cartpole3d.physics import LEVEL_0
from robo_eval_sim.tasks.cartpole3d.scene import World
from robo_eval_sim.tasks.cartpole3d.spec import SPEC
from robo_eval_sim.tasks.cartpole3d.start import pole_frame

Array = NDArray[np.float64]
_BARELY_M_S: Final = 1e-13
"""Speed of a cart at rest: with none, a world leaves the slides as they were (`World.place`)."""


def channels_of(rows: NDArray[np.floating[Any]]) -> Array:
    """As `CartPole3DEnv.channels`."""
    position, velocity = joints_of(np.asarray(rows, dtype=np.float64))
    return np.hstack([position[:, :2], velocity[:, :2], position[:, 2:], velocity[:, 2:]])


def predicted(
    states: NDArray[np.floating[Any]],
    forces: NDArray[np.floating[Any]],
    constants: Mapping[str, float],
) -> Array:
    """As `CartPole3DEnv.predict`."""
    known = {constant.name for constant in SPEC.constants}
    for name in constants:
        if name not in known:
            raise unknown_name(f"constant of {SPEC.title}", name, known)
    given: dict[str, Any] = {name: float(value) for name, value in constants.items()}
    physics = replace(LEVEL_0, **given)
    before, pushes = _checked("states", states, 8), _checked("forces", forces, 2)
    if len(before) != len(pushes):
        raise ShapeError(f"forces: {len(before)} rows are needed, given {len(pushes)}")
    is_known = np.isfinite(before).all(axis=1) & np.isfinite(pushes).all(axis=1)
    rows = _rows_of(before[is_known])
    up, turning = (np.stack(part, axis=1).tolist() for part in pole_frame(list(rows.T)))
    after = np.empty((len(rows), 11))
    world = take(World)
    try:
        world.prepare(physics)
        told = (physics.push_gain * pushes[is_known]).tolist()
        for index, (row, (x, y)) in enumerate(zip(rows.tolist(), told, strict=True)):
            world.place(tuple(row), (tuple(up[index]), tuple(turning[index])))
            world.push_cart((x, y, 0.0))
            world.resist()
            after[index] = world.tick()[:11]
    finally:
        give_back(world)
    found = np.full(before.shape, np.nan)
    found[is_known] = channels_of(after)
    return found


def _checked(name: str, given: NDArray[np.floating[Any]], width: int) -> Array:
    array = np.asarray(given, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != width:
        raise ShapeError(f"{name}: shape (T, {width}) needed, given {array.shape}")
    return array


def _rows_of(states: Array) -> Array:
    """Rows of a world without balls, shape (T, 12): a pole without yaw that does not spin."""
    x, y, vx, vy, roll, pitch, roll_rate, pitch_rate = states.T
    vx = np.where((vx == 0.0) & (vy == 0.0), _BARELY_M_S, vx)
    sr, cr, sp, cp = np.sin(roll / 2), np.cos(roll / 2), np.sin(pitch / 2), np.cos(pitch / 2)
    cosine = np.cos(pitch)
    yaw_rate = pitch_rate * np.tan(roll) / cosine
    turning = (roll_rate * cosine, pitch_rate, yaw_rate - roll_rate * np.sin(pitch))
    quat = (cp * sr, sp * cr, -sp * sr, cp * cr)
    return np.stack([x, y, vx, vy, *quat, *turning, np.zeros_like(x)], axis=1)
