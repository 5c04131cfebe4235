"""In which unit the joints of a recording are, by what is known of their kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from robo_eval.core.errors import InputError
from robo_eval.log.bag_map import SignalMap
from robo_eval.log.bag_open import OpenBag

DESCRIPTION: Final = "robot_description"
"""The last part of the name of a topic with a description of a robot (URDF)."""
_STRING: Final = "std_msgs/msg/String"
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_JOINT: Final = re.compile(r"<joint\s[^>]*>")
_ATTRIBUTE: Final = r"\s%s\s*=\s*[\"']([^\"']*)"
_UNITS: Final = {"prismatic": "m", "revolute": "rad", "continuous": "rad"}
_SLIDES: Final = re.compile(
    r"slid|prismat|linear|(\b|_)rail|gripper|finger|torso_lift", re.IGNORECASE
)
"""In the names of joints that mostly slide; of those that turn, some are called so, too."""


def described_units(bag: OpenBag) -> dict[str, str]:
    """The unit of each joint that a description of a robot in a bag knows."""
    topics = [
        topic
        for topic, kind in bag.topics.items()
        if kind == _STRING and topic.rpartition("/")[2] == DESCRIPTION
    ]
    found: dict[str, str] = {}
    # What the map does not name may be unreadable.
    with suppress(InputError):
        for _, _, message in bag.messages(topics) if topics else ():
            found |= _units_in(message.data)
    return found


def _units_in(text: str) -> dict[str, str]:
    found = {}
    for tag in _JOINT.findall(_COMMENT.sub("", text)):
        name, kind = (re.search(_ATTRIBUTE % key, tag) for key in ("name", "type"))
        if name and kind and kind[1] in _UNITS:
            found[name[1]] = _UNITS[kind[1]]
    return found


def with_units(where: str, signals: SignalMap, described: Mapping[str, str]) -> SignalMap:
    """What the map says of signals, with the units of joints that it does not name.

    Args:
        where: Bag, for error messages.
        signals: What the map says.
        described: Unit of each joint that the robot's description knows.

    Raises:
        InputError: If map and description contradict each other.
    """
    known = dict(zip(signals.ours(described), described.values(), strict=True))
    for ours, unit in known.items():
        stated = signals.joint_unit.get(ours, signals.joint_unit.get("", unit))
        if stated != unit and (not signals.joints or ours in signals.joints):
            moves = "slides" if unit == "m" else "turns"
            raise InputError(
                f"{where}: signals.joint_unit of the topic map says {stated} of joint {ours!r},"
                f" which {moves} by the {DESCRIPTION} in the bag; write {{{ours}: {unit}}}"
            )
    return signals.model_copy(update={"joint_unit": {**known, **signals.joint_unit}})


def may_slide(name: str) -> bool:
    """Whether a joint of which nothing else is known may be one that slides."""
    return _SLIDES.search(name) is not None
