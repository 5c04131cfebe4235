"""Incidents as tables for other programs: written as CSV and JSON, and read as new reports."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TextIO

from pydantic import AfterValidator, ConfigDict, Field

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.yaml_form import Section
from robo_eval.log.files import appearing
from robo_eval_incidents.kinds import (
    MOST_EVIDENCE,
    MOST_INJURIES,
    MOST_QUANTITIES,
    Evidence,
    Injury,
    Quantity,
    RecordId,
    Report,
    Sha256,
    View,
)
from robo_eval_incidents.lists import Filter, list_incidents
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.merge import EXPORT_SUFFIX, export_records
from robo_eval_incidents.record import now
from robo_eval_incidents.state import Incident
from robo_eval_incidents.text import (
    TIMES,
    Line,
    Name,
    Prose,
    Uri,
    answers_cell,
    evidence_cell,
    iso_of,
    ns_of,
    quantities_cell,
    safe_cell,
    section_text,
    span_of,
)
from robo_eval_incidents.words import Answer, Category, Engagement, Severity, Status

FORMAT: Final = "robo-eval incidents"
VERSION: Final = 1
SCHEMA_ID: Final = "urn:robo-eval:incidents:1"
_PAGE: Final = 400
"""Incidents that are in memory at once."""


def _time(text: str) -> str:
    try:
        ns_of(text)
    except ValueError:
        raise ValueError(
            f"{text!r:.60} is not a time with its zone from 1970 to 2262; write it like"
            " 2026-03-01T09:30:00Z"
        ) from None
    return text


def _span(text: str) -> str:
    # What is relative would be another time each time the table is read.
    if text.startswith("-") or text == "now":
        raise ValueError(f"{text!r:.60} is no time of its own; write it like 2026-03-01T09:30:00Z")
    try:
        span_of(text)
    except ValueError as err:
        raise ValueError(str(err).replace(TIMES, "2026-03-01T09:30:00Z")) from err
    return text


Time = Annotated[
    str,
    Field(max_length=40, json_schema_extra={"format": "date-time"}),
    AfterValidator(_time),
]
"""A time in ISO 8601 with its zone."""


class _Part(Section):
    """A part of a table; what is said of its fields is in the published schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Piece(_Part):
    """A file of evidence in a table."""

    uri: Uri
    """Path, relative to the folder of evidence of the log it is from."""
    start: Time | None = None
    """First instant that matters."""
    end: Time | None = None
    """Last instant that matters."""
    sha256: Sha256 | None = None
    """Digest of the file."""


class OpenAction(_Part):
    """A corrective action that has not been found effective."""

    what: Prose
    owner: Name
    due: date | None = None


class Row(_Part):
    """One incident as it stands. Of an import, what only a log can say is left out of account."""

    id: RecordId | None = None
    """Its id in the log it is from, and in every log it is imported into."""
    source_id: Line | None = None
    """Its id in the table it was imported from, or of the program that wrote this one."""
    station: Line | None = None
    """Station it was filed at; not imported."""
    number: int | None = None
    """Number of its report there; not imported."""
    time: Annotated[str, Field(max_length=100), AfterValidator(_span)]
    """When it happened: ISO 8601 with its zone, a day, a month, BEGIN/END, or unknown."""
    robot: Name
    side: Side = Side.REAL
    severity: Severity
    category: Category = Category.OTHER
    engagement: Engagement = Engagement.UNKNOWN
    """Who was in control."""
    episode_id: Line | None = None
    policy: Line | None = None
    task: Line | None = None
    description: Prose
    quantities: tuple[Quantity, ...] = Field(default=(), max_length=MOST_QUANTITIES)
    evidence: tuple[Piece, ...] = Field(default=(), max_length=MOST_EVIDENCE)
    answers: dict[str, Answer] = Field(default_factory=dict)
    """Answers to the questions of recordability."""
    injuries: tuple[Injury, ...] = Field(default=(), max_length=MOST_INJURIES)
    """What happened to each person who was hurt."""
    place: Line | None = None
    """Where it happened."""
    rule: Line | None = None
    """Rule that drafted it."""
    status: Status | None = None
    """How far it has got; not imported: who imports stands for a report, and no review."""
    counted_severity: Severity | None = None
    """How bad it counts until somebody has reviewed it; imported where it is the worse one."""
    reported_by: Line | None = None
    """Who reported it; not imported: a record is by whoever wrote it."""
    reported_at: Time | None = None
    """When; not imported."""
    reviewed_by: tuple[Name, ...] = ()
    """Who stands behind its verdict; not imported."""
    open_actions: tuple[OpenAction, ...] = ()
    """Corrective actions that were not found effective; not imported."""


