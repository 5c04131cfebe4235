"""What one bag says by a topic map: the episodes in it, their fields and their signals."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.core.names import listing, unknown_name
from robo_eval.core.units import ROS_NS
from robo_eval.core.wording import counted
from robo_eval.log.bag_field import DATA, FieldPath, Message, check_field
from robo_eval.log.bag_gaps import Span, lasting
from robo_eval.log.bag_gaps import gaps as gaps_in
from robo_eval.log.bag_joints import described_units, may_slide, with_units
from robo_eval.log.bag_map import NUMERIC_TAKES, ExposureRule, FieldSource, ToldField, TopicMap
from robo_eval.log.bag_motion import MotionReader
from robo_eval.log.bag_open import OpenBag
from robo_eval.log.bag_signals import (
    ControlSignals,
    Signal,
    SignalReader,
    command_reader,
    force_reader,
    is_whole_turn,
    joint_reader,
    whole,
)
from robo_eval.log.bag_value import finite_of, spelled, truth_of
from robo_eval.log.bag_window import EpisodeWindow, cut
from robo_eval.log.cells import number_of

_NS: Final = 1e-9
_CLOCK_WITHIN_S: Final = 1.0
"""A simulator's time that begins at 0 reaches the next message within this, seconds."""
_EMPTY: Final = "std_msgs/msg/Empty"
_EVENT: Final = "event"
"""What a message without content says."""
_LISTED: Final = 10
_LONGEST: Final = 40
"""A field that says more values than these, or longer ones, has no words for truths."""


