"""What one bag says by a topic map: the episodes in it, their fields and their signals."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.log.bag_field import FieldPath, Message, check_field
from robo_eval.log.bag_map import NUMERIC_TAKES, FieldSource, TopicMap
from robo_eval.log.bag_open import OpenBag
from robo_eval.log.bag_signals import (
    ControlSignals,
    Signal,
    SignalReader,
    command_reader,
    force_reader,
    joint_reader,
)

_NS: Final = 1e-9
_NO_POSITIONS: Final = "holds NaN or infinity"


@dataclass(slots=True)
class Series:
    """The values of one field over time.

    Attributes:
        stamps: When each was received, ns.
        values: What it was.
    """

    stamps: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def within(self, first_ns: int, last_ns: int) -> list[Any]:
        """The values that were received between two times."""
        low, high = bisect_left(self.stamps, first_ns), bisect_right(self.stamps, last_ns)
        return self.values[low:high]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The part of a bag that is one episode.

    Attributes:
        number: 1, 2, ... in its bag; 0 if it is the whole bag.
        first_ns: When it begins.
        last_ns: When it ends.
    """

    number: int
    first_ns: int
    last_ns: int


class BagContent:
    """The fields and signals of one bag, read at once.

    Args:
        bag: The bag.
        mapping: What its topics mean.

    Raises:
        InputError: If a topic or field is not there, or holds what it cannot; the message names
            bag, topic and place in the map.
    """

    def __init__(self, bag: OpenBag, mapping: TopicMap) -> None:
        self.bag: Final = bag
        self._map = mapping
        self._where = str(bag.bag.path)
        self._series: dict[FieldPath, Series] = {}
        self._joint_names = list(mapping.signals.joints)
        self._absent: set[str] = set()
        self._check_fields()
        self._readers = self._signal_readers()
        self._read()

    # Reading -----------------------------------------------------------------------------------

    def _check_fields(self) -> None:
        topics = self.bag.topics
        signals = {"signals.joint_state", "signals.command", "signals.wrench"}
        for place, path, may_be_absent in self._map.fields():
            if path.topic not in topics:
                self._absent.add(path.topic)
                # Of a bag that was cut short, the rest may have had it.
                if may_be_absent or self.bag.is_recovered:
                    continue
                problem = unknown_name("topic", path.topic, sorted(topics))
                remedy = (
                    "" if place in signals or place in ("exposure", "episodes")
                    else "; give it a default if it may be absent"
                )  # fmt: skip
                raise InputError(f"{self._where}: {problem} ({place} of the topic map){remedy}")
            where = f"{self._where}: {place} of the topic map"
            try:
                known = self.bag.definitions_of(path.topic)
            except InputError as err:
                raise InputError(f"{where}: {err}") from err
            if place not in signals:
                check_field(where, path, topics[path.topic], known)
                self._series[path] = Series()

    def _signal_readers(self) -> dict[str, SignalReader]:
        signals, types, known_of = self._map.signals, self.bag.topics, self.bag.definitions_of
        readers: dict[str, SignalReader] = {}
        where, order = self._where, self._joint_names
        if signals.joint_state is not None and signals.joint_state.topic in types:
            kind = types[signals.joint_state.topic]
            readers["joints"] = joint_reader(where, signals, kind, order)
        if signals.command is not None and signals.command.topic in types:
            kind = types[signals.command.topic]
            readers["command"] = command_reader(
                where, signals, kind, known_of(signals.command.topic), order
            )
        if signals.wrench is not None and signals.wrench.topic in types:
            kind = types[signals.wrench.topic]
            readers["force"] = force_reader(where, signals, kind, known_of(signals.wrench.topic))
        return readers

    def _read(self) -> None:
        by_topic: dict[str, list[tuple[FieldPath, Series]]] = {}
        for path, series in self._series.items():
            by_topic.setdefault(path.topic, []).append((path, series))
        takers: dict[str, list[SignalReader]] = {}
        for reader in self._readers.values():
            takers.setdefault(reader.topic, []).append(reader)
        for topic, stamp, message in self.bag.messages({*by_topic, *takers}):
            for path, series in by_topic.get(topic, ()):
                self._take(path, series, stamp, message)
            for taker in takers.get(topic, ()):
                taker.take(stamp, message)
        for reader in self._readers.values():
            reader.check()

    @staticmethod
    def _take(path: FieldPath, series: Series, stamp: int, message: Message) -> None:
        value = path.value(message)
        # A text may hold JSON about something else.
        if value is not None:
            series.stamps.append(stamp)
            series.values.append(value)

    # Episodes ----------------------------------------------------------------------------------

    def windows(self) -> list[Window]:
        """The episodes of the bag.

        Raises:
            InputError: If the bag is to be cut and no message begins an episode.
        """
        markers = self._map.episodes
        if markers is None:
            return [Window(number=0, first_ns=self.bag.start_ns, last_ns=self.bag.end_ns)]
        series = self._series.get(markers.field, Series())
        cuts: list[tuple[int, int]] = []
        begun: int | None = None
        for stamp, value in zip(series.stamps, series.values, strict=True):
            word = text_of(f"{self._where}: {markers.field.text}", value)
            if word in markers.start:
                if begun is not None:
                    cuts.append((begun, stamp - 1))
                begun = stamp
            elif word in markers.end and begun is not None:
                cuts.append((begun, stamp))
                begun = None
        if begun is not None:
            cuts.append((begun, self.bag.end_ns))
        if not cuts:
            found = sorted({text_of("", value) for value in series.values})[:5]
            says, wants = (", ".join(map(repr, w)) for w in (found, sorted(markers.start)))
            raise InputError(
                f"{self._where}: topic {markers.field.topic} (episodes of the topic map) has no"
                f" message that begins an episode; it says {says or 'nothing'}, the map {wants};"
                " correct episodes, or leave the bag out"
            )
        return [
            Window(number=number, first_ns=first, last_ns=last)
            for number, (first, last) in enumerate(cuts, start=1)
        ]

    def text(self, place: str, column: FieldSource, window: Window) -> str | None:
        """What a field comes to in an episode, as the text of a cell; None if it is silent.

        Raises:
            InputError: If it holds something that its column cannot take.
        """
        series = self._series.get(column.field, Series())
        values = series.within(window.first_ns, window.last_ns)
        if column.field.topic in self._absent:
            return column.default
        if column.take == "count":
            return str(len(values))
        if column.take == "rises":
            return str(_rises(place, values))
        if not values:
            return column.default
        if column.take in ("last", "first"):
            return text_of(place, values[-1 if column.take == "last" else 0])
        return repr(_reduced(place, column.take, values))

    def was_true(self, place: str, source: FieldSource, window: Window) -> bool:
        """Whether a field was true at any time of an episode.

        Raises:
            InputError: If it is neither true nor false.
        """
        series = self._series.get(source.field, Series())
        values = series.within(window.first_ns, window.last_ns)
        return any([_truth(place, value) for value in values])  # noqa: C419 - all are checked

    def ticks(self, window: Window) -> int | None:
        """Number of commands in an episode; None if the map names no topic of commands."""
        reader = self._readers.get("command")
        if reader is None:
            return None
        stamps = reader.samples.received_ns
        return bisect_right(stamps, window.last_ns) - bisect_left(stamps, window.first_ns)

    def motion_s(self, place: str, window: Window) -> float:
        """Seconds of an episode in which the robot moved; all of it if the map does not say when.

        A value holds until the next one; what was said before the episode holds at its start.

        Raises:
            InputError: If the field cannot be compared.
        """
        exposure = self._map.exposure
        if exposure is None:
            return (window.last_ns - window.first_ns) * _NS
        series = self._series.get(exposure.field, Series())
        total = 0
        low = max(0, bisect_right(series.stamps, window.first_ns) - 1)
        high = bisect_right(series.stamps, window.last_ns)
        stamps, values = series.stamps[low:high], series.values[low:high]
        for start, end, value in zip(stamps, [*stamps[1:], window.last_ns], values, strict=True):
            first, last = max(start, window.first_ns), min(end, window.last_ns)
            if last > first and _moves(place, value, exposure.above):
                total += last - first
        return total * _NS

    def signals(self, window: Window) -> ControlSignals:
        """The signals of an episode.

        Raises:
            InputError: If one holds NaN or infinity and the map says to refuse that.
        """
        settings = self._map.signals
        reasons: dict[str, str] = {}
        found: dict[str, Signal | None] = dict.fromkeys(("joints", "command", "force"))
        origin = self._origin(window)
        for name, reader in self._readers.items():
            signal = reader.signal(
                window.first_ns,
                window.last_ns,
                origin_ns=origin,
                is_finite=settings.invalid == "refuse",
            )
            if signal is None:
                reasons[name] = f"{reader.topic} is silent"
            elif not np.isfinite(signal.values).all():
                reasons[name] = f"{reader.topic} {_NO_POSITIONS}"
            else:
                found[name] = signal
        for name, path in (
            ("joints", settings.joint_state),
            ("command", settings.command),
            ("force", settings.wrench),
        ):
            if path is not None and name not in self._readers:
                reasons[name] = f"{path.topic} is not in what was recovered"
        return ControlSignals(
            joint_unit=settings.joint_unit,
            joints=found["joints"],
            command=found["command"],
            force=found["force"],
            jerk_window_s=settings.jerk_window_s,
            settling_band=settings.settling_band,
            reasons=reasons,
        )

    def _origin(self, window: Window) -> int:
        if self._map.signals.clock == "received":
            return window.first_ns
        starts = [r.samples.stamp_ns[0] for r in self._readers.values() if r.samples.stamp_ns]
        return min(starts, default=0)


