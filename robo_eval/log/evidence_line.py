"""One line of a CSV file of evidence, whose cells are read with messages that name them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.log.evidence import PHYSICAL, SIDES
from robo_eval.log.import_cell import TRUTHS

_Value = TypeVar("_Value")
_LARGEST: Final = 1e15
"""No measurement is larger, and none smaller than its inverse."""
_DIGITS: Final = 15


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a CSV file, whose cells are read with messages that name them."""

    path: Path
    number: int
    cells: dict[str, str]

    def wrong(self, column: str, what: str) -> InputError:
        """What is said of a cell that will not do: its file, line and column."""
        given = self.cells.get(column, "")
        return InputError(
            f"{self.path}: line {self.number}, column {column!r}: {given!r:.60} {what}"
        )

    def text(self, column: str) -> str:
        """A text that must be there."""
        value = self.cells.get(column, "")
        if not value:
            raise self.wrong(column, "is empty; it needs a text")
        return value

    def optional(self, column: str) -> str | None:
        """A text, or None where the cell is empty."""
        return self.cells.get(column) or None

    def word(self, column: str, valid: tuple[str, ...], default: str | None = None) -> str:
        """A word from a closed list."""
        value = self.cells.get(column) or default
        if value not in valid:
            problem = unknown_name(column, self.cells.get(column, ""), valid)
            raise InputError(f"{self.path}: line {self.number}, column {column!r}: {problem}")
        return value

    def truth(self, column: str, default: bool | None) -> bool | None:  # noqa: FBT001
        """A yes or no."""
        value = self.cells.get(column, "").lower()
        if not value:
            return default
        if value not in TRUTHS:
            raise self.wrong(column, "must be true or false")
        return TRUTHS[value]

    def amount(self, column: str, default: _Value) -> float | _Value:
        """A number of at least 0, or the default where the cell is empty."""
        text = self.cells.get(column, "")
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            raise self.wrong(column, "is not a number") from None
        if not (math.isfinite(value) and value >= 0.0):
            raise self.wrong(column, "must be a number of at least 0")
        if value > _LARGEST or 0.0 < value < 1.0 / _LARGEST:
            raise self.wrong(column, f"must be 0 or between {1.0 / _LARGEST:g} and {_LARGEST:g}")
        return value

    def count(self, column: str, default: int | None = None) -> int:
        """A whole number of at least 0."""
        text = self.cells.get(column, "")
        if not text and default is not None:
            return default
        if not (text.isascii() and text.isdigit()):
            raise self.wrong(column, "must be a whole number of at least 0")
        if len(text) > _DIGITS:
            raise self.wrong(column, f"must have at most {_DIGITS} digits")
        return int(text)

    def quantity(self, column: str, most: float = math.inf) -> float:
        """A number that must be there, from 0 to `most`."""
        value = self.amount(column, None)
        if value is None:
            raise self.wrong(column, "is empty; it needs a number")
        if value > most:
            raise self.wrong(column, f"must be at most {most:g}")
        return value

    def time_ns(self, column: str) -> int | None:
        """A time with its zone, UTC in ns; None where the cell is empty."""
        text = self.cells.get(column, "")
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
            since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        except (ValueError, OverflowError):
            moment = None
        if moment is None or moment.tzinfo is None:
            raise self.wrong(
                column, "is no time with its zone; write it like 2026-03-01T09:30:00+00:00"
            )
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000

    def utc_offset_s(self, column: str) -> int:
        """Of a time that `time_ns` has read."""
        offset = datetime.fromisoformat(self.cells[column]).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())

    def answers(self, column: str) -> dict[str, bool | None]:
        """Steps with true, false or null, as a JSON object."""
        text = self.cells.get(column, "")
        try:
            found: Any = door.json_of(text or "{}")
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(
            answer is None or isinstance(answer, bool) for answer in found.values()
        ):
            raise self.wrong(column, 'must be a JSON object such as {"grasped": true}')
        return found

    @property
    def noted(self) -> dict[str, Any]:
        """What all notes on a body have in common."""
        return self._noted(PHYSICAL)

    @property
    def noted_of_policy(self) -> dict[str, Any]:
        """The same of notes on a policy, which may have been played in simulation only."""
        return self._noted(SIDES)

    def _noted(self, sides: tuple[str, ...]) -> dict[str, Any]:
        return {
            "line": self.number,
            "side": self.word("side", sides, Side.REAL.value),
            "episode_id": self.optional("episode_id"),
            "policy": self.optional("policy"),
        }

    @property
    def tally(self) -> dict[str, Any]:
        """Episodes, and how many of them were successes."""
        episodes, successes = self.count("episodes"), self.count("successes")
        if successes > episodes:
            raise self.wrong("successes", f"is more than the {episodes} episodes")
        return {"episodes": episodes, "successes": successes}
