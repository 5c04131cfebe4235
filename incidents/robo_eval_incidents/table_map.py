"""How another table becomes ours: which column of theirs says what, for incidents and for hours."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, model_validator

from robo_eval.core.names import unknown_name
from robo_eval.log.cells import EXCEL_TIME, CellError, excel_hint
from robo_eval.log.column_map import Dialect, Theirs
from robo_eval.log.csv_records import Records
from robo_eval_incidents.text import span_of


class Source(Theirs):
    """Which columns of theirs one of ours comes from, and how."""

    values: dict[str, str] = Field(default_factory=dict)
    """Their words, and what we call them."""
    otherwise: str | None = None
    """What a word is that `values` does not have; such a word is refused if this is missing."""
    unit: str = ""
    """Unit of their numbers."""
    formats: tuple[str, ...] = ()
    """How they write times, in the letters of strftime, such as `%b-%Y %H:%M`; the first that
    fits. One without a month is a year, one without a day a month, one without hours a day."""


class TableMap(Dialect):
    """The map of a table."""

    WORDS: ClassVar[Mapping[str, Collection[str]]]
    """Words of those that take only some."""
    FORMATS: ClassVar[str]
    """The column of ours that may be written in formats."""

    columns: Mapping[str, Source]
    """Source of each of our columns."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, source in self.columns.items():
            words = (*source.values.values(), *([source.otherwise] if source.otherwise else ()))
            for word in words:
                self._check_word(f"columns.{name}.values", name, word)
            self._check_source(name, source)
            if source.formats and (name != self.FORMATS or source.unit):
                rest = "a unit" if source.unit else "none"
                raise ValueError(f"columns.{name}.formats: {name} has {rest}; leave it out")
        for name, word in self.constants.items():
            self._check_word(f"constants.{name}", name, word)
        return self

    def _check_source(self, name: str, source: Source) -> None:
        """Refuse what a source of one of our columns cannot be."""
        if not source.names:
            raise ValueError(f"columns.{name}: names no column")
        self._check_unit(name, source)

    def _check_unit(self, name: str, source: Source) -> None:
        """Refuse a unit of a column that has none; a time may be what a spreadsheet keeps."""
        if source.unit and (name, source.unit) != (self.FORMATS, EXCEL_TIME):
            other = f"has only {EXCEL_TIME}" if name == self.FORMATS else "has none; leave it out"
            raise ValueError(f"columns.{name}.unit: {name} {other}")

    def _check_word(self, where: str, name: str, word: str) -> None:
        """Refuse a word that one of our columns does not take."""
        valid = self.WORDS.get(name, ())
        if valid and word not in valid:
            raise ValueError(f"{where}: {unknown_name('word', word, valid)}")

    # Lines -------------------------------------------------------------------------------------

    def records(self, path: Path, *more: str) -> AbstractContextManager[Records]:
        """The records of a table, which has to have the columns of the map, and further ones."""
        wanted = {theirs: ours for ours, one in self.columns.items() for theirs in one.names}
        return self.table(path, {**dict.fromkeys(more, "version"), **wanted})

    def span(self, text: str) -> tuple[int, int | None]:
        """A time, from when until when, ns since 1970, UTC; see `span_of`.

        Raises:
            ValueError: If it is none as the map has them.
        """
        source = self.columns.get(self.FORMATS, Source())
        if source.formats or source.unit:
            return self.reading.span(text, source.formats, source.unit)
        try:
            return span_of(text, zone=self.zone if "zone" in self.model_fields_set else "")
        except ValueError as err:
            raise CellError(f"{err}{excel_hint(text)}") from err

    def named(self, name: str) -> str:
        """What messages call one of our columns: theirs, with ours behind it."""
        own = [one for one in self.columns if name in (one, one.partition(".")[0])]
        theirs = [" + ".join(self.columns[one].names) for one in own]
        is_other = len(theirs) == 1 and theirs[0] not in ("", name)
        return f"{theirs[0]} ({name})" if is_other else name

    def text(self, name: str, theirs: Mapping[str, str]) -> str:
        """What one of our columns has, in our words; empty where nothing is there.

        Raises:
            CellError: If it is a word that the map does not have.
        """
        if name in self.constants:
            return self.constants[name]
        source = self.columns[name]
        given = [theirs[one].strip() for one in source.names]
        text = " ".join(one for one in given if one not in self.missing)
        if not source.values and source.otherwise is None:
            return text
        word = self.reading.word(text, source.values)
        if word is not None or source.otherwise is not None or not text:
            return source.otherwise or "" if word is None else word
        raise CellError(f"{text!r:.60} is not among its values; add it to the map, or `otherwise`")
