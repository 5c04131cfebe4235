"""How the motion of an episode becomes a few kilobytes a page can draw."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol, TypeAlias
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.plain import plain
from robo_eval.core.task import TaskSpec, task_of
from robo_eval.page.embed import packed, unpacked

ABSENT: Final = -32768
"""Stored in the place of a number that is NaN: the frame does not exist at that instant."""
_MILLI: Final = 1000.0
_UNIT: Final = 32767.0
_MAX_INSTANTS: Final = 600
"""Longer episodes are thinned: a page shows motion, the trace keeps every tick."""
_Shape: TypeAlias = tuple[
    str, tuple[float, ...], tuple[float, float, float], tuple[float, float, float, float]
]


class Motion(Protocol):
    """What is drawn: the part of a Trajectory, or of a trace read back, that is needed."""

    @property
    def stamp_ns(self) -> NDArray[np.int64]:
        """Time since the start of the episode, shape (T,), nanoseconds."""

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the moving frames."""

    @property
    def pose_world_frame(self) -> NDArray[np.float64]:
        """Shape (T, F, 7): position (m) and quaternion xyzw in world."""

    @property
    def actions(self) -> NDArray[np.float64]:
        """Shape (T - 1, A)."""

    @property
    def robot_description(self) -> str:
        """URDF text, empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """One episode, packed.

    Attributes:
        key: Name of the episode.
        label: What the list of episodes shows.
        caption: One sentence on what is seen.
        packed: Gzip and base64 of a header (JSON) and 16-bit numbers.
    """

    key: str
    label: str
    caption: str
    packed: str


def pack(
    motion: Motion, *, key: str, label: str, caption: str, task: str = "", outcome: str = ""
) -> Clip:
    """Pack the motion of one episode.

    Positions are rounded to millimetres and quaternions to 1/32767, as differences from tick to
    tick, which gzip packs well: 200 ticks of twelve frames take about 20 kB.

    Args:
        motion: What moved.
        key: Name of the episode.
        label: What the list of episodes shows.
        caption: One sentence on what is seen.
        task: Gymnasium id; its specification says what is drawn beside the motion.
        outcome: How the episode ended.
    """
    every = -(-len(motion.stamp_ns) // _MAX_INSTANTS)
    stamps = motion.stamp_ns[::every]
    poses = motion.pose_world_frame[::every]
    frames = motion.frames
    shapes = solids(frames, motion.robot_description)
    # A frame of centred spheres alone looks the same however it is turned.
    turned = {s.frame for s in shapes if s.kind != "sphere" or s.offset != (0.0, 0.0, 0.0)}
    turning = sorted(turned)
    channels = [poses[:, i, c] * _MILLI for i in range(len(frames)) for c in range(3)]
    channels += [poses[:, i, 3 + c] * _UNIT for i in turning for c in range(4)]
    spec = task_of(task)
    header = {
        "label": label,
        "caption": caption,
        "outcome": outcome,
        "ticks": len(stamps),
        "times_ms": [round(stamp / 1e6) for stamp in stamps.tolist()],
        "frames": list(frames),
        "turning": turning,
        "solids": [asdict(shape) for shape in shapes],
        "roles": [_role(name, spec) for name in frames],
        "tilt": _tilt(frames, poses, spec),
        "pushes": _pushes(motion.actions[::every], spec),
        "arena": None if spec is None else spec.room,
    }
    return Clip(key=key, label=label, caption=caption, packed=_bytes(header, channels))


def unpack(clip: Clip) -> tuple[Mapping[str, Any], NDArray[np.float64]]:
    """The header and the positions (T, F, 3) in metres, as the page reads them back."""
    raw = unpacked(clip.packed)
    (length,) = struct.unpack_from("<I", raw)
    header = json.loads(raw[4 : 4 + length])
    ticks, n_frames = header["ticks"], len(header["frames"])
    steps = np.frombuffer(raw, dtype="<i2", offset=4 + length).reshape(-1, ticks)
    numbers = np.cumsum(steps.astype(np.int16), axis=1, dtype=np.int16)[: 3 * n_frames]
    positions = np.where(numbers == ABSENT, np.nan, numbers / _MILLI)
    return header, positions.reshape(n_frames, 3, ticks).transpose(2, 0, 1)


def _bytes(header: Mapping[str, object], channels: list[NDArray[np.float64]]) -> str:
    text = json.dumps(plain(header), separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 2)  # so that the 16-bit numbers start at an even byte
    rows = np.array(channels).reshape(len(channels), -1)
    numbers = np.where(np.isfinite(rows), np.clip(np.rint(rows), -32767, 32767), ABSENT)
    whole = numbers.astype(np.int16)
    # Differences wrap around in 16 bits, and so does the sum that undoes them.
    steps = np.diff(whole, axis=1, prepend=np.int16(0)).astype("<i2")
    return packed(struct.pack("<I", len(text)) + text + steps.tobytes())


def _role(frame: str, spec: TaskSpec | None) -> str:
    """What a frame is to the eye."""
    link = frame.rsplit("/", 1)[-1]
    bodies = {} if spec is None else spec.bodies
    return next((role for start, role in bodies.items() if link.startswith(start)), "thing")


def _tilt(
    frames: tuple[str, ...], poses: NDArray[np.float64], spec: TaskSpec | None
) -> dict[str, Any] | None:
    """Roll and pitch of what may tilt in degrees, with their limit; None if nothing does."""
    names = [name.rsplit("/", 1)[-1] for name in frames]
    if spec is None or spec.tilt is None or spec.tilt.frame not in names:
        return None
    x, y, z, w = np.moveaxis(poses[:, names.index(spec.tilt.frame), 3:7], -1, 0)
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1.0, 1.0))
    return {
        "of": spec.tilt.frame,
        "limit": round(float(np.degrees(spec.tilt.limit_rad)), 3),
        "roll": plain(np.round(np.degrees(roll), 2)),
        "pitch": plain(np.round(np.degrees(pitch), 2)),
    }


def _pushes(actions: NDArray[np.float64], spec: TaskSpec | None) -> list[list[int]] | None:
    """Direction of the push in each tick as (x, y) in -1, 0, 1."""
    flat = actions.reshape(len(actions), -1)
    if spec is None or not spec.pushes or flat.shape[1] != 1:
        return None
    return [
        [int(np.sign(force)) for force in spec.pushes[int(action)]]
        if 0 <= action < len(spec.pushes)
        else [0, 0]
        for action in flat[:, 0]
    ]


# Solids that stand for frames --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Solid:
    """One convex solid fixed to a moving frame.

    Attributes:
        frame: Index of the frame in the trajectory.
        kind: `"box"`, `"cylinder"` (axis z) or `"sphere"`.
        size: Box: edge lengths x, y, z; cylinder: radius, length; sphere: radius; metres.
        offset: Centre in the frame, metres.
        turn: Orientation in the frame, quaternion xyzw.
    """

    frame: int
    kind: str
    size: tuple[float, ...]
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)


def solids(frames: Sequence[str], robot_description: str) -> list[Solid]:
    """The solids of every frame, as the robot description has them.

    A frame it does not describe gets a small sphere, so that its motion is seen.
    """
    described = _described(robot_description)
    found: list[Solid] = []
    for index, name in enumerate(frames):
        link = name.rsplit("/", 1)[-1]
        found += [
            Solid(frame=index, kind=kind, size=size, offset=offset, turn=turn)
            for kind, size, offset, turn in described.get(link, ())
        ] or [Solid(frame=index, kind="sphere", size=(0.05,))]
    return found


def _described(text: str) -> dict[str, list[_Shape]]:
    if not text.strip() or "<!DOCTYPE" in text or "<!ENTITY" in text:
        return {}
    try:
        # Entities are refused above, the one thing that makes this parser unsafe.
        root = ET.fromstring(text)  # noqa: S314
        return {
            link.get("name", ""): [
                shape for visual in link.findall("visual") if (shape := _shape(visual)) is not None
            ]
            for link in root.iter("link")
        }
    except (ET.ParseError, ValueError):
        # A description that cannot be read costs the drawing its shapes, not the report.
        return {}


def _shape(visual: ET.Element) -> _Shape | None:
    origin = visual.find("origin")
    offset = _numbers(origin.get("xyz") if origin is not None else None, 3, 0.0)
    turn = _quaternion(_numbers(origin.get("rpy") if origin is not None else None, 3, 0.0))
    box = visual.find("geometry/box")
    cylinder = visual.find("geometry/cylinder")
    sphere = visual.find("geometry/sphere")
    if box is not None:
        return "box", _numbers(box.get("size"), 3, 0.1), offset, turn
    if cylinder is not None:
        size = (float(cylinder.get("radius", 0.05)), float(cylinder.get("length", 0.1)))
        return "cylinder", size, offset, turn
    if sphere is not None:
        return "sphere", (float(sphere.get("radius", 0.05)),), offset, turn
    return None


def _numbers(text: str | None, count: int, default: float) -> tuple[float, float, float]:
    values = [float(word) for word in text.split()] if text else [default] * count
    if len(values) != count or not all(math.isfinite(value) for value in values):
        raise ValueError(f"expected {count} numbers, given {text!r}")
    return values[0], values[1], values[2]


def _quaternion(rpy: tuple[float, float, float]) -> tuple[float, float, float, float]:
    """Quaternion xyzw of fixed-axis roll, pitch, yaw as URDF defines them."""
    (sr, sp, sy), (cr, cp, cy) = ([f(angle / 2) for angle in rpy] for f in (math.sin, math.cos))
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )
