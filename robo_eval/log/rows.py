"""How an episode becomes the cells of a row, and over which bytes a row's digest is taken."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final

from robo_eval.core import door
from robo_eval.core.canonical import canonical_json
from robo_eval.core.episode import COLUMNS, SCHEMA_VERSION, Episode, is_below
from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval.core.names import unknown_name
from robo_eval.log.schema import KINDS, OPTIONAL, WORDS, Kind, broken_rule

CHAIN: Final = ("sequence", "row_form", "previous_sha256", "row_sha256")
"""Columns that chain the rows, beside those of an episode."""

ROW_FORM: Final = SCHEMA_VERSION
"""Canonical form rows are hashed in."""

Cell = str | int | float | None
"""What SQLite stores."""


# Writing ---------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("is not a text")
    value.encode()  # half of a surrogate pair has no bytes
    return value if type(value) is str else str(value)


def _place(value: Any) -> str:
    if not is_below(_text(value)):
        raise ValueError("leads out of the trial")
    return _text(value)


def _word(value: Any) -> str:
    return str(value.value)


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("is not a whole number")
    number = operator.index(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError("does not fit into 64 bits")
    return number


def _number(value: Any) -> float:
    if isinstance(value, (bool, str)):
        raise TypeError("is not a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("is not a finite number; leave it out if there is none")
    # SQLite stores -0.0 as 0; adding zero does the same before the digest is taken.
    return number + 0.0


def _truth(value: Any) -> int:
    if value not in (True, False):
        raise TypeError("is neither true nor false")
    return int(value)


def _mapping(value: Any) -> str:
    if not isinstance(value, Mapping):
        raise TypeError("is not a mapping")
    if not value:
        return "{}"
    if not all(isinstance(key, str) for key in value):
        raise TypeError("has a key that is not a text")
    return canonical_json(value if type(value) is dict else dict(value)).decode()


_WRITERS: Final[dict[Kind, Callable[[Any], Cell]]] = {
    Kind.TEXT: _text,
    Kind.WORD: _word,
    Kind.INTEGER: _integer,
    Kind.NUMBER: _number,
    Kind.TRUTH: _truth,
    Kind.MAPPING: _mapping,
}
_WRITE: Final = tuple(
    (name, _place if name == "trace_uri" else _WRITERS[KINDS[name]], name in OPTIONAL)
    for name in COLUMNS
)


def cells_of(episode: Episode, *, where: str) -> dict[str, Cell]:
    """The cells of an episode by column.

    Args:
        episode: The episode.
        where: File and row, for error messages.

    Raises:
        InputError: If a field holds something its column cannot, or fields contradict each other;
            the message names it.
    """
    cells: dict[str, Cell] = {}
    for name, write, optional in _WRITE:
        value = getattr(episode, name)
        if value is None and optional:
            cells[name] = None
            continue
        try:
            cells[name] = write(value)
        except (TypeError, ValueError, AttributeError) as err:
            reason = "has no bytes in UTF-8" if isinstance(err, UnicodeError) else str(err)
            raise InputError(
                f"{where} ({episode.episode_id!r:.80}), column {name!r}: {value!r:.60} {reason}"
            ) from err
    problem = broken_rule(cells)
    if problem is not None:
        raise InputError(f"{where} ({episode.episode_id!r:.80}), {problem}")
    return cells


def row_digest(cells: Mapping[str, Cell], *, sequence: int, previous_sha256: str) -> str:
    """SHA-256 of the canonical form of a row, as 64 hexadecimal digits.

    The canonical form is the canonical JSON (`core.canonical`) of one object: the cells of all
    columns as they are stored (mappings as their text), `sequence`, `previous_sha256` and
    `row_form`.
    """
    content: dict[str, Cell] = {
        **cells,
        "sequence": sequence,
        "previous_sha256": previous_sha256,
        "row_form": ROW_FORM,
    }
    return hashlib.sha256(canonical_json(content)).hexdigest()


def stored_digest(cells: Mapping[str, Any], chain: Mapping[str, Any]) -> str | None:
    """`row_digest` of a row that was read back; None if its cells are such as no row has.

    Args:
        cells: Its cells by column.
        chain: What the log keeps beside them: the columns of `CHAIN`.
    """
    try:
        return row_digest(
            cells,
            sequence=chain["sequence"],
            previous_sha256=str(chain["previous_sha256"]),
        )
    except (InputError, ValueError):
        return None


# Reading ---------------------------------------------------------------------------------------


def _read_number(cell: Any) -> float:
    if isinstance(cell, float) and math.isfinite(cell):
        return cell
    raise TypeError("is not a finite number")


def _read_integer(cell: Any) -> int:
    if isinstance(cell, int):
        return cell
    raise TypeError("is not a whole number")


def _read_text(cell: Any) -> str:
    if not isinstance(cell, str):
        raise TypeError("is not a text")
    try:
        cell.encode()
    except UnicodeEncodeError:
        raise ValueError("is not text in UTF-8") from None
    return cell


def _read_place(cell: Any) -> str:
    if not is_below(_read_text(cell)):
        raise ValueError("leads out of the trial")
    return str(cell)


def _read_truth(cell: Any) -> bool:
    if isinstance(cell, int) and cell in (0, 1):
        return cell == 1
    raise TypeError("is neither 0 nor 1")


def _read_mapping(cell: Any) -> dict[str, Any]:
    value = door.json_of(_read_text(cell))
    if not isinstance(value, dict):
        raise TypeError("is not a JSON object")
    return value


def _read_word(name: str, words: type[Enum], cell: Any) -> Enum:
    try:
        return words(cell)
    except ValueError as err:
        raise unknown_name(name, cell, [word.value for word in words]) from err


def _reader(name: str) -> Callable[[Any], Any]:
    if name in WORDS:
        return partial(_read_word, name, WORDS[name])
    if name == "trace_uri":
        return _read_place
    return {
        Kind.TEXT: _read_text,
        Kind.INTEGER: _read_integer,
        Kind.NUMBER: _read_number,
        Kind.TRUTH: _read_truth,
        Kind.MAPPING: _read_mapping,
    }[KINDS[name]]


_READ: Final = tuple((name, _reader(name), name in OPTIONAL) for name in COLUMNS)


def episode_of(cells: Sequence[Any], *, where: Callable[[], str]) -> Episode:
    """The episode of stored cells.

    Args:
        cells: One cell per column, in the order of `COLUMNS`.
        where: Names file and row for error messages.

    Raises:
        InputError: If a cell holds something its column cannot, or the cells contradict each
            other; the message names file, row and column.
    """
    values: dict[str, Any] = {}
    for (name, read, optional), cell in zip(_READ, cells, strict=True):
        if cell is None and optional:
            values[name] = None
            continue
        try:
            values[name] = read(cell)
        except (TypeError, ValueError) as err:
            given = "" if isinstance(err, UnknownNameError) else f"{cell!r:.60}: "
            raise InputError(f"{where()}, column {name!r}: {given}{err}") from err
    problem = broken_rule(dict(zip(COLUMNS, cells, strict=True)))
    if problem is not None:
        raise InputError(f"{where()}, {problem}")
    return Episode(**values)
