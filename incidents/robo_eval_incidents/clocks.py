"""By when somebody outside has to be told of an incident, as whoever answers for the log wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from robo_eval.core.errors import InputError
from robo_eval.core.names import person_key, unknown_name
from robo_eval.core.wording import counted, shown
from robo_eval.core.yaml_form import Section, first_problem, toml_of
from robo_eval_incidents.kinds import Notice, Review
from robo_eval_incidents.lists import of_kinds
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.record import Record
from robo_eval_incidents.rows import Listed
from robo_eval_incidents.state import Incident
from robo_eval_incidents.text import Line, Name, shown_time
from robo_eval_incidents.words import Category, Severity

FILE: Final = "clocks.toml"
"""Name of the file beside a log."""
_KINDS: Final = (*Severity, *Category)
_HOUR_NS: Final = 3_600 * 10**9


class Clock(Section):
    """How soon somebody has to be told."""

    hours: Annotated[float, Field(strict=True, gt=0.0, le=87_600.0)]
    """Within how many hours."""
    to: Name
    """Who is told."""
    counted_from: Literal["happened", "reported", "reviewed"] = "reported"
    """Since when: since it happened, its report, or the first review that confirmed it."""
    note: Line = ""
    """Where that is from, in words of whoever wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """What the file says.

    Attributes:
        since: Incidents of earlier days have no clocks; None for all.
        of: Clocks by kind: a severity that an incident counts at, or a category.
    """

    since: date | None
    of: Mapping[str, tuple[Clock, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """By when somebody has to be told of an incident, and whether they were.

    Attributes:
        incident: The incident.
        kind: The kind whose clock it is.
        clock: The clock.
        due_ns: Until when, UTC.
        told: The record that says that they were told; None if nobody said so.
    """

    incident: Listed
    kind: str
    clock: Clock
    due_ns: int
    told: Record | None

    def is_late(self, now_ns: int) -> bool:
        """Whether nobody was told, and the time is over."""
        return self.told is None and now_ns > self.due_ns

    def text(self, now_ns: int) -> str:
        """What is to be done, or was done."""
        if self.told is not None:
            when = shown_time(self.told.at.time_ns)
            return f"{self.clock.to} was told, says {self.told.by} at {when}"
        hours = (now_ns - self.due_ns) / _HOUR_NS
        span = f"{shown(round(hours, 2))} h" if hours < 48 else counted(int(hours // 24), "day")
        late = f", overdue by {span}"
        return f"tell {self.clock.to} by {shown_time(self.due_ns)}{late * self.is_late(now_ns)}"

    def as_dict(self, now_ns: int) -> dict[str, Any]:
        """The deadline as JSON has it."""
        return {
            "name": self.incident.name, "incident_id": self.incident.incident_id,
            "kind": self.kind, **self.clock.model_dump(), "due_ns": self.due_ns,
            "is_late": self.is_late(now_ns), "told_by": self.told and self.told.by,
            "told_ns": self.told and self.told.at.time_ns,
        }  # fmt: skip


def read_clocks(path: Path) -> Clocks:
    """Read such a file.

    Raises:
        InputError: If it is broken, or has an unknown kind or key; the message names the line.
    """
    text, data = toml_of(path, "clocks")
    since = data.pop("since", None)
    if type(since) not in (date, type(None)):
        raise InputError(f"{path}: line {_line(text, key='since')}: since is a day like 2026-03-01")
    found = {}
    for kind, given in data.items():
        if kind not in _KINDS:
            unknown = unknown_name("kind", kind, _KINDS)
            raise InputError(f"{path}: line {_line(text, kind)}: {unknown}")
        clocks = []
        for number, one in enumerate(given if isinstance(given, list) else [given], start=1):
            try:
                clocks.append(Clock.model_validate(one))
            except ValidationError as err:
                problem = first_problem(err, Clock)
                line = _line(text, *[kind] * number, key=problem.partition(":")[0])
                raise InputError(f"{path}: line {line}: {problem}") from err
        found[kind] = tuple(clocks)
    return Clocks(since=since, of=found)


def _line(text: str, *tables: str, key: str = "") -> int:
    """The line where a table begins, which others of its name come before, or of a key in it."""
    place = 0
    for name in (*tables, key):
        sought = re.compile(rf"^[ \t\[]*[\"']?{re.escape(name)}[\"']?[ \t]*[\]=]", re.MULTILINE)
        end = text.find("\n[", place) if name == key else -1
        found = sought.search(text, place, end if end >= 0 else len(text))
        place = found.end() if found else place
    return text.count("\n", 0, place) + 1


def due(log: IncidentLog, *, robot: str | None = None) -> list[Deadline]:
    """Whom somebody has to tell of incidents of real robots, and by when, the earliest first.

    Args:
        log: The log; its clocks are in a file beside it, and without that there are none.
        robot: Only incidents of this robot.

    Raises:
        InputError: If the file cannot be read.
    """
    path = (log.evidence_folder or Path("nowhere")) / FILE
    if log.evidence_folder is None or not path.exists():
        return []
    clocks = read_clocks(path)
    rows = {one.incident_id: one for one in of_kinds(log, tuple(clocks.of), robot, clocks.since)}
    found = []
    for incident in log.incidents_with(list(rows)):
        starts = _starts(incident)
        told = {
            person_key(one.body.to): one
            for one in incident.records
            if isinstance(one.body, Notice) and one.body.what == "reported"
        }
        for kind in (incident.counted_severity.value, incident.category.value):
            found += [
                Deadline(
                    incident=rows[incident.incident_id], kind=kind, clock=clock,
                    due_ns=start_ns + round(clock.hours * _HOUR_NS),
                    told=told.get(person_key(clock.to)),
                )
                for clock in clocks.of.get(kind, ())
                if (start_ns := starts.get(clock.counted_from)) is not None
            ]  # fmt: skip
    return sorted(found, key=lambda one: (one.told is not None, one.due_ns, one.incident.name))


def _starts(incident: Incident) -> dict[str, int]:
    """When clocks of an incident began to run, ns; of a day, when it began."""
    reported = incident.record.at.time_ns
    reviews = [
        one.at.time_ns
        for one in incident.records
        if isinstance(one.body, Review) and one.body.verdict == "confirmed"
    ]
    # Of one that happened nobody knows when, its report is the first that is known.
    found = {"happened": incident.counted.happened_ns or reported, "reported": reported}
    return found | ({"reviewed": min(reviews)} if reviews else {})
