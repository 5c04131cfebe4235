"""What people and robots noted beside the episodes: incidents, faults, ratings and the like.

Each is a CSV file of a trial directory with one line of column names, or is named when metrics are
computed. Files are read as they are; what writes them is elsewhere.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from robo_eval.core.defaults import PENALTIES, SEVERITIES
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name

PHYSICAL: Final = (Side.REAL.value, Side.TWIN.value)
NAMES: Final = (
    "incidents", "faults", "repairs", "ratings", "pauses", "tools", "checkpoints", "expansion",
    "teams", "declarations",
)  # fmt: skip
"""Kinds of evidence; `NAME.csv` in a trial directory holds each."""
_YES_OR_NO: Final = ("delivery", "domain_audit")
DECLARED: Final = (*_YES_OR_NO, "cost_ratio")
"""What people can vouch for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """What all notes have in common.

    Attributes:
        line: Line of the file, for messages.
        side: `real`, or `twin` for a stand-in behind ROS.
        episode_id: The episode it belongs to, if that is known.
        policy: The policy that was running, if that is known.
    """

    line: int
    side: str = Side.REAL.value
    episode_id: str | None = None
    policy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident(_Noted):
    """One physical event, at its highest severity.

    Attributes:
        incident_id: Its id, unique in the file.
        severity: One of `SEVERITIES`.
        time_ns: When it happened, UTC; None if not known.
        description: What happened.
    """

    incident_id: str
    severity: str
    time_ns: int | None = None
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(_Noted):
    """A disturbance inside an episode that a robot should recover from.

    Attributes:
        fault: Its name, such as `grasp_slip`.
        recovered: Whether the episode went on afterwards.
        recovered_by: `robot`, or who helped.
        recoverable: Whether a robot should recover from it at all.
        injected: Whether it was provoked.
        duration_s: How long it lasted; None if not known.
    """

    fault: str
    recovered: bool
    recovered_by: str = "robot"
    recoverable: bool = True
    injected: bool = False
    duration_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair(_Noted):
    """Work on a robot after a failure.

    Attributes:
        hours: How long it took.
        description: What was done.
    """

    hours: float
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating(_Noted):
    """What a second person says about the end of an episode.

    Attributes:
        rater: Who.
        success: The verdict; None if the person could not say.
        blind: Whether the person did not know the policy.
        time_ns: When, UTC; None if not known.
        milestones: Steps of the rubric and whether they were reached; None if not sure.
    """

    rater: str
    success: bool | None = None
    blind: bool = False
    time_ns: int | None = None
    milestones: Mapping[str, bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A time in which nothing was played because a person asked for it.

    Attributes:
        line: Line of the file, for messages.
        side: Where; empty if not known.
        time_ns: When it began, UTC.
        duration_s: How long it lasted.
        before_episode_id: The episode that was played next, if that is known.
    """

    line: int
    side: str = ""
    time_ns: int
    duration_s: float
    before_episode_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse(_Noted):
    """How often a category of tools was used with success, under one drift.

    Attributes:
        category: An end-effector, a tool or a perception pipeline.
        episodes: How often it was needed.
        successes: How often with success.
        drift: How strong the drift was, such as `mild`.
    """

    category: str
    episodes: int
    successes: int
    drift: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(_Noted):
    """What a policy that goes on learning could do at a time, in one task family.

    Attributes:
        time_ns: When, UTC.
        family: Task family.
        capability: In [0, 1].
        resources: What it had spent on its own initiative until then; never falls.
        drift: Type of the drift that had set in since the checkpoint before, such as `payload`.
        human_patches: Changes that people made to it since the checkpoint before.
        utc_offset_s: Of the clock it was noted by, from UTC.
    """

    time_ns: int
    family: str
    capability: float
    resources: float
    drift: str = ""
    human_patches: int = 0
    utc_offset_s: int = 0

    @property
    def day(self) -> int:
        """Number of the calendar day by the clock of the place, from 1970 on."""
        return (self.time_ns // 10**9 + self.utc_offset_s) // 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTrial(_Noted):
    """Episodes before, after or without a new tool.

    Attributes:
        tool: The end-effector, tool or perception pipeline.
        stage: `before`, `after`, or `ablated`: with exactly this change taken out again.
        group: `needs` for tasks that need it, `control` for those that do not.
        episodes: How many.
        successes: How many with success.
        installed_by: `policy` if it found, installed and integrated the tool by itself, or who did.
    """

    tool: str
    stage: str
    group: str
    episodes: int
    successes: int
    installed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamTrial(_Noted):
    """Episodes of one task with so many robots, under the same tools and total budget.

    Attributes:
        task: Its name.
        robots: How many at once, at most.
        episodes: How many.
        successes: How many with success.
        unresolved_conflict: In how many a conflict stayed unresolved.
        loop: In how many they repeated themselves.
        chatter: In how many they talked far more than one robot alone.
        mode_collapse: In how many all did nearly the same.
    """

    task: str
    robots: int
    episodes: int
    successes: int
    unresolved_conflict: int = 0
    loop: int = 0
    chatter: int = 0
    mode_collapse: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(_Noted):
    """Something a person vouches for that no log can show.

    Attributes:
        what: One of `DECLARED`.
        value: 1 for yes and 0 for no, or the number.
        low: Lower end of its interval, if it is a number.
        high: Upper end of its interval.
        n: What it rests on: workcells, tasks, findings.
        by: Who declares it.
        time_ns: When, UTC.
        document: Where it is shown.
    """

    what: str
    value: float
    low: float | None
    high: float | None
    n: int
    by: str
    time_ns: int
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything noted beside the episodes of a trial; None where there is no such file.

    Attributes:
        incidents: Incidents of physical sides.
        faults: Faults inside episodes.
        repairs: Repairs.
        ratings: Second ratings.
        pauses: Pauses of the run.
        tools: Use of tool categories.
        checkpoints: What a policy that learns could do over time.
        expansion: Episodes before, after and without new tools.
        teams: Episodes with one robot and with several.
        declarations: What people vouch for.
        sources: SHA-256 of each file that was read, by its path as given.
        files: Path of each file, by kind.
    """

    incidents: tuple[Incident, ...] | None = None
    faults: tuple[Fault, ...] | None = None
    repairs: tuple[Repair, ...] | None = None
    ratings: tuple[Rating, ...] | None = None
    pauses: tuple[Pause, ...] | None = None
    tools: tuple[ToolUse, ...] | None = None
    checkpoints: tuple[Checkpoint, ...] | None = None
    expansion: tuple[ToolTrial, ...] | None = None
    teams: tuple[TeamTrial, ...] | None = None
    declarations: tuple[Declaration, ...] | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def read_evidence(folder: Path | None, given: Mapping[str, Path] | None = None) -> Evidence:
    """Read what lies beside the episodes of a trial.

    Args:
        folder: The trial directory, in which `NAME.csv` is read for each of `NAMES`. None where
            there is none.
        given: Files to read instead, by kind.

    Raises:
        InputError: If a given file is missing, a file is no CSV, lacks a column or has an unknown
            one, or a cell holds what its column cannot; the message names file, line and column.
    """
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}
    files: dict[str, str] = {}
    for name in NAMES:
        path = (given or {}).get(name)
        if path is None:
            if folder is None or not (folder / f"{name}.csv").exists():
                continue
            path = folder / f"{name}.csv"
        data = _bytes_of(path, name)
        found[name] = tuple(_READERS[name](_Line(path, *line)) for line in _lines(path, name, data))
        sources[path.name] = hashlib.sha256(data).hexdigest()
        files[name] = str(path)
    evidence = Evidence(**found, sources=sources, files=files)
    _check_unique(evidence)
    return evidence


