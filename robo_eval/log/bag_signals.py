"""What the joints, commands and forces of a bag's messages are, as arrays over time."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted
from robo_eval.log.bag_field import DATA, Definitions, FieldPath, Message, check_field, fields_in
from robo_eval.log.bag_map import TopicMap
from robo_eval.log.bag_value import plain_of

JOINT_STATE: Final = "sensor_msgs/msg/JointState"
_TRAJECTORY: Final = "trajectory_msgs/msg/JointTrajectory"
_POINT: Final = f"{_TRAJECTORY}Point"
_NS: Final = 1e-9
_TURN: Final = 2.0 * math.pi
_FORCE_FIELD: Final = {
    "geometry_msgs/msg/WrenchStamped": ("wrench", "force"),
    "geometry_msgs/msg/Wrench": ("force",),
}
NUMBERS: Final = frozenset(
    ["float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
)
_APART: Final = 0.01
"""Positions of one joint closer than this, in rad or m, are not told apart as of two publishers."""
_NEAR_TURN: Final = 0.5
"""A step of a whole turn, give or take this, is one of the angle's range and not of the joint."""
_CLOCKS_APART_S: Final = 1.0
"""Greatest difference between the clocks of two topics, seconds; no message takes that long."""
_FEW: Final = 0.05
"""The share of messages that may be off by chance."""
_BURST: Final = 10.0
"""How many times the short steps the long ones are where messages come in bursts."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Named = tuple[Iterable[str], ArrayLike | None]
"""Names, and a number of each; None if a message does not reach so far."""


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
        units: Unit of each joint, `rad` or `m`.
        joints: Measured positions of each joint, shape (N, 1); None if they cannot be used.
        command: Commanded positions of each joint, shape (M, 1).
        pauses_s: Times at which the recording was interrupted: nothing is computed across them.
        force: Contact force (K, 3), or its magnitude (K, 1), newton.
        continuous: Joints that turn without end: their angles count within whole turns.
        jerk_window_s: Length of the fit that jerk is taken from; None for the usual one.
        settling_band: Greatest distance from the last command that counts as settled, by unit;
            under '' for all.
        reasons: Why a signal cannot be used, by its name here.
        skipped: Which messages are left out of them, and why.
    """

    units: Mapping[str, str]
    joints: Mapping[str, Signal] | None = None
    command: Mapping[str, Signal] | None = None
    force: Signal | None = None
    pauses_s: Sequence[float] = ()
    continuous: frozenset[str] = frozenset()
    jerk_window_s: float | None = None
    settling_band: Mapping[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Group:
    """The messages of a topic that give the same names in the same order."""

    numbers: list[int] = field(default_factory=list)
    received_ns: list[int] = field(default_factory=list)
    header_ns: list[int] = field(default_factory=list)
    rows: list[Floats] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class _SignalColumn:
    """One joint in the messages of a topic, in their order.

    Attributes:
        numbers: Place of each message among those of the topic, from 1.
        received: When it was received, ns.
        stamps: The time it counts as of, ns.
        values: What it says.
        groups: Which list of names it has.
    """

    numbers: Integers
    received: Integers
    stamps: Integers
    values: Floats
    groups: Integers

    def take(self, which: NDArray[np.bool_]) -> _SignalColumn:
        return _SignalColumn(
            self.numbers[which],
            self.received[which],
            self.stamps[which],
            self.values[which],
            self.groups[which],
        )


class SignalReader:
    """Takes the numbers of one signal out of the messages of its topic, by the names in them.

    Args:
        where: Bag, for error messages.
        place: Place in the topic map.
        path: Topic, and field if one is named.
        named: Names and numbers of a message.
        mapping: What the map says.
        wanted: The names that count; all if empty.
        what: What has these names, such as `joint`.
    """

    def __init__(
        self,
        where: str,
        place: str,
        path: FieldPath,
        named: Callable[[Message], Named],
        mapping: TopicMap,
        wanted: Iterable[str] = (),
        what: str = "joint",
    ) -> None:
        self.topic: Final = path.topic
        self.received_ns: Final[list[int]] = []
        self._where = f"{where}: topic {path.topic} ({place} of the topic map)"
        self._path = path
        self._named = named
        self._signals = mapping.signals
        self._invalid = mapping.measures.invalid
        self._what = what
        self._wanted = tuple(wanted)
        self._count = 0
        self._first_ns = 0
        self._others: set[str] = set()
        self._groups: dict[tuple[str, ...], _Group] = {}

    def take(self, received_ns: int, message: Message) -> None:
        """Add a message.

        Raises:
            InputError: If it does not hold what it should.
        """
        self._first_ns = self._first_ns if self._count else received_ns
        self._count += 1
        try:
            given, numbers = self._named(message)
            if numbers is None:
                return
            names = tuple(given)
            # Several nodes may publish on one topic, each about its own joints.
            if self._wanted and names and not set(self._wanted) & set(names):
                self._others.update(names)
                return
            values = np.asarray(numbers, dtype=np.float64).reshape(-1)
            if not names and len(values):
                raise InputError(
                    f"names no joints for its {len(values)} numbers; list them under signals.joints"
                )
            if len(values) != len(names):
                remedy = "; name a topic with positions"
                if not self._wanted and not len(values):
                    remedy += ", or list the joints that count under signals.joints"
                raise InputError(
                    f"has {counted(len(values), 'position')} for {counted(len(names), 'joint')}"
                    f"{remedy}"
                )
            group = self._groups.get(names)
            if group is None:
                twice = [name for name in self._wanted or names if names.count(name) > 1]
                if twice:
                    raise InputError(f"names {self._what} {twice[0]!r} twice; leave the bag out")
                group = self._groups[names] = _Group()
        except InputError as err:
            raise InputError(f"{self._where}: message {self._count}: {err}") from err
        self.received_ns.append(received_ns)
        group.numbers.append(self._count)
        group.received_ns.append(received_ns)
        group.rows.append(values)
        if self._signals.clock == "header":
            stamp = message.header.stamp
            group.header_ns.append(int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec))

    @property
    def silence(self) -> str:
        """Why there is no signal, where there is none."""
        if self._count and not self._groups:
            return f"no message of {self.topic} holds {self._path.text}"
        return f"{self.topic} is silent"

    @property
    def found(self) -> set[str]:
        """All names that stand in a message."""
        return {*self._others, *(name for names in self._groups for name in names)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names that count."""
        return self._wanted or next(iter(self._groups), ())

    def check(self) -> None:
        """Refuse names that count and stand in no message, or that only some messages have.

        Raises:
            InputError: The message names the nearest.
        """
        found = self.found
        for name in self._wanted if found else ():
            if name not in found:
                raise InputError(f"{self._where}: {unknown_name(self._what, name, sorted(found))}")
        for names, group in self._groups.items():
            missing = found - set(names)
            if missing and not self._wanted:
                raise InputError(
                    f"{self._where}: message {group.numbers[0]}: {self._what} {min(missing)!r} is"
                    " missing, which others have; list the joints that count under signals.joints,"
                    " and under joint_unit those that are not in rad"
                )

    def signal(
        self, first_ns: int, last_ns: int, origin_ns: int, skipped: dict[str, str]
    ) -> dict[str, Signal]:
        """The signal of what was received between two times, by name.

        Args:
            first_ns: From then on.
            last_ns: Until then.
            origin_ns: Time that becomes 0.
            skipped: Gets which messages are left out, and why.

        Raises:
            InputError: If it cannot be used; the message names messages and remedy.
        """
        found: dict[str, Signal] = {}
        for name in self.names:
            column = self._column(name, first_ns, last_ns)
            if not len(column.values):
                continue
            column = self._finite(name, column, skipped)
            self._check_header(column)
            self._check_publishers(name, column)
            values = self._straight(name, column.values)
            seconds: Floats = (column.stamps - origin_ns).astype(np.float64) * _NS
            found[name] = Signal(topic=self.topic, stamp_s=seconds, values=values[:, None])
        return found

    def to_and_fro(self, first_ns: int, last_ns: int) -> str:
        """That commands leave and come back at once, as those of two publishers do."""
        for name in self.names:
            column = self._column(name, first_ns, last_ns)
            if conflict(column.received, column.values, column.groups, _APART) is not None:
                return (
                    f"{self._path.text}: commands of {self._what} {name!r} leave and come back at"
                    " once; if two publishers send them, record one"
                )
        return ""

    def bursts(self, first_ns: int, last_ns: int) -> str:
        """That messages were received in bursts, which says little about when they were sent."""
        for name in self.names if self._signals.clock == "received" else ():
            steps = np.diff(self._column(name, first_ns, last_ns).received)
            short, long = np.quantile(steps, (0.05, 0.95)) if len(steps) > 2 else (1.0, 1.0)
            if long > _BURST * max(short, 1.0) and np.mean(steps > long / _BURST) < 0.9:
                return (
                    f"messages of {self.topic} were received in bursts, {short * _NS:.6f} to"
                    f" {long * _NS:.6f} s apart; set signals.clock: header"
                )
        return ""

    def offsets_ns(self) -> tuple[Integers, Integers]:
        """When each message was received, and how much later that is than its header says."""
        pairs = [
            (received, received - stamp)
            for group in self._groups.values()
            for received, stamp in zip(group.received_ns, group.header_ns, strict=True)
        ]
        both = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def stamps_ns(self, first_ns: int, last_ns: int) -> Integers:
        """The times in the headers of messages received between two times, in order."""
        received, late = self.offsets_ns()
        stamps = (received - late)[(received >= first_ns) & (received <= last_ns)]
        return np.sort(stamps[stamps > 0])

    def check_clock(self, other: SignalReader) -> None:
        """Refuse header stamps of two topics that are of different clocks.

        Raises:
            InputError: The message says how far they are apart.
        """
        mine, late = self.offsets_ns()
        theirs, their_late = other.offsets_ns()
        if not len(mine) or not len(theirs):
            return
        at = np.clip(np.searchsorted(theirs, mine), 0, len(theirs) - 1)
        apart_s = (late - their_late[at]) * _NS
        far = apart_s[np.abs(apart_s) > _CLOCKS_APART_S]
        # A single message may have waited somewhere.
        if len(far) > _FEW * len(mine):
            far_s = float(np.median(far))
            raise InputError(
                f"{self._where}: the stamps of {len(far)} of its {len(mine)} messages are"
                f" {abs(far_s):.3f} s {'behind' if far_s > 0 else 'ahead of'} those of"
                f" {other.topic}; set signals.clock: received"
            )

    def origin_ns(self) -> int | None:
        """The least time of a message; None if there is none."""
        use = "header_ns" if self._signals.clock == "header" else "received_ns"
        return min((min(getattr(g, use)) for g in self._groups.values()), default=None)

    def _column(self, name: str, first_ns: int, last_ns: int) -> _SignalColumn:
        parts = []
        for index, (names, group) in enumerate(self._groups.items()):
            low = bisect_left(group.received_ns, first_ns)
            part = slice(low, bisect_right(group.received_ns, last_ns))
            if name not in names or low >= part.stop:
                continue
            at = names.index(name)
            stamps = group.header_ns if self._signals.clock == "header" else group.received_ns
            values = np.array([row[at] for row in group.rows[part]])
            parts.append(
                _SignalColumn(
                    np.array(group.numbers[part]),
                    np.array(group.received_ns[part], dtype=np.int64),
                    np.array(stamps[part], dtype=np.int64),
                    values,
                    np.full(len(values), index),
                )
            )
        if not parts:
            none = np.array([], dtype=np.int64)
            return _SignalColumn(none, none, none, none.astype(np.float64), none)
        order = np.argsort(np.concatenate([part.numbers for part in parts]))
        return _SignalColumn(
            *(
                np.concatenate([getattr(part, key) for part in parts])[order]
                for key in ("numbers", "received", "stamps", "values", "groups")
            )
        )

    def _finite(self, name: str, column: _SignalColumn, skipped: dict[str, str]) -> _SignalColumn:
        """The numbers alone; what came before the first of them was not known yet."""
        is_finite = np.isfinite(column.values)
        wrong = np.flatnonzero(~is_finite)
        if not len(wrong):
            return column
        begun = np.flatnonzero(is_finite)
        later = wrong[wrong > begun[0]] if len(begun) else wrong
        what = f"{self._what} {name!r} is NaN or infinite"
        if len(later) and (self._invalid != "skip" or not len(begun)):
            at = int(later[0])
            seconds = (column.received[at] - self._first_ns) * _NS
            remedy = (
                "set measures.invalid: skip to go without these messages, or leave_out to go"
                " without control measures"
                if len(begun)
                else "list the joints that count without it under signals.joints, or set"
                " measures.invalid: leave_out to go without control measures"
            )
            raise InputError(
                f"{self._where}: {what} in {len(later)} of {len(column.values)} messages, first in"
                f" message {column.numbers[at]}, at {seconds:.3f} s; {remedy}"
            )
        skipped[f"NaN in {self.topic}"] = f"{what} in {len(wrong)} of {len(column.values)} messages"
        return column.take(is_finite)

    def _check_header(self, column: _SignalColumn) -> None:
        if self._signals.clock == "received":
            return
        stamps, count = column.stamps, len(column.stamps)
        steps = np.diff(stamps)
        changes = np.diff(column.values) != 0.0
        for wrong, problem in (
            (stamps == 0, "have stamp 0"),
            (steps < 0, "go back in time"),
            ((steps == 0) & changes, "repeat the stamp of the one before with another position"),
            ((steps == 0) & (not steps.any()), "have the stamp of the first"),
        ):
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0]) + (len(wrong) < count)
                raise InputError(
                    f"{self._where}: {int(wrong.sum())} of {count} messages {problem}, first"
                    f" message {column.numbers[at]}; set signals.clock: received"
                )

    def _check_publishers(self, name: str, column: _SignalColumn) -> None:
        # A command and a force may jump to and fro, and a joint may not.
        may_jump = self._path != self._signals.joint_state
        at = conflict(column.received, column.values, column.groups, _APART, may_jump=may_jump)
        if at is None:
            return
        raise InputError(
            f"{self._where}: two publishers say where {self._what} {name!r} is"
            f"{' to be' * may_jump}: message {column.numbers[at - 1]} says"
            f" {column.values[at - 1]:g}, message {column.numbers[at]} {column.values[at]:g};"
            " record one of them, or set measures.invalid: leave_out to go without control"
            " measures"
        )

    def _straight(self, name: str, values: Floats) -> Floats:
        """Angles without the steps from one end of their range to the other."""
        signals = self._signals
        if self._what != "joint" or signals.unit_of(name) != "rad":
            return values
        if name in signals.continuous:
            return np.unwrap(values)
        steps = np.abs(np.diff(values))
        # A fast joint has gone on by as much as it does before and after the step.
        around = np.minimum(np.append(steps[1:], 0.0), np.append(0.0, steps[:-1]))
        turns = np.abs(steps - _TURN) < np.maximum(_NEAR_TURN, 1.5 * around)
        if turns.any():
            times = "once" if turns.sum() == 1 else f"{turns.sum()} times"
            raise InputError(
                f"{self._where}: joint {name!r} steps by a whole turn {times}; set"
                f" signals.continuous: [{name}] if it turns without end"
            )
        return values


def conflict(
    times: Integers, values: Floats, groups: Integers, apart: float, *, may_jump: bool = False
) -> int | None:
    """The first place where two publishers say different things of one joint; None if none does.

    Between two messages of one list of names, a message of another list must say something that
    lies between theirs, give or take what they differ by. Where all have one list, messages must
    not leave and come back at once: half of them, or some by far more than messages usually differ;
    unless what they say may jump.
    """
    if len(values) <= 2:
        return None
    found: list[int] = []
    for one, two in combinations(np.unique(groups), 2):
        for base, other in ((one, two), (two, one)):
            mine, theirs = np.flatnonzero(groups == base), np.flatnonzero(groups == other)
            after = np.searchsorted(mine, theirs)
            inside = (after > 0) & (after < len(mine))
            low, high, theirs = mine[after[inside] - 1], mine[after[inside]], theirs[inside]
            if not len(theirs):
                continue
            usual = np.median(np.diff(times[mine]))
            near = times[high] - times[low] <= 3.0 * usual
            middle = (values[low] + values[high]) / 2.0
            noise = float(np.median(np.abs(np.diff(values[mine]))))
            bound = 1.5 * np.abs(values[high] - values[low]) + 4.0 * noise + apart
            wrong = theirs[near & (np.abs(values[theirs] - middle) > bound)]
            # Noise goes beyond that in one of hundreds.
            found += wrong.tolist() if len(wrong) > _FEW * len(theirs) else []
    steps = np.abs(np.diff(values))
    out = np.minimum(steps[:-1], steps[1:])
    back = np.abs(values[2:] - values[:-2])
    spikes = np.flatnonzero((out > apart) & (back < 0.1 * out)) + 1
    far = spikes[out[spikes - 1] > apart + 10.0 * np.median(steps)]
    for wrong, least in () if may_jump else ((spikes, len(values) / 2.0), (far, 0.0)):
        found += wrong.tolist() if len(wrong) > max(least, 2.0) else []
    return min(found, default=None)


def is_whole_turn(joint: Signal, command: Signal) -> bool:
    """Whether most positions of a joint are about a whole turn from its newest command."""
    newest = np.searchsorted(command.stamp_s, joint.stamp_s, side="right") - 1
    away = np.abs(joint.values[newest >= 0] - command.values[newest[newest >= 0]])
    turns = np.round(away / _TURN)
    return len(away) > 0 and bool(
        np.median((turns >= 1.0) & (np.abs(away - turns * _TURN) < _NEAR_TURN)) > 0.0
    )


def joint_reader(where: str, mapping: TopicMap, type_name: str) -> SignalReader:
    """The reader of measured joint positions.

    Args:
        where: Bag, for error messages.
        mapping: What the map says.
        type_name: Type of the topic's messages.

    Raises:
        InputError: If the topic holds no joint states.
    """
    signals = mapping.signals
    path = signals.joint_state
    assert path is not None
    if type_name != JOINT_STATE:
        raise InputError(
            f"{where}: topic {path.topic} (signals.joint_state of the topic map) has messages of"
            f" type {type_name}; name a topic of {JOINT_STATE}"
        )
    return SignalReader(
        where,
        "signals.joint_state",
        path,
        lambda message: (signals.ours(message.name or signals.joints), message.position),
        mapping,
        signals.joints,
    )


def command_reader(
    where: str, mapping: TopicMap, type_name: str, known: Definitions
) -> SignalReader:
    """The reader of commanded joint positions; see `joint_reader`.

    Raises:
        InputError: If the topic holds no joint positions, or it cannot be told of which joints.
    """
    signals = mapping.signals
    path = signals.command
    assert path is not None
    place = "signals.command"
    _check_header(where, place, path, type_name, known, signals.clock)
    names: FieldPath | None
    if not path.steps and type_name == JOINT_STATE:
        names = FieldPath(path.topic, ("name",), path.text)
        value: Callable[[Message], ArrayLike | None] = lambda message: message.position  # noqa: E731 - one of three
    elif not path.steps and type_name == _TRAJECTORY:
        names = FieldPath(path.topic, ("joint_names",), path.text)
        value = lambda message: _only_point(message.points).positions  # noqa: E731 - one of three
    else:
        full = _numbers(where, place, path, type_name, known)
        names = names_beside(full, type_name, known)
        points = _points_above(full, type_name, known)
        value = full.value if points is None else _of_only_point(points, full)
        if names is None and not signals.joints:
            raise InputError(
                f"{where}: topic {path.topic} ({place} of the topic map) names no joints; list"
                " them under signals.joints, in the order of the controller"
            )

    def named(message: Message) -> Named:
        given: Iterable[str] = names.value(message) if names is not None else ()
        # A message may leave its list of names empty.
        return signals.ours(given or signals.joints), value(message)

    return SignalReader(where, place, path, named, mapping, signals.joints)


def force_reader(
    where: str,
    mapping: TopicMap,
    type_name: str,
    known: Definitions,
) -> SignalReader:
    """The reader of contact forces.

    Raises:
        InputError: If the topic holds none.
    """
    signals = mapping.signals
    path = signals.wrench
    assert path is not None
    place = "signals.wrench"
    _check_header(where, place, path, type_name, known, signals.clock)
    steps = path.steps or _FORCE_FIELD.get(type_name) or _data(type_name, known)
    full = FieldPath(path.topic, steps, path.text)
    found = check_field(f"{where}: {place} of the topic map", full, type_name, known)
    if "torque" in steps:
        raise InputError(
            f"{where}: {path.text} ({place} of the topic map) is a torque, in N m, and no force;"
            " name the field with the force"
        )
    if found in NUMBERS:
        # Outside arrays the library gives a float32 as a float, with digits it never had.
        digits = np.float32 if found == "float32" else float

        def number(message: Message) -> Named:
            value = full.value(message)
            return ("force",), None if value is None else np.array([plain_of(digits(value))], float)

        return _force(where, place, path, number, mapping)
    if not {"x", "y", "z"} <= set(fields_in(found, known)):
        raise InputError(
            f"{where}: topic {path.topic} ({place} of the topic map): {found} is no force; name a"
            " field with x, y and z, or one number"
        )

    def named(message: Message) -> Named:
        vector = full.value(message)
        if vector is None:
            return ("x", "y", "z"), None
        numbers = np.array([vector.x, vector.y, vector.z])
        # Of a vector that is unknown in part the magnitude is unknown.
        return ("x", "y", "z"), numbers if np.isfinite(numbers).all() else numbers * math.nan

    return _force(where, place, path, named, mapping)


def _force(
    where: str, place: str, path: FieldPath, named: Callable[[Message], Named], mapping: TopicMap
) -> SignalReader:
    return SignalReader(where, place, path, named, mapping, what="force")


def whole(parts: Mapping[str, Signal]) -> Signal:
    """The components of a vector as one signal."""
    first = next(iter(parts.values()))
    values = np.hstack([part.values for part in parts.values()])
    return Signal(topic=first.topic, stamp_s=first.stamp_s, values=values)


def _points_above(full: FieldPath, type_name: str, known: Definitions) -> FieldPath | None:
    """The list of points of a trajectory that a path leads through, if it does."""
    for end in range(1, len(full.steps)):
        above = FieldPath(full.topic, full.steps[:end], full.text)
        if check_field("", above, type_name, known) == f"{_POINT}[]":
            return above
    return None


def _of_only_point(points: FieldPath, full: FieldPath) -> Callable[[Message], ArrayLike | None]:
    def value(message: Message) -> ArrayLike | None:
        _only_point(points.value(message))
        found: ArrayLike | None = full.value(message)
        return found

    return value


def _only_point(points: Sequence[Message]) -> Message:
    if len(points) != 1:
        raise InputError(
            f"holds a trajectory of {len(points)} points, not one command; name the topic"
            " of the single commands, or leave signals.command out"
        )
    later = points[0].time_from_start
    seconds = int(later.sec) + int(later.nanosec) * _NS
    if seconds > 0.0:
        raise InputError(
            f"asks for its point {seconds:g} s later (time_from_start), and where the joints should"
            " be until then is not recorded; name the field with the reference of the controller,"
            " such as /joint_trajectory_controller/controller_state.reference.positions, or leave"
            " signals.command out"
        )
    return points[0]


def names_beside(full: FieldPath, type_name: str, known: Definitions) -> FieldPath | None:
    """The list of names that stands beside a list of numbers, or above it; None if none does."""
    for end in reversed(range(len(full.steps))):
        steps = full.steps[:end]
        above = FieldPath(full.topic, steps, full.text)
        kind = check_field("", above, type_name, known) if steps else type_name
        for name in fields_in(kind, known):
            found = FieldPath(full.topic, (*steps, name), full.text)
            is_list = check_field("", found, type_name, known) == "string[]"
            if is_list and ("name" in name or "joint" in name):
                return found
    return None


def _numbers(
    where: str,
    place: str,
    path: FieldPath,
    type_name: str,
    known: Definitions,
) -> FieldPath:
    """The path to one number or a list of them; a type of std_msgs has them in `data`."""
    full = FieldPath(path.topic, path.steps or _data(type_name, known), path.text)
    found = check_field(f"{where}: {place} of the topic map", full, type_name, known)
    if found.removesuffix("[]") not in NUMBERS:
        raise InputError(
            f"{where}: topic {path.topic} ({place} of the topic map): {found} is no list of"
            f" numbers; name the field with positions, as {path.topic}.field"
        )
    return full


def _data(type_name: str, known: Definitions) -> tuple[str, ...]:
    """What a topic alone means: its field `data`, if it has one."""
    return (DATA,) if DATA in fields_in(type_name, known) else ()


def _check_header(
    where: str,
    place: str,
    path: FieldPath,
    type_name: str,
    known: Definitions,
    clock: str,
) -> None:
    if clock == "header" and "header" not in fields_in(type_name, known):
        raise InputError(
            f"{where}: topic {path.topic} ({place} of the topic map): {type_name} has no header;"
            " set signals.clock: received"
        )
