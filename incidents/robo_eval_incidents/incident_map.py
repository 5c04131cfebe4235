"""How another table of incidents becomes ours: which column of theirs says what."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self

from pydantic import AfterValidator, Field, model_validator

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.log.cells import CellError, number_of
from robo_eval_incidents.table_map import Source, TableMap
from robo_eval_incidents.tables import COLUMNS, UNREAD
from robo_eval_incidents.text import UNKNOWN, safe_cell, span_text
from robo_eval_incidents.words import Answer, Category, Engagement, Question, Severity

_PLAIN: Final = tuple(
    name for name in COLUMNS if name not in UNREAD and name not in ("quantities", "answers")
)
_WITH_UNIT: Final = re.compile(
    r"(?P<number>.*?\d)\s*"
    r"(?P<unit>(?![eE][+-]?\d)[^\d\s.,'\u2019\u02bc\u00b4].*)?"
)
"""A number, and the unit behind it, which is not the exponent."""


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


Ours = Annotated[str, AfterValidator(_ours)]
"""A column of ours, or an entry of one: `quantities.speed`, `answers.fatality`."""


class IncidentMap(TableMap):
    """The map of a table of incidents."""

    WHAT: ClassVar = ("map of incidents", "docs/incidents.md")
    NEEDS: ClassVar = ("time", "severity")
    FORMATS: ClassVar = "time"
    WORDS: ClassVar = {
        "side": tuple(Side),
        "severity": tuple(Severity),
        "category": tuple(Category),
        "engagement": tuple(Engagement),
        **{f"answers.{question}": tuple(Answer) for question in Question},
    }

    columns: dict[Ours, Source]
    constants: dict[Ours, str] = Field(default_factory=dict)
    version: str = ""
    """Their column of versions: of lines with one `source_id` only the newest is read."""

    @model_validator(mode="after")
    def _check_version(self) -> Self:
        if self.version and "source_id" not in self.columns:
            raise ValueError("says nothing about 'source_id', which versions need")
        return self

    def _check_unit(self, name: str, source: Source) -> None:
        if not name.startswith("quantities."):
            super()._check_unit(name, source)

    @property
    def makes_ids(self) -> bool:
        """Whether ids are put together of several columns, which two events may have alike."""
        return "source_id" in self.columns and bool(self.columns["source_id"].columns)

    # Lines -------------------------------------------------------------------------------------

    def lines(self, path: Path) -> list[tuple[int, dict[str, str]]]:
        """The cells of each line by column, with its number; of versions only the newest.

        Raises:
            InputError: If the table cannot be read, or a version is not a number.
        """
        with self.records(path, *([self.version] if self.version else [])) as found:
            lines = [(line, dict(zip(found.header, cells, strict=True))) for line, cells in found]
        return self._newest(lines, path) if self.version else lines

    def _newest(
        self, lines: Sequence[tuple[int, dict[str, str]]], path: Path
    ) -> list[tuple[int, dict[str, str]]]:
        found: dict[str, list[tuple[float, int, dict[str, str]]]] = defaultdict(list)
        for number, cells in lines:
            text = cells[self.version].strip()
            version = number_of(text)
            if version is None:
                where = f"{path}: line {number}, column {self.version}"
                raise InputError(f"{where}: {text!r:.40} is not the number of a version")
            found[self.text("source_id", cells)].append((float(version), number, cells))
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
                text = self.text(name, theirs)
                if base == "time" and base in self.columns:
                    text = span_text(*self.span(text)) if text else UNKNOWN
                elif base == "quantities" and text:
                    text = self._quantity(text, self.columns[name].unit) if (
                        name in self.columns) else text  # fmt: skip
                    quantities.append(f"{entry}={text}")
                    continue
            except ValueError as err:
                raise InputError(f"{where}, column {self.named(name)}: {err}") from err
            if text and base == "answers":
                answers.append(f"{entry}={text}")
            elif text:
                yield name, safe_cell(text)
        if quantities:
            yield "quantities", "; ".join(quantities)
        if answers:
            yield "answers", "; ".join(answers)

    def _quantity(self, text: str, unit: str) -> str:
        """A quantity as our column has it; one without a unit of its own may carry it."""
        found = None if unit else _WITH_UNIT.fullmatch(text)
        number, own = text.removesuffix(unit).rstrip() if unit else text, unit
        if found is not None:
            number, own = found["number"], found["unit"] or ""
        if ";" in own:
            raise CellError(f"{text!r:.40} is not a number")
        return f"{float(self.reading.number(number))!r} {own}".rstrip()