def _bytes_of(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as err:
        raise InputError(f"{path}: no such file of {name}") from err
    except OSError as err:
        raise InputError(f"{path}: cannot be read: {err.strerror or err}") from err


def _lines(path: Path, name: str, data: bytes) -> list[tuple[int, dict[str, str]]]:
    """The lines of a CSV file: number and cells by column."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise InputError(f"{path}: is not UTF-8 text: {err.reason} at byte {err.start}") from err
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [column.strip() for column in next(reader, [])]
        _check_header(path, name, header)
        lines = []
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{path}: line {reader.line_num} has {len(cells)} cells; the header names"
                    f" {len(header)}"
                )
            values = (cell.strip() for cell in cells)
            lines.append((reader.line_num, dict(zip(header, values, strict=True))))
    except csv.Error as err:
        raise InputError(f"{path}: line {reader.line_num}: no CSV: {err}") from err
    return lines


def _check_header(path: Path, name: str, header: list[str]) -> None:
    needed, others = _COLUMNS[name]
    for column in header:
        # Programs write pauses, and newer ones may say more of them.
        if column not in (*needed, *others) and name != "pauses":
            raise InputError(f"{path}: {unknown_name('column', column, (*needed, *others))}")
        if header.count(column) > 1:
            raise InputError(f"{path}: column {column!r} appears twice")
    for column in needed:
        if column not in header:
            raise InputError(
                f"{path}: column {column!r} is missing; {name} need {', '.join(needed)}"
            )


_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a file, whose cells are read with messages that name them."""

    path: Path
    number: int
    cells: dict[str, str]

    def wrong(self, column: str, what: str) -> InputError:
        given = self.cells.get(column, "")
        return InputError(
            f"{self.path}: line {self.number}, column {column!r}: {given!r:.60} {what}"
        )

    def text(self, column: str) -> str:
        value = self.cells.get(column, "")
        if not value:
            raise self.wrong(column, "is empty; it needs a text")
        return value

    def optional(self, column: str) -> str | None:
        return self.cells.get(column) or None

    def word(self, column: str, valid: tuple[str, ...], default: str | None = None) -> str:
        value = self.cells.get(column) or default
        if value not in valid:
            problem = unknown_name(column, self.cells.get(column, ""), valid)
            raise InputError(f"{self.path}: line {self.number}, column {column!r}: {problem}")
        return value

    def truth(self, column: str, default: bool | None) -> bool | None:  # noqa: FBT001
        value = self.cells.get(column, "").lower()
        if not value:
            return default
        if value not in _TRUTHS:
            raise self.wrong(column, "must be true or false")
        return _TRUTHS[value]

    def amount(self, column: str, default: _Value) -> float | _Value:
        text = self.cells.get(column, "")
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            raise self.wrong(column, "is not a number") from None
        if not (math.isfinite(value) and value >= 0.0):
            raise self.wrong(column, "must be a number of at least 0")
        return value

    def count(self, column: str, default: int | None = None) -> int:
        text = self.cells.get(column, "")
        if not text and default is not None:
            return default
        if not (text.isascii() and text.isdigit()):
            raise self.wrong(column, "must be a whole number of at least 0")
        return int(text)

    def quantity(self, column: str, most: float = math.inf) -> float:
        value = self.amount(column, None)
        if value is None:
            raise self.wrong(column, "is empty; it needs a number")
        if value > most:
            raise self.wrong(column, f"must be at most {most:g}")
        return value

    def time_ns(self, column: str) -> int | None:
        text = self.cells.get(column, "")
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
            since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        except (ValueError, OverflowError):
            moment = None
        if moment is None or moment.tzinfo is None:
            raise self.wrong(
                column, "is no time with its zone; write it like 2026-03-01T09:30:00+00:00"
            )
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000

    def utc_offset_s(self, column: str) -> int:
        """Of a time that `time_ns` has read."""
        offset = datetime.fromisoformat(self.cells[column]).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())

    def answers(self, column: str) -> dict[str, bool | None]:
        """Steps with true, false or null, as a JSON object."""
        text = self.cells.get(column, "")
        try:
            found: Any = json.loads(text or "{}")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not all(
            answer is None or isinstance(answer, bool) for answer in found.values()
        ):
            raise self.wrong(column, 'must be a JSON object such as {"grasped": true}')
        return found

    @property
    def noted(self) -> dict[str, Any]:
        return {
            "line": self.number,
            "side": self.word("side", PHYSICAL, Side.REAL.value),
            "episode_id": self.optional("episode_id"),
            "policy": self.optional("policy"),
        }

    @property
    def tally(self) -> dict[str, Any]:
        """Episodes, and how many of them were successes."""
        episodes, successes = self.count("episodes"), self.count("successes")
        if successes > episodes:
            raise self.wrong("successes", f"is more than the {episodes} episodes")
        return {"episodes": episodes, "successes": successes}


