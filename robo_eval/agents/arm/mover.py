"""How an expert brings the tip of the arm somewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.base import Agent
from robo_eval.agents.kinematics import rotation_vector, turned
from robo_eval.core.errors import InputError, ShapeError
from robo_eval_sim.arm.chain import CHAIN
from robo_eval_sim.arm.layout import JOINT_POSITION, WIDTH_M

Array: TypeAlias = NDArray[np.float64]
Wish: TypeAlias = tuple[Array, float]
"""Where the tip is to be, and how wide the gripper."""
_DAMPING: Final = 1e-3 * np.eye(6)
OPEN, CLOSED = WIDTH_M, 0.0
_RESTS_M: Final = 0.0005
"""Fingers that come together by less in a tick are at rest."""


WRENCH: Final = 6
"""Numbers that `obs_mode="state+wrench"` adds."""


class Mover(Agent):
    """An agent that says where the tip is to be; for `action_mode="joint_position"`.

    Each tick it takes one step of damped least squares from where the joints are. The arm's motors
    bound their speeds and have the joints arrive together, so that the tip goes nearly straight.
    """

    _width = 0.0

    def has_gripped(self, width: float) -> bool:
        """Whether fingers that close have come to rest since the last tick; to be asked each tick.

        Args:
            width: Of the gripper, metres.
        """
        before, self._width = self._width, width
        return before - width < _RESTS_M

    def seen(self, observation: NDArray[Any], size: int, task: str) -> Array:
        """An observation in full precision.

        Raises:
            ShapeError: If it is not the task's.
        """
        seen = np.asarray(observation, dtype=np.float64)
        if seen.shape not in ((size,), (size + WRENCH,)):
            raise ShapeError(
                f"agent {self.name!r}: observation: {size} numbers of {task} are needed, given"
                f" shape {seen.shape}"
            )
        return seen

    def moved(
        self,
        observation: NDArray[Any],
        place: Array,
        rotation: Array,
        width: float,
    ) -> NDArray[np.float32]:
        """Targets of the joints that bring the tip nearer to a pose, and the gripper's width.

        Args:
            observation: Of a task of the arm.
            place: Metres in the base.
            rotation: Matrix (3, 3).
            width: Metres.
        """
        joints = np.asarray(observation[JOINT_POSITION], dtype=np.float64)
        jacobian, tip, turn = CHAIN.jacobian(joints)
        error = np.concatenate([place - tip, rotation_vector(rotation @ turn.T)])
        step = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + _DAMPING, error)
        targets = np.clip(joints + step, CHAIN.lower, CHAIN.upper)
        return np.append(targets, width).astype(np.float32)


@dataclass(kw_only=True, eq=False)
class Staged(Mover):
    """A mover that goes from stage to stage: each says where the tip is to be, and what is next.

    Attributes:
        recovers: Whether it begins again when it missed or lost what it moves; else it goes on as
            if it had not.
    """

    _above: ClassVar[Callable[..., Wish]]
    """The first stage; each takes what its task sees."""
    recovers: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.recovers, bool):
            raise InputError(f"agent {self.name!r}: recovers must be true or false")
        super().__post_init__()
        self.reset()

    def reset(self, *, seed: int | None = None) -> None:
        """Forget the last episode."""
        del seed
        self._stage: Callable[..., Wish] = self._above
        self._ticks, self._at = 0, np.zeros(3)

    def _go(self, stage: Callable[..., Wish], place: Array, width: float) -> Wish:
        self._stage, self._ticks = stage, 0
        return place, width


def raised(place: Array, height_m: float) -> Array:
    """A place so much higher."""
    return np.array([place[0], place[1], place[2] + height_m])


def downwards(yaw: float) -> Array:
    """Orientation of a hand that points down and is turned about the vertical, radians."""
    return turned((math.pi, 0.0, yaw))


def yaw_of(quat_xyzw: NDArray[Any], *, symmetric_rad: float = math.pi / 2) -> float:
    """Turn about the vertical, of the shapes that look alike the one nearest to 0."""
    x, y, z, w = (float(number) for number in quat_xyzw)
    yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return math.remainder(yaw, symmetric_rad)
