"""What a cell of an evidence file can hold, and what is said of one that holds something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from robo_eval.core import door
from robo_eval.log.cells import CellError, Reading, iso_ns

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

_LARGEST: Final = 1e15
"""No measurement is larger, and none smaller than its inverse."""
_DIGITS: Final = 15
_READ: Final = Reading()
_TIME: Final = "a time such as 2026-03-01T09:30:00+00:00"


class WordError(ValueError):
    """A word that is not in a closed list."""

    def __init__(self, valid: tuple[str, ...]) -> None:
        super().__init__(", ".join(valid))
        self.valid = valid


class CellMark:
    """Marks a field that is read from the text of a cell.

    Pydantic is needed where files are read; notes themselves load without it.
    """

    def __init__(self, read: Callable[[str], object], what: str) -> None:
        self.read = read
        self.what = what
        """What it can hold, for people."""

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        """How pydantic reads it."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.read)


def word(*valid: str) -> CellMark:
    """A word from a closed list."""

    def read(cell: str) -> str:
        if cell not in valid:
            raise WordError(valid)
        return cell

    return CellMark(read, ", ".join(valid))


def _given(cell: str, what: str) -> str:
    if not cell:
        raise CellError(f"{cell!r} is empty; it needs {what}")
    return cell


def _text(cell: str) -> str:
    return _given(cell, "a text")


def _author(cell: str) -> str:
    return "policy" if cell.lower() == "policy" else _text(cell)


def _quantity(cell: str) -> float:
    value = float(_READ.number(_given(cell, "a number")))
    if value < 0.0:
        raise CellError(f"{cell!r:.60} must be a number of at least 0")
    if value > _LARGEST or 0.0 < value < 1.0 / _LARGEST:
        raise CellError(f"{cell!r:.60} must be 0 or between {1.0 / _LARGEST:g} and {_LARGEST:g}")
    return value


def _share(cell: str) -> float:
    return _READ.share(_given(cell, "a number"))


def _count(cell: str) -> int:
    value = _READ.whole(_given(cell, "a whole number"))
    if value < 0:
        raise CellError(f"{cell!r:.60} must be a whole number of at least 0")
    if value >= 10**_DIGITS:
        raise CellError(f"{cell!r:.60} must have at most {_DIGITS} digits")
    return value


def _time_ns(cell: str) -> int:
    return iso_ns(_given(cell, _TIME), None)


def _utc_offset_s(cell: str) -> int:
    _time_ns(cell)
    offset = datetime.fromisoformat(cell).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _steps(cell: str) -> dict[str, bool | None]:
    try:
        found: Any = door.json_of(cell)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(
        answer is None or isinstance(answer, bool) for answer in found.values()
    ):
        raise CellError(f'{cell!r:.60} must be a JSON object such as {{"grasped": true}}')
    return found


Text = Annotated[str, CellMark(_text, "a text")]
"""A text that must be there."""
Lower = Annotated[str, CellMark(str.lower, "a text")]
"""A text that may be written with capitals."""
Author = Annotated[str, CellMark(_author, "policy, or a name")]
"""`policy`, which may be written with capitals, or a name."""
Truth = Annotated[bool, CellMark(_READ.truth, "true or false")]
"""Yes or no."""
Quantity = Annotated[float, CellMark(_quantity, "a number of at least 0")]
"""A number of at least 0."""
Share = Annotated[float, CellMark(_share, "a number from 0 to 1")]
"""A number from 0 to 1."""
Count = Annotated[int, CellMark(_count, "a whole number of at least 0")]
"""A whole number of at least 0."""
Moment = Annotated[int, CellMark(_time_ns, _TIME)]
"""A time with its zone, as ns since 1970, UTC."""
Offset = Annotated[int, CellMark(_utc_offset_s, _TIME)]
"""How far the clock of such a time is from UTC, in s."""
Steps = Annotated[
    Mapping[str, bool | None], CellMark(_steps, 'a JSON object such as {"grasped": true}')
]
"""Steps with true, false or null, as a JSON object."""
