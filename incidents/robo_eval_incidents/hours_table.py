"""Hours and kilometres from a table: a line for each robot, period and mode."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import select

from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError
from robo_eval.log.cells import number_of
from robo_eval.log.csv_records import records
from robo_eval.log.evidence_read import bytes_of, check_columns
from robo_eval_incidents.hours import Logged
from robo_eval_incidents.kinds import Exposure, plain, section_of
from robo_eval_incidents.log import IncidentLog, check_past
from robo_eval_incidents.schema import TIMES
from robo_eval_incidents.text import period_of, span_text
from robo_eval_incidents.words import Engagement, Via

COLUMNS: Final = ("robot", "period", "hours", "km", "mode", "side", "task", "policy")
"""Columns of such a table; `robot`, `period`, and `hours` or `km` are needed."""
# Made once for this use, so that a line that is read twice is one record.
_LINES: Final = uuid.UUID("0b9a1c9b-3f3b-5f0c-8d2f-0a6f2a3c7be1")


class Line(NamedTuple):
    """A line of the table, as a record, with file and line for messages."""

    body: Exposure
    where: str

    @property
    def record_id(self) -> str:
        """Id of its record: the same line is the same record, in logs of older programs too."""
        values = {"seconds": 0.0, **plain(self.body)}
        return str(uuid.uuid5(_LINES, canonical_json(values).decode()))


def read_hours(path: Path) -> list[Line]:
    """The lines of a table of hours.

    Args:
        path: CSV file with some of `COLUMNS`. A period is a day, a month or BEGIN/END.

    Raises:
        InputError: If the file cannot be read, or a line is none; the message names file, line
            and column.
    """
    found = records(path, bytes_of(path, "hours"))
    header = found.header
    amount = "km" if "km" in header else "hours"
    what = f"hours have {', '.join(COLUMNS)}"
    check_columns(path, header, COLUMNS, ("robot", "period", amount), what)
    lines: dict[str, Line] = {}
    for number, cells in found:
        line = _line(dict(zip(header, cells, strict=True)), f"{path}: line {number}, column ")
        before = lines.setdefault(line.record_id, line)
        if before is not line:
            raise InputError(f"{line.where}period: says the same as {before.where.split(', ')[0]}")
    return list(lines.values())


def import_hours(log: IncidentLog, path: Path, *, by: str) -> Logged:
    """Record the lines of a table of hours; all of them are checked before the first is.

    Args:
        log: The log.
        path: The table; see `read_hours`.
        by: Who says so.

    Returns:
        How many lines are new, and how many were withdrawn before, which are not logged again.

    Raises:
        InputError: If the table cannot be read, or the log has another total of the same robot,
            period and mode. Nothing was added then.
    """
    lines = read_hours(path)
    query = select(TIMES).where(TIMES.c.total_ns.isnot(None))
    with log.database.reading() as connection:
        rows = connection.execute(query).all()
    known = {row.id: row.withdrawn_by for row in rows}
    totals = {
        (row.robot, row.side, row.mode, row.what, row.start_ns, row.end_ns): row
        for row in rows
        if row.withdrawn_by is None
    }
    new = [line for line in lines if line.record_id not in known]
    newest_ns = log.newest_ns()
    seen: dict[tuple[object, ...], str] = {}
    for body, where in new:
        place = (
            body.robot, body.side.value, body.mode.value, body.task, body.start_ns, body.end_ns,
        )  # fmt: skip
        if (other := seen.setdefault(place, where)) is not where:
            other = other.split(", ")[0]
            raise InputError(
                f"{where}period: {body.robot} has other hours of {_period(body)} in {other}; put"
                " them together, or give their tasks"
            )
        before = totals.get(place)
        if before is not None:
            name = f"{before.station}/{before.sequence}"
            raise InputError(
                f"{where}period: {body.robot} has other hours of {_period(body)} in the log, as"
                f" {name}; withdraw those first: robo-eval incidents withdraw {name}"
            )
        try:
            check_past(body, newest_ns)
        except InputError as err:
            raise InputError(f"{where}period: {err}") from err
    for line in new:
        log.file(line.body, by=by, via=Via.IMPORT, record_id=line.record_id)
    return Logged(len(new), sum(known.get(line.record_id) is not None for line in lines))


def _period(body: Exposure) -> str:
    return span_text(body.start_ns, body.until_ns)


def _line(cells: Mapping[str, str], where: str) -> Line:
    given = {name: cell.strip() for name, cell in cells.items() if cell.strip()}
    values: dict[str, Any] = {"mode": Engagement.UNKNOWN.value, "side": "real", **given}
    if "period" not in given:
        raise InputError(f"{where}period: is missing")
    try:
        begin, end = period_of(given["period"])
    except ValueError as err:
        raise InputError(f"{where}period: {err}") from err
    if not {"hours", "km"} & set(given):
        raise InputError(f"{where}hours: is missing, and so is km")
    try:
        numbers = amounts_of(given)
    except InputError as err:
        raise InputError(f"{where}{err}") from err
    for name in ("period", "hours"):
        values.pop(name, None)
    values |= {"start_ns": begin, "until_ns": end, **numbers}
    try:
        return Line(section_of(Exposure, values), where)
    except InputError as err:
        # What a record calls otherwise.
        text = str(err).replace("seconds:", "hours:", 1).replace("until_ns:", "period:", 1)
        raise InputError(f"{where}{text}") from err


def amounts_of(given: Mapping[str, str]) -> dict[str, float]:
    """Hours, as seconds, and kilometres, as far as they are given; what is not stays unknown.

    Raises:
        InputError: If one is not a number from 0 on; the message begins with its name.
    """
    found = {}
    for name in ("hours", "km"):
        if text := given.get(name, "").strip():
            number = number_of(text)
            if number is None or number < 0:
                raise InputError(
                    f"{name}: {text!r:.40} is not a number from 0 on; write it like 120.5"
                )
            found[name] = float(number)
    if found.get("km") and found.get("hours") == 0.0:
        raise InputError("hours: 0 h for some km; leave them empty if nobody knows them")
    if "hours" in found:
        found["seconds"] = round(found.pop("hours") * 3600.0, 6)
    return found
