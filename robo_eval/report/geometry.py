"""Which simple solids stand for the frames of a trajectory when an episode is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.etree import ElementTree as ET


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


_Shape: TypeAlias = tuple[
    str, tuple[float, ...], tuple[float, float, float], tuple[float, float, float, float]
]


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
