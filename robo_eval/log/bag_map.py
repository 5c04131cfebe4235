"""What a lab's topics mean to us: the topic map file, checked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Any, Final, Literal

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import TRUTHS, EndReason
from robo_eval.core.names import unknown_name
from robo_eval.log.bag_field import FieldPath, parse_field
from robo_eval.log.column_map import (
    Source,
    assisted_of,
    check_column,
    mapping_of,
    number_of,
    read_texts,
    scale_of,
    share_of,
    unit_of,
)
from robo_eval.log.import_row import NEEDED, SCORES
from robo_eval.log.rows import KINDS, LONGEST_S, Kind

_KEYS: Final = (
    "constants", "folder", "columns", "stops", "signals", "measures", "exposure", "episodes",
    "missing", "success_quality", "assisted_success", "id",
)  # fmt: skip
_COLUMN_KEYS: Final = ("field", "take", "values", "unit", "scale", "default", "holds")
_FOLDER_KEYS: Final = ("pattern", "values")
_STOP_KEYS: Final = ("field", "values", "default", "holds")
STOPS: Final = (
    EndReason.SAFETY_STOP,
    EndReason.OPERATOR_STOP,
    EndReason.OUT_OF_BOUNDS,
    EndReason.TIMEOUT,
)
"""Ends that a topic can report; where several did, the first of these counts."""
_SIGNAL_KEYS: Final = (
    "joint_state", "command", "wrench", "joints", "joint_unit", "continuous", "clock",
)  # fmt: skip
_MEASURE_KEYS: Final = ("jerk_window_s", "settling_band", "invalid")
_EXPOSURE_KEYS: Final = ("field", "above", "joints", "values")
_SPEEDS: Final = ("linear", "angular")
_EPISODE_KEYS: Final = ("field", "start", "end_field", "end", "each", "label_within_s")
_EACH: Final = ("change", "message")
LABEL_WITHIN_S: Final = 10.0
"""How long after the end of an episode a label still belongs to it, if the map does not say."""
_LABELS: Final = (*SCORES, "end_detail")
"""Columns that a person or a program may only know after the end."""
_RESULTS: Final = (
    *_LABELS, "interventions", "start_ns", "duration_s", "exposure_s", "ticks", "episode_return",
    "fault_by", "void_by", "recovered", "score_version", "uninterrupted_actions", "plan_depth",
    "stated_success_probability", "control_quality", "costs",
)  # fmt: skip
"""Columns about what came of one episode; the others describe what it began with."""
_CLOCKS: Final = ("received", "header")
_JOINT_UNITS: Final = ("rad", "m")
_INVALID: Final = ("refuse", "leave_out", "skip")
Late = Literal["always", "unless_repeated", "silent", "never"]
_LATE: Final[dict[str, Late]] = {
    **dict.fromkeys(_LABELS, "always"),
    # Said more than once it is a measurement.
    "quality": "unless_repeated",
    # Said before the start, these would else go to the episode before.
    "start_ns": "never",
    "stated_success_probability": "never",
}
NUMERIC_TAKES: Final = ("mean", "min", "max", "sum")
TRUTH_TAKES: Final = ("any", "all")
TAKES: Final = ("last", "first", *TRUTH_TAKES, *NUMERIC_TAKES, "count", "rises")
"""What becomes of the many values of a field in one episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSource:
    """Where one of our columns comes from.

    Attributes:
        field: Topic and field.
        take: Which of its values, one of `TAKES`.
        source: How the value is converted, as in a column map.
        default: The value if the topic is not there or silent; without it that is an error.
        truths: Which of its values are true and which false, by their text.
        is_truth: Whether each of its values is a truth.
        holds: Whether what was said before an episode holds at its start.
        is_sure: Whether the map says so, or that it does not.
        late: Whether what is said after the end counts: `always`, `unless_repeated` in the
            episode, if that was `silent`, or `never`.
    """

    field: FieldPath
    take: str = "last"
    source: Source
    default: str | None = None
    truths: Mapping[str, bool]
    is_truth: bool = False
    holds: bool = False
    is_sure: bool = False
    late: Late = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """When a robot moves: while a field is true, or a speed in it above a number.

    Attributes:
        field: Topic and field.
        above: The number for each speed, under '' for all; empty if the field is a truth.
        joints: The joints that count, where the messages name joints; all if empty.
    """

    field: FieldPath
    above: Mapping[str, float]
    truths: Mapping[str, bool]
    joints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """Messages between which a bag is cut into episodes.

    Attributes:
        field: Topic and field.
        end_field: Topic and field of the values that end it; None if it is the same.
        start: Values that begin an episode.
        end: Values that end it; without one, the next start or the end of the bag does.
        each: What begins an episode: each `change` to a value of `start`, or each `message`;
            None if the map does not say, which is a change.
        label_within_s: How long after its end a label belongs to an episode; None if the map
            does not say.
    """

    field: FieldPath
    start: frozenset[str]
    end: frozenset[str]
    end_field: FieldPath | None = None
    each: str | None = None
    label_within_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalMap:
    """The topics control measures are computed from.

    Attributes:
        joint_state: Topic with names and positions of joints.
        command: Topic, or field, with commanded positions.
        wrench: Topic, or field, with a contact force.
        joints: The joints that count, in the order of commands without names; all if empty.
        joint_unit: Unit of the joints that `units` does not name, `rad` or `m`.
        units: Unit of joints by name.
        continuous: Joints that turn without end.
        clock: Which time a message has: when it was `received`, or that of its `header`.
        jerk_window_s: Length of the fit that jerk is taken from; None for the usual one.
        settling_band: Greatest distance from the last command that counts as settled, by unit;
            under '' for all.
        invalid: Whether signals that cannot be used are refused, leave the measures out, or, where
            they hold NaN, are used without these messages.
    """

    joint_state: FieldPath | None = None
    command: FieldPath | None = None
    wrench: FieldPath | None = None
    joints: tuple[str, ...] = ()
    joint_unit: str = "rad"
    units: Mapping[str, str] = field(default_factory=dict)
    continuous: frozenset[str] = frozenset()
    clock: Literal["received", "header"] = "received"
    jerk_window_s: float | None = None
    settling_band: Mapping[str, float] = field(default_factory=dict)
    invalid: str = "refuse"

    def unit_of(self, joint: str) -> str:
        """Unit of the positions of a joint."""
        return self.units.get(joint, self.joint_unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMap:
    """A checked topic map.

    Attributes:
        path: The file.
        columns: Source of each of our columns that is in a topic.
        constants: Columns that have one value in all rows.
        folder: What the name of a bag says, as named groups.
        folder_values: Their words in it by our column, and what we call them.
        stops: Topics that say that an episode was stopped.
        signals: What control measures are computed from.
        exposure: When the robot moves; None if it is exposed all the time.
        episodes: Where a bag is cut; None if it is one episode.
        missing: Values that mean: nothing there.
        success_quality: Least quality that counts as success, if there is such a rule.
        assisted_success: As in a column map.
        id: How episodes are called, with names of columns, `bag` and `folder` in braces; None if
            they are called as their bag.
        raw: The file's content, kept with the import.
    """

    path: Path
    columns: Mapping[str, FieldSource]
    constants: Mapping[str, str]
    folder: re.Pattern[str] | None = None
    folder_values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stops: Mapping[EndReason, FieldSource] = field(default_factory=dict)
    signals: SignalMap = field(default_factory=SignalMap)
    exposure: Exposure | None = None
    episodes: Markers | None = None
    missing: frozenset[str] = frozenset({""})
    success_quality: float | None = None
    assisted_success: str = "refuse"
    id: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)

    def truths(self) -> Iterator[tuple[str, FieldSource]]:
        """What is false unless a message says that it is true: its place in the map, its source."""
        for name, column in self.columns.items():
            if column.take == "rises":
                yield f"columns.{name}", column
        for reason, stop in self.stops.items():
            yield f"stops.{reason.value}", stop

    def fields(self) -> Iterator[tuple[str, FieldPath, bool]]:
        """Every field that is read: its place in the map, the field, whether it may be absent."""
        for name, column in self.columns.items():
            yield f"columns.{name}", column.field, column.default is not None
        for reason, stop in self.stops.items():
            yield f"stops.{reason.value}", stop.field, stop.default is not None
        if self.exposure is not None:
            yield "exposure", self.exposure.field, False
        if self.episodes is not None:
            yield "episodes", self.episodes.field, False
            if self.episodes.end_field is not None:
                yield "episodes.end_field", self.episodes.end_field, False
        for name in ("joint_state", "command", "wrench"):
            found = getattr(self.signals, name)
            if found is not None:
                yield f"signals.{name}", found, False


