"""The incident log of a trial, which a package of its own keeps: loaded only where there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from robo_eval.core.errors import DISTRIBUTION, InputError, MissingExtraError
from robo_eval.core.points import points

if TYPE_CHECKING:
    from robo_eval.log.evidence import Incident

DATABASE: Final = "incidents.db"
"""Name of the incident log in a trial directory."""
TABLE: Final = "incidents.csv"
"""Name of the table a trial may have instead."""
PLAYED: Final = ("episode_id", "side", "policy", "start_ns", "duration_s", "exposure_s")
"""Columns of a row that say when an episode was played and by whom, to hold incidents against."""
READERS: Final = "robo_eval.incident_reader"
"""Entry point group of the module that reads incident logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIncidents:
    """What an incident log says of a trial.

    Attributes:
        incidents: Incidents of physical sides that count, by when they happened; None if the log
            holds neither a report nor a nil report of such a side.
        silent: Physical sides of which it holds neither: nothing is known of them.
        sha256: Digest of the records that this rests on; None without such records.
        problems: Why it is not what was recorded, with the place of each.
    """

    incidents: tuple[Incident, ...] | None
    silent: tuple[str, ...]
    sha256: str | None
    problems: tuple[str, ...]


class _Reader(Protocol):
    """What is asked of the package of the incident log."""

    def read_incidents(self, path: Path) -> LoggedIncidents: ...

    def state_of(self, path: Path) -> dict[str, Any] | None: ...

    def changes_since(self, path: Path, stated: Mapping[str, Any] | None) -> Iterator[str]: ...

    def identity_of(self, path: Path) -> list[str]: ...

    def goes_on(self, path: Path, stated: Sequence[str]) -> bool: ...

    def listed(self, path: Path) -> tuple[Sequence[Any], int]: ...


def is_incident_log(path: Path) -> bool:
    """Whether a file is an incident log, and no table, by the end of its name.

    Not by its first bytes: a process that reads a database beside SQLite loses SQLite's locks.
    """
    return path.suffix == ".db"


def incidents_of(folder: Path) -> Path | None:
    """Where the incidents of a trial are: its log, or its table; None if it has neither.

    Raises:
        InputError: If it has both: then nobody knows which of them counts.
    """
    # A link that leads nowhere is an error, not the absence of a file.
    found = [folder / name for name in (DATABASE, TABLE) if os.path.lexists(folder / name)]
    if len(found) > 1:
        raise InputError(
            f"{folder}: holds {DATABASE} and {TABLE}, and an event in both would count twice; bring"
            f" the table into the log with `robo-eval incidents import {folder / TABLE} --log"
            f" {folder / DATABASE} --robot NAME`, and then move the table away"
        )
    return found[0] if found else None


def check_reader(folder: Path) -> None:
    """Refuse a trial whose incidents could not be read.

    Raises:
        MissingExtraError: If it has an incident log, and no package that reads it is installed.
    """
    path = folder / DATABASE
    if os.path.lexists(path):
        _reader(path)


def read_incidents(path: Path) -> LoggedIncidents:
    """The incidents of a log.

    Raises:
        IncidentLogError: If it cannot be read.
        MissingExtraError: If the package of the incident log is not installed.
    """
    return _reader(path).read_incidents(path)


def state_of(folder: Path) -> dict[str, Any] | None:
    """What names the records of a trial that results were made of, ready for JSON.

    The bytes of a database change when it is tidied up, so this is over the records themselves.

    Returns:
        How many records there are, their digest, and the newest of each station; None without a
        log, and if the log says nothing about incidents.

    Raises:
        IncidentLogError: If the log cannot be read.
        MissingExtraError: If the package of the incident log is not installed.
    """
    path = folder / DATABASE
    return _reader(path).state_of(path) if os.path.lexists(path) else None


def identity_of(folder: Path, stated: Sequence[str]) -> Sequence[str]:
    """What names the incident log of a trial, ready for JSON; empty if it never had one.

    Args:
        folder: The trial directory.
        stated: What was returned before; it stays if this log does not go on from that one.
    """
    path = folder / DATABASE
    with suppress(InputError, MissingExtraError):  # what verifies the log says more
        if os.path.lexists(path) and goes_on(folder, stated):
            return _reader(path).identity_of(path)
    return stated


def goes_on(folder: Path, stated: Sequence[str]) -> bool:
    """Whether the incident log of a trial is still the one that `identity_of` named."""
    path = folder / DATABASE
    return not stated or _reader(path).goes_on(path, stated)


def listed(folder: Path) -> tuple[Sequence[Any], int]:
    """All incidents in the log of a trial as they stand now, and how many nil reports it holds.

    Returns:
        Incidents of the package that reads the log; none, and 0, without a log.

    Raises:
        IncidentLogError: If the log cannot be read.
        MissingExtraError: If the package of the incident log is not installed.
    """
    path = folder / DATABASE
    return _reader(path).listed(path) if os.path.lexists(path) else ((), 0)


def changes_since(folder: Path, stated: Mapping[str, Any] | None) -> Iterator[str]:
    """How the incident log of a trial differs from what was stated of it.

    Args:
        folder: The trial directory.
        stated: What `state_of` returned then.
    """
    path = folder / DATABASE
    if not os.path.lexists(path):
        if stated is not None:
            yield "is missing since it was signed"
        return
    try:
        yield from _reader(path).changes_since(path, stated)
    except (InputError, MissingExtraError) as err:
        yield f"cannot be compared with what was signed: {str(err).removeprefix(f'{path}: ')}"


def _reader(path: Path) -> _Reader:
    """What reads incident logs, as installed: scoring rests on nothing that writes them."""
    why = f"nothing is installed under the entry point {READERS}"
    for reader in points(READERS):
        try:
            return cast("_Reader", reader.load())
        except ImportError as err:
            why = f"{reader.value}: {err}"
    raise MissingExtraError(
        f"{path}: is an incident log, and what reads it is not installed ({why});"
        f" pip install --force-reinstall {DISTRIBUTION}"
    )
