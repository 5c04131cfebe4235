"""How another lab's columns become ours: the map of a table, and what all maps share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from robo_eval.core.episode import COLUMNS
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.yaml_form import Section, mapping_of, text_of, validated
from robo_eval.log.cells import EXCEL_TIME, ISO_TIME, UNITS, Reading, number_of, zone_of
from robo_eval.log.csv_records import Records, called, opened
from robo_eval.log.schema import KINDS, Kind

NEEDED: Final = ("policy", "task", "side")
"""Columns that every import says something about."""
SCORES: Final = ("success", "end_reason", "quality")
"""Columns of which every import says something about one."""
_OURS_ALONE: Final = ("plan_digest", "trace_uri", "trace_sha256")
"""Columns an import fills in itself, or cannot have."""
NAME: Final = "name"
"""Unit of a seed that is the name of a start."""
_PREFACE: Final = 100
"""Lines that are looked at for the header."""
COUNTED: Final = {"successes": Kind.INTEGER, "rate": Kind.NUMBER, "trials": Kind.INTEGER}
"""Columns of a line that stands for several episodes; no episode has them."""
_TIMES: Final = ("ns", "us", "ms", "s", "min", "h")
_UNITS_OF: Final[dict[str, tuple[str, ...]]] = {
    "duration_s": _TIMES,
    "exposure_s": _TIMES,
    "start_ns": (*_TIMES, ISO_TIME, EXCEL_TIME),
    "quality": ("%",),
    "stated_success_probability": ("%",),
    "seed": (NAME,),
    "rate": ("%",),
}
"""Units of each column that has a dimension; entries of mapping columns can have any."""


def _finite(given: object) -> Decimal:
    """A number of a map, in which every scalar is the text that was written."""
    value = given if isinstance(given, Decimal) else number_of(str(given))
    if value is None:
        raise ValueError(f"is not a finite number, given {given!r:.40}")
    return value


def our_column(name: str) -> str:
    """One of our columns as it is, or an error if it is none, or none that an import fills.

    Raises:
        ValueError: In that case.
    """
    base, dot, entry = name.partition(".")
    if base not in COLUMNS or base in _OURS_ALONE:
        raise unknown_name("column", base, [c for c in COLUMNS if c not in _OURS_ALONE])
    is_mapping = KINDS[base] is Kind.MAPPING
    if is_mapping != bool(dot and entry):
        raise ValueError(f"must be written as {f'{base}.<name>' if is_mapping else base!r}")
    return name


def _character(given: str) -> str:
    value = "\t" if given in ("\\t", "tab") else given
    if len(value) != 1 or value in '"\r\n':
        raise ValueError(f"must be one character, given {given!r:.40}")
    return value


def _one_line(given: str) -> str:
    if any(sign in given for sign in "\r\n"):
        raise ValueError(f"must be what such lines begin with, given {given!r:.40}")
    return given


Number = Annotated[float, BeforeValidator(lambda given: float(_finite(given)))]
Whole = Annotated[int, BeforeValidator(_finite)]
OurColumn = Annotated[str, AfterValidator(our_column)]
"""One of our columns, or an entry of one, such as `costs.energy_j`."""
TableColumn = Annotated[
    str, AfterValidator(lambda name: name if name in COUNTED else our_column(name))
]
"""One of our columns, or one of `COUNTED`."""
Missing = Annotated[frozenset[str], AfterValidator(lambda texts: texts | {""})]
Character = Annotated[str, AfterValidator(_character)]
"""One character of a table; `tab` is one."""


class Short(Section):
    """A section of which a text alone is the value of one key."""

    SHORT: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _long(cls, data: Any) -> Any:
        return {cls.SHORT: data} if isinstance(data, str) else data


class Conversion(Section):
    """How values of theirs become those of one of our columns."""

    is_constant: ClassVar[bool] = False
    """Whether it is no column of theirs but one value in all rows."""

    values: dict[str, str] = Field(default_factory=dict)
    """Their words and what we call them; empty if words stay."""
    unit: str | None = None
    """Unit of their numbers, a key of `UNITS`, or `iso8601`."""
    scale: Annotated[Decimal, BeforeValidator(_finite)] = Decimal(1)
    """Factor of their numbers."""
    formats: tuple[str, ...] = ()
    """How they write a start, in the letters of strftime; the first that fits."""

    @property
    def words(self) -> Mapping[str, str]:
        """Their words and what we call them, where words are not truths."""
        return self.values

    def check_for(self, ours: str) -> None:
        """Refuse a unit, a scale or formats that one of our columns cannot have.

        Raises:
            ValueError: If it has one; the message begins with the key.
        """
        base, unit = ours.partition(".")[0], self.unit
        if self.formats and (base != "start_ns" or unit is not None):
            raise ValueError("formats: are of a start_ns without a unit; leave them out")
        kind = KINDS.get(base) or COUNTED[base]
        valid = tuple(UNITS) if kind is Kind.MAPPING else _UNITS_OF.get(base, ())
        if unit is not None and not valid:
            raise ValueError(f"unit: {base} has no unit; leave it out, given {unit!r:.40}")
        if unit in (*UNITS, ISO_TIME, EXCEL_TIME, NAME) and unit not in valid:
            raise ValueError(f"unit: {unit!r} is no unit of {base}; valid: {', '.join(valid)}")
        if unit is not None and unit not in valid:
            raise ValueError(f"unit: {unknown_name('unit', unit, valid)}")
        if "scale" not in self.model_fields_set:
            return
        if kind not in (Kind.INTEGER, Kind.NUMBER, Kind.MAPPING):
            raise ValueError(f"scale: {ours} is not a number; leave it out, given {self.scale}")
        if unit == NAME:
            raise ValueError(f"scale: a name is not scaled; leave it out, given {self.scale}")
        if ours == "start_ns" and unit in (None, ISO_TIME, EXCEL_TIME):
            raise ValueError("scale: a start is scaled from a unit: add unit: s, ms, us or ns")


class MapConstant(Conversion):
    """A value that stands in the map itself."""

    is_constant: ClassVar[bool] = True


class Theirs(Short):
    """Which column of theirs one of ours comes from, or which columns."""

    SHORT: ClassVar[str] = "column"

    column: str = ""
    """Their column."""
    columns: tuple[str, ...] = ()
    """Or several, whose cells are put together."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Their columns."""
        return (self.column, *self.columns) if self.column else self.columns

    @cached_property
    def name(self) -> str:
        """What messages call them."""
        return " + ".join(self.names)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if self.column and self.columns:
            raise ValueError("column: is given beside columns; choose one")
        return self


