"""The description of the arm: read from the pybullet wheel, its meshes replaced by solids.

One description serves engine, traces and pages. What a camera sees is made of these solids, too:
meshes would take twenty times as long to draw.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.kinematics import Chain
from robo_eval.core.errors import MissingExtraError, pip_install
from robo_eval.core.installed import need_pybullet
from robo_eval_sim.arm.layout import FINGERS, JOINTS

Vector = tuple[float, float, float]

_RADIUS_M: Final = 0.055
"""Of the limbs: that of most meshes of the wheel, seen along their axes."""
_BASE_LINK: Final = "panda_link0"
_SHORT_M: Final = 0.05
_BOXES: Final[dict[str, tuple[Vector, Vector]]] = {
    "panda_hand": ((0.064, 0.204, 0.09), (0.0, 0.0, 0.02)),
    "panda_leftfinger": ((0.02, 0.024, 0.054), (0.0, 0.012, 0.027)),
    "panda_rightfinger": ((0.02, 0.024, 0.054), (0.0, -0.012, 0.027)),
}
"""Edges and centre of the links that are boxes, metres: the bounds of their meshes."""
_WHITE: Final = "0.9 0.9 0.92 1"
_DARK: Final = "0.35 0.37 0.42 1"


def file_of_wheel() -> Path:
    """The Panda's description in the pybullet wheel.

    Raises:
        MissingExtraError: If it is not there.
    """
    found = find_spec("pybullet_data")
    places = [] if found is None else list(found.submodule_search_locations or ())
    for place in places:
        path = Path(place) / "franka_panda" / "panda.urdf"
        if path.is_file():
            return path
    need_pybullet("an arm")
    raise MissingExtraError(
        "franka_panda/panda.urdf: is missing in the package pybullet_data, which comes with"
        f" PyBullet: {pip_install('sim')}"
    )


@functools.cache
def arm_urdf(*, for_engine: bool) -> str:
    """The arm as URDF text whose geometry is made of boxes, cylinders and spheres.

    Args:
        for_engine: With shapes to touch (capsules, which only PyBullet reads) and not only to
            see.
    """
    root = ET.parse(file_of_wheel()).getroot()  # noqa: S314 - the wheel's own file
    ends = {link: list(_ends(root, link)) for link in _links(root)}
    for link in root.findall("link"):
        for kind in ("visual", "collision"):
            for old in link.findall(kind):
                link.remove(old)
        name = link.get("name", "")
        if name in _BOXES:
            size, centre = _BOXES[name]
            _add(link, "visual", "box", {"size": _text(size)}, centre, (0.0, 0.0, 0.0))
            if for_engine:
                _add(link, "collision", "box", {"size": _text(size)}, centre, (0.0, 0.0, 0.0))
            continue
        for start, end in ends[name]:
            _limb(link, start, end, for_engine=for_engine)
    return ET.tostring(root, encoding="unicode")


def _links(root: ET.Element) -> list[str]:
    return [link.get("name", "") for link in root.findall("link")]


def _ends(root: ET.Element, link: str) -> Iterator[tuple[Vector, Vector]]:
    """From where to where the limbs of a link go: from its joint to those that follow."""
    for joint in root.findall("joint"):
        parent, origin = joint.find("parent"), joint.find("origin")
        if parent is None or origin is None or parent.get("link") != link:
            continue
        x, y, z = (float(word) for word in origin.get("xyz", "0 0 0").split())
        if math.hypot(x, y, z) > _SHORT_M:
            yield (0.0, 0.0, 0.0), (x, y, z)
        elif joint.get("type") == "revolute":
            # Two joints in one place: a housing along the axis.
            yield (0.0, 0.0, -_SHORT_M), (0.0, 0.0, _SHORT_M)


def _limb(link: ET.Element, start: Vector, end: Vector, *, for_engine: bool) -> None:
    along = (end[0] - start[0], end[1] - start[1], end[2] - start[2])
    length = math.hypot(*along)
    centre = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, (start[2] + end[2]) / 2)
    # Roll, then pitch, so that the axis z lies along the limb.
    lean = math.hypot(along[0], along[2])
    rpy = (math.atan2(-along[1], lean), math.atan2(along[0], along[2]) if lean else 0.0, 0.0)
    size = {"radius": f"{_RADIUS_M:g}", "length": f"{length:g}"}
    _add(link, "visual", "cylinder", size, centre, rpy)
    for point in (start, end):
        _add(link, "visual", "sphere", {"radius": size["radius"]}, point, (0.0, 0.0, 0.0))
    if for_engine:
        _add(link, "collision", "capsule", size, centre, rpy)


def _add(
    link: ET.Element,
    kind: str,
    shape: str,
    size: dict[str, str],
    xyz: Vector,
    rpy: Vector,
    colour: tuple[str, str] | None = None,
) -> None:
    part = ET.SubElement(link, kind)
    ET.SubElement(part, "origin", {"xyz": _text(xyz), "rpy": _text(rpy)})
    ET.SubElement(ET.SubElement(part, "geometry"), shape, size)
    if kind == "visual":
        is_dark = link.get("name", "") in _BOXES
        usual = ("panda_dark", _DARK) if is_dark else ("panda_light", _WHITE)
        name, rgba = colour or usual
        material = ET.SubElement(part, "material", {"name": name})
        ET.SubElement(material, "color", {"rgba": rgba})


def _text(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:.6g}" for number in numbers)


def solid_link(
    name: str,
    kind: str,
    size_m: float,
    rgba: tuple[float, float, float, float],
    *,
    height_m: float | None = None,
) -> str:
    """A link of one solid, URDF; a capsule lies along x: a cylinder with a sphere at each end."""
    link = ET.Element("link", {"name": name})
    height = size_m if height_m is None else height_m
    turn = (0.0, math.pi / 2 if kind == "capsule" else 0.0, 0.0)
    if kind == "box":
        shapes = [("box", {"size": _text((size_m, size_m, size_m))}, (0.0, 0.0, 0.0))]
    else:
        radius = f"{size_m / 2:g}"
        shapes = [("cylinder", {"radius": radius, "length": f"{height:g}"}, (0.0, 0.0, 0.0))]
        if kind == "capsule":
            shapes += [
                ("sphere", {"radius": radius}, (x, 0.0, 0.0)) for x in (-height / 2, height / 2)
            ]
    for shape, size, centre in shapes:
        _add(link, "visual", shape, size, centre, turn, (name, _text(rgba)))
    return ET.tostring(link, encoding="unicode")


def boxes_link(
    name: str, boxes: Sequence[tuple[Vector, Vector]], rgba: tuple[float, float, float, float]
) -> str:
    """A link of boxes, URDF; given by half extents and centres, metres."""
    link = ET.Element("link", {"name": name})
    for half, centre in boxes:
        size = {"size": _text([2 * number for number in half])}
        _add(link, "visual", "box", size, centre, (0.0, 0.0, 0.0), (name, _text(rgba)))
    return ET.tostring(link, encoding="unicode")


def frames_of(positions: NDArray[np.float64]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Where the links of the arm are.

    Args:
        positions: Of 7 joints and 2 fingers, shape (T, 9).

    Returns:
        Names of the links that are drawn, and their poses: position and quaternion xyzw in world,
        shape (T, F, 7).
    """
    from scipy.spatial.transform import Rotation  # slow to load, and only traces need it

    text = arm_urdf(for_engine=False)
    root = ET.fromstring(text)  # noqa: S314 - our own
    drawn = [
        link.get("name", "") for link in root.findall("link") if link.find("visual") is not None
    ]
    moved = dict(zip((*JOINTS, *FINGERS), positions.T, strict=True))
    poses = np.zeros((len(positions), len(drawn), 7))
    for index, name in enumerate(drawn):
        if name == _BASE_LINK:
            poses[:, index, 6] = 1.0
            continue
        chain = Chain.of_urdf(text, name)
        places, turns = chain.forward_at(np.stack([moved[joint] for joint in chain.names], axis=1))
        poses[:, index, :3] = places
        poses[:, index, 3:] = Rotation.from_matrix(turns).as_quat(canonical=True)
    return tuple(drawn), poses