# Values ----------------------------------------------------------------------------------------


def text_of(place: str, value: object) -> str:
    """A value of a message as it would stand in the cell of a table.

    Raises:
        InputError: If it is no single value.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, int | float):
        return repr(plain)
    if isinstance(plain, str):
        return plain
    raise InputError(
        f"{place}: is {_what(plain)}, not one value; name a part of it, such as .x or [0]"
    )


def _what(value: object) -> str:
    if isinstance(value, np.ndarray | list | tuple):
        return "a list"
    return str(getattr(value, "__msgtype__", None) or type(value).__name__)


def _truth(place: str, value: object) -> bool:
    plain = value.item() if isinstance(value, np.generic) else value
    if plain in (True, False):
        return bool(plain)
    raise InputError(f"{place}: {text_of(place, value)!r:.40} is neither true nor false")


def _number(place: str, value: object) -> float:
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, int | float) or not math.isfinite(plain):
        raise InputError(f"{place}: {text_of(place, value)!r:.40} is not a finite number")
    return float(plain)


def _rises(place: str, values: Sequence[object]) -> int:
    """How often a truth became true; one that is true at first has risen."""
    truths = [_truth(place, value) for value in values]
    return sum(now and not before for before, now in zip([False, *truths], truths, strict=False))


def _reduced(place: str, take: str, values: Sequence[object]) -> float:
    numbers = [_number(place, value) for value in values]
    assert take in NUMERIC_TAKES
    if take == "mean":
        return math.fsum(numbers) / len(numbers)
    if take == "sum":
        return math.fsum(numbers)
    return min(numbers) if take == "min" else max(numbers)


def _moves(place: str, value: object, above: float | None) -> bool:
    if above is None:
        return _truth(place, value)
    parts = list(value) if isinstance(value, np.ndarray | list | tuple) else [value]
    return any([abs(_number(place, part)) > above for part in parts])  # noqa: C419
