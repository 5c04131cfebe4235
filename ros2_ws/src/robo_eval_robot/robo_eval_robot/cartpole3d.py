"""CartPole3D on a gantry: two slides carry the cart, the pole has encoders or an IMU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_robot.config import RobotConfig, RobotTask
from robo_eval_robot.snapshot import ImuReading, JointReading, Snapshot
from robo_eval_sim.tasks.cartpole3d.layout import (
    BALL_COUNT,
    CART_POSITION,
    CART_VELOCITY,
    EPISODE_TICKS,
    POLE_ANGULAR_VELOCITY,
    POLE_QUAT_XYZW,
    PUSHES,
    TICK_S,
    action_index,
    ball_mask,
    has_fallen,
    observation_size,
)

_CART: Final = ("cart_x", "cart_y")
_POLE: Final = ("pole_roll", "pole_pitch")


class CartPole3DAdapter:
    """Balance a pole on a cart by pushing the cart in four directions.

    The cart's slides are called `cart_x` and `cart_y` in the task; their controller takes efforts.
    The pole's orientation comes from the IMU if the robot has one, else from the encoders
    `pole_roll` and `pole_pitch`.

    Args:
        config: The robot.
        task: Its entry for this task.
        level: Novelty level; whoever sets up the episode sees to it.
        difficulty: Of the level.
        profile: Which layout of the observation.
        balls: 0: there are no balls in a laboratory.

    Raises:
        InputError: If the robot lacks a joint, or the task needs balls.
    """

    def __init__(
        self,
        config: RobotConfig,
        task: RobotTask,
        *,
        level: int = 0,  # noqa: ARG002 - the same keywords as the simulator's
        difficulty: str = Difficulty.EASY,  # noqa: ARG002
        profile: str = Profile.PAPER,
        balls: int | None = None,
    ) -> None:
        if balls != 0:
            raise InputError(
                f"robot {config.name!r}: balls: is {balls}; a robot plays CartPole3D without balls,"
                " plan `kwargs: {balls: 0}`"
            )
        self._names = {name: task.joints.get(name, name) for name in (*_CART, *_POLE)}
        needed = _CART if config.state.imu is not None else (*_CART, *_POLE)
        for name in needed:
            if self._names[name] not in config.joints:
                raise InputError(
                    f"robot {config.name!r}: joints: has no {self._names[name]!r}; CartPole3D needs"
                    f" {', '.join(needed)}, name others in the task's `joints`"
                )
        if config.controller.interface != "effort":
            raise InputError(
                f"robot {config.name!r}: controller.interface: is {config.controller.interface!r};"
                " CartPole3D pushes, so it needs effort"
            )
        self._has_imu = config.state.imu is not None
        self._order = [config.commanded.index(self._names[name]) for name in _CART]
        self._width = len(config.commanded)
        self._profile = str(Profile(profile).value)
        self.tick_s = TICK_S
        self.action_space = spaces.Discrete(len(PUSHES))
        self.observation_space = _space(self._profile)

    def state(self, snapshot: Snapshot, tick: int) -> dict[str, Any]:
        """Cart and pole as `reset(options={"state": ...})` of the simulator takes them."""
        x, y = (self._joint(snapshot, name) for name in _CART)
        quat, turning = self._pole(snapshot)
        return {
            "cart_position": [x.position, y.position],
            "cart_velocity": [x.velocity or 0.0, y.velocity or 0.0],
            "pole_quat_xyzw": list(quat),
            "pole_angular_velocity": list(turning),
            "balls": [],
            "tick": tick,
        }

    def observation(self, state: Mapping[str, Any]) -> NDArray[np.float32]:
        """The observation vector of `robo_eval_sim.tasks.cartpole3d.layout`, float32."""
        seen = np.zeros(observation_size(self._profile), dtype=np.float32)
        seen[CART_POSITION] = state["cart_position"]
        seen[CART_VELOCITY] = state["cart_velocity"]
        seen[POLE_QUAT_XYZW] = state["pole_quat_xyzw"]
        seen[POLE_ANGULAR_VELOCITY] = state["pole_angular_velocity"]
        return seen

    def command(self, action: Any) -> tuple[float, ...]:
        """Force on each slide, newtons."""
        forces = [0.0] * self._width
        for place, force in zip(self._order, PUSHES[action_index(action)], strict=True):
            forces[place] = force
        return tuple(forces)

    def applied(self, snapshot: Snapshot) -> tuple[float, ...] | None:
        """Measured force on each slide, newtons."""
        forces = tuple(self._joint(snapshot, name).effort for name in _CART)
        known = tuple(force for force in forces if force is not None and math.isfinite(force))
        return known if len(known) == len(_CART) else None

    def reward(self, _state: Mapping[str, Any]) -> float:
        """Each tick survived earns the same, so that the return is the performance."""
        return 1.0 / EPISODE_TICKS

    def is_over(self, state: Mapping[str, Any], tick: int) -> tuple[bool, bool]:
        """A fallen pole terminates; tick 200 truncates."""
        return has_fallen(*state["pole_quat_xyzw"]), tick >= EPISODE_TICKS

    def check_start(self, state: Mapping[str, Any]) -> str | None:
        """The pole must stand."""
        if has_fallen(*state["pole_quat_xyzw"]):
            return "the pole leans by more than 10 degrees"
        return None

    def deviation(self, state: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, float]:
        """Distances of the cart (m, m/s), and the angle between the poles (rad)."""
        dot = sum(
            a * b for a, b in zip(state["pole_quat_xyzw"], planned["pole_quat_xyzw"], strict=True)
        )
        return {
            "cart_position": math.dist(state["cart_position"], planned["cart_position"]),
            "cart_velocity": math.dist(state["cart_velocity"], planned["cart_velocity"]),
            "pole_tilt": 2.0 * math.acos(min(1.0, abs(dot))),
        }

    def _joint(self, snapshot: Snapshot, name: str) -> JointReading:
        return snapshot.joints[self._names[name]]

    def _pole(
        self, snapshot: Snapshot
    ) -> tuple[tuple[float, float, float, float], tuple[float, float, float]]:
        """Orientation in world, and angular velocity in world axes."""
        if self._has_imu:
            assert snapshot.imu is not None
            return snapshot.imu.quat_xyzw, _in_world(snapshot.imu)
        roll, pitch = (self._joint(snapshot, name) for name in _POLE)
        sr, cr = math.sin(roll.position / 2), math.cos(roll.position / 2)
        sp, cp = math.sin(pitch.position / 2), math.cos(pitch.position / 2)
        rate, tip = roll.velocity or 0.0, pitch.velocity or 0.0
        # R = Ry(pitch) Rx(roll): the roll axis leans with the pitch.
        turning = (rate * math.cos(pitch.position), tip, -rate * math.sin(pitch.position))
        return (sr * cp, cr * sp, -sr * sp, cr * cp), turning


def _in_world(imu: ImuReading) -> tuple[float, float, float]:
    """Angular velocity, turned from the sensor's axes to those of the world."""
    x, y, z, w = imu.quat_xyzw
    a, b, c = imu.angular_velocity
    # v + 2 q x (q x v + w v)
    u = (y * c - z * b + w * a, z * a - x * c + w * b, x * b - y * a + w * c)
    return (
        a + 2.0 * (y * u[2] - z * u[1]),
        b + 2.0 * (z * u[0] - x * u[2]),
        c + 2.0 * (x * u[1] - y * u[0]),
    )


def _space(profile: str) -> spaces.Box:
    """As wide as the simulator's: 100 m, 200 m/s or rad/s, and no balls."""
    size = observation_size(profile)
    high = np.full(size, 200.0, dtype=np.float32)
    low = -high
    low[BALL_COUNT] = 0.0
    high[ball_mask(profile)] = 1.0
    low[ball_mask(profile)] = 0.0
    return spaces.Box(low, high, dtype=np.float32)
