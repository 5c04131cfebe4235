"""Where the tip of an arm is, and which joint angles bring it somewhere, from its description."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError

Array: TypeAlias = NDArray[np.float64]
_MOVING: Final = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A joint on the way from base to tip.

    Attributes:
        name: Its name.
        xyz: Origin in the link before it, metres.
        rpy: Fixed-axis roll, pitch and yaw of that frame, radians.
        axis: Axis it turns about or slides along, of length 1; none if it is fixed.
        slides: Whether it slides.
        lower: Least position, radians or metres.
        upper: Greatest position.
    """

    name: str
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axis: tuple[float, float, float] | None = (0.0, 0.0, 1.0)
    slides: bool = False
    lower: float = -math.inf
    upper: float = math.inf


@dataclass(frozen=True, slots=True)
class Reach:
    """Joint positions that were found for a pose of the tip.

    Attributes:
        q: Shape (J,), radians or metres.
        position_error_m: Distance that is left.
        turn_error_rad: Angle that is left.
    """

    q: Array
    position_error_m: float
    turn_error_rad: float


class Chain:
    """Joints from the base of a robot to its tip.

    Args:
        joints: In order; positions are given for those that move.
    """

    def __init__(self, joints: Sequence[Joint]) -> None:
        # What is fixed is multiplied out once: a frame a moving joint, and one at the tip.
        self.names: list[str] = []
        self._frames: list[tuple[Array, Array]] = []
        self._axes: list[tuple[Array, Array, Array, bool]] = []
        turn, shift = np.eye(3), np.zeros(3)
        for joint in joints:
            shift = shift + turn @ np.array(joint.xyz)
            turn = turn @ turned(joint.rpy)
            if joint.axis is None:
                continue
            self.names.append(joint.name)
            self._frames.append((turn, shift))
            axis = np.array(joint.axis, dtype=np.float64)
            cross = _cross(axis)
            self._axes.append((axis, cross, cross @ cross, joint.slides))
            turn, shift = np.eye(3), np.zeros(3)
        self._tip = turn, shift
        moving = [joint for joint in joints if joint.axis is not None]
        self.lower = np.array([joint.lower for joint in moving])
        self.upper = np.array([joint.upper for joint in moving])

    @classmethod
    def of_urdf(cls, text: str, tip: str) -> Chain:
        """The chain from the root of a robot description to a link.

        Args:
            text: URDF.
            tip: Name of the link.

        Raises:
            InputError: If the text is no robot description or has no such link.
        """
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise InputError("robot_description: must not declare entities")
        try:
            root = ET.fromstring(text)  # noqa: S314 - entities are refused above
        except ET.ParseError as err:
            raise InputError(f"robot_description: is not XML: {err}") from err
        before = {_name(joint.find("child"), "link"): joint for joint in root.findall("joint")}
        if tip not in before:
            raise InputError(
                f"robot_description: no joint leads to the link {tip!r}; there are {sorted(before)}"
            )
        joints: list[Joint] = []
        while tip in before and len(joints) <= len(before):
            joint = before[tip]
            joints.insert(0, _joint_of(joint))
            tip = _name(joint.find("parent"), "link")
        return cls(joints)

    def forward(self, q: Sequence[float] | Array) -> tuple[Array, Array]:
        """Position (3,) in metres and rotation matrix (3, 3) of the tip in the base."""
        turn, shift = np.eye(3), np.zeros(3)
        for value, frame, axis in zip(q, self._frames, self._axes, strict=True):
            shift = shift + turn @ frame[1]
            turn = turn @ frame[0]
            turn, shift = _moved(turn, shift, axis, value)
        return shift + turn @ self._tip[1], turn @ self._tip[0]

    def forward_at(self, q: Array) -> tuple[Array, Array]:
        """Of T positions of the joints, shape (T, J), those (T, 3) and matrices (T, 3, 3)."""
        turn, shift = np.broadcast_to(np.eye(3), (len(q), 3, 3)), np.zeros((len(q), 3))
        for value, frame, axis in zip(q.T, self._frames, self._axes, strict=True):
            along, cross, squared, slides = axis
            shift = shift + turn @ frame[1]
            turn = turn @ frame[0]
            if slides:
                shift = shift + turn @ along * value[:, None]
            else:
                sine, cosine = (f(value)[:, None, None] for f in (np.sin, np.cos))
                turn = turn @ (np.eye(3) + sine * cross + (1.0 - cosine) * squared)
        return shift + turn @ self._tip[1], turn @ self._tip[0]

    def jacobian(self, q: Sequence[float] | Array) -> tuple[Array, Array, Array]:
        """Velocities of the tip by velocities of the joints, shape (6, J); and its pose."""
        turn, shift = np.eye(3), np.zeros(3)
        axes, origins = np.empty((len(self._axes), 3)), np.empty((len(self._axes), 3))
        for index, (value, frame, axis) in enumerate(zip(q, self._frames, self._axes, strict=True)):
            shift = shift + turn @ frame[1]
            turn = turn @ frame[0]
            axes[index], origins[index] = turn @ axis[0], shift
            turn, shift = _moved(turn, shift, axis, value)
        tip = shift + turn @ self._tip[1]
        found = np.zeros((6, len(axes)))
        found[:3] = _crossed(axes, tip - origins).T
        found[3:] = axes.T
        for index, axis in enumerate(self._axes):
            if axis[3]:
                found[:3, index], found[3:, index] = axes[index], 0.0
        return found, tip, turn @ self._tip[0]

    def reach(
        self,
        position: Sequence[float] | Array,
        rotation: Array,
        start: Sequence[float] | Array,
        *,
        rounds: int = 100,
        damping: float = 0.05,
        tolerance: tuple[float, float] = (1e-4, 1e-3),
        rest: Sequence[float] | Array | None = None,
    ) -> Reach:
        """Joint positions whose tip is at a pose, by damped least squares within the limits.

        What cannot be reached is approached; the errors that are left say how far.

        Args:
            position: Wanted, metres in the base.
            rotation: Wanted, matrix (3, 3).
            start: Positions to begin from, shape (J,).
            rounds: Most steps.
            damping: The greater, the calmer near singular arms.
            tolerance: Metres and radians at which it ends.
            rest: Positions that are preferred where the pose leaves a choice.

        References:
            Nakamura, Hanafusa (1986), J. Dyn. Sys. Meas. Control 108(3), 163-171.
        """
        q = np.clip(np.asarray(start, dtype=np.float64), self.lower, self.upper)
        wanted = np.asarray(position, dtype=np.float64)
        eye = damping * damping * np.eye(6)
        for left in range(rounds, -1, -1):
            found, tip, turn = self.jacobian(q)
            error = np.concatenate([wanted - tip, rotation_vector(rotation @ turn.T)])
            away, turned_by = float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))
            if not left or (away < tolerance[0] and turned_by < tolerance[1]):
                break
            error *= min(1.0, 0.2 / max(away, 1e-9), 0.6 / max(turned_by, 1e-9))
            step = found.T @ np.linalg.solve(found @ found.T + eye, error)
            if rest is not None:
                # Along what leaves the tip where it is.
                free = 0.1 * (np.asarray(rest) - q)
                step += free - found.T @ np.linalg.solve(found @ found.T + eye, found @ free)
            q = np.clip(q + step, self.lower, self.upper)
        return Reach(q, away, turned_by)


