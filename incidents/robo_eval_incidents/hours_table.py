"""Hours and kilometres from a table: a line for each robot, period and mode."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator
from sqlalchemy import select

from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.log.cells import CellError, Reading, excel_hint
from robo_eval.log.csv_records import records
from robo_eval.log.evidence_read import bytes_of, check_columns
from robo_eval_incidents.hours import Logged
from robo_eval_incidents.kinds import Exposure, plain, section_of
from robo_eval_incidents.log import IncidentLog, check_past
from robo_eval_incidents.rows import known_ns
from robo_eval_incidents.schema import TIMES
from robo_eval_incidents.table_map import Source, TableMap
from robo_eval_incidents.text import PERIODS, UNKNOWN, span_text
from robo_eval_incidents.words import Engagement, Via

COLUMNS: Final = ("robot", "period", "hours", "km", "mode", "side", "task", "policy")
"""Columns of such a table; `robot`, `period`, and `hours` or `km` are needed."""
MILES: Final = "miles"
"""A table may have it in place of `km`."""
_UNITS: Final = {"hours": ("h", "min", "s"), "km": ("km", "m", "mi")}
"""Units of amounts, the usual one first."""
_CLOCK: Final = re.compile(r"(\d+):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
"""Hours and minutes, as spreadsheets show lengths of time."""
# Made once for this use, so that a line that is read twice is one record.
_LINES: Final = uuid.UUID("0b9a1c9b-3f3b-5f0c-8d2f-0a6f2a3c7be1")


_YEAR: Final = re.compile(r"(?<!\d)(19|20)\d\d(?!\d)", re.ASCII)
_TOTAL: Final = re.compile(
    r"(grand |annual |fleet |sub-?)?totals?|sum|gesamt(summe)?|summe|insgesamt", re.IGNORECASE
)
"""What tables call a line that adds up those of all robots."""


def _shape(name: str) -> str:
    """What kinds of signs a name has: letters, and each digit."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d", "9", name))


def _ours(name: str) -> str:
    if name not in COLUMNS:
        raise unknown_name("column", name, COLUMNS)
    return name


Ours = Annotated[str, AfterValidator(_ours)]
"""A column of ours."""


