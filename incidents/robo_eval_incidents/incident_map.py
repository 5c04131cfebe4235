"""How another table of incidents becomes ours: which column of theirs says what."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from operator import itemgetter
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.yaml_form import Section, mapping_of, text_of, validated
from robo_eval.log.cells import number_of
from robo_eval.log.column_map import Character, Short
from robo_eval.log.evidence_read import check_columns
from robo_eval_incidents.tables import COLUMNS, UNREAD
from robo_eval_incidents.text import (
    UNKNOWN,
    clock_span,
    ns_of,
    part_span,
    safe_cell,
    span_text,
    zone_of,
)
from robo_eval_incidents.words import Answer, Category, Engagement, Question, Severity

_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "side": tuple(Side),
    "severity": tuple(Severity),
    "category": tuple(Category),
    "engagement": tuple(Engagement),
}
_PLAIN: Final = tuple(
    name for name in COLUMNS if name not in UNREAD and name not in ("quantities", "answers")
)
_DAY: Final = re.compile(r"%[dj]|%-d|%x|%c|%D|%F|%u|%w")
_DECIMAL: Final = re.compile(r"[+-]?\d*,\d+(?:\D.*)?", re.DOTALL)
_MONTH: Final = re.compile(r"%[mbBhjUWVxcDFsG]|%-m")
_CLOCK: Final = re.compile(r"%[HIMScXTRr]")


def _ours(name: str) -> str:
    base, dot, entry = name.partition(".")
    if base == "answers":
        if entry not in set(Question):
            raise unknown_name("question", entry, Question)
    elif base == "quantities":
        if not (dot and entry):
            raise ValueError("must be written as 'quantities.<name>', such as quantities.speed")
    elif name not in _PLAIN:
        raise unknown_name("column", name, (*_PLAIN, "quantities.<name>", "answers.<question>"))
    return name


def _check_word(where: str, name: str, word: str) -> None:
    valid = tuple(Answer) if name.startswith("answers.") else _WORDS.get(name, ())
    if valid and word not in valid:
        raise ValueError(f"{where}: {unknown_name('word', word, valid)}")


Ours = Annotated[str, AfterValidator(_ours)]
"""A column of ours, or an entry of one: `quantities.speed`, `answers.fatality`."""


class Source(Short):
    """Which columns of theirs one of ours comes from, and how."""

    SHORT: ClassVar[str] = "column"

    column: str = ""
    """Their column."""
    columns: tuple[str, ...] = ()
    """Or several, whose cells are put together with a space between them."""
    values: dict[str, str] = Field(default_factory=dict)
    """Their words, and what we call them."""
    otherwise: str | None = None
    """What a word is that `values` does not have; such a word is refused if this is missing."""
    unit: str = ""
    """Unit of a quantity."""
    formats: tuple[str, ...] = ()
    """How they write times, in the letters of strftime, such as `%b-%Y %H:%M`; the first that
    fits. One without a month is a year, one without a day a month, one without hours a day."""

    @property
    def names(self) -> tuple[str, ...]:
        """Their columns."""
        return (self.column, *self.columns) if self.column else self.columns

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.column) == bool(self.columns):
            raise ValueError("names no column, or both column and columns; choose one")
        return self


class IncidentMap(Section):
    """The map of a table of incidents; every scalar stays the text that was written."""

    columns: dict[Ours, Source]
    """Source of each of our columns."""
    constants: dict[Ours, str] = Field(default_factory=dict)
    """Columns that have one value in all lines."""
    missing: frozenset[str] = frozenset()
    """Cells that mean: nothing there; an empty one always does."""
    version: str = ""
    """Their column of versions: of lines with one `source_id` only the newest is read."""
    zone: str = "UTC"
    """Zone of times that name none."""
    delimiter: Character = ","
    """Separates cells."""
    decimal: Literal[".", ","] = "."
    """What stands before the decimals of quantities."""

    _path: Path = PrivateAttr(default=Path())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read such a map.

        Raises:
            InputError: If it is missing, no YAML, or names an unknown key, column or word; the
                message names file and place.
        """
        text = text_of(path, "map of incidents")
        page = "docs/incidents.md"
        data = mapping_of(text, str(path), "a map of incidents is", page, as_texts=True)
        found = validated(data, cls, str(path))
        found._path = path  # noqa: SLF001 - its own
        return found

    @model_validator(mode="after")
    def _check(self) -> Self:
        both = sorted(set(self.columns) & set(self.constants))
        if both:
            raise ValueError(f"{both[0]!r} is in columns and in constants; choose one")
        for needed in ("time", "severity", *(["source_id"] if self.version else [])):
            if needed not in {*self.columns, *self.constants}:
                raise ValueError(f"says nothing about {needed!r}; add it to columns")
        for name, source in self.columns.items():
            self._check_source(name, source)
        for name, word in self.constants.items():
            _check_word(f"constants.{name}", name, word)
        try:
            zone_of(self.zone)
        except ValueError as err:
            raise ValueError(f"zone: {err}") from err
        return self

    def _check_source(self, name: str, source: Source) -> None:
        for word in (*source.values.values(), *([source.otherwise] if source.otherwise else ())):
            _check_word(f"columns.{name}.values", name, word)
        for key, names in (("formats", {"time"}), ("unit", {"quantities"})):
            if getattr(source, key) and name.partition(".")[0] not in names:
                raise ValueError(f"columns.{name}.{key}: {name} has none; leave it out")

    @property
    def makes_ids(self) -> bool:
        """Whether ids are put together of several columns, which two events may have alike."""
        return "source_id" in self.columns and bool(self.columns["source_id"].columns)

    # Lines -------------------------------------------------------------------------------------

    def check_header(self, path: Path, header: Sequence[str]) -> None:
        """Refuse a table without a column that the map names, or with two of one.

        Raises:
            InputError: In that case.
        """
        wanted = [name for source in self.columns.values() for name in source.names]
        needed = dict.fromkeys([*wanted, *([self.version] if self.version else ())])
        check_columns(path, header, (), needed, f"{self._path} names it")

    def newest(
        self, lines: Sequence[tuple[int, dict[str, str]]], path: Path
    ) -> list[tuple[int, dict[str, str]]]:
        """Of lines with one source id the newest version; all lines where there are no versions.

        Raises:
            InputError: If a version is not a number.
        """
        if not self.version:
            return list(lines)
        found: dict[str, list[tuple[float, int, dict[str, str]]]] = defaultdict(list)
        for number, cells in lines:
            text = cells[self.version].strip()
            version = number_of(text)
            if version is None:
                where = f"{path}: line {number}, column {self.version}"
                raise InputError(f"{where}: {text!r:.40} is not the number of a version")
            found[self._text("source_id", cells)].append((float(version), number, cells))
        kept: list[tuple[int, dict[str, str]]] = []
        for own in found.values():
            newest = max(version for version, _, _ in own)
            # That version twice is one line too many, which whoever reads them refuses.
            kept += [(number, cells) for version, number, cells in own if version == newest]
        return sorted(kept, key=itemgetter(0))

    def cells(self, theirs: Mapping[str, str], where: str) -> Iterator[tuple[str, str]]:
        """The cells of a line by our columns, as `tables.write_csv` writes them.

        Args:
            theirs: Their cells by column.
            where: File and line, for messages.

        Raises:
            InputError: If a cell cannot be taken; the message names their column.
        """
        quantities, answers = [], []
        for name in self.columns | self.constants:
            base, _, entry = name.partition(".")
            try:
                text = self._text(name, theirs)
            except ValueError as err:
                raise InputError(f"{where}, column {self.named(name)}: {err}") from err
            if not text:
                continue
            if base == "quantities":
                unit = self.columns[name].unit if name in self.columns else ""
                if self.decimal != ".":
                    text = text.replace(self.decimal, ".") if _DECIMAL.fullmatch(text) else text
                if ";" in text or (unit and number_of(text) is None):
                    where_ = f"{where}, column {self.named(name)}"
                    raise InputError(f"{where_}: {text!r:.40} is not a number")
                quantities.append(f"{entry}={text} {unit}".rstrip())
            elif base == "answers":
                answers.append(f"{entry}={text}")
            else:
                yield name, safe_cell(text)
        if quantities:
            yield "quantities", "; ".join(quantities)
        if answers:
            yield "answers", "; ".join(answers)

    def named(self, name: str) -> str:
        """What messages call one of our columns: theirs, with ours behind it."""
        own = [one for one in self.columns if name in (one, one.partition(".")[0])]
        theirs = [" + ".join(self.columns[one].names) for one in own]
        return f"{theirs[0]} ({name})" if len(theirs) == 1 else name

    def _text(self, name: str, theirs: Mapping[str, str]) -> str:
        if name in self.constants:
            return self.constants[name]
        source = self.columns[name]
        given = [theirs[one].strip() for one in source.names]
        given = [one for one in given if one and one not in self.missing]
        if name == "time":
            return self._time(given, source)
        text = " ".join(given)
        if not source.values and source.otherwise is None:
            return text
        if text in source.values:
            return source.values[text]
        if source.otherwise is not None:
            return source.otherwise
        if not text:
            return ""
        raise ValueError(f"{text!r:.60} is not among its values; add it to the map, or `otherwise`")

    def _time(self, given: Sequence[str], source: Source) -> str:
        """A time as our column has it, as far as their cells say."""
        text = " ".join(given)
        if not text:
            return UNKNOWN
        if not source.formats:
            return text
        for form in source.formats:
            try:
                found = datetime.strptime(text, form)  # noqa: DTZ007 - its zone follows
            except ValueError:
                continue
            zone = found.tzinfo or zone_of(self.zone)
            if not _MONTH.search(form):
                first, next_ = (part_span(date(found.year + more, 1, 1), zone, is_day=True)[0]
                                for more in (0, 1))  # fmt: skip
                return span_text(first, next_)
            if not _DAY.search(form):
                return span_text(*part_span(found.date(), zone, is_day=False))
            if not _CLOCK.search(form):
                return span_text(*part_span(found.date(), zone, is_day=True))
            if found.tzinfo is not None:
                return span_text(ns_of(found.isoformat()), None)
            return span_text(*clock_span(found, zone, text))
        raise ValueError(f"{text!r:.60} is none of {', '.join(source.formats)}")