def read_topic_map(path: Path) -> TopicMap:
    """Read a topic map.

    Raises:
        InputError: If it is missing, no YAML, or names an unknown key, column, unit or word; the
            message names file and place.
    """
    data = read_texts(path, "topic map")
    for key in data:
        if key not in _KEYS:
            raise InputError(f"{path}: {unknown_name('key', key, _KEYS)}")
    columns = {
        name: _column(path, name, entry)
        for name, entry in mapping_of(path, "columns", data.get("columns", {})).items()
    }
    constants = mapping_of(path, "constants", data.get("constants", {}))
    for name, value in constants.items():
        check_column(path, name)
        if not isinstance(value, str):
            raise InputError(f"{path}: constants.{name}: must be one value, given {value!r:.60}")
    pattern, folder_values = _folder(path, data.get("folder"))
    _check_once(path, columns, constants, pattern)
    stops = _stops(path, data.get("stops", {}))
    given = {*columns, *constants, *(pattern.groupindex if pattern else ())}
    _check_enough(path, given)
    return TopicMap(
        path=path,
        columns=columns,
        constants=constants,
        folder=pattern,
        folder_values=folder_values,
        stops=stops,
        signals=_signals(path, data.get("signals", {}), data.get("measures", {})),
        exposure=_exposure(path, data.get("exposure", "bag")),
        episodes=_episodes(path, data.get("episodes", "bag")),
        missing=frozenset([*_texts(path, "missing", data.get("missing", [])), ""]),
        success_quality=share_of(path, data.get("success_quality")),
        assisted_success=assisted_of(path, data.get("assisted_success", "refuse")),
        id=_id(path, data.get("id"), given),
        raw=data,
    )