class HoursMap(TableMap):
    """The map of a table of hours.

    Where `period` and one of `hours` and `km` name no column, each column whose name is a period by
    the formats of `period` holds the amounts of that: a wide table.
    """

    WHAT: ClassVar = ("map of hours", "docs/incidents.md")
    NEEDS: ClassVar = ("robot", "period")
    FORMATS: ClassVar = "period"
    WORDS: ClassVar = {"side": tuple(Side), "mode": tuple(Engagement)}

    columns: dict[Ours, Source]
    constants: dict[Ours, str] = Field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    """Columns of a wide table that look like periods and are none."""

    @classmethod
    def plain(cls, path: Path) -> Self:
        """The map of a table whose columns are ours."""
        header = records(path, bytes_of(path, "hours")).header
        what = f"hours have {', '.join(COLUMNS)}; --map says what others are"
        amount = next((one for one in ("km", MILES) if one in header), "hours")
        check_columns(path, header, (*COLUMNS, MILES), ("robot", "period", amount), what)
        if {"km", MILES} <= set(header):
            raise InputError(f"{path}: has km and miles; leave one of these columns out")
        return cls(
            columns={
                "km" if name == MILES else name: Source(column=name, unit="mi" * (name == MILES))
                for name in header
            }
        )

    @property
    def wide(self) -> str:
        """What the columns of a wide table hold, `hours` or `km`; empty if it is none."""
        bare = (name for name in _UNITS if name in self.columns and not self.columns[name].names)
        return next(bare, "")

    @property
    def reading(self) -> Reading:
        """How cells are read; no map can be changed where there is none."""
        return super().reading if self._path.name else Reading()

    @model_validator(mode="after")
    def _check_amounts(self) -> Self:
        if not set(_UNITS) & set(self.columns):
            raise ValueError("says nothing about hours or km; add one to columns")
        period = self.columns.get("period")
        if bool(self.wide) != (period is not None and not period.names):
            raise ValueError("columns.period: hours or km go without a column where it does, too")
        return self

    def _check_source(self, name: str, source: Source) -> None:
        valid = _UNITS.get(name, ())
        if valid and source.unit and source.unit not in valid:
            raise ValueError(f"columns.{name}.unit: {unknown_name('unit', source.unit, valid)}")
        if name not in ("period", *_UNITS):
            super()._check_source(name, source)
        elif name == "period":
            self._check_unit(name, source)

    def lines(self, path: Path) -> list[Line]:
        """The lines of a table, as records.

        Raises:
            InputError: If it cannot be read, or a line is none.
        """
        with self.records(path) as found:
            wide = self._periods(found.header, f"{path}: line {found.line}") if self.wide else []
            return [
                self._line(theirs, column, f"{path}: line {number}, column ")
                for number, cells in found
                for theirs in [dict(zip(found.header, cells, strict=True))]
                for column in wide or [""]
                # Of a month with an empty cell nobody said anything.
                if not column or theirs[column].strip() not in self.missing
            ]

    def _periods(self, header: Sequence[str], where: str) -> list[str]:
        """The columns of a wide table that are called by periods, each by one of its own.

        Raises:
            InputError: If there is none, two are of one, or one is left that looks like them.
        """
        own = {*self.ignore, *(one for source in self.columns.values() for one in source.names)}
        periods: dict[tuple[int, int], str] = {}
        others: list[str] = []
        for name in header:
            if name in own:
                continue
            try:
                period = self._period(name)
            except ValueError:
                others.append(name)
                continue
            if period in periods:
                twice = " and ".join(repr(one) for one in (periods[period], name))
                raise InputError(f"{where}: columns {twice} are of one period; leave one out")
            periods[period] = name
        if not periods:
            raise InputError(f"{where}: no column is called by a period as {self._path} has it")
        shapes = {_shape(name) for name in periods.values()}
        for name in others:
            if _shape(name) in shapes or _YEAR.search(name):
                raise InputError(
                    f"{where}: column {name!r:.60} is no period as {self._path} has it; add what it"
                    " is written in to the formats of period, rename it, or list it under `ignore`"
                )
        return list(periods.values())

    def _period(self, *cells: str) -> tuple[int, int]:
        """Begin and end of a period in one cell, or in two, of which the second has the end."""
        text = " ".join(cells)
        with suppress(ValueError):
            (begin, _), (last, end) = map(self.span, cells)
            return begin, last if end is None else end
        try:
            begin, end = self.span(text)
        except ValueError:
            if (source := self.columns.get("period")) and (source.formats or source.unit):
                raise
            end = None
        if end is None or text == UNKNOWN:
            raise CellError(f"{text!r:.60} is no period; write it like {PERIODS}{excel_hint(text)}")
        return begin, end

    def _line(self, theirs: Mapping[str, str], wide: str, where: str) -> Line:
        try:
            return Line(section_of(Exposure, self._values(theirs, wide)), where)
        except InputError as err:
            name, _, problem = str(err).partition(": ")
            # What a record calls otherwise.
            name = {"seconds": "hours", "until_ns": "period"}.get(name, name)
            is_wide = wide and name in ("period", self.wide)
            raise InputError(f"{where}{wide if is_wide else self.named(name)}: {problem}") from err

    def _values(self, theirs: Mapping[str, str], wide: str) -> dict[str, Any]:
        """The fields of a record; an error begins with the name of ours."""
        of_wide = {"period": wide, self.wide: theirs[wide].strip()} if wide else {}
        given: dict[str, Any] = {"mode": Engagement.UNKNOWN.value, "side": "real"}
        for name in self.columns | self.constants:
            try:
                text = of_wide[name] if name in of_wide else self.text(name, theirs)
                if text in self.missing:
                    continue
                if name != "period":
                    given[name] = text
                    continue
                cells = [theirs[one].strip() for one in self.columns.get(name, Source()).names]
                is_whole = " ".join(cells) == text
                given["start_ns"], given["until_ns"] = self._period(*cells if is_whole else [text])
            except ValueError as err:
                raise InputError(f"{name}: {err}") from err
        if "start_ns" not in given:
            raise InputError("period: is missing")
        units = {name: source.unit for name, source in self.columns.items() if source.unit}
        amounts = amounts_of(given, self.reading, units)
        if not amounts:
            raise InputError("hours: is missing, and so is km")
        return {name: text for name, text in given.items() if name not in _UNITS} | amounts


class Line(NamedTuple):
    """A line of the table, as a record, with file and line for messages."""

    body: Exposure
    where: str

    @property
    def record_id(self) -> str:
        """Id of its record: the same line is the same record, in logs of older programs too."""
        values = {"seconds": 0.0, **plain(self.body)}
        return str(uuid.uuid5(_LINES, canonical_json(values).decode()))


