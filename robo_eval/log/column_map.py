"""How another lab's columns become ours: the column map file, checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from robo_eval.core import door
from robo_eval.core.episode import COLUMNS
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.log.files import explained
from robo_eval.log.rows import KINDS, Kind

_KEYS: Final = (
    "columns", "constants", "missing", "delimiter", "decimal", "success_quality",
    "assisted_success", "comment", "skip",
)  # fmt: skip
_ASSISTED: Final = ("refuse", "failure")
_COLUMN_KEYS: Final = ("column", "values", "unit", "scale")
_OURS_ALONE: Final = ("plan_digest", "trace_uri", "trace_sha256")
"""Columns an import fills in itself, or cannot have."""
UNITS: Final[dict[str, Decimal]] = {
    name: Decimal(factor)
    for name, factor in {
        "ns": "1e-9", "us": "1e-6", "ms": "1e-3", "s": "1", "min": "60", "h": "3600", "%": "0.01",
        "J": "1", "kJ": "1e3", "Wh": "3600", "kWh": "3.6e6", "m": "1", "cm": "1e-2", "mm": "1e-3",
        "rad": "1", "deg": repr(math.pi / 180),
    }.items()
}  # fmt: skip
"""Units a column can be given in, as multiples of the SI unit; `%` as a share."""
ISO_TIME: Final = "iso8601"
"""Unit of a start time that is written as a date; without a zone it is UTC."""
_TIMES: Final = ("ns", "us", "ms", "s", "min", "h")
_UNITS_OF: Final[dict[str, tuple[str, ...]]] = {
    "duration_s": _TIMES,
    "exposure_s": _TIMES,
    "start_ns": (*_TIMES, ISO_TIME),
    "quality": ("%",),
    "stated_success_probability": ("%",),
}
"""Units of each column that has a dimension; entries of mapping columns can have any."""
# Python's float also reads `1_000`, which may as well be an id, and digits of other scripts.
_ORDINARY: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where one of our columns comes from.

    Attributes:
        column: Their column.
        values: Their words and what we call them; empty if words stay.
        unit: Unit of their numbers, a key of `UNITS`, or `iso8601`.
        scale: Factor of their numbers.
        is_constant: Whether it is no column of theirs but one value in all rows.
    """

    column: str
    values: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    scale: Decimal = Decimal(1)
    is_constant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """A checked column map.

    Attributes:
        columns: Source of each of our columns; `costs.energy_j` is an entry of a mapping column.
        constants: Columns that have one value in all rows.
        missing: Cells that mean: nothing there.
        delimiter: Separates cells.
        decimal: Decimal sign of numbers.
        success_quality: Least quality that counts as success, if there is such a rule.
        assisted_success: What a success with interventions is: `failure`, or `refuse` if such a
            row must not be taken.
        comment: What lines begin with that hold no episode; empty if none are known to.
        skip: How many lines stand before the header.
        raw: The file's content, kept with the import.
    """

    columns: Mapping[str, Source]
    constants: Mapping[str, str]
    missing: frozenset[str]
    delimiter: str = ","
    decimal: str = "."
    success_quality: float | None = None
    assisted_success: str = "refuse"
    comment: str = ""
    skip: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict)


def read_column_map(path: Path) -> ColumnMap:
    """Read a column map.

    Raises:
        InputError: If it is missing, no YAML, or names an unknown key, column or unit, or a unit
            of the wrong kind.
    """
    return _column_map(path, read_texts(path, "column map"))


def read_texts(path: Path, what: str) -> dict[str, Any]:
    """A YAML file that holds a mapping, every scalar in it as the text that was written.

    Args:
        path: The file.
        what: What it is, for error messages, e.g. `column map`.

    Raises:
        InputError: If it is missing, no YAML in UTF-8, or no mapping.
    """
    with explained(path, f"the {what} cannot be read"):
        raw = door.written(path)
    try:
        text = raw.decode()
    except UnicodeDecodeError as err:
        raise InputError(f"{path}: not valid YAML in UTF-8; save it as UTF-8") from err
    # Every scalar stays text: YAML would turn `yes`, which labs write for success, into true.
    data = door.yaml_of(text, path, as_texts=True)
    return mapping_of(path, what, data)


def number_of(text: str) -> Decimal | None:
    """The number a text spells with a decimal point, exactly.

    Returns:
        None if it is none in an ordinary spelling, or is beyond what a float can hold.
    """
    if not _ORDINARY.fullmatch(text) or not math.isfinite(float(text)):
        return None
    # What a float takes for 0 may have an exponent that no Decimal can have.
    return Decimal(text) if float(text) else Decimal(0)


