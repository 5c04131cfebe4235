"""What a lab's topics mean to us: the map of bags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from string import Formatter
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    PrivateAttr,
    model_validator,
)

from robo_eval.core.episode import LONGEST_S
from robo_eval.core.kinds import TRUTHS, EndReason
from robo_eval.core.names import unknown_name
from robo_eval.core.yaml_form import Section
from robo_eval.log.bag_field import FieldPath, parse_field
from robo_eval.log.column_map import (
    SCORES,
    Conversion,
    ImportMap,
    Missing,
    Number,
    OurColumn,
    Short,
    our_column,
)
from robo_eval.log.schema import KINDS, Kind

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
Take = Literal["last", "first", "any", "all", "mean", "min", "max", "sum", "count", "rises"]
"""What becomes of the many values of a field in one episode."""


def _listed(given: object) -> object:
    """A list of one, where a text stands alone."""
    return [given] if isinstance(given, str) else given


def _different(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"holds {name!r} twice")
    return names


def _paired(given: object) -> object:
    """What each joint is called in the joint states, and what in the commands."""
    names = [given] if isinstance(given, str) else given
    if isinstance(names, list):
        _different(tuple(names))
        return {name: name for name in names}
    if isinstance(names, dict):
        _different((*names, *(theirs for ours, theirs in names.items() if theirs != ours)))
    return names


def _for_all(given: object) -> object:
    """One value for all under '', or one for each of these words."""
    return given if isinstance(given, dict) else {"": given}


def _one_of(*valid: str) -> AfterValidator:
    def check(given: str) -> str:
        if given not in ("", *valid):
            raise unknown_name("key", given, valid)
        return given

    return AfterValidator(check)


def _bag_alone(given: object) -> object:
    return None if given == "bag" else given


def _truth(given: object) -> bool:
    found = TRUTHS.get(given.lower()) if isinstance(given, str) else None
    if found is None:
        raise ValueError(f"must be true or false, given {given!r:.40}")
    return found


def _truths(values: Mapping[str, str]) -> dict[str, bool]:
    """Which values are true and which false, as `values` says."""
    found = {}
    for key, word in values.items():
        try:
            found[key] = _truth(word)
        except ValueError as err:
            raise ValueError(f"values.{key}: {err}") from err
    return found


def _pattern(given: str) -> str:
    try:
        found = re.compile(given)
    except re.error as err:
        raise ValueError(f"is not a regular expression: {err}") from err
    if not found.groupindex:
        raise ValueError("holds no named group; write what it finds as (?P<policy>...)")
    return given


Texts = Annotated[frozenset[str], BeforeValidator(_listed)]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_different)]
Positive = Annotated[Number, Field(gt=0.0)]
Place = Annotated[FieldPath, PlainValidator(parse_field)]
Topic = Annotated[FieldPath, PlainValidator(partial(parse_field, whole=True))]
"""A field, or a topic whose messages are meant as a whole."""


class ToldField(Short):
    """A field that says something, and for how long."""

    SHORT: ClassVar[str] = "field"

    field: Place
    """Topic and field."""
    values: dict[str, str] = Field(default_factory=dict)
    """What each of its words means to us, or which of them are true."""
    default: str | None = None
    """The value if the topic is not there or silent; without it that is an error."""
    holds: Annotated[bool, BeforeValidator(_truth)] | None = None
    """Whether what was said before an episode holds at its start; None if the map does not say."""

    @property
    def takes(self) -> Take:
        """Which of its values."""
        return "last"

    @property
    def is_truth(self) -> bool:
        """Whether each of its values is a truth."""
        return True

    @cached_property
    def truths(self) -> Mapping[str, bool]:
        """Which of its values are true and which false, by their text."""
        return _truths(self.values) if self.is_truth else {}

    @property
    def if_silent(self) -> str | None:
        """The text of the value if there is none."""
        return self.default

    @property
    def is_held(self) -> bool:
        """Whether what was said before an episode holds at its start."""
        return self.holds is not False

    @property
    def late(self) -> Late:
        """Whether what is said after the end counts.

        `always`, `unless_repeated` in the episode, if that was `silent`, or `never`.
        """
        return "never"


class Stop(ToldField):
    """A field that is true when an episode was stopped."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.default not in (None, "false"):
            raise ValueError(f"default: {unknown_name('word', self.default, ['false'])}")
        _truths(self.values)
        return self