def parts_of_id(template: str) -> list[str]:
    """What stands in braces in the way episodes are called.

    Raises:
        ValueError: If a brace is not closed, or more than a name stands in it.
    """
    found = []
    for _, name, form, conversion in Formatter().parse(template):
        if form or conversion or name == "":
            raise ValueError("write only a name in braces")
        if name is not None:
            found.append(name)
    return found


def _id(path: Path, entry: object, given: set[str]) -> str | None:
    if entry is None:
        return None
    if "episode_id" in given:
        raise InputError(f"{path}: id: the map says where episode_id is, too; choose one")
    try:
        names = parts_of_id(entry) if isinstance(entry, str) else []
    except ValueError as err:
        raise InputError(f"{path}: id: {entry!r:.60} cannot be read: {err}") from err
    if not isinstance(entry, str) or not names:
        raise InputError(
            f"{path}: id: {entry!r:.60} is the same for every bag; write what differs in braces,"
            " such as '{folder}-{bag}'"
        )
    known = sorted({"bag", "folder", *(name for name in given if "." not in name)})
    for name in names:
        if name not in known:
            raise InputError(f"{path}: id: {unknown_name('name', name, known)}")
    return entry


def _check_once(
    path: Path,
    columns: Mapping[str, object],
    constants: Mapping[str, object],
    pattern: re.Pattern[str] | None,
) -> None:
    named = {"columns": set(columns), "constants": set(constants)}
    if pattern is not None:
        named["folder"] = set(pattern.groupindex)
    places = list(named)
    for index, place in enumerate(places):
        for other in places[:index]:
            for name in sorted(named[place] & named[other]):
                raise InputError(f"{path}: {name!r} is in {other} and in {place}; choose one")