class Source(Theirs, Conversion):
    """Which column of theirs one of ours comes from, or which columns, and how."""

    @model_validator(mode="after")
    def _check_missing(self) -> Self:
        if not self.names:
            raise ValueError("column: is missing")
        return self


class Columned(Section):
    """A section that says where our columns come from."""

    JOINS: ClassVar[bool] = False
    """Whether several of their columns can be put together."""

    @field_validator("columns", "constants", mode="before", check_fields=False)
    @classmethod
    def _none(cls, given: object) -> object:
        """A section of remarks only holds nothing."""
        return given or {}

    @field_validator("columns", check_fields=False)
    @classmethod
    def _check_columns(cls, columns: dict[str, Conversion]) -> dict[str, Conversion]:
        for ours, source in columns.items():
            try:
                source.check_for(ours)
            except ValueError as err:
                raise ValueError(f"{ours}.{err}") from err
            if not cls.JOINS and isinstance(source, Source) and source.columns:
                raise ValueError(f"{ours}.columns: one column is read here; name it by column")
        return columns


class OutcomeFile(Short, Columned):
    """A file beside the recordings that says how episodes ended."""

    SHORT: ClassVar[str] = "file"

    file: str
    """The file, from the folder of the map; with `*`, one file for each episode."""
    key: str | None = None
    """Its column with the ids of episodes, or the files they are in; None for a usual one."""
    columns: dict[OurColumn, Source] = Field(default_factory=dict)
    """Source of each of our columns that is in it; empty if it calls the outcome as we do."""
    delimiter: Character = ","
    """Separates cells."""

    @property
    def told(self) -> Mapping[str, Source]:
        """Which of our columns it tells; the id only says of which episode it does."""
        return {ours: source for ours, source in self.columns.items() if ours != "episode_id"}