class FieldSource(ToldField, Conversion):
    """Where one of our columns comes from."""

    take: Take | None = None
    """Which of its values; None for the usual one."""

    _ours: str = PrivateAttr(default="")

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, data: Any) -> Any:
        # Messages are counted, whatever is in them.
        if isinstance(data, dict) and data.get("take") == "count":
            return {**data, "field": parse_field(data.get("field"), whole=True)}
        return data

    @property
    def _kind(self) -> Kind:
        return KINDS[self._ours.partition(".")[0]]

    @property
    def takes(self) -> Take:
        """Which of its values."""
        return self.take or ("rises" if self._ours == "interventions" else "last")

    @property
    def is_truth(self) -> bool:
        """Whether each of its values is a truth."""
        return self._kind is Kind.TRUTH or self.takes == "rises"

    @property
    def words(self) -> Mapping[str, str]:
        """What each of its words means to us, where words are no truths."""
        return {} if self.is_truth else self.values

    @property
    def if_silent(self) -> str | None:
        """The text of the value if there is none."""
        truth = None if self.default is None else self.truths.get(self.default)
        if truth is None or self.takes == "rises":
            return self.default
        return "true" if truth else "false"

    @property
    def is_held(self) -> bool:
        """Whether what was said before an episode holds at its start."""
        if self.holds is not None:
            return self.holds
        return self.takes == "rises" or self._ours.partition(".")[0] not in _RESULTS

    @property
    def late(self) -> Late:
        """Whether what is said after the end counts, see `ToldField`."""
        if self.is_held or self.takes not in ("last", "first", *TRUTH_TAKES):
            return "never"
        return _LATE.get(self._ours.partition(".")[0], "silent")

    def check_for(self, ours: str) -> None:
        """Say which of our columns it is for, and refuse what that cannot have."""
        self._ours = ours
        super().check_for(ours)
        is_number = self._kind in (Kind.INTEGER, Kind.NUMBER, Kind.MAPPING)
        if self.takes in (*NUMERIC_TAKES, "count", "rises") and not is_number:
            others = "last, first, any or all" if self.is_truth else "last or first"
            raise ValueError(f"take: {ours} is not a number; use {others}")
        if self.takes in TRUTH_TAKES and not self.is_truth:
            raise ValueError(f"take: {ours} is no truth; use another word than {self.takes}")
        # Worked out here, where what cannot be one has its place.
        _ = self.truths


class Stops(Section):
    """Ends that a topic can report; where several did, the first of these counts."""

    safety_stop: Stop | None = None
    operator_stop: Stop | None = None
    out_of_bounds: Stop | None = None
    timeout: Stop | None = None

    @cached_property
    def by_reason(self) -> Mapping[EndReason, Stop]:
        """Those that the map names."""
        return {EndReason(name): stop for name, stop in self if stop is not None}


class Folder(Short):
    """What the name of a bag says, as named groups."""

    SHORT: ClassVar[str] = "pattern"

    pattern: Annotated[str, AfterValidator(_pattern)]
    """A regular expression for the whole name."""
    values: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Words in it by our column, and what we call them."""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The regular expression."""
        return re.compile(self.pattern)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.regex.groupindex:
            our_column(name)
        for name in self.values:
            if name not in self.regex.groupindex:
                raise ValueError(f"values: {unknown_name('group', name, self.regex.groupindex)}")
        return self


class ExposureRule(Short):
    """When a robot moves: while a field is true, or a speed in it above a number."""

    SHORT: ClassVar[str] = "field"

    field: Place
    """Topic and field."""
    above: Annotated[
        dict[Annotated[str, _one_of("linear", "angular")], Positive], BeforeValidator(_for_all)
    ] = Field(default_factory=dict)
    """The number for each speed, under '' for all; empty if the field is a truth."""
    joints: Names = ()
    """The joints that count, where the messages name joints; all if empty."""
    values: dict[str, str] = Field(default_factory=dict)
    """Which of its values are true and which false."""

    @model_validator(mode="before")
    @classmethod
    def _is_field(cls, data: Any) -> Any:
        if isinstance(data, str) and not data.startswith("/"):
            raise ValueError(
                f"is neither bag nor a field, given {data!r:.40}; write bag, or the field that is"
                " true while the robot moves"
            )
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.joints and not self.above:
            raise ValueError("joints: say above which speed they move, with above")
        if self.above and "values" in self.model_fields_set:
            raise ValueError("holds both above and values; choose one")
        _ = self.truths
        return self

    @cached_property
    def truths(self) -> Mapping[str, bool]:
        """Which of its values are true and which false, by their text."""
        return _truths(self.values)


