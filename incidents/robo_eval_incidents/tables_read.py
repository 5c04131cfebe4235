"""Tables of incidents from elsewhere, read and filed as new reports."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from robo_eval.core import door
from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError
from robo_eval.log.csv_records import records
from robo_eval.log.evidence_read import bytes_of, check_columns
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.incident_map import IncidentMap
from robo_eval_incidents.kinds import (
    Body,
    Correction,
    Reclassification,
    Report,
    form_of,
    plain,
    section_of,
    times_of,
)
from robo_eval_incidents.log import IncidentLog, check_past
from robo_eval_incidents.record import MOST_BYTES, Record
from robo_eval_incidents.redaction import gone_of
from robo_eval_incidents.state import Incident, check
from robo_eval_incidents.tables import COLUMNS, OF_REPORT, UNREAD, VERSION, IncidentTable, Row
from robo_eval_incidents.text import (
    evidence_of,
    name_of,
    ns_of,
    plain_cell,
)
from robo_eval_incidents.words import Via, worst

# Made once for this use, so that ids of imported reports are those of no other program.
_IMPORTED: Final = uuid.UUID("6f0c1d0e-6a51-5a0e-9a59-4a4a1f0ab7d2")
_OVERHEAD: Final = 4_000
"""Bytes a record may have beside its body."""
_NO_DESCRIPTION: Final = "(no description)"
_NEEDED: Final = "incidents have time, robot, severity, description and source_id"
_OLD_ID: Final = "incident_id"
"""What the evidence of a trial, `incidents.csv`, calls an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import added.

    Attributes:
        added: Names of new incidents, as `STATION/NUMBER`.
        known: How many were in the log already.
        corrected: Names of incidents that were corrected or reclassified as the table has them.
    """

    added: tuple[str, ...]
    known: int
    corrected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """An incident of a table.

    Attributes:
        report: What it says, as a report.
        incident_id: Its id in the log it is from; None if the table does not say.
        row: The line.
        where: File and line, for messages.
    """

    report: Report
    incident_id: str | None
    row: Row = field(compare=False)
    where: str = field(compare=False)

    @property
    def record_id(self) -> str:
        """Id of its report in every log: the one it has, or one made of its source id."""
        return self.incident_id or _record_id(str(self.report.source_id))


def read_json(path: Path) -> list[Reported]:
    """The incidents of a JSON file, as reports.

    Raises:
        InputError: If the file cannot be read, or an incident is none; the message names file,
            incident and field.
    """
    try:
        data = json.loads(
            door.decoded(bytes_of(path, "incidents"), path), parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as err:
        raise InputError(f"{path}: is not JSON: {err!s:.120}") from err
    version = data.get("version", VERSION) if isinstance(data, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise InputError(
            f"{path}: is of version {version}, this program reads {VERSION}; install a newer"
            " robo-eval"
        )
    found = data.get("incidents") if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise InputError(
            f"{path}: holds no incidents; `robo-eval incidents schema` says what it looks like"
        )
    top = {name: value for name, value in data.items() if name != "incidents"}
    section_of(IncidentTable, {**top, "incidents": []}, f"{path}: ")
    reports = []
    for number, values in enumerate(found, start=1):
        where = f"{path}: incident {number}, field "
        row = section_of(Row, values, where)
        reports.append(_report_of(row, where, f"{path.name}:{number}"))
    return reports


def read_csv(
    path: Path, *, robot: str | None = None, columns: IncidentMap | None = None
) -> list[Reported]:
    """The incidents of a CSV file, as reports.

    A line without an id gets one of file and line. Of lines that are wholly equal, and whose id a
    map puts together of several columns, each is an event: theirs is numbered.

    Args:
        path: File in the form `write_csv` writes, of which many columns may be missing, or
            `incidents.csv` of a trial, or one with other columns.
        robot: Robot of lines that name none.
        columns: Where our columns come from; None if they are ours.

    Raises:
        InputError: If the file cannot be read, or a line is none; the message names file, line
            and column.
    """
    reports = []
    copies: Counter[tuple[str, ...]] = Counter()
    for line, cells in _lines(path, columns):
        where = f"{path}: line {line}, column "
        own = cells if columns is None else dict(columns.cells(cells, f"{path}: line {line}"))
        if columns is not None and columns.makes_ids:
            copies[line_of := tuple(cells.values())] += 1
            own["source_id"] += f" ({copies[line_of]})" * (copies[line_of] > 1)
        try:
            row = section_of(Row, _values_of(own, robot, where), where)
            reports.append(_report_of(row, where, f"{path.name}:{line}"))
        except InputError as err:
            raise _located(str(err).removeprefix(where), where, columns) from err
    return reports


def _located(problem: str, where: str, columns: IncidentMap | None) -> InputError:
    """What is wrong with a line, by the name the column has in the table."""
    name, colon, rest = problem.partition(": ")
    return InputError(f"{where}{name if columns is None else columns.named(name)}{colon}{rest}")


def _lines(path: Path, columns: IncidentMap | None) -> Iterator[tuple[int, dict[str, str]]]:
    """Cells of each line by column, with its number."""
    if columns is not None:
        yield from columns.lines(path)
        return
    found = records(path, bytes_of(path, "incidents"))
    check_columns(path, found.header, (*COLUMNS, _OLD_ID), ("time", "severity"), _NEEDED)
    for number, cells in found:
        yield number, dict(zip(found.header, cells, strict=True))


def read_table(
    path: Path, *, robot: str | None = None, columns: IncidentMap | None = None
) -> list[Reported]:
    """The incidents of a file, by its ending; see `read_csv` and `read_json`."""
    suffix = path.suffix.lower()
    if suffix == ".csv" or columns is not None:
        return read_csv(path, robot=robot, columns=columns)
    if suffix == ".json":
        return read_json(path)
    hint = "; `robo-eval incidents merge` takes records" if suffix == ".jsonl" else ""
    raise InputError(f"{path}: name a file that ends in .csv or .json{hint}")


def checked_table(
    path: Path,
    *,
    robot: str | None = None,
    source: str | None = None,
    columns: IncidentMap | None = None,
) -> list[Reported]:
    """The incidents of a file as they would be filed; see `import_reports`.

    Raises:
        InputError: If the file cannot be read, a line is no incident, or two lines have one id.
    """
    found = []
    seen: set[str] = set()
    for one in read_table(path, robot=robot, columns=columns):
        if source is not None:
            one = _renamed(one, f"{source}:{one.report.source_id}", f"{path}: ")
        _check_once(path, one, seen)
        found.append(one)
    return found


def import_reports(
    log: IncidentLog,
    path: Path,
    *,
    by: str,
    robot: str | None = None,
    source: str | None = None,
    as_corrections: bool = False,
    columns: IncidentMap | None = None,
) -> Imported:
    """File the incidents of a table as new reports; all of them are checked before the first is.

    Which incident is which is told by its `id`, or its `source_id` if it has none: what is in the
    log already is not added again. An incident keeps its `id`, so that merging the log it is from
    does not double it.

    Args:
        log: The log.
        path: CSV or JSON file.
        by: Who imports, and so stands for these reports.
        robot: Robot of lines that name none.
        source: What names the table, put before every source id; needed where two tables number
            their incidents alike.
        as_corrections: Correct and reclassify incidents that are in the log where a cell of the
            table says something else; cells that are empty say nothing.
        columns: Where our columns come from; None if they are ours.

    Raises:
        InputError: If the file cannot be read, a line is no incident, two lines have one id, or
            the log has something else under these ids. Nothing was added then.
    """
    by = name_of(by, "by")
    found = checked_table(path, robot=robot, source=source, columns=columns)
    newest_ns = log.newest_ns()
    new: list[Reported] = []
    changes: list[tuple[Incident, Body]] = []
    for one in found:
        if as_corrections and not (one.row.source_id or one.row.id):
            raise InputError(
                f"{one.where}source_id: is missing; --as-corrections needs to know which incident"
                " a line is of"
            )
        own = _known(log, one, path, as_corrections=as_corrections)
        try:
            if own is None:
                new.append(one)
                check_past(one.report, newest_ns)
            elif as_corrections:
                changes += _changes(log.incident(own.record_id), one, path, by, newest_ns)
        except InputError as err:
            raise _located(str(err), one.where, columns) from err
    added = _append(log, new, by)
    for incident, body in changes:
        log.file(body, by=by, via=Via.IMPORT, incident_id=incident.incident_id)
    corrected = tuple(dict.fromkeys(incident.name for incident, _ in changes))
    return Imported(added=added, known=len(found) - len(new), corrected=corrected)


def _changes(
    incident: Incident, one: Reported, path: Path, by: str, newest_ns: int
) -> Iterator[tuple[Incident, Body]]:
    """What makes an incident stand as a line has it; checked, as far as it may follow."""
    given = one.row.model_fields_set | {"happened_ns", "until_ns"}  # no line is without a time
    given -= gone_of(incident.records)  # an older table does not bring back what was taken out
    now, counted, new = (plain(made) for made in (incident.report, incident.counted, one.report))
    fields = {
        name: new.get(name)
        for name in Correction.FIELDS
        # A table says where an incident counts, which may wait for a review.
        if name in given and new.get(name) not in (now.get(name), counted.get(name))
    }
    reason = f"as {path.name} has it"
    severity = one.row.severity
    category = one.row.category if "category" in given else incident.category
    bodies: list[Body] = []
    if fields:
        bodies.append(section_of(Correction, {"fields": fields, "reason": reason}))
    if (severity, category) != (incident.severity, incident.category):
        bodies.append(Reclassification(severity=severity, category=category, reason=reason))
    for body in bodies:
        check_past(body, newest_ns)
        check(incident, body, by)
        yield incident, body


def _check_once(path: Path, one: Reported, seen: set[str]) -> None:
    source_id = str(one.report.source_id)
    for what, name in (("source id", source_id), ("id", one.record_id)):
        if name in seen:
            raise InputError(
                f"{path}: {what} {name!r} appears twice; one event is one incident. Where each line"
                " is one, leave ids out"
            )
    seen |= {source_id, one.record_id}


def _append(log: IncidentLog, new: Sequence[Reported], by: str) -> tuple[str, ...]:
    added: list[str] = []
    try:
        for one in new:
            record = log.file(one.report, by=by, via=Via.IMPORT, record_id=one.record_id)
            added.append(record.name)
    except IncidentLogError as err:
        raise IncidentLogError(
            f"{err}; {len(added)} of {len(new)} incidents were added, and the same import adds"
            " the rest"
        ) from err
    return tuple(added)


def _known(log: IncidentLog, one: Reported, path: Path, *, as_corrections: bool) -> Record | None:
    """The report of an incident in the log, under its own id or imported before; None if new."""
    name = str(one.report.source_id)
    for own_id in (one.incident_id, name if _is_id(name) else None):
        own = None if own_id is None else log.find(own_id)
        if own is not None:
            _check_incident(own, path)
            return own
    found = log.find(_record_id(name))
    if found is not None and not as_corrections and _said(found) != _said(found, one.report):
        raise InputError(
            f"{path}: source id {name!r:.80} is in the log already, as {found.name}, and says"
            " something else there; --as-corrections corrects that one, --source names a table"
            " that numbers other incidents"
        )
    return found


def _said(found: Record, other: Body | None = None) -> dict[str, Any]:
    """What a record says, or another body beside it, without what was taken out of the record."""
    gone = gone_of([found])
    return {name: value for name, value in plain(other or found.body).items() if name not in gone}


def _check_incident(found: Record, path: Path) -> None:
    if not isinstance(found.body, Report):
        raise InputError(
            f"{path}: id {found.record_id} is in the log as {found.station}/{found.sequence}, which"
            " is no incident; this table was changed, or is of another log"
        )


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _record_id(source_id: str) -> str:
    return str(uuid.uuid5(_IMPORTED, source_id))


def _renamed(one: Reported, source_id: str, where: str) -> Reported:
    values = {**plain(one.report), "source_id": source_id}
    return replace(one, report=section_of(Report, values, where))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _read(column: str, text: str) -> Any:
    """What a cell holds, where it is a list in one text."""
    if column in ("quantities", "answers", "injuries"):
        return form_of(Report.model_fields[column]).read(text, 0)
    return evidence_of(text) if column == "evidence" else text


def _values_of(cells: Mapping[str, str], robot: str | None, where: str) -> dict[str, Any]:
    """The fields of a line; an empty cell says nothing."""
    values: dict[str, Any] = {}
    for column, cell in cells.items():
        text = plain_cell(cell.strip(" "))
        if not text.strip() or column in UNREAD:
            continue
        try:
            values[column] = _read(column, text)
        except ValueError as err:
            raise InputError(f"{where}{column}: {err}") from err
    if _OLD_ID in cells:
        values.setdefault("source_id", values.pop(_OLD_ID, None))
        values.setdefault("description", _NO_DESCRIPTION)
    if robot is not None:
        values.setdefault("robot", robot)
    if "robot" not in values:
        raise InputError(f"{where}robot: is missing; name the robot of all lines by --robot")
    return values


def _report_of(row: Row, where: str, place: str) -> Reported:
    evidence = [
        {
            "uri": one.uri,
            "start_ns": None if one.start is None else ns_of(one.start),
            "end_ns": None if one.end is None else ns_of(one.end),
            "sha256": one.sha256,
        }
        for one in row.evidence
    ]
    report = section_of(
        Report,
        {
            **{name: getattr(row, name) for name in OF_REPORT},
            # A milder severity that nobody has reviewed does not become the only one.
            "severity": worst(row.severity, row.counted_severity or row.severity),
            **times_of(row.time),
            "evidence": evidence,
            "injuries": row.injuries or None,
            "source_id": row.source_id or row.id or place,
        },
        where,
    )
    if len(canonical_json(plain(report))) > MOST_BYTES - _OVERHEAD:
        raise InputError(f"{where}description: with the other fields it is too long for a record")
    return Reported(report=report, incident_id=row.id, row=row, where=where)