def _check_enough(path: Path, given: set[str]) -> None:
    for name in NEEDED:
        if name not in given:
            raise InputError(
                f"{path}: says nothing about {name!r}; add it to constants, folder or columns"
            )
    if not given & set(SCORES):
        raise InputError(f"{path}: must say where success, end_reason or quality is")


def _known(path: Path, place: str, data: Mapping[str, object], keys: tuple[str, ...]) -> None:
    for key in data:
        if key not in keys:
            raise InputError(f"{path}: {place}: {unknown_name('key', key, keys)}")


def _word(path: Path, place: str, text: object, words: tuple[str, ...]) -> str:
    for known in words:
        if text == known:
            return known
    raise InputError(f"{path}: {place}: {unknown_name('word', text, words)}")


def _texts(path: Path, place: str, data: object) -> list[str]:
    listed = [data] if isinstance(data, str) else data
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise InputError(f"{path}: {place}: must be a list of texts, given {data!r:.60}")
    return listed


def _positive(path: Path, place: str, text: object) -> float:
    value = number_of(text) if isinstance(text, str) else None
    if value is None or not 0.0 < float(value) < math.inf:
        raise InputError(f"{path}: {place}: must be a positive number, given {text!r:.40}")
    return float(value)


def _column(path: Path, name: str, entry: object) -> FieldSource:
    check_column(path, name)
    place = f"columns.{name}"
    base = name.partition(".")[0]
    data = {"field": entry} if isinstance(entry, str) else mapping_of(path, place, entry)
    _known(path, place, data, _COLUMN_KEYS)
    values = mapping_of(path, f"{place}.values", data.get("values", {}))
    unit = unit_of(f"{path}: {place}.unit", name, data.get("unit"))
    scale = (
        scale_of(f"{path}: {place}.scale", name, unit, data.get("scale", "1"))
        if "scale" in data
        else Source(column="").scale
    )
    usual = "rises" if name == "interventions" else "last"
    take = _word(path, f"{place}.take", data.get("take", usual), TAKES)
    found = parse_field(f"{path}: {place}.field", data.get("field"), whole=take == "count")
    is_number = KINDS[base] in (Kind.INTEGER, Kind.NUMBER, Kind.MAPPING)
    if take in (*NUMERIC_TAKES, "count", "rises") and not is_number:
        others = "last, first, any or all" if KINDS[base] is Kind.TRUTH else "last or first"
        raise InputError(f"{path}: {place}.take: {name} is no number; use {others}")
    if take in TRUTH_TAKES and KINDS[base] is not Kind.TRUTH:
        raise InputError(f"{path}: {place}.take: {name} is no truth; use another word than {take}")
    is_truth = KINDS[base] is Kind.TRUTH or take == "rises"
    holds = _holds(path, place, data, usual=take == "rises" or base not in _RESULTS)
    is_late = not holds and take in ("last", "first", *TRUTH_TAKES)
    truths = _truths(path, place, data) if is_truth else {}
    default = _default(path, place, data)
    if default in truths and take != "rises":
        default = "true" if truths[default] else "false"
    return FieldSource(
        field=found,
        take=take,
        source=Source(
            column=found.text,
            values={} if is_truth else {str(key): str(value) for key, value in values.items()},
            unit=unit,
            scale=scale,
        ),
        default=default,
        truths=truths,
        is_truth=is_truth,
        holds=holds,
        is_sure="holds" in data,
        late=_LATE.get(base, "silent") if is_late else "never",
    )


def _truths(path: Path, place: str, data: Mapping[str, object]) -> dict[str, bool]:
    """Which values are true and which false, as `values` says."""
    words = mapping_of(path, f"{place}.values", data.get("values", {}))
    return {key: _is_true(path, f"{place}.values.{key}", word) for key, word in words.items()}