def mapping_of(path: Path, what: str, data: object) -> dict[str, Any]:
    """The mapping of names that stands at a place of a map, or an error that names the place."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise InputError(f"{path}: {what}: must be a mapping of names, given {data!r:.60}")
    return data


def _column_map(path: Path, data: dict[str, Any]) -> ColumnMap:
    for key in data:
        if key not in _KEYS:
            raise InputError(f"{path}: {unknown_name('key', key, _KEYS)}")
    columns = {
        name: _source(path, name, entry)
        for name, entry in mapping_of(path, "columns", data.get("columns")).items()
    }
    constants = mapping_of(path, "constants", data.get("constants", {}))
    for name, value in constants.items():
        if not isinstance(value, str):
            raise InputError(f"{path}: constants.{name}: must be one value, given {value!r:.60}")
    for name in constants:
        check_column(path, name)
    for name in set(columns) & set(constants):
        raise InputError(f"{path}: {name!r} is both a column and a constant; choose one")
    missing = data.get("missing", [""])
    if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
        raise InputError(f"{path}: missing: must be a list of texts, given {missing!r:.60}")
    return ColumnMap(
        columns=columns,
        constants=constants,
        missing=frozenset([*missing, ""]),
        delimiter=_character(path, data, "delimiter", ","),
        decimal=_character(path, data, "decimal", "."),
        success_quality=share_of(path, data.get("success_quality")),
        assisted_success=assisted_of(path, data.get("assisted_success", "refuse")),
        comment=_comment(path, data.get("comment", "")),
        skip=_skip(path, data.get("skip", "0")),
        raw=data,
    )


def _source(path: Path, name: str, entry: object) -> Source:
    check_column(path, name)
    if isinstance(entry, str):
        return Source(column=entry)
    data = mapping_of(path, f"columns.{name}", entry)
    for key in data:
        if key not in _COLUMN_KEYS:
            raise InputError(f"{path}: columns.{name}: {unknown_name('key', key, _COLUMN_KEYS)}")
    if not isinstance(data.get("column"), str):
        raise InputError(f"{path}: columns.{name}.column: name the column of the other lab")
    values = mapping_of(path, f"columns.{name}.values", data.get("values", {}))
    unit = unit_of(f"{path}: columns.{name}.unit", name, data.get("unit"))
    scale = Decimal(1)
    if "scale" in data:
        scale = scale_of(f"{path}: columns.{name}.scale", name, unit, data["scale"])
    texts = {str(key): str(value) for key, value in values.items()}
    return Source(column=data["column"], values=texts, unit=unit, scale=scale)


def unit_of(where: str, name: str, unit: object) -> str | None:
    """The unit given for one of our columns, or an error that lists those that would do."""
    base = name.partition(".")[0]
    valid = tuple(UNITS) if KINDS[base] is Kind.MAPPING else _UNITS_OF.get(base, ())
    if unit is None:
        return None
    if not valid:
        raise InputError(f"{where}: {base} has no unit; leave it out, given {unit!r:.40}")
    for known in valid:
        if unit == known:
            return known
    if unit in (*UNITS, ISO_TIME):
        raise InputError(f"{where}: {unit!r} is no unit of {base}; valid: {', '.join(valid)}")
    raise InputError(f"{where}: {unknown_name('unit', unit, valid)}")


def scale_of(where: str, name: str, unit: str | None, text: object) -> Decimal:
    """The factor given for one of our columns, or an error if it is none or fits no unit."""
    kind = KINDS[name.partition(".")[0]]
    if kind not in (Kind.INTEGER, Kind.NUMBER, Kind.MAPPING):
        raise InputError(f"{where}: {name} is no number; leave it out, given {text!r:.40}")
    if name == "start_ns" and unit in (None, ISO_TIME):
        raise InputError(f"{where}: a start is scaled from a unit: add unit: s, ms, us or ns")
    scale = number_of(str(text))
    if scale is None:
        raise InputError(f"{where}: {text!r:.40} is not a finite number")
    return scale


def check_column(path: Path, name: str) -> None:
    """Refuse what is none of our columns, or none that an import fills."""
    base, dot, entry = name.partition(".")
    if base not in COLUMNS or base in _OURS_ALONE:
        valid = [column for column in COLUMNS if column not in _OURS_ALONE]
        raise InputError(f"{path}: {unknown_name('column', base, valid)}")
    is_mapping = KINDS[base] is Kind.MAPPING
    if is_mapping != bool(dot and entry):
        given = f"{base}.<name>" if is_mapping else base
        raise InputError(f"{path}: column {name!r} must be written as {given!r}")


def _comment(path: Path, value: object) -> str:
    if not isinstance(value, str) or any(sign in value for sign in "\r\n"):
        raise InputError(
            f"{path}: comment: must be what such lines begin with, given {value!r:.40}"
        )
    return value


def _skip(path: Path, value: object) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,6}", value, re.ASCII):
        raise InputError(f"{path}: skip: must be a number of lines, given {value!r:.40}")
    return int(value)


def _character(path: Path, data: Mapping[str, Any], key: str, default: str) -> str:
    value = data.get(key, default)
    value = "\t" if value in ("\\t", "tab") else value
    if not isinstance(value, str) or len(value) != 1 or value in '"\r\n':
        raise InputError(f"{path}: {key}: must be one character, given {value!r:.40}")
    return value


def assisted_of(path: Path, text: object) -> str:
    """What a success with interventions is, or an error that lists the words."""
    for word in _ASSISTED:
        if text == word:
            return word
    raise InputError(f"{path}: assisted_success: {unknown_name('word', text, _ASSISTED)}")


def share_of(path: Path, text: object) -> float | None:
    """The least quality that counts as success, if one is given."""
    if text is None:
        return None
    value = number_of(str(text))
    if value is None or not 0 <= value <= 1:
        raise InputError(f"{path}: success_quality: must be in [0, 1], given {text!r:.40}")
    return float(value)
