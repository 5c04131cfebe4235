"""What a trial recorded of things going wrong: by its guard, on `episode/event`, in its rows."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mcap.reader import make_reader
from mcap.records import Channel, Message

from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.log.cdr import Cursor
from robo_eval.log.messages import diagnostics
from robo_eval_incidents.cut import explained_damage, opened, sound_files
from robo_eval_incidents.hours import UNNAMED
from robo_eval_incidents.rule import On
from robo_eval_incidents.text import LATEST_NS
from robo_eval_incidents.words import Engagement

WINDOW_NS: Final = 60 * 10**9
"""Causes this far apart, with nothing known in between, are of two events."""
_INCIDENTS: Final = "safety/incidents"
_STATE: Final = "safety/state"
_EVENT: Final = "episode/event"
_STOPPED: Final = frozenset({"PROTECTIVE_STOP", "ESTOP"})
_INJECT: Final = "inject"
_GUARD: Final = "guard: "
"""How the detail of a row begins that names the cause of a stop."""
_NS_PER_S: Final = 10**9
_LARGEST: Final = 1e300
_LATEST_NS: Final = LATEST_NS - WINDOW_NS
"""So that the time around it can be recorded as well."""

Field = str | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Something that a rule may take for an incident, or for a part of one.

    Attributes:
        on: Where it was said.
        name: Cause of the guard, name of an event, or end reason.
        text: What it says for people.
        time_ns: When, UTC.
        fields: What else it says: numbers, and texts such as `unit` and `joint`.
        known_ns: When, as its row alone has it; the id of an incident rests on it. None for
            `time_ns`.
    """

    on: On
    name: str
    text: str = ""
    time_ns: int
    fields: Mapping[str, Field] = field(default_factory=dict)
    known_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The episode in which something happened.

    Attributes:
        trial: SHA-256 of the plan.
        episode_id: Its id; empty between two episodes.
        side: Where it was played.
        robot: On what.
        policy: Who played; None if not known.
        task: What; None if not known.
        engagement: Who was in control.
        trace: Its trace; None if there is none.
        shift_ns: What has to be added to the times of the trace.
    """

    trial: str
    episode_id: str
    side: Side
    robot: str
    policy: str | None = None
    task: str | None = None
    engagement: Engagement = Engagement.UNKNOWN
    trace: Path | None = None
    shift_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a trace says.

    Attributes:
        occurrences: Causes of the guard and events, oldest first.
        armed_ns: When the guard said that it is not stopped.
        injected: Faults the plan had injected, with the time.
        end_ns: Time of its last message; None if it is not known.
    """

    occurrences: tuple[Occurrence, ...] = ()
    armed_ns: tuple[int, ...] = ()
    injected: tuple[tuple[int, str], ...] = ()
    end_ns: int | None = None


def scene_of(episode: Episode, trial: Path, *, says_help: bool) -> Scene:
    """The scene of a logged episode.

    Args:
        episode: Its row.
        trial: The trial directory.
        says_help: Whether the row says when somebody stepped in.
    """
    mode = Engagement.ASSISTED if episode.interventions else Engagement.AUTONOMOUS
    is_simulated = episode.side is Side.SIM
    return Scene(
        trial=episode.plan_digest,
        episode_id=episode.episode_id,
        side=episode.side,
        robot=episode.robot or ("simulator" if is_simulated else UNNAMED),
        policy=episode.policy,
        task=episode.family or episode.task,
        engagement=mode if says_help else Engagement.UNKNOWN,
        trace=_below(trial, episode.trace_uri),
        # Simulated time begins at 0.
        shift_ns=(episode.start_ns or 0) if is_simulated else 0,
    )


def _below(trial: Path, uri: str | None) -> Path | None:
    """The trace of a row; None if it has none, or names what is not in its trial."""
    if not uri:
        return None
    path = trial / uri
    return path if path.resolve().is_relative_to(trial.resolve()) else None


def ending(episode: Episode, heard: Heard, unknown_ns: int) -> Occurrence:
    """How an episode ended, as an occurrence.

    Args:
        episode: Its row.
        heard: What its trace says: nobody else knows when an episode was lost.
        unknown_ns: Time to give where the row has none.
    """
    start_ns = episode.start_ns
    time_ns = unknown_ns if start_ns is None else _ns(start_ns, episode.duration_s or 0.0)
    detail = episode.end_detail or ""
    if episode.end_reason is EndReason.SAFETY_STOP and detail.startswith(_GUARD):
        cause = detail.removeprefix(_GUARD)
        return Occurrence(on="guard", name=cause, time_ns=time_ns)
    found = Occurrence(on="end", name=episode.end_reason.value, text=detail, time_ns=time_ns)
    if episode.end_reason is EndReason.LOST and heard.end_ns is not None:
        return replace(found, time_ns=heard.end_ns, known_ns=time_ns)
    return found


def heard_in(trace: Path) -> Heard:
    """What a trace of a robot or twin says, as far as it can be read.

    Args:
        trace: An MCAP file, or a bag folder with such files.
    """
    reading = _Reading()
    # What is wrong with it is said by whoever cuts it.
    with suppress(InputError), sound_files(trace) as files, explained_damage(trace):
        for path in files:
            reading.read(path)
    return reading.heard()