def _is_true(path: Path, place: str, word: object) -> bool:
    found = TRUTHS.get(word.lower()) if isinstance(word, str) else None
    if found is None:
        raise InputError(f"{path}: {place}: must be true or false, given {word!r:.40}")
    return found


def _holds(path: Path, place: str, data: Mapping[str, object], *, usual: bool) -> bool:
    return _is_true(path, f"{place}.holds", data["holds"]) if "holds" in data else usual


def _default(path: Path, place: str, data: Mapping[str, object]) -> str | None:
    default = data.get("default")
    if default is not None and not isinstance(default, str):
        raise InputError(f"{path}: {place}.default: must be one value, given {default!r:.60}")
    return default


def _folder(path: Path, entry: object) -> tuple[re.Pattern[str] | None, dict[str, dict[str, str]]]:
    if entry is None:
        return None, {}
    data = {"pattern": entry} if isinstance(entry, str) else mapping_of(path, "folder", entry)
    _known(path, "folder", data, _FOLDER_KEYS)
    try:
        pattern = re.compile(str(data.get("pattern", "")))
    except re.error as err:
        raise InputError(f"{path}: folder: is no regular expression: {err}") from err
    if not pattern.groupindex:
        raise InputError(
            f"{path}: folder: has no named group; write what it finds as (?P<policy>...)"
        )
    for name in pattern.groupindex:
        check_column(path, name)
    values: dict[str, dict[str, str]] = {}
    for name, words in mapping_of(path, "folder.values", data.get("values", {})).items():
        if name not in pattern.groupindex:
            problem = unknown_name("group", name, pattern.groupindex)
            raise InputError(f"{path}: folder.values: {problem}")
        texts = mapping_of(path, f"folder.values.{name}", words)
        values[name] = {str(key): str(value) for key, value in texts.items()}
    return pattern, values


def _stops(path: Path, entry: object) -> dict[EndReason, FieldSource]:
    stops: dict[EndReason, FieldSource] = {}
    data = mapping_of(path, "stops", entry)
    _known(path, "stops", data, tuple(reason.value for reason in STOPS))
    for reason in STOPS:
        if reason.value not in data:
            continue
        place = f"stops.{reason.value}"
        given = data[reason.value]
        stop = {"field": given} if isinstance(given, str) else mapping_of(path, place, given)
        _known(path, place, stop, _STOP_KEYS)
        found = parse_field(f"{path}: {place}.field", stop.get("field"))
        default = _default(path, place, stop)
        if default is not None:
            _word(path, f"{place}.default", default, ("false",))
        stops[reason] = FieldSource(
            field=found,
            source=Source(column=found.text),
            default=default,
            truths=_truths(path, place, stop),
            is_truth=True,
            holds=_holds(path, place, stop, usual=True),
            is_sure="holds" in stop,
        )
    return stops


def _signals(path: Path, entry: object, measures: object) -> SignalMap:
    data = mapping_of(path, "signals", entry)
    _known(path, "signals", data, _SIGNAL_KEYS)
    settings = mapping_of(path, "measures", measures)
    _known(path, "measures", settings, _MEASURE_KEYS)
    topics = {
        name: parse_field(f"{path}: signals.{name}", data[name], whole=True)
        for name in ("joint_state", "command", "wrench")
        if name in data
    }
    if "joint_state" in topics and topics["joint_state"].steps:
        raise InputError(f"{path}: signals.joint_state: name a topic without a field")
    joints = _names(path, "signals.joints", data)
    continuous = _names(path, "signals.continuous", data)
    units = data.get("joint_unit", _JOINT_UNITS[0])
    by_joint = units if isinstance(units, dict) else {}
    for place, names in (("continuous", continuous), ("joint_unit", by_joint)):
        for name in names if joints else ():
            if name not in joints:
                raise InputError(f"{path}: signals.{place}: {unknown_name('joint', name, joints)}")
    for name, unit in by_joint.items():
        _word(path, f"signals.joint_unit.{name}", unit, _JOINT_UNITS)
    clock = _word(path, "signals.clock", data.get("clock", _CLOCKS[0]), _CLOCKS)
    window = settings.get("jerk_window_s")
    found = SignalMap(
        **topics,
        joints=tuple(joints),
        joint_unit=_JOINT_UNITS[0]
        if by_joint
        else _word(path, "signals.joint_unit", units, _JOINT_UNITS),
        units={str(name): str(unit) for name, unit in by_joint.items()},
        continuous=frozenset(continuous),
        clock="header" if clock == "header" else "received",
        jerk_window_s=(
            None if window is None else _positive(path, "measures.jerk_window_s", window)
        ),
        settling_band=_positives(path, "measures.settling_band", settings, _JOINT_UNITS),
        invalid=_word(path, "measures.invalid", settings.get("invalid", _INVALID[0]), _INVALID),
    )
    for name in continuous:
        if found.unit_of(name) != "rad":
            raise InputError(f"{path}: signals.continuous: {name!r} is in m; only angles turn")
    return found