class Whole(Row):
    """One incident as it stands, and everything that was recorded about it."""

    name: str
    """Station and number."""
    open: tuple[str, ...]
    """What is missing until it may be closed."""
    records: tuple[dict[str, Any], ...]
    """Its records, oldest first."""

    @classmethod
    def of(cls, incident: Incident, *, views: bool) -> Self:
        """An incident, with records of who looked at it or without."""
        records = [one.as_dict() for one in incident.records if views or one.kind != View.kind]
        return cls(
            **dict(row_of(incident)),
            name=incident.name,
            open=tuple(incident.open_points),
            records=tuple(records),
        )


class IncidentTable(_Part):
    """Incidents of a log."""

    format: Literal["robo-eval incidents"] = FORMAT
    version: Literal[1] = VERSION
    log_id: Line | None = None
    """Log it was written from."""
    written_at: Time | None = None
    incidents: tuple[Row, ...]


COLUMNS: Final = tuple(Row.model_fields)
"""Columns of the CSV form, in order."""
OF_REPORT: Final = tuple(name for name in COLUMNS if name in Report.model_fields)
"""Those that are fields of a report."""
UNREAD: Final = frozenset(
    {"number", "station", "status", "reported_by", "reported_at", "reviewed_by", "open_actions"}
)  # fmt: skip
"""Columns that say how an incident stands in the log it is from; an import leaves them out."""


def schema() -> dict[str, Any]:
    """The JSON Schema of the JSON form; a line of the CSV form has the same fields."""
    made = IncidentTable.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **made,
    }


# Writing ---------------------------------------------------------------------------------------


def rows(log: IncidentLog, wanted: Filter | None = None) -> Iterator[Row]:
    """Incidents as they stand, newest first."""
    after: str | None = None
    while True:
        page = list_incidents(log, wanted, after=after, limit=_PAGE)
        # All of them at once, because one by one takes long.
        shown = log.incidents_with([row.incident_id for row in page.rows])
        found = {incident.incident_id: incident for incident in shown}
        for row in page.rows:
            yield row_of(found[row.incident_id])
        if page.next is None:
            return
        after = page.next


def row_of(incident: Incident) -> Row:
    """An incident as a line of a table: where and when it counts, as lists show it."""
    report, counted = incident.report, incident.counted
    values = {name: getattr(report, name) for name in OF_REPORT}
    values |= {name: getattr(counted, name) for name in ("robot", "side", "episode_id", "policy")}
    values["evidence"] = tuple(map(_piece_of, incident.evidence[:MOST_EVIDENCE]))
    opened = [
        OpenAction(what=one.action.what, owner=one.action.owner, due=one.action.due)
        for one in incident.measures.values()
        if not one.is_effective
    ]
    return Row(
        **{**values, "injuries": report.injuries or ()},
        id=incident.incident_id,
        station=incident.record.station,
        number=incident.record.sequence,
        time=counted.time,
        status=incident.status,
        counted_severity=incident.counted_severity,
        reported_by=incident.record.by,
        reported_at=iso_of(incident.record.at.time_ns),
        reviewed_by=incident.reviewed_by,
        open_actions=tuple(opened),
    )


