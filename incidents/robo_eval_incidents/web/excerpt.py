"""What a recording holds around an incident, as series over time that can be drawn."""

from __future__ import annotations

import math
import re
import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np
from mcap.reader import make_reader
from mcap.records import Message
from numpy.typing import NDArray

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.log.bag_recover import DAMAGE, is_cut_short
from robo_eval.log.cdr import Cursor
from robo_eval.log.files import explained
from robo_eval.log.mcap_file import MAGIC
from robo_eval.log.messages import after_header, diagnostics, joint_state, odometry_velocity
from robo_eval.log.signals import is_asked
from robo_eval_incidents.cut import sound_files
from robo_eval_incidents.happened import number_of

WINDOW_S: Final = 10.0
"""How much is shown before and after an event."""
_LEAST_S: Final = 0.1
"""Less than this is not stretched over a whole chart."""
MOST_MESSAGES: Final = 400_000
"""Messages that are read at most."""
_MOST_CHUNK: Final = 1 << 28
_NS: Final = 1e-9
_APART: Final = ("separation", "distance")

_NO_TEXT: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters no XML may hold, which names in a damaged recording do."""

Floats = NDArray[np.float64]

PANELS: Final[dict[str, tuple[str, str]]] = {
    "separation": ("Separation", "m"),
    "velocity": ("Joint velocity", "rad/s or m/s"),
    "position": ("Joint position", "rad or m"),
    "effort": ("Joint effort", "N m or N"),
    "speed": ("Speed", "m/s"),
    "force": ("Force", "N"),
    "torque": ("Torque", "N m"),
}
"""What can be drawn, in this order: title, and the unit where nothing says more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """One quantity over time.

    Attributes:
        name: Joint, or topic.
        time_s: Time since the event, shape (N,), seconds, ascending.
        values: Shape (N,), with NaN where nothing was measured.
        low: What it should not fall below; None if the recording does not say.
        high: What it should not exceed; None if the recording does not say.
    """

    name: str
    time_s: Floats
    values: Floats
    low: float | None = None
    high: float | None = None

    def at(self, time_s: float) -> float | None:
        """The newest value at a time; None if there is none."""
        place = bisect_right(self.time_s, time_s) - 1
        if place < 0 or not math.isfinite(self.values[place]):
            return None
        return float(self.values[place])


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Series that share a unit.

    Attributes:
        key: Which quantity, of `PANELS`.
        title: What people call it.
        unit: Unit.
        series: The series, by name.
    """

    key: str
    title: str
    unit: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A state of the guard, and how long it held.

    Attributes:
        state: Its name.
        start_s: Since when, seconds since the event.
        end_s: Until when.
    """

    state: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """What a recording holds around an incident.

    Attributes:
        panels: Quantities.
        states: States of the guard.
        start_s: Begin of what is shown, seconds since the event.
        end_s: End of what is shown.
        notes: What people should know of it, a sentence each.
    """

    panels: tuple[Panel, ...]
    states: tuple[Held, ...]
    start_s: float
    end_s: float
    notes: tuple[str, ...]


def read_excerpt(path: Path, happened_ns: int, *, window_s: float = WINDOW_S) -> Excerpt:
    """Read what a recording holds around an incident.

    Args:
        path: MCAP file.
        happened_ns: When the incident happened, by the clock of the recording, ns.
        window_s: How much before and after it, seconds.

    Raises:
        InputError: If the file is missing, or is not an MCAP file.
    """
    first, last = happened_ns - round(window_s / _NS), happened_ns + round(window_s / _NS)
    reader = _Reader()
    with explained(path, "cannot be read"), door.opened(path) as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise InputError(f"{path}: is not an MCAP file")
    is_whole = reader.read(path, first, last)
    notes = []
    if not is_whole:
        notes.append("The recording is damaged or cut short; what could be read is shown.")
    if reader.messages >= MOST_MESSAGES:
        notes.append(f"The recording is long; its first {MOST_MESSAGES:,} messages are shown.")
    if reader.unreadable:
        notes.append(f"{reader.unreadable:,} messages could not be read.")
    return reader.excerpt(happened_ns, window_s, notes)


