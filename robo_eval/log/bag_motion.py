"""When a robot moved, by the speeds in the messages of a topic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted
from robo_eval.log.bag_field import DATA, Definitions, FieldPath, Message, check_field, fields_in
from robo_eval.log.bag_map import ExposureRule
from robo_eval.log.bag_signals import JOINT_STATE, NUMBERS, conflict, names_beside

_NS: Final = 1e-9
_AXES: Final = ("x", "y", "z")
_TWIST: Final = ("linear", "angular")

Speeds = Iterator[tuple[str, float]]
"""What moves, and how fast; NaN if that is not known."""


class MotionReader:
    """Takes the speeds out of the messages of a topic.

    What moves is a joint where the messages name joints, or the `linear` and `angular` speed of
    a base. Of each, the newest speed holds until the next one.

    Args:
        where: Bag and place in the map, for error messages.
        exposure: What the map says.
        type_name: Type of the topic's messages.
        known: Fields of each type.

    Raises:
        InputError: If the field holds no speed.
    """

    def __init__(
        self, where: str, exposure: ExposureRule, type_name: str, known: Definitions
    ) -> None:
        self.topic: Final = exposure.field.topic
        self._where = where
        self._exposure = exposure
        self._path = _speed_path(where, exposure.field, type_name, known)
        kind = check_field(where, self._path, type_name, known) if self._path.steps else type_name
        names = names_beside(self._path, type_name, known)
        self._is_listed = kind.endswith("[]")
        # A float32 is greater than 0.1 if it is greater than the float32 nearest to that.
        self._is_float32 = kind.removesuffix("[]") == "float32"
        self._named = names if self._is_listed else None
        self._speeds: Callable[[Message], Speeds] = _speeds_of(kind, known)
        if "" not in exposure.above and not _is_twist(kind, known):
            raise InputError(
                f"{where}: {exposure.field.text} has no linear and angular speed; write"
                " exposure.above as one number"
            )
        if exposure.joints and self._named is None:
            raise InputError(
                f"{where}: {exposure.field.text} names no joints; leave exposure.joints out"
            )
        self._count = 0
        self._others: set[str] = set()
        self._lists: dict[tuple[str, ...], int] = {}
        # Of each that moves: message, time, list of names, speed.
        self._said: dict[str, list[tuple[int, int, int, float]]] = {}

    def take(self, stamp: int, message: Message) -> None:
        """Add a message.

        Raises:
            InputError: If it has not one speed for each joint.
        """
        self._count += 1
        value = self._path.value(message)
        if value is None:
            return
        names = () if self._named is None else tuple(self._named.value(message))
        at = self._lists.setdefault(names, len(self._lists))
        if not self._is_listed:
            for name, speed in self._speeds(value):
                self._add(name, stamp, at, speed)
            return
        speeds = np.abs(np.asarray(value, dtype=np.float64)).reshape(-1)
        if names and len(speeds) == 0:
            # Many drivers fill in positions only: that is not standing still.
            speeds = np.full(len(names), np.nan)
        if names and len(names) != len(speeds):
            raise InputError(
                f"{self._where}: message {self._count} of topic {self.topic} has"
                f" {counted(len(speeds), 'number')} for {len(names)} joints; leave the bag out"
            )
        for index, speed in enumerate(speeds.tolist()):
            name = names[index] if names else str(index)
            if self._exposure.joints and name not in self._exposure.joints:
                self._others.add(name)
            else:
                self._add(name, stamp, at, speed)

    def _add(self, name: str, stamp: int, at: int, speed: float) -> None:
        known = speed if math.isfinite(speed) else math.nan
        self._said.setdefault(name, []).append((self._count, stamp, at, known))

    def check(self) -> None:
        """Refuse joints that no message names, and speeds that two publishers say.

        Raises:
            InputError: The message names the joint.
        """
        found = {*self._said, *self._others}
        for name in self._exposure.joints if found else ():
            if name not in self._said:
                raise InputError(f"{self._where}: {unknown_name('joint', name, sorted(found))}")
        for name, said in self._said.items() if len(self._lists) > 1 else ():
            counts, stamps, lists = (np.array([one[i] for one in said]) for i in range(3))
            speeds = np.array([one[3] for one in said])
            at = conflict(stamps, np.nan_to_num(speeds), lists, self._above(name))
            if at is not None:
                raise InputError(
                    f"{self._where}: two publishers on topic {self.topic} say how fast joint"
                    f" {name!r} is: message {counts[at - 1]} says {speeds[at - 1]:g}, message"
                    f" {counts[at]} {speeds[at]:g}; leave the bag out, or name another field"
                )

    def _above(self, name: str) -> float:
        above = self._exposure.above
        found = above.get(name, above.get("", np.inf))
        return float(np.float32(found)) if self._is_float32 else found

    @property
    def since_ns(self) -> int | None:
        """When it is first known how fast anything is; None if it never is."""
        return min((said[0][1] for said in self._said.values()), default=None)

    def seconds(self, first_ns: int, last_ns: int) -> float:
        """How long anything moved between two times.

        Raises:
            InputError: If the speed of something is not known while nothing else moves.
        """
        edges = {first_ns, last_ns}
        for said in self._said.values():
            edges.update(one[1] for one in said if first_ns < one[1] < last_ns)
        starts = np.array(sorted(edges), dtype=np.int64)
        lengths = np.diff(starts)
        moves = np.zeros(len(lengths), dtype=bool)
        blind: list[tuple[int, str]] = []
        held = []
        for name, said in self._said.items():
            newest = np.searchsorted([one[1] for one in said], starts[:-1], side="right") - 1
            speeds = np.array([one[3] for one in said])[np.maximum(newest, 0)]
            is_known = newest >= 0
            moves |= is_known & (speeds > self._above(name))
            held.append((name, said, newest, is_known & np.isnan(speeds)))
        for name, said, newest, is_nan in held:
            blind += [(said[newest[at]][0], name) for at in np.flatnonzero(is_nan & ~moves)[:1]]
        if blind:
            message, name = min(blind)
            what = "is NaN" if not self._named else f"of joint {name!r} is empty or NaN"
            remedy = "name another field"
            if self._named:
                remedy += ", or list the joints that count under exposure.joints"
            raise InputError(
                f"{self._where}: {self._exposure.field.text} {what} in message {message} of"
                f" {self._count}, at which nothing else moves; {remedy}"
            )
        return float(lengths[moves].sum()) * _NS


def _speed_path(where: str, path: FieldPath, type_name: str, known: Definitions) -> FieldPath:
    """The way to a speed; a topic alone means its field `data`, or its twist."""
    steps: tuple[str | int, ...] = path.steps
    if steps == (DATA,) and DATA not in fields_in(type_name, known) and path.text == path.topic:
        steps = ()
    kind = check_field(where, FieldPath(path.topic, steps, path.text), type_name, known)
    if type_name == JOINT_STATE and not steps:
        return FieldPath(path.topic, ("velocity",), path.text)
    # An Odometry has a TwistWithCovariance, which has a Twist.
    while "twist" in fields_in(kind, known):
        steps = (*steps, "twist")
        kind = check_field(where, FieldPath(path.topic, steps, path.text), type_name, known)
    is_place = not {"position", "positions"}.isdisjoint(steps)
    is_vector = set(_AXES) <= set(fields_in(kind, known)) or _is_twist(kind, known)
    if is_place or (kind.removesuffix("[]") not in (*NUMBERS, "json") and not is_vector):
        raise InputError(
            f"{where}: {path.text} is {'a position' if is_place else kind}, and no speed; name a"
            " number, a list of numbers, a vector or a twist"
        )
    return FieldPath(path.topic, steps, path.text)


def _is_twist(kind: str, known: Definitions) -> bool:
    return set(_TWIST) <= set(fields_in(kind, known))


def _speeds_of(kind: str, known: Definitions) -> Callable[[Message], Speeds]:
    def length(vector: Message) -> float:
        return float(np.linalg.norm([getattr(vector, axis) for axis in _AXES]))

    def twist(value: Message) -> Speeds:
        yield from ((name, length(getattr(value, name))) for name in _TWIST)

    def vector(value: Message) -> Speeds:
        yield "", length(value)

    def number(value: Message) -> Speeds:
        # Of a JSON text, what is not a number is not known.
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        yield "", abs(float(value)) if is_number else math.nan

    return twist if _is_twist(kind, known) else vector if kind in known else number