def _names(path: Path, place: str, data: Mapping[str, object]) -> list[str]:
    names = _texts(path, place, data.get(place.rpartition(".")[2], []))
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path}: {place}: {name!r} is named twice")
    return names


def _positives(
    path: Path, place: str, data: Mapping[str, object], words: tuple[str, ...]
) -> dict[str, float]:
    """One positive number for all, under '', or one for each of these words."""
    name = place.rpartition(".")[2]
    given = data.get(name, {})
    if not isinstance(given, dict):
        return {"": _positive(path, place, given)}
    _known(path, place, given, words)
    return {word: _positive(path, f"{place}.{word}", text) for word, text in given.items()}


def _exposure(path: Path, entry: object) -> Exposure | None:
    if entry == "bag":
        return None
    if isinstance(entry, str) and not entry.startswith("/"):
        raise InputError(
            f"{path}: exposure: {entry!r:.40} is neither bag nor a field; write bag, or the field"
            " that is true while the robot moves"
        )
    data = {"field": entry} if isinstance(entry, str) else mapping_of(path, "exposure", entry)
    _known(path, "exposure", data, _EXPOSURE_KEYS)
    found = parse_field(f"{path}: exposure.field", data.get("field"))
    above = _positives(path, "exposure.above", data, _SPEEDS)
    joints = _names(path, "exposure.joints", data)
    if joints and not above:
        raise InputError(f"{path}: exposure.joints: say above which speed they move, with above")
    if above and "values" in data:
        raise InputError(f"{path}: exposure: has both above and values; choose one")
    truths = _truths(path, "exposure", data)
    return Exposure(field=found, above=above, truths=truths, joints=tuple(joints))


def _episodes(path: Path, entry: object) -> Markers | None:
    if entry == "bag":
        return None
    data = mapping_of(path, "episodes", entry)
    _known(path, "episodes", data, _EPISODE_KEYS)
    start = _texts(path, "episodes.start", data.get("start", []))
    if not start:
        raise InputError(f"{path}: episodes.start: name the value that begins an episode")
    end = _texts(path, "episodes.end", data.get("end", []))
    end_field = None
    if "end_field" in data:
        end_field = parse_field(f"{path}: episodes.end_field", data["end_field"])
        if not end:
            raise InputError(f"{path}: episodes.end: name the value that ends an episode")
    both = set(start) & set(end)
    if both and end_field is None:
        raise InputError(f"{path}: episodes: {min(both)!r} is both start and end; choose one")
    each = _word(path, "episodes.each", data["each"], _EACH) if "each" in data else None
    return Markers(
        field=parse_field(f"{path}: episodes.field", data.get("field")),
        start=frozenset(start),
        end=frozenset(end),
        end_field=end_field,
        each=each,
        label_within_s=_label_time(path, data.get("label_within_s")),
    )


def _label_time(path: Path, text: object) -> float | None:
    if text is None:
        return None
    value = number_of(text) if isinstance(text, str) else None
    if value is None or not 0.0 <= value <= LONGEST_S:
        raise InputError(
            f"{path}: episodes.label_within_s: must be 0 or a number of seconds, given {text!r:.40}"
        )
    return float(value)