class _Reader:
    """Takes the messages that can be drawn out of a file."""

    def __init__(self) -> None:
        self.messages = 0
        self.unreadable = 0
        self._samples: dict[tuple[str, str], tuple[list[int], list[float]]] = defaultdict(
            lambda: ([], [])
        )
        self._places: dict[str, tuple[list[int], list[Floats]]] = defaultdict(lambda: ([], []))
        self._states: list[tuple[int, str]] = []
        self._limits: dict[tuple[str, str], tuple[float | None, float | None]] = {}
        self._units: dict[str, set[str]] = defaultdict(set)
        self._now = 0

    # Messages ----------------------------------------------------------------------------------

    def read(self, path: Path, first_ns: int, last_ns: int) -> bool:
        """Take the messages between two times; False if the file is damaged."""
        try:
            with sound_files(path) as files:
                for file in files:
                    with door.opened(file) as stream:
                        self._read(stream, first_ns, last_ns)
        except (InputError, *DAMAGE):
            return False
        return not is_cut_short(path)

    def _read(self, stream: IO[bytes], first_ns: int, last_ns: int) -> None:
        reader = make_reader(stream)
        summary = reader.get_summary()
        for index in [] if summary is None else summary.chunk_indexes:
            if index.uncompressed_size > _MOST_CHUNK:
                raise ValueError("a chunk is too large")
        found = reader.iter_messages(starting_at=max(first_ns, 0), ending_at=max(last_ns, 0))
        for schema, channel, message in found:
            self._take(schema.name if schema else "", channel.topic, message)
            if self.messages >= MOST_MESSAGES:
                return

    def _take(self, schema: str, topic: str, message: Message) -> None:
        taker = _TAKERS.get(schema)
        if taker is None:
            return
        self.messages += 1
        self._now = message.log_time
        try:
            taker(self, topic, message.data)
        except (ValueError, struct.error, IndexError, OverflowError):
            self.unreadable += 1

    def _add(self, key: str, name: str, value: float) -> None:
        times, values = self._samples[key, name]
        times.append(self._now)
        values.append(value)

    def joint_state(self, topic: str, data: bytes) -> None:
        """Positions, velocities and efforts by joint."""
        if is_asked(topic):
            return
        _, names, parts = joint_state(data)
        for key, numbers in zip(("position", "velocity", "effort"), parts, strict=True):
            for name, value in zip(names, numbers, strict=False):
                self._add(key, name, float(value))

    def wrench(self, topic: str, data: bytes) -> None:
        """Norms of force and torque."""
        numbers = after_header(data, 6)
        self._add("force", topic, float(np.linalg.norm(numbers[:3])))
        self._add("torque", topic, float(np.linalg.norm(numbers[3:])))

    def twist(self, topic: str, data: bytes) -> None:
        """How fast something moves."""
        self._add("speed", topic, float(np.linalg.norm(after_header(data, 3))))

    def odometry(self, topic: str, data: bytes) -> None:
        """How fast a base moves."""
        self._add("speed", topic, float(np.linalg.norm(odometry_velocity(data))))

    def pose(self, topic: str, data: bytes) -> None:
        """Where a tool is, from which its speed follows."""
        if is_asked(topic):
            return
        times, places = self._places[topic]
        place = np.array(after_header(data, 3))
        times.append(self._now)
        places.append(place)

    def number(self, topic: str, data: bytes) -> None:
        """A distance, if the topic is called so."""
        if any(word in topic.lower() for word in _APART):
            self._add("separation", topic, float(Cursor(data).numbers(1)[0]))

    def diagnostics(self, topic: str, data: bytes) -> None:
        """What the guard says of itself and of its limits."""
        if not topic.endswith("safety/state"):
            return
        for _, name, _, values in diagnostics(data):
            if name == "guard" and "state" in values:
                self._states.append((self._now, values["state"]))
            else:
                self._limit(name, values)

    def _limit(self, name: str, values: dict[str, str]) -> None:
        owner, _, key = name.rpartition(" ")
        if any(word in name for word in _APART):
            value = number_of(values.get("value", ""))
            if value is not None:
                self._add("separation", name, value)
            owner, key = name, "separation"
        if key not in PANELS:
            return
        self._limits[key, owner] = _limits(key, values.get("limit", ""))
        if unit := values.get("unit", ""):
            self._units[key].add(unit)

    # What they add up to -----------------------------------------------------------------------

    def excerpt(self, happened_ns: int, window_s: float, notes: list[str]) -> Excerpt:
        """All that was taken."""
        self._derive_speeds()
        panels = []
        for key, (title, unit) in PANELS.items():
            units = self._units[key]
            own = {name: data for (of, name), data in self._samples.items() if of == key}
            series = tuple(
                one
                for name, (times, values) in sorted(own.items())
                if (one := self._series(key, name, times, values, happened_ns)) is not None
            )
            if series:
                unit = next(iter(units)) if len(units) == 1 else " or ".join(sorted(units)) or unit
                panels.append(Panel(key=key, title=title, unit=_plain(unit), series=series))
        shown = [one.time_s for panel in panels for one in panel.series]
        start = max(-window_s, min((float(one[0]) for one in shown), default=-window_s))
        end = min(window_s, max((float(one[-1]) for one in shown), default=window_s))
        # The event itself is in the picture, also if the recording ended with it.
        start, end = min(start, 0.0), max(end, 0.0)
        if end - start < _LEAST_S:
            start, end = -_LEAST_S, _LEAST_S
        return Excerpt(
            panels=tuple(panels),
            states=tuple(self._held(happened_ns, start, end)),
            start_s=start,
            end_s=end,
            notes=tuple(notes),
        )

    def _series(
        self, key: str, name: str, times: list[int], values: list[float], happened_ns: int
    ) -> Series | None:
        time_s = (np.array(times, dtype=np.int64) - happened_ns).astype(np.float64) * _NS
        numbers = np.array(values, dtype=np.float64)
        numbers[~np.isfinite(numbers)] = np.nan
        # A driver that measures no effort often says 0 all the time.
        if np.isnan(numbers).all() or (key == "effort" and not np.nanmax(np.abs(numbers))):
            return None
        order = np.argsort(time_s, kind="stable")
        # A wrench has a topic and its limit none.
        limits = self._limits.get((key, name)) or self._limits.get((key, ""))
        low, high = limits or (None, None)
        return Series(
            name=_plain(name), time_s=time_s[order], values=numbers[order], low=low, high=high
        )

    def _derive_speeds(self) -> None:
        """Speeds from positions, where nothing measures speed."""
        if any(key == "speed" for key, _ in self._samples):
            return
        for topic, (times, places) in self._places.items():
            for i in range(1, len(times)):  # what came out of order has no speed
                step_s = (times[i] - times[i - 1]) * _NS
                if step_s > 0.0:
                    self._now = times[i]
                    moved = float(np.linalg.norm(places[i] - places[i - 1]))
                    self._add("speed", topic, moved / step_s)

    def _held(self, happened_ns: int, start_s: float, end_s: float) -> Iterator[Held]:
        """States of the guard, those that repeat joined."""
        found: list[tuple[float, str]] = []
        for time_ns, state in sorted(self._states, key=lambda one: one[0]):
            if not found or found[-1][1] != state:
                found.append(((time_ns - happened_ns) * _NS, state))
        ends = [time_s for time_s, _ in found[1:]] + [end_s]
        for (time_s, state), until_s in zip(found, ends, strict=False):
            first, last = max(time_s, start_s), min(until_s, end_s)
            if last > first:
                yield Held(state=_plain(state), start_s=first, end_s=last)


_TAKERS: Final[dict[str, Callable[[_Reader, str, bytes], None]]] = {
    "sensor_msgs/msg/JointState": _Reader.joint_state,
    "geometry_msgs/msg/WrenchStamped": _Reader.wrench,
    "geometry_msgs/msg/TwistStamped": _Reader.twist,
    "geometry_msgs/msg/PoseStamped": _Reader.pose,
    "nav_msgs/msg/Odometry": _Reader.odometry,
    "std_msgs/msg/Float64": _Reader.number,
    "diagnostic_msgs/msg/DiagnosticArray": _Reader.diagnostics,
}


def _plain(text: str) -> str:
    return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def _limits(key: str, text: str) -> tuple[float | None, float | None]:
    """Least and greatest value that a limit of the guard allows."""
    low, dots, high = text.partition("..")
    if dots:
        return number_of(low), number_of(high)
    limit = number_of(text)
    if key == "separation":
        return limit, None
    if limit is None or key in {"force", "torque", "speed"}:
        return None, limit
    return -limit, limit