@dataclass(slots=True)
class FieldSeries:
    """The values of one field over time.

    Attributes:
        stamps: When each was received, ns.
        values: What it was.
        name: What the messages call it, as lists of joints do; None if they do not.
        entries: Of lists that do not reach so far how many entries the longest has; None if all do.
    """

    stamps: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    name: str | None = None
    entries: int | None = None

    def within(self, first_ns: int, last_ns: int) -> range:
        """Which of them were received between two times."""
        return range(bisect_left(self.stamps, first_ns), bisect_right(self.stamps, last_ns))

    def before(self, first_ns: int) -> range:
        """Which was the last that was received before a time, if there is one."""
        end = bisect_left(self.stamps, first_ns)
        return range(max(0, end - 1), end)


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
        self._where = str(bag.bag.path)
        self.assumed: set[str] = set()
        """Joints whose unit nothing says, taken as rad."""
        self._is_unit_stated = bool(mapping.signals.joint_unit)
        self._map = self._with_units(mapping)
        self._series: dict[FieldPath, FieldSeries] = {}
        self._stamps: dict[str, list[int]] = defaultdict(list)
        self._heard: set[str] = set()
        self._float32: set[FieldPath] = set()
        self._events: set[FieldPath] = set()
        self._absent: set[str] = set()
        self._motion: MotionReader | None = None
        self._start_ns, self._unclocked = _start_of(bag)
        self._check_fields()
        self._readers = self._signal_readers()
        self._read()
        windows, unsaid, gaps = self._cut(), self._unsaid(), bag.gaps()
        self.remarks: Final = {w.number: [*w.remarks, *unsaid] for w in windows}
        self.windows: Final = [self._without_gaps(window, gaps) for window in windows]

    # Reading -----------------------------------------------------------------------------------

    def _with_units(self, mapping: TopicMap) -> TopicMap:
        """The map, with the units of joints that a description of the robot says."""
        if mapping.signals.joint_state is None and mapping.signals.command is None:
            return mapping
        signals = with_units(self._where, mapping.signals, described_units(self.bag))
        return mapping.model_copy(update={"signals": signals})

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
                    "" if place in signals or place.partition(".")[0] in ("exposure", "episodes")
                    else "; give it a default if it may be absent"
                )  # fmt: skip
                raise InputError(f"{self._where}: {problem} ({place} of the topic map){remedy}")
            where = f"{self._where}: {place} of the topic map"
            try:
                known = self.bag.definitions_of(path.topic)
            except InputError as err:
                raise InputError(f"{where}: {err}") from err
            kind = topics[path.topic]
            if place == "exposure" and self._map.exposure and self._map.exposure.above:
                self._motion = MotionReader(where, self._map.exposure, kind, known)
            elif place not in signals:
                if kind == _EMPTY and path.steps == (DATA,):
                    self._events.add(path)
                elif check_field(where, path, kind, known) == "float32":
                    self._float32.add(path)
                self._series[path] = FieldSeries()

    def _signal_readers(self) -> dict[str, SignalReader]:
        signals, types, known_of = self._map.signals, self.bag.topics, self.bag.definitions_of
        readers: dict[str, SignalReader] = {}
        where = self._where
        if signals.joint_state is not None and signals.joint_state.topic in types:
            kind = types[signals.joint_state.topic]
            readers["joints"] = joint_reader(where, self._map, kind)
        if signals.command is not None and signals.command.topic in types:
            kind = types[signals.command.topic]
            known = known_of(signals.command.topic)
            readers["command"] = command_reader(where, self._map, kind, known)
        if signals.wrench is not None and signals.wrench.topic in types:
            kind = types[signals.wrench.topic]
            readers["force"] = force_reader(where, self._map, kind, known_of(signals.wrench.topic))
        return readers

    def _read(self) -> None:
        by_topic: dict[str, list[tuple[FieldPath, FieldSeries]]] = {}
        for path, series in self._series.items():
            by_topic.setdefault(path.topic, []).append((path, series))
        takers: dict[str, list[SignalReader | MotionReader]] = {}
        readers: list[SignalReader | MotionReader] = [*self._readers.values()]
        if self._motion is not None:
            readers.append(self._motion)
        for reader in readers:
            takers.setdefault(reader.topic, []).append(reader)
        for topic, stamp, message in self.bag.messages({*by_topic, *takers}):
            self._heard.add(topic)
            for path, series in by_topic.get(topic, ()):
                self._take(path, series, stamp, message)
            for taker in takers.get(topic, ()):
                taker.take(stamp, message)
            if topic in takers:
                self._stamps[topic].append(stamp)
        self._check_common()
        for reader in readers:
            reader.check()
        for place, source in self._map.truths():
            self._check_silent(place, source)

    def _check_common(self) -> None:
        """Refuse joint states and commands that have no joint in common."""
        both = [self._readers[name] for name in ("joints", "command") if name in self._readers]
        ours, theirs = [sorted(reader.found) for reader in both] if len(both) == 2 else ([], [])
        if ours and theirs and set(ours).isdisjoint(theirs):
            raise InputError(
                f"{self._where}: no joint of {both[0].topic} ({listing(ours)}) is one of"
                f" {both[1].topic} ({listing(theirs)}); pair those that are the same under"
                f" signals.joints of the topic map, such as {{{ours[0]}: {theirs[0]}}}"
            )

    def too_short(self, path: FieldPath) -> str:
        """That lists do not reach to a place, for the end of a message; empty if all do."""
        most = self._series.get(path, FieldSeries()).entries
        return "" if most is None else f": lists have at most {counted(most, 'entry', 'entries')}"

    def _check_silent(self, place: str, source: ToldField) -> None:
        """Refuse a truth that no message of its topic holds: it would count as false."""
        path = source.field
        may_be_absent = source.default is not None or self.bag.is_recovered
        if path.topic in self._heard and not may_be_absent and not self._series[path].values:
            raise InputError(
                f"{self._where}: {path.text} ({place} of the topic map): no message of"
                f" {path.topic} holds it{self.too_short(path)}; give it a default if it may be"
                " absent"
            )

    def _unsaid(self) -> list[str]:
        """What the map gives a default that no message of a topic holds: it may be misspelt."""
        return [
            f"no message of {path.topic} holds {path.text} ({place} of the topic map)"
            f"{self.too_short(path)}; the default counts"
            for place, path, may_be_absent in self._map.fields()
            if may_be_absent and path.topic in self._heard and not self._series[path].values
        ]

    def _take(self, path: FieldPath, series: FieldSeries, stamp: int, message: Message) -> None:
        value = _EVENT if path in self._events else path.value(message)
        if value is None:
            found = (series.entries, path.entries(message))
            series.entries = max((one for one in found if one is not None), default=None)
        # A text may hold JSON about something else.
        else:
            name = path.named(message)
            if None not in (name, series.name) and name != series.name:
                raise InputError(
                    f"{self._where}: {path.text} of the topic map is of {series.name!r:.60} in one"
                    f" message and of {name!r:.60} in another, as of two publishers; name a topic"
                    " or a field whose lists are all of the same joints"
                )
            series.name = name or series.name
            series.stamps.append(stamp)
            # Outside arrays the library gives a float32 as a float, with digits it never had.
            series.values.append(np.float32(value) if path in self._float32 else value)

    # Episodes ----------------------------------------------------------------------------------

    def _cut(self) -> list[EpisodeWindow]:
        first, last = self._start_ns, self.bag.end_ns
        markers = self._map.episodes
        if markers is None:
            return [EpisodeWindow(number=0, first_ns=first, last_ns=last, until_ns=last)]
        if markers.field in self._events and markers.each is None:
            markers = markers.model_copy(update={"each": "message"})
        # Of an end and a start at one time, the end is first.
        said = [
            (stamp, path, value)
            for path in dict.fromkeys((markers.end_field or markers.field, markers.field))
            for series in [self._series.get(path, FieldSeries())]
            for stamp, value in zip(series.stamps, series.values, strict=True)
        ]
        return cut(self._where, markers, sorted(said, key=itemgetter(0)), last)

    def _without_gaps(self, window: EpisodeWindow, gaps: Sequence[Span]) -> EpisodeWindow:
        """An episode, with the gaps in it as pauses if the map says so."""
        inside = [
            (max(low, window.first_ns), min(high, window.last_ns))
            for low, high in gaps
            if low < window.last_ns and high > window.first_ns
        ]
        after = [f"after a message of {self.bag.topic_at(low)}" for low, _ in inside]
        return replace(window, pauses=self._pauses(window, inside, after, window.first_ns))

    def _pauses(
        self, window: EpisodeWindow, gaps: Sequence[Span], after: Sequence[str], first_ns: int
    ) -> tuple[Span, ...]:
        """The gaps in an episode if they do not count; refused if the map does not say."""
        choice = self._map.gaps
        pauses = tuple(gap for gap in gaps if choice == "pause" or gap[0] < ROS_NS <= gap[1])
        found = [
            f"{what} all topics are silent for {lasting((high - low) * _NS)}, from"
            f" {(low - first_ns) * _NS:.3f} s after the start on"
            for what, (low, high) in zip(after, gaps, strict=True)
        ]
        if found and choice is None:
            place = f"{self._where}: episode {window.number}" if window.number else self._where
            others = f" (and {len(found) - 1} times more)" if len(found) > 1 else ""
            raise InputError(
                f"{place}: {found[0]}, far longer than usual{others}; write gaps: pause in the"
                " topic map if the recording was interrupted or its clock was set, so that this"
                " time does not count, or gaps: count if the robot was at work"
            )
        self.remarks[window.number] += [
            f"{text}, which {'does not count' if gap in pauses else 'counts'}"
            for text, gap in zip(found, gaps, strict=True)
        ]
        return pauses

    def may_be_cut(self, window: EpisodeWindow) -> bool:
        """Whether the end of an episode may be in the part of the bag that was lost."""
        return self.bag.is_recovered and window.until_ns >= self.bag.end_ns

    def outside(self) -> dict[str, int]:
        """By topic, how many messages of columns, stops and signals belong to no episode."""
        said: dict[str, Counter[int]] = defaultdict(Counter)
        used: dict[str, Counter[int]] = defaultdict(Counter)
        for source in (*self._map.columns.values(), *self._map.stops.by_reason.values()):
            stamps = self._series.get(source.field, FieldSeries()).stamps
            places = {at for window in self.windows for at in self._said(source, window)}
            # Fields of one topic are of the same messages, below a JSON text also of others.
            said[source.field.topic] |= Counter(stamps)
            used[source.field.topic] |= Counter(stamps[at] for at in places)
        for topic, stamps in self._stamps.items():
            said[topic] |= Counter(stamps)
            for window in self.windows:
                low = bisect_left(stamps, window.first_ns)
                used[topic] |= Counter(stamps[low : bisect_right(stamps, window.last_ns)])
        left = {topic: (stamps - used[topic]).total() for topic, stamps in said.items()}
        return {topic: count for topic, count in left.items() if count}

    def _said(self, source: ToldField, window: EpisodeWindow) -> list[int]:
        """Which values of a field count in an episode, in the order of time."""
        series = self._series.get(source.field, FieldSeries())
        inside = series.within(window.first_ns, window.last_ns)
        if source.is_held and source.takes not in (*NUMERIC_TAKES, "count"):
            return [*series.before(window.first_ns), *inside]
        markers = self._map.episodes
        is_marker = markers is not None and source.field in (markers.field, markers.end_field)
        is_sure = markers is not None and markers.label_within_s is not None
        limit = {"silent": 0, "unless_repeated": len(inside) if is_sure else 1}
        if source.late == "never" or is_marker or len(inside) > limit.get(source.late, len(inside)):
            return [*inside]
        late = series.within(window.last_ns + 1, window.until_ns)
        return [*inside, *(at for at in late if not self._is_missing(series.values[at]))]

    def _is_missing(self, value: object) -> bool:
        return spelled(self._where, value, self._map.missing) in self._map.missing

    def text(self, ours: str, place: str, column: FieldSource, window: EpisodeWindow) -> str | None:
        """What a field comes to in an episode, as the text of a cell; None if it is silent.

        Raises:
            InputError: If it holds something that its column cannot take.
        """
        if column.field.topic in self._absent:
            return column.if_silent
        said = self._said(column, window)
        if column.takes == "count":
            return str(len(said))
        if column.takes == "rises":
            return str(_rises(self._truths(place, column, window, said)))
        if not said:
            return column.if_silent
        if column.takes in NUMERIC_TAKES:
            values = self._series[column.field].values
            return repr(_reduced(column.takes, [finite_of(place, values[at]) for at in said]))
        if column.late in ("always", "unless_repeated"):
            self._check_late(place, column, window, said)
        text = self._chosen(place, column, said)
        if column.is_truth and column.takes == "last" and text == "false":
            self._remark_fall(ours, column, window, said)
        return text

    def _chosen(self, place: str, column: FieldSource, said: Sequence[int]) -> str:
        """The text of the first or last value, or whether any or all are true."""
        values, missing = self._series[column.field].values, self._map.missing
        chosen = {"first": said[:1], "last": said[-1:]}.get(column.takes, said)
        if not column.is_truth:
            where, named = self._at(place, column.field, chosen[0]), column.words
            text = spelled(where, values[chosen[0]], [*named, *missing])
            if named and text not in named and text not in missing:
                raise InputError(f"{where}: {unknown_name('value', f'{text:.40}', named)}")
            return text
        there = [at for at in chosen if not self._is_missing(values[at])]
        truths = [self._truth(place, column.field, column.truths, at) for at in there]
        if not truths:
            return ""
        return "true" if (all if column.takes == "all" else any)(truths) else "false"

    def _check_late(
        self, place: str, column: FieldSource, window: EpisodeWindow, said: Sequence[int]
    ) -> None:
        """Refuse a label that says something else after the end than in the episode."""
        markers, series = self._map.episodes, self._series[column.field]
        inside = [at for at in said if series.stamps[at] <= window.last_ns]
        is_clear = markers is None or markers.label_within_s is not None or not inside
        if is_clear or column.takes in ("first", "any"):
            return
        before = self._chosen(place, column, inside)
        late = said[len(inside) :]
        for at in late[-1:] if column.takes == "last" else late:
            value = series.values[at]
            found = _named(place, column.truths, value) if column.is_truth else None
            word = spelled(place, found if found is not None else value, column.words)
            if word != before:
                late_s = (series.stamps[at] - window.last_ns) * _NS
                raise InputError(
                    f"{place}: says {before!r:.40} until the end of the episode and {word!r:.40}"
                    f" {late_s:.3f} s after it; set episodes.label_within_s: the seconds after the"
                    " end in which a label counts, or 0"
                )

    def _remark_fall(
        self, ours: str, column: FieldSource, window: EpisodeWindow, said: Sequence[int]
    ) -> None:
        values = self._series[column.field].values
        if any(_named(column.field.text, column.truths, values[at]) for at in said):
            self.remarks[window.number].append(
                f"{ours}: {column.field.text} says true and then false; the last counts, with"
                " take: any it is true"
            )

    def was_true(self, place: str, source: ToldField, window: EpisodeWindow) -> bool:
        """Whether a field was true at any time of an episode.

        Raises:
            InputError: If it is neither true nor false.
        """
        return any(self._truths(place, source, window, self._said(source, window)))

    def _truths(
        self, place: str, source: ToldField, window: EpisodeWindow, said: Sequence[int]
    ) -> list[bool]:
        """What each value says."""
        truths = [self._truth(place, source.field, source.truths, at) for at in said]
        if truths and truths[0] and source.holds is None:
            self._check_held(place, source, window, said[0])
        return truths

    def _check_held(self, place: str, source: ToldField, window: EpisodeWindow, at: int) -> None:
        """Refuse what was true in an earlier episode and is never false: it may be an event."""
        series = self._series[source.field]
        then = series.stamps[at]
        if then >= window.first_ns:
            return
        earlier = [w for w in self.windows[: window.number - 1] if w.first_ns <= then <= w.last_ns]
        truths = [_named(place, source.truths, value) for value in series.values] if earlier else []
        if earlier and False not in truths:
            raise InputError(
                f"{place}: says true in episode {earlier[0].number} and never false; write it as"
                f" {{field: '{source.field.text}', holds: false}} if it is an event of that"
                " episode, or with holds: true if it is true from then on"
            )

    def _truth(self, place: str, path: FieldPath, truths: Mapping[str, bool], at: int) -> bool:
        values = self._series[path].values
        where = self._at(place, path, at)
        found = _named(where, truths, values[at])
        if found is not None:
            return found
        word = spelled(where, values[at], truths)
        if truths:
            problem = unknown_name("value", f"{word:.40}", truths)
            raise InputError(f"{where}: {problem}; add it to values as true or false")
        says = sorted({spelled(where, value, ()) for value in values})
        given = f"{word!r:.40}" if isinstance(values[at], str) else word
        if len(says) > _LISTED or max(map(len, says)) > _LONGEST:
            raise InputError(f"{where}: {given} is neither true nor false; name a field that is")
        listed = ", ".join(f"{text}: ..." if _is_plain(text) else f"{text!r}: ..." for text in says)
        raise InputError(
            f"{where}: {given} is neither true nor false; write it as {{field: '{path.text}',"
            f" values: {{{listed}}}}}, with true or false for each value"
        )

    def _at(self, place: str, path: FieldPath, at: int) -> str:
        seconds = (self._series[path].stamps[at] - self.bag.start_ns) * _NS
        return f"{place}: at {seconds:.3f} s"

    def ticks(self, window: EpisodeWindow) -> int | None:
        """Number of commands in an episode; None if the map names no topic of commands."""
        reader = self._readers.get("command")
        if reader is None:
            return None
        stamps = reader.received_ns
        return bisect_right(stamps, window.last_ns) - bisect_left(stamps, window.first_ns)

    def motion_s(self, place: str, window: EpisodeWindow) -> float | None:
        """Seconds of an episode in which the robot moved; all of it if the map does not say when.

        None if that is in the part of the bag that was lost. A value holds until the next one; what
        was said before the episode holds at its start.

        Raises:
            InputError: If the field cannot be compared.
        """
        exposure = self._map.exposure
        if exposure is None or window.last_ns == window.first_ns:
            return window.seconds()
        if not self._is_known(place, exposure.field, window):
            return None
        if self._motion is not None:
            return sum(self._motion.seconds(*part) for part in window.parts())
        return sum(self._true_ns(place, exposure, *part) for part in window.parts()) * _NS

    def _true_ns(self, place: str, exposure: ExposureRule, first_ns: int, last_ns: int) -> int:
        """How long a field was true between two times."""
        series, total = self._series.get(exposure.field, FieldSeries()), 0
        low = max(0, bisect_right(series.stamps, first_ns) - 1)
        stamps = series.stamps[low : bisect_right(series.stamps, last_ns)]
        for at, (start, end) in enumerate(
            zip(stamps, [*stamps[1:], last_ns], strict=False), start=low
        ):
            first, last = max(start, first_ns), min(end, last_ns)
            if last > first and self._truth(place, exposure.field, exposure.truths, at):
                total += last - first
        return total

    def _is_known(self, place: str, field: FieldPath, window: EpisodeWindow) -> bool:
        """Whether anything says if the robot moves; refused if it should, remarked of a part."""
        stamps = self._series.get(field, FieldSeries()).stamps
        since = self._motion.since_ns if self._motion else min(stamps, default=None)
        if since is None or since >= window.last_ns:
            if self.may_be_cut(window):
                return False
            raise InputError(
                f"{place}: {field.text} says nothing in the episode or before it; name another"
                " field, or leave exposure out"
            )
        silent_s = window.seconds(since)
        if silent_s > _CLOCK_WITHIN_S:
            self.remarks[window.number].append(
                f"exposure: {field.text} says nothing in the first {silent_s:.3f} s, which count"
                " as standing still"
            )
        return True

    def signals(self, window: EpisodeWindow) -> ControlSignals:
        """The signals of an episode.

        Raises:
            InputError: If one cannot be used and the map says to refuse that.
        """
        settings, measures = self._map.signals, self._map.measures
        reasons: dict[str, str] = {}
        skipped = dict(self._unclocked)
        found: dict[str, dict[str, Signal] | None] = {}
        origin = self._origin(window)
        pauses = self._signal_pauses(window)
        for name, reader in self._readers.items():
            try:
                signal = reader.signal(window.first_ns, window.last_ns, origin, skipped)
                missing = [one for one in reader.names if one not in signal]
                if not signal:
                    reasons[name] = reader.silence
                elif missing:
                    reasons[name] = f"{reader.topic} is silent about joint {missing[0]!r}"
                else:
                    found[name] = signal
                is_stamped = settings.clock == "header"
                if name == "command" and is_stamped and "joints" in self._readers:
                    reader.check_clock(self._readers["joints"])
                if name == "joints" and (bursts := reader.bursts(window.first_ns, window.last_ns)):
                    reasons[name] = bursts
            except InputError as err:
                if measures.invalid != "leave_out":
                    raise
                reasons[name] = str(err).removeprefix(f"{self._where}: ").partition(";")[0]
        for name, path in (
            ("joints", settings.joint_state),
            ("command", settings.command),
            ("force", settings.wrench),
        ):
            if path is not None and name not in self._readers:
                reasons[name] = f"{path.topic} is not in what was recovered"
        named = settings.joints or found.get("joints") or found.get("command") or ("",)
        self._check_units(named, reasons)
        joints, command, force = (found.get(name) for name in ("joints", "command", "force"))
        self._check_commanded(joints, command, reasons)
        self._remark_commands(window)
        return ControlSignals(
            units={name: settings.unit_of(name) for name in named},
            joints=joints,
            command=command,
            force=whole(force) if force else None,
            pauses_s=[((low + high) // 2 - origin) * _NS for low, high in pauses],
            continuous=frozenset(settings.continuous),
            jerk_window_s=measures.jerk_window_s,
            settling_band=measures.settling_band,
            reasons=reasons,
            skipped=skipped,
        )

    def _signal_pauses(self, window: EpisodeWindow) -> tuple[Span, ...]:
        """Pauses of an episode by the clock of its signals."""
        if self._map.signals.clock == "received":
            return window.pauses
        readers = [self._readers[name] for name in ("joints", "command") if name in self._readers]
        every = [reader.stamps_ns(window.first_ns, window.last_ns) for reader in readers]
        stamps = [times for times in every if len(times)]
        # Of two topics with clocks of their own, each is silent at the time of the other.
        found = [
            (low, high)
            for low, high in gaps_in(stamps)
            if all(times[0] <= low and high <= times[-1] for times in stamps)
        ]
        what = f"by the headers of {' and '.join(reader.topic for reader in readers)}"
        return self._pauses(window, found, [what] * len(found), self._origin(window))

    def _check_units(self, joints: Iterable[str], reasons: dict[str, str]) -> None:
        """Leave out what may put metres and radians into one number; keep what is assumed."""
        if self._is_unit_stated:
            return
        unknown = [name for name in joints if name and name not in self._map.signals.joint_unit]
        slides = next(filter(may_slide, unknown), None)
        if slides is None:
            self.assumed.update(unknown)
        else:
            reasons.setdefault(
                "joints",
                f"joint {slides!r} may slide, by its name; write {{{slides}: m}} under"
                f" signals.joint_unit if it does, or {{{slides}: rad}} if it turns",
            )

    def _remark_commands(self, window: EpisodeWindow) -> None:
        reader = self._readers.get("command")
        what = reader.to_and_fro(window.first_ns, window.last_ns) if reader else ""
        self.remarks[window.number] += [what] if what else []

    def _check_commanded(
        self,
        joints: dict[str, Signal] | None,
        command: dict[str, Signal] | None,
        reasons: dict[str, str],
    ) -> None:
        """Refuse commands of other joints than were measured, and angles a whole turn apart."""
        settings = self._map.signals
        if not joints or not command:
            return
        path = self._readers["command"].topic
        for name in joints:
            if name not in command:
                raise InputError(
                    f"{self._where}: topic {path} (signals.command of the topic map): joint"
                    f" {name!r} is missing, which joint states have; list the joints that count"
                    " under signals.joints, or, where the commands call it otherwise, as"
                    f" {{{name}: ITS_OTHER_NAME}}"
                )
            is_angle = settings.unit_of(name) == "rad" and name not in settings.continuous
            if is_angle and is_whole_turn(joints[name], command[name]):
                reasons.setdefault(
                    "command",
                    f"commands of joint {name!r} are a whole turn from its positions; set"
                    f" signals.continuous: [{name}] if it turns without end",
                )

    def _origin(self, window: EpisodeWindow) -> int:
        if self._map.signals.clock == "received":
            return window.first_ns
        starts = [reader.origin_ns() for reader in self._readers.values()]
        return min((start for start in starts if start is not None), default=0)


def _start_of(bag: OpenBag) -> tuple[int, dict[str, str]]:
    """When a bag begins; what came before the first time of a simulator has time 0."""
    if bag.start_ns != 0 or bag.end_ns == 0:
        return bag.start_ns, {}
    count = sum(1 for _ in bag.raw_messages(0, 0))
    _, first_ns, _ = next(iter(bag.raw_messages(1, bag.end_ns)))
    if first_ns * _NS <= _CLOCK_WITHIN_S:
        return 0, {}
    return first_ns, {
        "what was recorded at time 0": (
            f"{counted(count, 'message')} came before the simulator's clock"
        )
    }


# Values ----------------------------------------------------------------------------------------


def _named(place: str, truths: Mapping[str, bool], value: object) -> bool | None:
    """What a value says by the words of the map, or by itself; None if it is no truth."""
    return truths.get(spelled(place, value, truths)) if truths else truth_of(place, value)


def _is_plain(text: str) -> bool:
    """Whether YAML takes a text for a key without quotes."""
    return text.isalnum() or number_of(text) is not None


def _rises(truths: Sequence[bool]) -> int:
    """How often a truth became true; one that is true at first has risen."""
    return sum(now and not before for before, now in zip([False, *truths], truths, strict=False))


def _reduced(take: str, numbers: Sequence[float]) -> float:
    if take in ("min", "max"):
        return min(numbers) if take == "min" else max(numbers)
    # By the digits that were said: 0.7 and 0.1 have the mean 0.4.
    total = sum((Decimal(repr(number)) for number in numbers), Decimal(0))
    return float(total / len(numbers) if take == "mean" else total)
