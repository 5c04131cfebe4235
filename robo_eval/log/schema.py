"""What each column of an episode can hold, and what columns must say together.

All of it follows from the fields of `core.episode.Episode`; whoever reads or writes rows asks here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from enum import Enum, StrEnum
from functools import reduce
from operator import or_
from types import NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

from robo_eval.core.episode import COUNT_LIMIT, Episode
from robo_eval.core.kinds import EndReason


class Kind(StrEnum):
    """How a column is stored."""

    TEXT = "text"
    WORD = "word"
    INTEGER = "integer"
    NUMBER = "number"
    TRUTH = "truth"
    MAPPING = "mapping"


def _kind(hint: Any) -> tuple[Kind, bool, type[Enum] | None]:
    """Kind of a field, whether it may be missing, and its list of words."""
    options = [option for option in get_args(hint) if option is not NoneType]
    optional = NoneType in get_args(hint)
    bare = options[0] if optional else hint
    if get_origin(bare) is not None:
        return Kind.MAPPING, optional, None
    if issubclass(bare, Enum):
        return Kind.WORD, optional, bare
    kinds = {str: Kind.TEXT, int: Kind.INTEGER, float: Kind.NUMBER, bool: Kind.TRUTH}
    return kinds[bare], optional, None


_FIELDS: Final = {name: _kind(hint) for name, hint in get_type_hints(Episode).items()}
KINDS: Final[dict[str, Kind]] = {name: kind for name, (kind, _, _) in _FIELDS.items()}
"""How each column is stored."""
OPTIONAL: Final = frozenset(name for name, (_, optional, _) in _FIELDS.items() if optional)
"""Columns that may be missing (NULL)."""
WORDS: Final[dict[str, type[Enum]]] = {n: words for n, (*_, words) in _FIELDS.items() if words}
"""The list of words of each column that has one."""
LEAST: Final[dict[str, float]] = {
    one.name: one.metadata["least"] for one in fields(Episode) if "least" in one.metadata
}
"""The least number of each column that has one."""
MOST: Final[dict[str, float]] = {
    one.name: one.metadata["most"] for one in fields(Episode) if "most" in one.metadata
}
"""The greatest number of each column that has one."""
BOUNDS: Final = tuple(
    (name, LEAST.get(name, -math.inf), MOST.get(name, math.inf)) for name in {**LEAST, **MOST}
)
"""Columns with bounds, and these; 0 is never out of them."""
UNIT: Final[dict[str, str]] = {one.name: one.metadata["unit"] for one in fields(Episode)}
"""The unit of each column; empty where it has none, or one for each entry."""
SHARES: Final = tuple(name for name, most in MOST.items() if most == 1.0)
"""Columns that hold shares."""
_UNSCORED: Final = tuple(reason.value for reason in EndReason if not reason.is_scored)


def least_text(column: str) -> str:
    """What is said of a number that is too small."""
    if column in SHARES:
        return "it must be in [0, 1]"
    kind = "whole number" if KINDS[column] is Kind.INTEGER else "number"
    return f"it must be a {kind} of at least {LEAST[column]:g}"


def most_text(column: str) -> str:
    """What is said of a number that is too large."""
    if column in SHARES:
        return "it must be in [0, 1]"
    if KINDS[column] is Kind.INTEGER:
        return f"it must be less than {COUNT_LIMIT} (2^53)"
    return f"no episode is longer than {MOST[column]:g} s, so it is most likely in another unit"


TOGETHER: Final = ("episode_id", "quality", "success", "end_reason", "interventions")
"""Columns that `rules` looks at."""


def rules(cells: Mapping[str, Any], empty: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """What the cells of a row cannot say together.

    Works on whole columns, arrays of shape (n,), and on the plain cells of one row alike.

    Args:
        cells: The columns of `TOGETHER`.
        empty: Where there is no quality and no success.

    Yields:
        A column, in which rows it is wrong, and why; cells of the row are named in braces.
    """
    yield "episode_id", cells["episode_id"] == "", "it needs a text"
    scored, known, end = empty["quality"] ^ True, empty["success"] ^ True, cells["end_reason"]
    succeeded = known & (cells["success"] == True)  # noqa: E712 - of an array as well
    yield "quality", scored ^ known, "success is {success}, but both are set, or both are missing"
    unscored = reduce(or_, (end == reason for reason in _UNSCORED))
    yield "quality", scored & unscored, "an episode that ended by {end_reason} has no score"
    text = "it contradicts end_reason '{end_reason}'"
    yield "success", known & (succeeded ^ (end == EndReason.SUCCESS.value)), text
    text = "an assisted episode is never a success"
    yield "interventions", succeeded & (cells["interventions"] > 0), text


def broken_rule(cells: Mapping[str, Any]) -> str | None:
    """What is wrong with the stored cells of one row, with the column; None if nothing is."""
    for name, least, most in BOUNDS:
        cell = cells[name]
        if cell is not None and not least <= cell <= most:
            return said_of(name, cell, least_text(name) if cell < least else most_text(name))
    given = {name: cells[name] for name in TOGETHER}
    empty = {name: cell is None for name, cell in given.items()}
    for column, wrong, text in rules(given, empty):
        if wrong:
            return said_of(column, cells[column], text.format_map(cells))
    return None


def said_of(column: str, cell: object, text: str) -> str:
    """What is said of a cell that breaks a rule."""
    if cell == "":
        return f"column {column!r} is empty; {text}"
    return f"column {column!r} is {cell.item() if hasattr(cell, 'item') else cell!r:.60}; {text}"