class AnyMap(Section):
    """What all maps say alike.

    Every scalar stays the text that was written: YAML would turn `yes`, which labs write for
    success, into true.
    """

    WHAT: ClassVar[tuple[str, str]]
    """What it is called, and the page of the docs about it."""
    NEEDS: ClassVar[tuple[str, ...]]
    """Columns of ours that such a map says something about."""

    constants: Mapping[str, str] = Field(default_factory=dict)
    """Columns that have one value in all rows."""
    missing: Missing = frozenset([""])
    """Cells that mean: nothing there."""

    _path: Path = PrivateAttr(default=Path())
    _raw: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read such a map.

        Raises:
            InputError: If it is missing, no YAML, or names an unknown key, column, unit or word,
                or a unit of the wrong kind; the message names file and place.
        """
        what, page = cls.WHAT
        text = text_of(path, what)
        data = mapping_of(text, str(path), f"a {what} is", page, as_texts=True)
        found = validated(data, cls, str(path))
        found._path, found._raw = path, data  # noqa: SLF001 - its own
        return found

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def raw(self) -> Mapping[str, Any]:
        """The file's content, kept with the import."""
        return self._raw

    def says(self) -> Mapping[str, Iterable[str]]:
        """Which of our columns each part of the map gives."""
        return {"columns": getattr(self, "columns", ()), "constants": self.constants}

    @model_validator(mode="after")
    def _check_said(self) -> Self:
        places: dict[str, str] = {}
        for part, names in self.says().items():
            for name in sorted(names):
                other = places.setdefault(name, part)
                if other != part:
                    raise ValueError(f"{name!r} is in {other} and in {part}; choose one")
        parts = " or ".join(part for part in self.says() if part != "outcomes")
        for name in self.NEEDS:
            if name not in {place.partition(".")[0] for place in places}:
                raise ValueError(f"says nothing about {name!r}; add it to {parts}")
        return self


class ImportMap(Columned, AnyMap):
    """What the maps of all imports say alike."""

    NEEDS: ClassVar[tuple[str, ...]] = NEEDED
    TELLS_OUTCOMES: ClassVar[bool] = True
    """Whether it has to say how episodes ended."""

    constants: dict[OurColumn, str] = Field(default_factory=dict)
    """Columns that have one value in all rows."""
    success_quality: Annotated[Number, Field(ge=0.0, le=1.0)] | None = None
    """Least quality that counts as success, if there is such a rule."""
    assisted_success: Literal["refuse", "failure"] = "refuse"
    """What a success with interventions is: `failure`, or `refuse` if it must not be taken."""
    outcomes: OutcomeFile | None = None
    """Where outcomes are that lie beside the recordings."""

    @property
    def reading(self) -> Reading:
        """How texts are read."""
        return Reading(missing=self.missing, form=self.WHAT[0], has_fixed_signs=True)

    def says(self) -> Mapping[str, Iterable[str]]:
        """Which of our columns each part of the map gives."""
        return {**super().says(), "outcomes": self.outcomes.told if self.outcomes else ()}

    @model_validator(mode="after")
    def _check_scores(self) -> Self:
        given = {
            name.partition(".")[0]: part for part, names in self.says().items() for name in names
        }
        scores = sorted(set(given) & set(SCORES))
        if self.outcomes is not None and not self.outcomes.told:
            if scores:
                said = f"{scores[0]} is in {given[scores[0]]} already"
                raise ValueError(f"outcomes: {said}; name the columns of its file")
        elif not scores and self.TELLS_OUTCOMES:
            raise ValueError("must say where success, end_reason or quality is")
        return self


