"""Which bags lie at the places somebody named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from robo_eval.core.errors import InputError
from robo_eval.log.files import explained

METADATA: Final = "metadata.yaml"
_STORAGE: Final = (".mcap", ".db3")
_KEPT: Final = (*_STORAGE, ".mcap.zstd", ".db3.zstd", ".db3-wal")
"""Endings of the files of a bag; what else lies in its folder is not copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bag:
    """One recording.

    Attributes:
        path: Its folder, or its only file.
        name: What it is called: the name of the folder, or of the file without its ending.
        storage: Its files with messages, in the order they were written.
        files: All files that belong to it, by their name in a copy.
        has_metadata: Whether it is a folder with the file that rosbag2 writes at the end.
    """

    path: Path
    name: str
    storage: tuple[Path, ...]
    files: tuple[Path, ...]
    has_metadata: bool


def find_bags(places: Iterable[Path]) -> list[Bag]:
    """The bags at some places, in order: bag folders, bare files, or folders of these.

    Raises:
        InputError: If a place is not there or holds no bag, or a bag is named twice.
        TrialDirectoryError: If a folder cannot be read.
    """
    bags: list[Bag] = []
    for place in places:
        with explained(place, "cannot be read"):
            bags += _at(place)
    seen: dict[Path, Path] = {}
    for bag in bags:
        path = bag.path.resolve()
        if path in seen:
            raise InputError(f"{bag.path}: is named twice; an episode is imported once")
        seen[path] = bag.path
    return bags


def _at(place: Path) -> list[Bag]:
    if not place.exists():
        raise InputError(f"{place}: there is no such bag; name a bag folder or a .mcap file")
    if place.is_file():
        return [_bare(place)]
    bags = _below(place)
    if not bags:
        raise InputError(
            f"{place}: holds no bags: no folder with {METADATA}, no .mcap file; name the folder"
            " they are in"
        )
    return bags


def _below(folder: Path) -> list[Bag]:
    """The bag a folder is, or those in it and in its folders."""
    if (found := _folder(folder)) is not None:
        return [found]
    bags: list[Bag] = []
    for entry in sorted(folder.iterdir(), key=lambda path: _natural(path.name)):
        if entry.name.startswith("."):
            continue
        # A link may lead in a circle.
        if entry.is_dir() and not entry.is_symlink():
            bags += _below(entry)
        elif entry.is_file() and entry.suffix in _STORAGE:
            bags.append(_bare(entry))
    return bags


def _bare(file: Path) -> Bag:
    if file.name == METADATA and (found := _folder(file.parent)) is not None:
        return found
    if file.suffix not in _STORAGE:
        raise InputError(f"{file}: is no bag; name a bag folder or a .mcap file")
    return Bag(path=file, name=file.stem, storage=(file,), files=(file,), has_metadata=False)


def _folder(folder: Path) -> Bag | None:
    """The bag a folder is; None if it is none, but may hold some."""
    files = sorted(
        (path for path in folder.iterdir() if path.is_file()), key=lambda path: _natural(path.name)
    )
    storage = tuple(path for path in files if path.suffix in _STORAGE)
    has_metadata = any(path.name == METADATA for path in files)
    if not has_metadata and not _is_unfinished(folder, storage):
        return None
    kept = [path for path in files if path.name == METADATA or path.name.endswith(_KEPT)]
    return Bag(
        path=folder,
        name=folder.resolve().name,
        storage=storage,
        files=tuple(kept),
        has_metadata=has_metadata,
    )


def _is_unfinished(folder: Path, storage: Sequence[Path]) -> bool:
    """Whether files are named as rosbag2 names those of one bag: after the folder, numbered."""
    name = re.escape(folder.resolve().name)
    return bool(storage) and all(
        re.fullmatch(rf"{name}(_\d+)?", path.stem) is not None for path in storage
    )


def _natural(name: str) -> tuple[list[int | str], str]:
    """So that `bag_10` comes after `bag_9`."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if part.isdecimal() else part for part in parts], name
