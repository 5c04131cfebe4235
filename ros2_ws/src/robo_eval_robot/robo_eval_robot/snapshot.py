"""What a robot last said about itself, in one piece."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class JointReading:
    """One joint: metres or radians, per second, and newtons or N m where it is measured."""

    position: float
    velocity: float | None = None
    effort: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImuReading:
    """Orientation of a link in world, and its angular velocity in its own axes (rad/s)."""

    quat_xyzw: tuple[float, float, float, float]
    angular_velocity: tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """State at one control tick.

    Attributes:
        stamp_ns: Stamp of the joint states, by the driver's clock.
        received_s: When they arrived, by the monotonic clock of this process.
        joints: By name.
        imu: What an inertial sensor said last; None if there is none.
    """

    stamp_ns: int
    received_s: float
    joints: Mapping[str, JointReading] = field(default_factory=dict)
    imu: ImuReading | None = None
