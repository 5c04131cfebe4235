"""What the joints, commands and forces of a bag's messages are, as arrays over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.log.bag_field import Definitions, FieldPath, Message, check_field
from robo_eval.log.bag_map import SignalMap

JOINT_STATE: Final = "sensor_msgs/msg/JointState"
_TRAJECTORY: Final = "trajectory_msgs/msg/JointTrajectory"
_NS: Final = 1e-9
_FORCE_FIELD: Final = {
    "geometry_msgs/msg/WrenchStamped": ("wrench", "force"),
    "geometry_msgs/msg/Wrench": ("force",),
}
_NUMBERS: Final = frozenset(
    ["float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
)

Floats = NDArray[np.float64]
Row = Sequence[float] | Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signal:
    """A signal over time.

    Attributes:
        topic: Where it is from.
        stamp_s: Times since the start of the episode, shape (N,), seconds.
        values: Shape (N, D).
    """

    topic: str
    stamp_s: Floats
    values: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ControlSignals:
    """What control measures of one episode are computed from.

    Attributes:
        joint_unit: `rad` or `m`.
        joints: Measured joint positions (N, J); None if they are not recorded.
        command: Commanded joint positions (M, J), in the same order of joints.
        force: Contact force (K, 3), or its magnitude (K, 1), newton.
        jerk_window_s: Length of the fit that jerk is taken from; None for the usual one.
        settling_band: Greatest distance from the last command that counts as settled.
        reasons: Why a signal cannot be used, by its name here.
    """

    joint_unit: str
    joints: Signal | None = None
    command: Signal | None = None
    force: Signal | None = None
    jerk_window_s: float | None = None
    settling_band: float | None = None
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Samples:
    """Messages of a signal as they come in.

    Attributes:
        received_ns: When each was received.
        stamp_ns: The time each counts as of.
        rows: Its numbers.
    """

    received_ns: list[int] = field(default_factory=list)
    stamp_ns: list[int] = field(default_factory=list)
    rows: list[Floats] = field(default_factory=list)


class SignalReader:
    """Takes the numbers of one signal out of the messages of its topic.

    Args:
        where: Bag, for error messages.
        place: Place in the topic map.
        path: Topic, and field if one is named.
        row_of: The numbers of a message; None if it holds none that count.
        clock: Which time counts, see `SignalMap`.
        wanted: The joints of which messages count; of all if empty.
    """

    def __init__(
        self,
        where: str,
        place: str,
        path: FieldPath,
        row_of: Callable[[Message], Row | None],
        clock: Literal["received", "header"],
        wanted: Sequence[str] = (),
    ) -> None:
        self.topic: Final = path.topic
        self.samples: Final = Samples()
        self._where = f"{where}: topic {path.topic} ({place} of the topic map)"
        self._row_of = row_of
        self._clock = clock
        self._wanted = tuple(wanted)
        self._others: tuple[str, ...] = ()

    def take(self, received_ns: int, message: Message) -> None:
        """Add a message.

        Raises:
            InputError: If it does not hold what it should, or its time goes backwards.
        """
        try:
            row = self._row_of(message)
        except InputError as err:
            number = len(self.samples.rows) + 1
            raise InputError(f"{self._where}: message {number}: {err}") from err
        if row is None:
            self._others = tuple(getattr(message, "name", None) or message.joint_names)
            return
        stamp = received_ns if self._clock == "received" else self._header_ns(message)
        self.samples.received_ns.append(received_ns)
        self.samples.stamp_ns.append(stamp)
        self.samples.rows.append(np.array(row, dtype=np.float64).reshape(-1))

    def _header_ns(self, message: Message) -> int:
        stamp = message.header.stamp
        now = int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
        stamps = self.samples.stamp_ns
        if stamps and now < stamps[-1]:
            raise InputError(
                f"{self._where}: time goes backwards at message {len(stamps) + 1}, its header says"
                f" {now} ns after {stamps[-1]} ns; set signals.clock: received"
            )
        return now

    def check(self) -> None:
        """Refuse a list of joints of which no message names one.

        Raises:
            InputError: The message names the nearest joint.
        """
        if self.samples.rows or not self._others:
            return
        for name in self._wanted:
            if name not in self._others:
                raise InputError(f"{self._where}: {unknown_name('joint', name, self._others)}")

    def signal(
        self, first_ns: int, last_ns: int, *, origin_ns: int, is_finite: bool
    ) -> Signal | None:
        """The signal of what was received between two times; None if there is nothing.

        Args:
            first_ns: From then on.
            last_ns: Until then.
            origin_ns: Time that becomes 0.
            is_finite: Whether to refuse what is not a finite number.

        Raises:
            InputError: If it is refused; the message names the message and its time.
        """
        samples = self.samples
        received = samples.received_ns
        low, high = bisect_left(received, first_ns), bisect_right(received, last_ns)
        if low == high:
            return None
        values = np.stack(samples.rows[low:high])
        wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if is_finite and len(wrong):
            at = low + int(wrong[0])
            raise InputError(
                f"{self._where}: message {at + 1}, at {(received[at] - received[0]) * _NS:.3f} s,"
                " holds NaN or infinity; leave the bag out, or set measures.invalid: leave_out to"
                " go without its control measures"
            )
        stamps = np.array(samples.stamp_ns[low:high], dtype=np.int64)
        seconds: Floats = (stamps - origin_ns).astype(np.float64) * _NS
        return Signal(topic=self.topic, stamp_s=seconds, values=values)


def joint_reader(where: str, signals: SignalMap, type_name: str, order: list[str]) -> SignalReader:
    """The reader of measured joint positions.

    Args:
        where: Bag, for error messages.
        signals: What the map says.
        type_name: Type of the topic's messages.
        order: Names of the joints; filled by the first message if empty.

    Raises:
        InputError: If the topic holds no joint states.
    """
    path = signals.joint_state
    assert path is not None
    if type_name != JOINT_STATE:
        raise InputError(
            f"{where}: topic {path.topic} (signals.joint_state of the topic map) has messages of"
            f" type {type_name}; name a topic of {JOINT_STATE}"
        )
    rows = _NamedRows(order, has_list=bool(signals.joints))
    return SignalReader(
        where,
        "signals.joint_state",
        path,
        lambda message: rows.row(message.name, message.position),
        signals.clock,
        signals.joints,
    )


def command_reader(
    where: str,
    signals: SignalMap,
    type_name: str,
    known: Definitions,
    order: list[str],
) -> SignalReader:
    """The reader of commanded joint positions; see `joint_reader`.

    Raises:
        InputError: If the topic holds no joint positions, or it cannot be told of which joints.
    """
    path = signals.command
    assert path is not None
    place = "signals.command"
    _check_header(where, place, path, type_name, known, signals.clock)
    rows = _NamedRows(order, has_list=bool(signals.joints))
    row_of: Callable[[Message], Row | None]
    if not path.steps and type_name == JOINT_STATE:

        def row_of(message: Message) -> Row | None:
            return rows.row(message.name, message.position)

    elif not path.steps and type_name == _TRAJECTORY:

        def row_of(message: Message) -> Row | None:
            return rows.row(message.joint_names, _only_point(message))

    else:
        full = _numbers(where, place, path, type_name, known)
        if not signals.joints:
            raise InputError(
                f"{where}: topic {path.topic} ({place} of the topic map) names no joints; list"
                " them under signals.joints, in the order of the controller"
            )

        def row_of(message: Message) -> Row | None:
            return rows.row(signals.joints, np.atleast_1d(full.value(message)))

    return SignalReader(where, place, path, row_of, signals.clock, signals.joints)


def force_reader(
    where: str,
    signals: SignalMap,
    type_name: str,
    known: Definitions,
) -> SignalReader:
    """The reader of contact forces.

    Raises:
        InputError: If the topic holds none.
    """
    path = signals.wrench
    assert path is not None
    place = "signals.wrench"
    _check_header(where, place, path, type_name, known, signals.clock)
    full = FieldPath(path.topic, path.steps or _FORCE_FIELD.get(type_name, ()), path.text)
    found = check_field(f"{where}: {place} of the topic map", full, type_name, known)
    if found in _NUMBERS:
        return SignalReader(where, place, path, lambda m: [full.value(m)], signals.clock)
    names = [name for name, _ in known[found][1]] if found in known else []
    if not {"x", "y", "z"} <= set(names):
        raise InputError(
            f"{where}: topic {path.topic} ({place} of the topic map): {found} is no force; name a"
            " field with x, y and z, or one number"
        )

    def row_of(message: Message) -> Row:
        vector = full.value(message)
        return [vector.x, vector.y, vector.z]

    return SignalReader(where, place, path, row_of, signals.clock)


class _NamedRows:
    """Puts positions into the one order of joints, message for message."""

    def __init__(self, order: list[str], *, has_list: bool) -> None:
        self._order = order
        self._has_list = has_list
        self._names: tuple[str, ...] | None = None
        self._places: list[int] | None = None

    def row(self, names: Sequence[str], positions: ArrayLike) -> Row | None:
        """The positions of our joints; None if the message is about others.

        Raises:
            InputError: If it is about some of them only, or has not one position for each.
        """
        given = tuple(names)
        if given != self._names:
            self._names, self._places = given, self._places_of(given)
        if self._places is None:
            return None
        values = np.asarray(positions, dtype=np.float64)
        if values.shape != (len(given),):
            raise InputError(
                f"has {values.size} positions for {len(given)} joints; name a topic with positions"
            )
        row: Floats = values[self._places]
        return row

    def _places_of(self, given: tuple[str, ...]) -> list[int] | None:
        if not self._order:
            self._order.extend(given)
        missing = [name for name in self._order if name not in given]
        if not missing:
            return [given.index(name) for name in self._order]
        # Several nodes may publish on one topic, each about its own joints.
        if self._has_list and len(missing) == len(self._order):
            return None
        if self._has_list:
            raise unknown_name("joint", missing[0], given)
        raise InputError(
            f"joint {missing[0]!r} is missing, which others have; list the joints that count under"
            " signals.joints"
        )


def _only_point(message: Message) -> ArrayLike:
    if len(message.points) != 1:
        raise InputError(
            f"holds a trajectory of {len(message.points)} points, not one command; name the topic"
            " of the single commands, or leave signals.command out"
        )
    positions: Floats = message.points[0].positions
    return positions


def _numbers(
    where: str,
    place: str,
    path: FieldPath,
    type_name: str,
    known: Definitions,
) -> FieldPath:
    """The path to one number or a list of them; a type of std_msgs has them in `data`."""
    full = path
    names = [name for name, _ in known[type_name][1]] if type_name in known else []
    if not path.steps and "data" in names:
        full = FieldPath(path.topic, ("data",), path.text)
    found = check_field(f"{where}: {place} of the topic map", full, type_name, known)
    if found.removesuffix("[]") not in _NUMBERS:
        raise InputError(
            f"{where}: topic {path.topic} ({place} of the topic map): {found} is no list of"
            f" numbers; name the field with positions, as {path.topic}.field"
        )
    return full


def _check_header(
    where: str,
    place: str,
    path: FieldPath,
    type_name: str,
    known: Definitions,
    clock: str,
) -> None:
    names = [name for name, _ in known[type_name][1]] if type_name in known else []
    if clock == "header" and "header" not in names:
        raise InputError(
            f"{where}: topic {path.topic} ({place} of the topic map): {type_name} has no header;"
            " set signals.clock: received"
        )