_TRUTHS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_COMMON: Final = ("side", "episode_id", "policy")
_COLUMNS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "incidents": (("incident_id", "severity"), (*_COMMON, "time", "description")),
    "faults": (
        ("fault", "recovered"),
        (*_COMMON, "recovered_by", "recoverable", "injected", "duration_s", "description"),
    ),
    "repairs": (("hours",), (*_COMMON, "description")),
    "pauses": (("time", "duration_s"), ("side", "before_episode_id", "operator", "asked_by")),
    "tools": (("category", "episodes", "successes"), (*_COMMON, "drift", "description")),
    "expansion": (
        ("tool", "stage", "group", "episodes", "successes", "installed_by"),
        (*_COMMON, "description"),
    ),
    "teams": (
        ("task", "robots", "episodes", "successes"),
        (*_COMMON, *PENALTIES, "description"),
    ),
    "declarations": (
        ("what", "value", "n", "by", "time", "document"),
        (*_COMMON, "low", "high", "description"),
    ),
    "checkpoints": (
        ("time", "family", "capability", "resources"),
        (*_COMMON, "drift", "human_patches", "description"),
    ),
    "ratings": (
        ("episode_id", "rater", "success"),
        ("side", "policy", "blind", "time", "milestones", "description"),
    ),
}
"""Columns each file needs, and further ones it may have."""