class Dialect(AnyMap):
    """How a table is written, for every map of one."""

    delimiter: Character = ","
    """Separates cells."""
    decimal: Character = "."
    """Decimal sign of numbers."""
    thousands: Annotated[str, AfterValidator(lambda given: given and _character(given))] = ""
    """What stands between thousands; empty if nothing may."""
    zone: str = "UTC"
    """Zone of times that name none."""
    comment: Annotated[str, AfterValidator(_one_line)] = ""
    """What lines begin with that hold no record; empty if none are known to."""
    skip: Annotated[Whole, Field(ge=0, lt=1_000_000)] = 0
    """How many lines stand before the header."""

    @model_validator(mode="after")
    def _check_signs(self) -> Self:
        if self.thousands == self.decimal:
            raise ValueError(f"thousands: is the decimal sign as well, {self.decimal!r}")
        if self.thousands.isalnum() or self.thousands in ("+", "-"):
            raise ValueError(f"thousands: {self.thousands!r} is part of numbers")
        try:
            zone_of(self.zone)
        except ValueError as err:
            raise ValueError(f"zone: {err}") from err
        return self

    @property
    def reading(self) -> Reading:
        """How cells are read."""
        return Reading(self.decimal, self.thousands, self.zone, self.missing, self.WHAT[0])

    @contextmanager
    def table(self, path: Path, wanted: Mapping[str, str]) -> Iterator[Records]:
        """The records of a table that has every column that the map names, once.

        Args:
            path: The table.
            wanted: Their columns that it has to have, and what each is mapped to.

        Raises:
            InputError: If it cannot be read, or is without one, or has two of one.
        """
        stated = self.delimiter if "delimiter" in self.model_fields_set else None
        with opened(path) as file:
            found = Records(
                path, file, delimiter=stated, comment=self.comment, skip=self.skip, wanted=wanted
            )
            self._check_header(path, found, wanted)
            yield found

    def _check_header(self, path: Path, table: Records, wanted: Mapping[str, str]) -> None:
        where, header = f"{path}: line {table.line}", table.header
        for column, ours in wanted.items():
            if (n := header.count(column)) > 1:
                often = "twice" if n == 2 else f"{n} times"
                raise InputError(f"{where}: column {column!r} appears {often} (mapped to {ours!r})")
            if column not in header:
                if (other := table.other_delimiter()) is not None:
                    raise InputError(
                        f"{where}: {table.delimiter!r} does not divide the header"
                        f" {header[0]!r:.60}; set delimiter: {called(other)} in the {self.WHAT[0]}"
                    )
                self._check_later(where, table, wanted)
                problem = unknown_name("column", column, [name for name in header if name])
                raise InputError(f"{where}: {problem} (mapped to {ours!r})")

    def _check_later(self, where: str, table: Records, wanted: Collection[str]) -> None:
        """Refuse a header that stands further down, with the key of the map that says so."""
        for number, cells in table.following(_PREFACE):
            if set(wanted) <= {cell.strip() for cell in cells}:
                raise InputError(
                    f"{where}: is not the header, which is in line {number}; set"
                    f" skip: {number - 1} in the {self.WHAT[0]}"
                )


def _of_success(given: object) -> object:
    """A column alone says success."""
    is_source = isinstance(given, str) or (isinstance(given, dict) and "column" in given)
    return {"success": given} if is_source else given


class ColumnMap(Dialect, ImportMap):
    """The map of a table."""

    WHAT: ClassVar = ("column map", "docs/log.md")
    JOINS: ClassVar = True

    columns: dict[TableColumn, Source]
    """Source of each of our columns; `costs.energy_j` is an entry of a mapping column."""
    constants: dict[TableColumn, str] = Field(default_factory=dict)
    """Columns that have one value in all rows."""
    policies: dict[str, Annotated[dict[TableColumn, Source], BeforeValidator(_of_success)]] = Field(
        default_factory=dict
    )
    """Of a table with columns for each policy: policy, and the source of each of our columns."""

    def says(self) -> Mapping[str, Iterable[str]]:
        """Which of our columns each part of the map gives."""
        own = {name for columns in self.policies.values() for name in columns}
        parts = {**super().says(), "policies": {*own, "policy"} if own else ()}
        # Successes say success; that nothing else does is checked with the other counts.
        return {
            part: ["success" if name in ("successes", "rate") else name for name in names]
            for part, names in parts.items()
        }

    def sources(self) -> Iterator[tuple[str | None, Mapping[str, Source]]]:
        """Our columns and their sources, of each policy if there are several in a line."""
        for policy, own in self.policies.items():
            yield policy, {**self.columns, **own}
        if not self.policies:
            yield None, self.columns

    @field_validator("policies")
    @classmethod
    def _check_policies(
        cls, policies: dict[str, dict[str, Source]]
    ) -> dict[str, dict[str, Source]]:
        for policy, columns in policies.items():
            try:
                cls._check_columns(dict(columns))
            except ValueError as err:
                raise ValueError(f"{policy}.{err}") from err
        return policies

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        for _, columns in self.sources():
            given = {*columns, *self.constants}
            count = next((name for name in ("successes", "rate") if name in given), None)
            if count is None and "trials" in given:
                raise ValueError("trials: needs successes or rate beside it")
            if "rate" in given and "trials" not in given:
                raise ValueError("rate: needs trials beside it, the number of episodes in a line")
            others = given & {*SCORES, *COUNTED} - {"trials", count}
            if count and others:
                raise ValueError(f"{count}: says how many succeeded; leave {min(others)} out")
        return self
