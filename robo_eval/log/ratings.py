"""How the verdicts of second raters are kept in a trial directory, and recordings shown blind."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from robo_eval.log.csv_records import records
from robo_eval.log.files import explained, write_atomically
from robo_eval.log.notes import append_line, csv_line

RATINGS: Final = "ratings.csv"
BLIND: Final = "judging"
"""Folder of links to recordings, named by codes: paths of recordings tell the policy."""
COLUMNS: Final = (
    "episode_id", "rater", "success", "side", "blind", "time", "milestones",
)  # fmt: skip


def append_rating(
    trial: Path,
    *,
    episode_id: str,
    rater: str,
    success: bool | None,
    side: str,
    blind: bool,
    time: str,
    milestones: Mapping[str, bool | None],
) -> None:
    """Add one verdict to `ratings.csv`, and make it survive a power cut.

    A file with fewer columns, as people and older versions write them, gets the missing ones; its
    lines stay.

    Args:
        trial: The trial directory.
        episode_id: Which episode.
        rater: Who.
        success: The verdict; None if the rater could not say.
        side: Where it was played.
        blind: Whether the rater did not know the policy.
        time: When, ISO 8601 with its zone.
        milestones: Steps of the rubric, and whether they were reached.

    Raises:
        TrialDirectoryError: If it cannot be written.
    """
    cells = {
        "episode_id": episode_id,
        "rater": rater,
        "success": success,
        "side": side,
        "blind": blind,
        "time": time,
        "milestones": json.dumps(dict(milestones), ensure_ascii=False) if milestones else None,
    }
    path = trial / RATINGS
    header: tuple[str, ...] = COLUMNS
    with explained(path, "cannot be written"):
        if path.exists():
            header = _header(path)
            filled = [name for name, cell in cells.items() if cell not in (None, "")]
            lacking = [name for name in filled if name not in header]
            if lacking:
                header = (*header, *lacking)
                write_atomically(path, _widened(path, header).encode())
    append_line(path, header, cells)


def _header(path: Path) -> tuple[str, ...]:
    return tuple(records(path, path.read_bytes()).header)


def _widened(path: Path, header: tuple[str, ...]) -> str:
    """The text of a file with further columns at its end."""
    filled = (
        [*cells, *[""] * (len(header) - len(cells))]
        for _, cells in records(path, path.read_bytes())
    )
    return csv_line(header) + "".join(map(csv_line, filled))


def blind_links(trial: Path, trace: str, code: str) -> list[Path]:
    """Links to a recording whose paths say nothing but a code.

    Args:
        trial: The trial directory.
        trace: Path of the recording, a file or a bag, from there.
        code: What the links are called.

    Returns:
        One link a file; none if there is no recording, or links cannot be made here.
    """
    recording = trial / trace
    files = sorted(recording.glob("*.mcap")) if recording.is_dir() else [recording]
    folder = trial / BLIND
    links = []
    for number, file in enumerate(file for file in files if file.is_file()):
        name = f"{code}{f'_{number}' if number else ''}{file.suffix}"
        link = folder / name
        try:
            folder.mkdir(exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(Path(os.path.relpath(file, folder)))
        except OSError:
            return []
        links.append(link)
    return links
