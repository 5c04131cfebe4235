"""How what happened in a trial is noted beside its episodes, one line each."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from robo_eval.log.files import explained, sync_folder

_HEADERS: Final[dict[str, tuple[str, ...]]] = {
    "faults": (
        "fault", "recovered", "side", "episode_id", "policy", "recovered_by", "injected",
        "duration_s", "description",
    ),
    "verdicts": (
        "episode_id", "side", "operator", "time", "verdict", "blind", "milestones", "note",
    ),
    "pauses": ("time", "duration_s", "side", "operator", "asked_by"),
}  # fmt: skip


def note(trial: Path, kind: str, **cells: str | float | bool) -> None:
    """Add one line to `KIND.csv` of a trial, and make it survive a power cut.

    Args:
        trial: The trial directory.
        kind: `faults`, `verdicts` or `pauses`.
        **cells: Values by column; others stay empty.

    Raises:
        TrialDirectoryError: If it cannot be written.
        KeyError: If there is no such kind or column.
    """
    header = _HEADERS[kind]
    if unknown := set(cells) - set(header):
        raise KeyError(f"{kind}: no column {min(unknown)!r}")
    append_line(trial / f"{kind}.csv", header, cells)


def append_line(
    path: Path, header: Sequence[str], cells: Mapping[str, str | float | bool | None]
) -> None:
    """Add one line to a CSV file, with its header where it is new, and make it last a power cut.

    Args:
        path: The file.
        header: Its columns.
        cells: Values by column; others stay empty.

    Raises:
        TrialDirectoryError: If it cannot be written.
    """
    line = csv_line([_text(cells.get(name)) for name in header])
    with explained(path, "cannot be written"):
        is_new = not path.exists()
        with path.open("ab") as file:
            # One write, so that a kill leaves the line or nothing of it.
            file.write(((csv_line(header) if is_new else _gap(path)) + line).encode())
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(path.parent)


def iso_time(ns: int) -> str:
    """UTC nanoseconds as evidence files have times.

    Example:
        >>> iso_time(1_700_000_000_250_000_000)
        '2023-11-14T22:13:20.250000+00:00'
    """
    seconds, rest = divmod(ns, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, tz=UTC).replace(microsecond=rest // 1000)
    return moment.isoformat(timespec="microseconds")


def csv_line(cells: Sequence[str]) -> str:
    """One line of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _text(value: str | float | bool | None) -> str:  # noqa: FBT001 - a cell
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _gap(path: Path) -> str:
    """What has to end the last line of a file first."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return ""
        file.seek(-1, os.SEEK_END)
        return "" if file.read() == b"\n" else "\n"
