"""What a twin's body is: the physics behind a driver, without ROS."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.task import task_named, task_of
from robo_eval_robot.config import Perturbation, RobotConfig

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the sensors show at the end of a tick.

    Attributes:
        position: Of the body's `joints`: metres or radians, shape (J,).
        velocity: Of them: m/s or rad/s, shape (J,).
        effort: Force or torque of the drives during the tick, zero where there is none, shape (J,).
        quat_xyzw: Orientation of what carries the IMU in world, shape (4,).
        angular_velocity: Of it, in its own axes, rad/s, shape (3,).
    """

    position: Array
    velocity: Array
    effort: Array
    quat_xyzw: Array
    angular_velocity: Array


class Body(Protocol):
    """One task's robot: arranged, held, let go by a command.

    Attributes:
        joints: Names of its joints; those that are `driven` come first.
        driven: Joints that take commands.
        imu_frame: Name of the frame of the IMU.
        tick_s: Control period, seconds.
    """

    joints: ClassVar[tuple[str, ...]]
    driven: ClassVar[tuple[str, ...]]
    imu_frame: ClassVar[str]
    tick_s: ClassVar[float]

    def __init__(self, perturbation: Perturbation, timeout_s: float | None) -> None: ...

    def arrange(
        self, keywords: Mapping[str, Any], *, seed: int, state: Mapping[str, Any] | None = None
    ) -> None:
        """Set everything up for an episode and hold it there."""

    def hear(self, command: Sequence[float]) -> None:
        """Take a command for the driven joints: it acts until the next one."""

    def arm(self) -> None:
        """Be let go by the next command."""

    def go_deaf(self, ticks: int) -> None:
        """Hear no command for some ticks."""

    def tick(self) -> Reading | None:
        """Let a tick pass, unless held; what the sensors show, or None if it was not sent."""

    def close(self) -> None:
        """Give the engine back."""


def body_of(config: RobotConfig) -> type[Body]:
    """The body of the first task of a robot file that has one, else of the task that is meant then.

    Raises:
        InputError: If that has none, or it drives other joints than the file says.
    """
    named = [spec for env in config.tasks if (spec := task_of(env)) is not None]
    path = next((spec.twin for spec in (*named, task_named()) if spec.twin), None)
    if path is None:
        raise InputError(f"robot {config.name!r}: tasks: there is no twin that plays any of them")
    module, _, name = path.partition(":")
    body: type[Body] = getattr(importlib.import_module(module), name)
    for joint in config.commanded:
        if joint not in body.driven:
            raise InputError(
                f"robot {config.name!r}: controller.joints: this twin moves"
                f" {' and '.join(body.driven)}, not {joint}; for another arm's stand-in write"
                " `twin: {drive: {}}`, and no tasks"
            )
    return body
