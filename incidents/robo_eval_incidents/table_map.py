"""How another table becomes ours: which column of theirs says what, for incidents and for hours."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, PrivateAttr, model_validator

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.yaml_form import mapping_of, text_of, validated
from robo_eval.log.cells import CellError
from robo_eval.log.column_map import Dialect, Short
from robo_eval.log.csv_records import Records, opened
from robo_eval.log.evidence_read import check_columns


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
    """Unit of their numbers."""
    formats: tuple[str, ...] = ()
    """How they write times, in the letters of strftime, such as `%b-%Y %H:%M`; the first that
    fits. One without a month is a year, one without a day a month, one without hours a day."""

    @property
    def names(self) -> tuple[str, ...]:
        """Their columns."""
        return (self.column, *self.columns) if self.column else self.columns

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.column and self.columns:
            raise ValueError("names both column and columns; choose one")
        return self


class TableMap(Dialect):
    """The map of a table; every scalar stays the text that was written."""

    NEEDED: ClassVar[tuple[str, ...]]
    """Columns of ours that a map says something about."""
    WORDS: ClassVar[Mapping[str, Collection[str]]]
    """Words of those that take only some."""
    FORMATS: ClassVar[str]
    """The column of ours that may be written in formats."""

    columns: Mapping[str, Source]
    """Source of each of our columns."""
    constants: Mapping[str, str] = Field(default_factory=dict)
    """Columns that have one value in all lines."""

    _path: Path = PrivateAttr(default=Path())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read such a map.

        Raises:
            InputError: If it is missing, no YAML, or names an unknown key, column or word; the
                message names file and place.
        """
        what, page = cls.WHAT
        text = text_of(path, what)
        data = mapping_of(text, str(path), f"a {what} is", page, as_texts=True)
        found = validated(data, cls, str(path))
        found._path = path  # noqa: SLF001 - its own
        return found

    @model_validator(mode="after")
    def _check(self) -> Self:
        both = sorted(set(self.columns) & set(self.constants))
        if both:
            raise ValueError(f"{both[0]!r} is in columns and in constants; choose one")
        for needed in self.NEEDED:
            if needed not in {*self.columns, *self.constants}:
                raise ValueError(f"says nothing about {needed!r}; add it to columns")
        for name, source in self.columns.items():
            words = (*source.values.values(), *([source.otherwise] if source.otherwise else ()))
            for word in words:
                self._check_word(f"columns.{name}.values", name, word)
            self._check_source(name, source)
            if source.formats and name != self.FORMATS:
                raise ValueError(f"columns.{name}.formats: {name} has none; leave it out")
        for name, word in self.constants.items():
            self._check_word(f"constants.{name}", name, word)
        return self

    def _check_source(self, name: str, source: Source) -> None:
        """Refuse what a source of one of our columns cannot be."""
        if not source.names:
            raise ValueError(f"columns.{name}: names no column")

    def _check_word(self, where: str, name: str, word: str) -> None:
        """Refuse a word that one of our columns does not take."""
        valid = self.WORDS.get(name, ())
        if valid and word not in valid:
            raise ValueError(f"{where}: {unknown_name('word', word, valid)}")

    # Lines -------------------------------------------------------------------------------------

    @contextmanager
    def table(self, path: Path, *more: str) -> Iterator[Records]:
        """The records of a table that has every column that the map names, once.

        Args:
            path: The table.
            more: Further columns that it has to have.

        Raises:
            InputError: If it cannot be read, or is without one, or has two of one.
        """
        wanted = [name for source in self.columns.values() for name in source.names]
        with opened(path) as file:
            found = self.records(path, file, wanted)
            if (other := found.other_delimiter()) is not None:
                raise InputError(
                    f"{path}: its columns are divided by {other}; set delimiter: {other} in"
                    f" {self._path}"
                )
            needed = dict.fromkeys([*wanted, *more])
            check_columns(path, found.header, (), needed, f"{self._path} names it")
            yield found

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