def export(
    log: IncidentLog, out: Path, wanted: Filter | None = None, *, force: bool = False
) -> int:
    """Write incidents, or all records, to a file that appears complete or not at all.

    Args:
        log: The log.
        out: File to write: `.csv` or `.json` for incidents as they stand, `.jsonl` for every
            record in its canonical form, which another log can merge.
        wanted: Which incidents; all if none is given.
        force: Replace a file that is there.

    Returns:
        The number of incidents, or of records.

    Raises:
        InputError: If the ending is another one, the file is there already, or records are asked
            for by a filter.
        TrialDirectoryError: If it cannot be written.
    """
    writers: dict[str, Callable[[IncidentLog, TextIO, Filter | None], int]]
    writers = {".csv": write_csv, ".json": write_json, EXPORT_SUFFIX: _write_records}
    write = writers.get(out.suffix.lower())
    if write is None:
        raise InputError(
            f"{out}: the name must end in {', '.join(writers)}, or .html for a period to print"
        )
    if write is _write_records and wanted not in (None, Filter()):
        raise InputError(f"{out}: records are exported all together; leave the filters out")
    if not force and (out.exists() or out.is_symlink()):
        raise InputError(f"{out}: exists already; choose another name, or replace it: --force")
    with appearing(out) as part, part.open("w", encoding="utf-8", newline="") as file:
        return write(log, file, wanted)


def _write_records(log: IncidentLog, file: TextIO, _wanted: Filter | None) -> int:
    lines = export_records(log)
    file.write(next(lines))  # how far each station had got
    count = 0
    for line in lines:
        file.write(line)
        count += 1
    return count


def write_json(log: IncidentLog, file: TextIO, wanted: Filter | None = None) -> int:
    """Write incidents as JSON, newest first, one on a line.

    Args:
        log: The log.
        file: Where to; a text file in UTF-8.
        wanted: Which incidents; all if none is given.

    Returns:
        How many.
    """
    top = {
        "format": FORMAT,
        "version": VERSION,
        "log_id": log.meta.get("log_id"),
        "written_at": iso_of(now().time_ns),
    }
    file.write(_json(top).removesuffix("}") + ', "incidents": [')
    count = 0
    for row in rows(log, wanted):
        file.write((",\n" if count else "\n") + _json(row.model_dump(mode="json")))
        count += 1
    file.write("\n]}\n" if count else "]}\n")
    return count


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def write_csv(log: IncidentLog, file: TextIO, wanted: Filter | None = None) -> int:
    """Write incidents as CSV, newest first; see `write_json`.

    A byte order mark says that it is UTF-8. No cell is taken for a formula: one that begins like a
    formula has an apostrophe before it.
    """
    file.write("\ufeff")  # else Excel reads it in the code page of its machine
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    count = 0
    for row in rows(log, wanted):
        writer.writerow(_cells_of(row))
        count += 1
    return count


_CELLS: Final[dict[str, Callable[[Any], str]]] = {
    "quantities": quantities_cell,
    "evidence": evidence_cell,
    "answers": answers_cell,
    "injuries": lambda found: "; ".join(
        section_text({name: one[name] for name in one if one[name] not in (None, "", "unknown")})
        for one in found
    ),
    "reviewed_by": "; ".join,
    "open_actions": lambda found: "; ".join(
        f"{one['what']} ({one['owner']}" + (f", due {one['due']})" if one["due"] else ")")
        for one in found
    ),
}


def _cells_of(row: Row) -> list[str]:
    cells = []
    for name, value in row.model_dump(mode="json").items():
        if name in _CELLS:
            cells.append(safe_cell(_CELLS[name](value)))
        else:
            cells.append("" if value is None else safe_cell(str(value)))
    return cells


def _piece_of(one: Evidence) -> Piece:
    return Piece(
        uri=one.uri,
        start=None if one.start_ns is None else iso_of(one.start_ns),
        end=None if one.end_ns is None else iso_of(one.end_ns),
        sha256=one.sha256,
    )