def read_hours(path: Path, columns: HoursMap | None = None) -> list[Line]:
    """The lines of a table of hours.

    Args:
        path: CSV file with some of `COLUMNS`. A period is a day, a month, a quarter or BEGIN/END.
        columns: Where our columns come from; None if they are ours.

    Raises:
        InputError: If the file cannot be read, or a line is none; the message names file, line
            and column.
    """
    lines: dict[str, Line] = {}
    for line in (columns or HoursMap.plain(path)).lines(path):
        if _TOTAL.fullmatch(line.body.robot):
            raise InputError(
                f"{line.where}robot: {line.body.robot!r} is no robot but a sum of several; leave"
                " this line out"
            )
        before = lines.setdefault(line.record_id, line)
        if before is not line:
            raise InputError(f"{line.where}period: says the same as {before.where.split(', ')[0]}")
    return list(lines.values())


def import_hours(
    log: IncidentLog, path: Path, *, by: str, columns: HoursMap | None = None
) -> Logged:
    """Record the lines of a table of hours; all of them are checked before the first is.

    Args:
        log: The log.
        path: The table; see `read_hours`.
        by: Who says so.
        columns: Where our columns come from; None if they are ours.

    Returns:
        How many lines are new, and how many were withdrawn before, which are not logged again.

    Raises:
        InputError: If the table cannot be read, or the log has another total of the same robot,
            period and mode. Nothing was added then.
    """
    lines = read_hours(path, columns)
    query = select(TIMES).where(TIMES.c.total_ns.isnot(None))
    rows = log.database.rows(query)
    known = {row.id: row.withdrawn_by for row in rows}
    # Hours and kilometres of one period may come from two tables.
    totals = {
        (what, row.robot, row.side, row.mode, row.what, row.start_ns, row.end_ns): row
        for row in rows
        if row.withdrawn_by is None
        for what, amount in (("hours", known_ns(row)), ("kilometres", row.km))
        if amount is not None
    }
    new = [line for line in lines if line.record_id not in known]
    newest_ns = log.newest_ns()
    seen: dict[tuple[object, ...], str] = {}
    for body, where in new:
        amounts = {"hours": body.seconds, "kilometres": body.km}
        for what in (one for one, amount in amounts.items() if amount is not None):
            place = (
                what, body.robot, body.side.value, body.mode.value, body.task, body.start_ns,
                body.end_ns,
            )  # fmt: skip
            told = f"{where}period: {body.robot} has other {what} of {_period(body)} in"
            if (other := seen.setdefault(place, where)) is not where:
                raise InputError(
                    f"{told} {other.split(', ')[0]}; put them together, or give their tasks"
                )
            if (before := totals.get(place)) is not None:
                name = f"{before.station}/{before.sequence}"
                raise InputError(
                    f"{told} the log, as {name}; withdraw those first: robo-eval incidents withdraw"
                    f" {name}"
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


def amounts_of(
    given: Mapping[str, str],
    read: Reading = Reading(),  # noqa: B008 - it never changes
    units: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, float]:
    """Hours, as seconds, and kilometres, as far as they are given; what is not stays unknown.

    Args:
        given: What was written, as `hours` and `km`.
        read: How.
        units: Their units, where these are not hours and kilometres.

    Raises:
        InputError: If one is not a number from 0 on; the message begins with its name.
    """
    found = {}
    for name, (usual, *_) in _UNITS.items():
        if not (text := given.get(name, "").strip()):
            continue
        unit = units.get(name, usual)
        clock = _CLOCK.fullmatch(text) if unit == "h" else None
        try:
            in_si = (
                sum(
                    int(part or 0) * of
                    for part, of in zip(clock.groups(), (3600, 60, 1), strict=True)
                )
                if clock
                else read.number(text, unit)
            )
        except CellError as err:
            raise InputError(f"{name}: {err}") from err
        if in_si < 0:
            raise InputError(f"{name}: {text!r:.40} is less than 0")
        found["seconds" if name == "hours" else "km"] = round(
            float(in_si) if name == "hours" else float(in_si) / 1000.0, 6
        )
    if found.get("km") and found.get("seconds") == 0.0:
        raise InputError("hours: 0 h for some km; leave them empty if nobody knows them")
    return found