class _Reading:
    """What was understood so far."""

    def __init__(self) -> None:
        self._occurrences: list[Occurrence] = []
        self._armed: list[int] = []
        self._injected: list[tuple[int, str]] = []
        self._end_ns: int | None = None

    def heard(self) -> Heard:
        return Heard(
            occurrences=in_order(self._occurrences),
            armed_ns=tuple(sorted(self._armed)),
            injected=tuple(sorted(self._injected)),
            end_ns=self._end_ns,
        )

    def read(self, path: Path) -> None:
        with opened(path) as stream:
            reader = make_reader(stream, validate_crcs=True)
            for _, channel, message in reader.iter_messages(_topics(reader, _INCIDENTS, _EVENT)):
                self._take(channel, message)
            summary = reader.get_summary()
            if summary is not None and summary.statistics is not None:
                self._end_ns = max(self._end_ns or 0, summary.statistics.message_end_time)
            stops = [each.time_ns for each in self._occurrences if each.on == "guard"]
            # The state is said ten times a second; it matters only after a stop.
            if stops:
                first_ns = min(stops)
                topics = _topics(reader, _STATE)
                for _, channel, message in reader.iter_messages(topics, starting_at=first_ns):
                    if channel.topic.endswith(_STATE):
                        with suppress(ValueError):
                            self._take_state(message.data)

    def _take(self, channel: Channel, message: Message) -> None:
        if channel.topic.endswith(_INCIDENTS):
            # One message that is none costs no other.
            with suppress(ValueError):
                self._occurrences += list(_causes(message.data))
        elif channel.topic.endswith(_EVENT):
            self._take_event(message)

    def _take_event(self, message: Message) -> None:
        event = _event(message.data)
        name = event.pop("event", None)
        if not isinstance(name, str):
            return
        if name == _INJECT:
            # As it was said: it may be recorded after what it led to.
            self._injected.append((message.publish_time, str(event.get("fault", ""))))
            return
        text = event.pop("text", "")
        self._occurrences.append(
            Occurrence(
                on="event",
                name=name,
                text=text if isinstance(text, str) else "",
                time_ns=_ns(message.log_time),
                fields={key: value for key, value in event.items() if _is_field(value)},
            )
        )

    def _take_state(self, data: bytes) -> None:
        for stamp_ns, name, _, values in diagnostics(data):
            if name == "guard":
                if values.get("state", "") not in _STOPPED:
                    self._armed.append(stamp_ns)
                return  # the limits come after it


def guard_occurrence(name: str, text: str, time_ns: int, values: Mapping[str, str]) -> Occurrence:
    """What the guard reported, as an occurrence.

    Args:
        name: Cause.
        text: What it says for people.
        time_ns: When, UTC.
        values: As `safety/incidents` has them, texts by key.
    """
    fields: dict[str, Field] = {
        key: value for key in ("unit", "joint", "episode_id") if (value := values.get(key))
    }
    for key in ("value", "limit"):
        number = number_of(values.get(key, ""))
        if number is not None:
            fields[key] = number
    return Occurrence(on="guard", name=name, text=text, time_ns=time_ns, fields=fields)


def in_order(occurrences: Iterable[Occurrence]) -> tuple[Occurrence, ...]:
    """Occurrences by time, each once."""
    by_key = {(each.time_ns, each.on, each.name): each for each in occurrences}
    return tuple(by_key[key] for key in sorted(by_key))


def physical_events(
    occurrences: Sequence[Occurrence], armed_ns: Sequence[int]
) -> Iterator[tuple[Occurrence, ...]]:
    """Occurrences that are one physical event, together: all causes until the robot is re-armed.

    Args:
        occurrences: Oldest first.
        armed_ns: When the guard was not stopped, in order.
    """
    group: list[Occurrence] = []
    for each in occurrences:
        if group and _begins_anew(group, each, armed_ns):
            yield tuple(group)
            group = []
        group.append(each)
    if group:
        yield tuple(group)


def _begins_anew(group: list[Occurrence], each: Occurrence, armed_ns: Sequence[int]) -> bool:
    last_ns = group[-1].time_ns
    causes = [other.name for other in group if other.on == "guard"]
    # A guard names each cause of a stop once: the same one again is of the next stop.
    is_again = each.on == "guard" and each.name in causes
    armed = bisect_right(armed_ns, last_ns)
    was_armed = bool(causes) and armed < len(armed_ns) and armed_ns[armed] < each.time_ns
    return is_again or was_armed or each.time_ns - last_ns > WINDOW_NS


def _topics(reader: Any, *ends: str) -> list[str] | None:
    """Names of topics with these ends; None for all, in a file without an index."""
    summary = reader.get_summary()
    if summary is None or not summary.chunk_indexes:
        return None
    return sorted({c.topic for c in summary.channels.values() if c.topic.endswith(ends)})


def _causes(data: bytes) -> Iterator[Occurrence]:
    for stamp_ns, name, text, values in diagnostics(data):
        yield guard_occurrence(name, text, stamp_ns, values)


def _event(data: bytes) -> dict[str, Any]:
    """The JSON object in a `std_msgs/String`; empty if it is none."""
    try:
        found = json.loads(Cursor(data).string())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_field(value: object) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return abs(value) <= _LARGEST  # and not NaN
    return isinstance(value, str)


def number_of(text: str) -> float | None:
    """The finite number a text spells; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _ns(start_ns: int, seconds: float = 0.0) -> int:
    """An instant that a record takes."""
    return min(max(start_ns + round(seconds * _NS_PER_S), 0), _LATEST_NS)
