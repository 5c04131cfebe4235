"""Verdicts of a second rater that were given elsewhere, in a CSV or JSON file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.log.cells import CellError, Reading
from robo_eval.log.csv_records import records
from robo_eval.log.evidence_read import bytes_of, check_columns

KEYS: Final = ("code", "episode_id", "success", "milestones", "blind")
_UNSURE: Final = ("", "?")


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedAnswer:
    """One verdict.

    Attributes:
        place: File and line or number, for messages.
        episode: Code or id of the episode.
        success: The verdict; None if the rater could not say.
        milestones: Steps of the rubric, and whether they were reached.
        blind: Whether the rater did not know the policy; None if it is not said.
    """

    place: str
    episode: str
    success: bool | None
    milestones: Mapping[str, bool | None]
    blind: bool | None

    def wrong(self, what: object) -> InputError:
        """An error that names the answer."""
        return InputError(f"{self.place}: {what}")


def read_answers(source: str, milestones: Sequence[str]) -> list[RatedAnswer]:
    """Read verdicts: CSV with a line of column names, or a JSON list of objects.

    Args:
        source: Path of the file; `-` for standard input.
        milestones: Steps the plan's rubric has.

    Raises:
        InputError: If it cannot be read, has an unknown key, or a value is none; the message names
            file, line and key.
    """
    path = Path("standard input" if source == "-" else source)
    data = sys.stdin.buffer.read() if source == "-" else bytes_of(path, "answers")
    text = door.decoded(data, path)
    is_json = text.lstrip()[:1] in ("[", "{")
    rows = _json_rows(text, path) if is_json else _csv_rows(data, path)
    return [_answer(place, cells, milestones) for place, cells in rows]


def _json_rows(text: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        found = door.json_of(text)
    except ValueError as err:
        raise InputError(f"{path}: is not JSON: {err}") from err
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise InputError(f"{path}: must be a list of objects with {', '.join(KEYS[:3])}")
    yield from ((f"{path}: answer {number}", row) for number, row in enumerate(found, start=1))


def _csv_rows(data: bytes, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    table = records(path, data)
    header = table.header
    episode = "episode_id" if "episode_id" in header else "code"
    what = "answers need code (or episode_id) and success"
    check_columns(path, header, KEYS, (episode, "success"), what)
    for line, cells in table:
        yield f"{path}: line {line}", dict(zip(header, map(str.strip, cells), strict=True))


def _answer(place: str, cells: Mapping[str, Any], milestones: Sequence[str]) -> RatedAnswer:
    for key in cells:
        if key not in KEYS:
            raise InputError(f"{place}: {unknown_name('key', key, KEYS)}")
    episode = cells.get("code") or cells.get("episode_id")
    if not isinstance(episode, str):
        raise InputError(f"{place}: needs a code or an episode_id")
    if "success" not in cells:
        raise InputError(f"{place}: success is missing; it is true, false, or null if unsure")
    return RatedAnswer(
        place=place,
        episode=episode,
        success=_truth(place, "success", cells["success"]),
        milestones=_steps(place, cells.get("milestones"), milestones),
        blind=_truth(place, "blind", cells.get("blind")),
    )


def _truth(place: str, key: str, value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _UNSURE:
        return None
    try:
        return Reading().truth(text)
    except CellError as err:
        raise InputError(f"{place}, {key}: {value!r:.40} must be true, false or empty") from err


def _steps(place: str, value: object, milestones: Sequence[str]) -> dict[str, bool | None]:
    try:
        found = door.json_of(value or "{}") if isinstance(value, str) else value or {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f'{place}, milestones: must be an object such as {{"grasped": true}}')
    for name in found:
        if name not in milestones:
            raise InputError(f"{place}: {unknown_name('milestone', name, milestones)}")
    return {name: _truth(place, name, answer) for name, answer in found.items()}