def _incident(line: _Line) -> Incident:
    return Incident(
        **line.noted,
        incident_id=line.text("incident_id"),
        severity=line.word("severity", SEVERITIES),
        time_ns=line.time_ns("time"),
        description=line.cells.get("description", ""),
    )


def _fault(line: _Line) -> Fault:
    recovered = line.truth("recovered", None)
    if recovered is None:
        raise line.wrong("recovered", "must be true or false")
    return Fault(
        **line.noted,
        fault=line.text("fault"),
        recovered=recovered,
        recovered_by=line.optional("recovered_by") or "robot",
        recoverable=bool(line.truth("recoverable", True)),  # noqa: FBT003
        injected=bool(line.truth("injected", False)),  # noqa: FBT003
        duration_s=line.amount("duration_s", None),
    )


def _repair(line: _Line) -> Repair:
    hours = line.amount("hours", None)
    if hours is None:
        raise line.wrong("hours", "must be a number of at least 0")
    return Repair(**line.noted, hours=hours, description=line.cells.get("description", ""))


def _rating(line: _Line) -> Rating:
    line.text("episode_id")
    return Rating(
        **line.noted,
        rater=line.text("rater"),
        success=line.truth("success", None),
        blind=bool(line.truth("blind", False)),  # noqa: FBT003
        time_ns=line.time_ns("time"),
        milestones=line.answers("milestones"),
    )


def _pause(line: _Line) -> Pause:
    time_ns, seconds = line.time_ns("time"), line.amount("duration_s", None)
    if time_ns is None or seconds is None:
        column = "time" if time_ns is None else "duration_s"
        raise line.wrong(column, "is empty; a pause has a time and a length")
    return Pause(
        line=line.number,
        side=line.cells.get("side", ""),
        time_ns=time_ns,
        duration_s=seconds,
        before_episode_id=line.optional("before_episode_id"),
    )


def _tool_use(line: _Line) -> ToolUse:
    return ToolUse(
        **line.noted,
        **line.tally,
        category=line.text("category"),
        drift=line.cells.get("drift", ""),
    )