class Markers(Section):
    """Messages between which a bag is cut into episodes."""

    field: Place
    """Topic and field."""
    start: Annotated[Texts, Field(min_length=1)]
    """Values that begin an episode."""
    end_field: Place | None = None
    """Topic and field of the values that end it; None if it is the same."""
    end: Texts = frozenset()
    """Values that end it; without one, the next start or the end of the bag does."""
    each: Literal["change", "message"] | None = None
    """What begins an episode: each `change` to a value of `start`, or each `message`; None if the
    map does not say, which is a change."""
    label_within_s: Annotated[Number, Field(ge=0.0, le=LONGEST_S)] | None = None
    """How long after its end a label belongs to an episode; None if the map does not say."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.end_field is not None and not self.end:
            raise ValueError("end: name the value that ends an episode")
        both = self.start & self.end
        if both and self.end_field is None:
            raise ValueError(f"end: {min(both)!r} is both start and end; choose one")
        return self


class SignalMap(Section):
    """The topics control measures are computed from."""

    joint_state: Topic | None = None
    """Topic with names and positions of joints."""
    command: Topic | None = None
    """Topic, or field, with commanded positions."""
    wrench: Topic | None = None
    """Topic, or field, with a contact force."""
    joints: Annotated[dict[str, str], BeforeValidator(_paired)] = Field(default_factory=dict)
    """The joints that count, in the order of commands without names, each with the other name it
    has; all if empty."""
    joint_unit: Annotated[dict[str, Literal["rad", "m"]], BeforeValidator(_for_all)] = Field(
        default_factory=dict
    )
    """Unit of joints by name, under '' that of all."""
    continuous: Names = ()
    """Joints that turn without end."""
    clock: Literal["received", "header"] = "received"
    """Which time a message has: when it was `received`, or that of its `header`."""

    @cached_property
    def _renamed(self) -> Mapping[str, str]:
        return {theirs: ours for ours, theirs in self.joints.items() if theirs != ours}

    def ours(self, joints: Iterable[str]) -> Iterable[str]:
        """What joints are called here."""
        renamed = self._renamed
        return [renamed.get(name, name) for name in joints] if renamed else joints

    def unit_of(self, joint: str) -> str:
        """Unit of the positions of a joint."""
        return self.joint_unit.get(joint, self.joint_unit.get("", "rad"))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.joint_state is not None and self.joint_state.steps:
            raise ValueError("joint_state: name a topic without a field")
        for place in ("continuous", "joint_unit"):
            for name in getattr(self, place) if self.joints else ():
                if name and name not in self.joints:
                    raise ValueError(f"{place}: {unknown_name('joint', name, self.joints)}")
        for name in self.continuous:
            if self.unit_of(name) != "rad":
                raise ValueError(f"continuous: {name!r} is in m; only angles turn")
        return self


class MeasureMap(Section):
    """How control measures are computed."""

    jerk_window_s: Positive | None = None
    """Length of the fit that jerk is taken from; None for the usual one."""
    settling_band: Annotated[
        dict[Annotated[str, _one_of("rad", "m")], Positive], BeforeValidator(_for_all)
    ] = Field(default_factory=dict)
    """Greatest distance from the last command that counts as settled, by unit; under '' for all."""
    invalid: Literal["refuse", "leave_out", "skip"] = "refuse"
    """Whether signals that cannot be used are refused, leave the measures out, or, where they hold
    NaN, are used without these messages."""


class TopicMap(ImportMap):
    """The map of bags."""

    WHAT: ClassVar = ("topic map", "docs/bags.md")

    columns: dict[OurColumn, FieldSource] = Field(default_factory=dict)
    """Source of each of our columns that is in a topic."""
    folder: Folder | None = None
    """What the name of a bag says."""
    stops: Stops = Field(default_factory=Stops)
    """Topics that say that an episode was stopped."""
    signals: SignalMap = Field(default_factory=SignalMap)
    """What control measures are computed from."""
    measures: MeasureMap = Field(default_factory=MeasureMap)
    """How they are."""
    exposure: Annotated[ExposureRule | None, BeforeValidator(_bag_alone)] = None
    """When the robot moves; None if it is exposed all the time."""
    episodes: Annotated[Markers | None, BeforeValidator(_bag_alone)] = None
    """Where a bag is cut; None if it is one episode."""
    gaps: Literal["pause", "count"] | None = None
    """Whether time in which all topics are silent far beyond their usual periods is a `pause`, or
    counts; None if it is refused."""
    missing: Annotated[Missing, BeforeValidator(_listed)] = frozenset([""])
    """Values that mean: nothing there."""
    id: str | None = None
    """How episodes are called, with names of columns, `bag` and `folder` in braces; None if they
    are called as their bag."""

    def says(self) -> Mapping[str, Iterable[str]]:
        """Which of our columns each part of the map gives."""
        return {**super().says(), "folder": self.folder.regex.groupindex if self.folder else ()}

    def truths(self) -> Iterator[tuple[str, ToldField]]:
        """What is false unless a message says that it is true: its place in the map, its source."""
        for name, column in self.columns.items():
            if column.takes == "rises":
                yield f"columns.{name}", column
        for reason, stop in self.stops.by_reason.items():
            yield f"stops.{reason.value}", stop

    def fields(self) -> Iterator[tuple[str, FieldPath, bool]]:
        """Every field that is read: its place in the map, the field, whether it may be absent."""
        for name, column in self.columns.items():
            yield f"columns.{name}", column.field, column.default is not None
        for reason, stop in self.stops.by_reason.items():
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

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        if self.id is None:
            return self
        given = {name for names in self.says().values() for name in names}
        if "episode_id" in given:
            raise ValueError("id: the map says where episode_id is, too; choose one")
        try:
            names = parts_of_id(self.id)
        except ValueError as err:
            raise ValueError(f"id: {self.id!r:.60} cannot be read: {err}") from err
        if not names:
            raise ValueError(
                f"id: {self.id!r:.60} is the same for every bag; write what differs in braces,"
                " such as '{folder}-{bag}'"
            )
        known = sorted({"bag", "folder", *(name for name in given if "." not in name)})
        for name in names:
            if name not in known:
                raise ValueError(f"id: {unknown_name('name', name, known)}")
        return self


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