def turned(rpy: Sequence[float]) -> Array:
    """Rotation matrix of fixed-axis roll, pitch and yaw, radians."""
    (sr, sp, sy), (cr, cp, cy) = ([f(angle) for angle in rpy] for f in (math.sin, math.cos))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rotation_vector(rotation: Array) -> Array:
    """Axis times angle (rad) of a rotation matrix, shape (3,)."""
    x = rotation[2, 1] - rotation[1, 2]
    y = rotation[0, 2] - rotation[2, 0]
    z = rotation[1, 0] - rotation[0, 1]
    sine, cosine = math.sqrt(x * x + y * y + z * z) / 2.0, (float(np.trace(rotation)) - 1.0) / 2.0
    angle = math.atan2(sine, cosine)
    if sine > 1e-6:
        return np.array([x, y, z]) * (angle / (2.0 * sine))
    if cosine > 0.0:
        return np.array([x, y, z]) / 2.0
    # Half a turn: the axis is the column of R + I that is longest.
    column = (rotation + np.eye(3))[:, int(np.argmax(np.diag(rotation)))]
    return column * (math.pi / float(np.linalg.norm(column)))


def rotation_of(quat_xyzw: Sequence[float]) -> Array:
    """Rotation matrix of a quaternion of length 1."""
    x, y, z, w = (float(number) for number in quat_xyzw)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _moved(
    turn: Array, shift: Array, axis: tuple[Array, Array, Array, bool], value: float
) -> tuple[Array, Array]:
    along, cross, squared, slides = axis
    if slides:
        return turn, shift + turn @ (along * value)
    # Rodrigues' rotation about the axis.
    return turn @ (np.eye(3) + math.sin(value) * cross + (1.0 - math.cos(value)) * squared), shift


def _cross(v: Array) -> Array:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def _crossed(a: Array, b: Array) -> Array:
    """Cross products of rows; np.cross takes five times as long."""
    return np.stack(
        [
            a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
            a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0],
        ],
        axis=1,
    )


def _name(element: ET.Element | None, attribute: str) -> str:
    return "" if element is None else element.get(attribute, "")


def _joint_of(joint: ET.Element) -> Joint:
    name, kind = joint.get("name", ""), joint.get("type", "")
    origin, axis, limit = joint.find("origin"), joint.find("axis"), joint.find("limit")
    if kind not in (*_MOVING, "fixed"):
        raise InputError(f"robot_description: joint {name!r}: type {kind!r} is none of a chain")
    about = None
    if kind != "fixed":
        given = np.array(_numbers(axis, "xyz", "1 0 0", name))
        length = float(np.linalg.norm(given))
        if length == 0.0:
            raise InputError(f"robot_description: joint {name!r}: its axis has no length")
        about = tuple((given / length).tolist())
    is_bound = limit is not None and kind != "continuous"
    return Joint(
        name=name,
        xyz=_numbers(origin, "xyz", "0 0 0", name),
        rpy=_numbers(origin, "rpy", "0 0 0", name),
        axis=about,
        slides=kind == "prismatic",
        lower=float(limit.get("lower", "0")) if is_bound and limit is not None else -math.inf,
        upper=float(limit.get("upper", "0")) if is_bound and limit is not None else math.inf,
    )


def _numbers(
    element: ET.Element | None, attribute: str, default: str, joint: str
) -> tuple[float, float, float]:
    text = default if element is None else element.get(attribute, default)
    try:
        x, y, z = (float(word) for word in text.split())
    except ValueError as err:
        raise InputError(
            f"robot_description: joint {joint!r}: {attribute} has to be three numbers, given"
            f" {text!r:.60}"
        ) from err
    return x, y, z