def _tool_trial(line: _Line) -> ToolTrial:
    return ToolTrial(
        **line.noted,
        **line.tally,
        tool=line.text("tool"),
        stage=line.word("stage", ("before", "after", "ablated")),
        group=line.word("group", ("needs", "control")),
        installed_by=line.text("installed_by"),
    )


def _team_trial(line: _Line) -> TeamTrial:
    tally = line.tally
    found: dict[str, Any] = {name: line.count(name, default=0) for name in PENALTIES}
    for name, count in found.items():
        if count > tally["episodes"]:
            raise line.wrong(name, f"is more than the {tally['episodes']} episodes")
    robots = line.count("robots")
    if robots < 1:
        raise line.wrong("robots", "must be at least 1")
    return TeamTrial(**line.noted, **tally, **found, task=line.text("task"), robots=robots)


def _declaration(line: _Line) -> Declaration:
    time_ns = line.time_ns("time")
    if time_ns is None:
        raise line.wrong("time", "is empty; a declaration has a time")
    what, value = line.word("what", DECLARED), line.quantity("value")
    low, high = line.amount("low", None), line.amount("high", None)
    if what in _YES_OR_NO and value not in (0.0, 1.0):
        raise line.wrong("value", "must be 1 for yes or 0 for no")
    if what not in _YES_OR_NO and (low is None or high is None or not low <= value <= high):
        raise line.wrong("value", "needs an interval around it, in the columns low and high")
    return Declaration(
        **line.noted,
        what=what, value=value, low=low, high=high, n=line.count("n"), by=line.text("by"),
        time_ns=time_ns, document=line.text("document"),
    )  # fmt: skip


def _checkpoint(line: _Line) -> Checkpoint:
    time_ns = line.time_ns("time")
    if time_ns is None:
        raise line.wrong("time", "is empty; a checkpoint has a time")
    return Checkpoint(
        **line.noted,
        time_ns=time_ns,
        family=line.text("family"),
        capability=line.quantity("capability", most=1.0),
        resources=line.quantity("resources"),
        drift=line.cells.get("drift", ""),
        human_patches=line.count("human_patches", default=0),
        utc_offset_s=line.utc_offset_s("time"),
    )


_READERS: Final[dict[str, Callable[[_Line], Any]]] = {
    "incidents": _incident,
    "faults": _fault,
    "repairs": _repair,
    "ratings": _rating,
    "pauses": _pause,
    "tools": _tool_use,
    "checkpoints": _checkpoint,
    "expansion": _tool_trial,
    "teams": _team_trial,
    "declarations": _declaration,
}


def _check_unique(evidence: Evidence) -> None:
    seen: set[str] = set()
    for incident in evidence.incidents or ():
        if incident.incident_id in seen:
            raise InputError(
                f"{evidence.files['incidents']}: line {incident.line}, column 'incident_id':"
                f" {incident.incident_id!r} appears twice; one event is one incident"
            )
        seen.add(incident.incident_id)
    _check_checkpoints(evidence)
    rated: set[tuple[str | None, str]] = set()
    for rating in evidence.ratings or ():
        key = (rating.episode_id, rating.rater)
        if key in rated:
            raise InputError(
                f"{evidence.files['ratings']}: line {rating.line}, column 'rater':"
                f" {rating.rater!r} rates episode {rating.episode_id!r} twice"
            )
        rated.add(key)


def _check_checkpoints(evidence: Evidence) -> None:
    last: dict[tuple[str, str | None, str], Checkpoint] = {}
    for point in sorted(evidence.checkpoints or (), key=lambda one: one.time_ns):
        key = (point.side, point.policy, point.family)
        before = last.get(key)
        where = f"{evidence.files.get('checkpoints')}: line {point.line}"
        if before is not None and before.time_ns == point.time_ns:
            raise InputError(
                f"{where}, column 'time': family {point.family!r} has a checkpoint at that time"
                f" already, in line {before.line}"
            )
        if before is not None and point.resources < before.resources:
            raise InputError(
                f"{where}, column 'resources': {point.resources:g} is less than the"
                f" {before.resources:g} of line {before.line}; it is a running total"
            )
        last[key] = point
