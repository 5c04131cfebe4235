"""Which bags lie at the places somebody named."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import zstandard

from robo_eval.core.errors import InputError
from robo_eval.log.bag_metadata import METADATA_FILE, Described, described
from robo_eval.log.bag_storage import ZSTD_MAGIC
from robo_eval.log.files import explained

PENDING: Final = ("-wal", "-journal")
"""Endings, behind the name of a database, of what was not yet written into it."""
_STORAGE: Final = (".mcap", ".db3")
_PACKED: Final = (".zstd", ".zst")
_UNREAD: Final = (".gz", ".bz2", ".xz", ".lz4", ".zip", ".7z")
"""Endings of what is compressed in a way that is not read."""
_ROS1_MAGIC: Final = b"#ROSBAG V"
_HOLE: Final = 1 << 30
"""Bytes of a file that no recorder leaves unwritten."""
_NUMBERED: Final = re.compile(r"(?P<name>.+)_(?P<number>0|[1-9]\d*)")
"""As rosbag2 numbers the files of one recording, from 0 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bag:
    """One recording.

    Attributes:
        path: Its folder, or its first file.
        name: What it is called: the name of the folder, or of its files without ending and number.
        storage: Its files with messages, by their numbers.
        files: All files that belong to it, by their name in a copy.
        metadata: What rosbag2 wrote about it at the end; None if it did not get so far.
        copies: Files that are there twice, compressed and not: the other by the one in `storage`.
        is_by_number: Whether only the numbers in their names make the files one recording.
        before: The file with the number before that of this one; it may be of the same recording.
    """

    path: Path
    name: str
    storage: tuple[Path, ...]
    files: tuple[Path, ...]
    metadata: Described | None = None
    copies: Mapping[Path, Path] = field(default_factory=dict)
    is_by_number: bool = False
    before: Path | None = None


def find_bags(places: Iterable[Path]) -> list[Bag]:
    """The bags at some places, in order: bag folders, bare files, or folders of these.

    Raises:
        InputError: If a place is not there or holds no bag, or a bag is named twice, or in part.
        TrialDirectoryError: If a folder cannot be read.
    """
    places = [p.parent if p.name == METADATA_FILE and p.is_file() else p for p in places]
    named = {place.resolve() for place in places}
    bags: dict[Path, Bag] = {}
    seen: set[Path] = set()
    for place in places:
        with explained(place, "cannot be read"):
            found = _at(place)
        for bag in found:
            for path in (*bag.storage, *bag.copies.values()):
                _check_whole_file(path)
            if place.is_file():
                _check_whole(place, bag, named)
            # Each file of a recording may be named, but none of them twice.
            files = {path.resolve() for path in ([place] if place.is_file() else bag.files)}
            if files & seen:
                raise InputError(f"{bag.path}: is named twice; an episode is imported once")
            seen |= files
            bags.setdefault(bag.path, bag)
    return list(bags.values())


def _check_whole(place: Path, bag: Bag, named: set[Path]) -> None:
    for path in bag.storage:
        other = bag.copies.get(path, path)
        if not {path.resolve(), other.resolve()} & named:
            raise InputError(
                f"{place}: is a part of one recording with {path.name}; name all its files, or the"
                " folder they are in"
            )


def is_packed(path: Path) -> bool:
    """Whether a whole file is compressed."""
    with explained(path, "cannot be read"):
        return _head(path, len(ZSTD_MAGIC)) == ZSTD_MAGIC


def unpack(path: Path, folder: Path) -> Path:
    """Write the content of a compressed file to a folder; returns its path there.

    Raises:
        InputError: If it is damaged.
        TrialDirectoryError: If it cannot be read or written.
    """
    target = folder / plain_name(path.name)
    with explained(path, "cannot be unpacked"):
        folder.mkdir(exist_ok=True)
        try:
            with (
                path.open("rb") as packed,
                zstandard.ZstdDecompressor().stream_reader(
                    packed, read_across_frames=True
                ) as content,
                target.open("wb") as out,
            ):
                shutil.copyfileobj(content, out)
        except zstandard.ZstdError as err:
            raise InputError(
                f"{path}: cannot be unpacked: {err}; try zstd -d, and if that fails as well,"
                " restore it from a copy, or leave it out"
            ) from err
        if not target.stat().st_size:
            raise InputError(f"{path}: is cut short, nothing of it can be read; leave it out")
    return target


def _at(place: Path) -> list[Bag]:
    if not place.exists():
        raise InputError(f"{place}: there is no such bag; name a bag folder or a .mcap file")
    if place.is_file():
        return [_of_file(place)]
    if not place.is_dir():
        raise InputError(f"{place}: is neither file nor folder; name a bag folder or a .mcap file")
    bags = _below(place)
    if not bags:
        raise InputError(
            f"{place}: holds no bags: no folder with {METADATA_FILE}, no .mcap file; name the"
            " folder they are in"
        )
    return bags


def _below(folder: Path) -> list[Bag]:
    """The bag a folder is, or those in it and in its folders."""
    for entry in folder.iterdir():
        is_bag = _suffix(entry.name) in _STORAGE and not entry.name.startswith(".")
        if is_bag and not entry.is_file() and not entry.is_dir():
            what = "is no file" if entry.exists() else "is a link to what is not there"
            raise InputError(f"{entry}: {what}; copy the recording there, or move it away")
    if (found := _folder(folder)) is not None:
        return [found]
    files = _files(folder)
    for path in files:
        _check_readable(path)
    bags = {bag.path: [bag] for bag in _bare(files)}
    for entry in folder.iterdir():
        # A link may lead in a circle.
        if entry.is_dir() and not entry.is_symlink() and not entry.name.startswith("."):
            bags[entry] = _below(entry)
    return [bag for path in sorted(bags, key=_by_name) for bag in bags[path]]


def _of_file(file: Path) -> Bag:
    """The bag that a named file is, or is a part of."""
    _check_readable(file)
    if _suffix(file.name) not in _STORAGE:
        raise InputError(f"{file}: is not a bag; name a bag folder or a .mcap file")
    same = [path for path in _files(file.parent) if _recording(path) == _recording(file)]
    for bag in _bare(same):
        if file.name in {path.name for path in (*bag.storage, *bag.copies.values())}:
            return bag
    return _bag_of_files(_stem(file), [file], {})


def _folder(folder: Path) -> Bag | None:
    """The bag a folder is; None if it is none, but may hold some."""
    files = _files(folder)
    metadata = described(folder / METADATA_FILE)
    name = folder.resolve().name
    every, copies = _without_copies([path for path in files if _suffix(path.name) in _STORAGE])
    for path in every:
        _check_readable(path)
    if metadata is None:
        kinds = {_suffix(path.name) for path in every}
        if len(kinds) != 1 or any(name not in (_recording(p), _stem(p)) for p in every):
            return None
        _check_numbers(every)
    else:
        _check_named(folder, metadata, every)
    kept = [path for path in files if path.name == METADATA_FILE or _is_pending(path.name)]
    return Bag(
        path=folder,
        name=name,
        storage=tuple(every),
        files=(*every, *kept),
        metadata=metadata,
        copies=copies,
    )


def _check_named(folder: Path, metadata: Described, every: Sequence[Path]) -> None:
    """Refuse a folder that lacks files of its metadata, or holds files of another recording."""
    there = {plain_name(path.name): path for path in every}
    named = [plain_name(name) for name in metadata.files]
    for name in named:
        if name not in there:
            raise InputError(
                f"{folder}: {METADATA_FILE} names {name}, which is missing; copy it there, or write"
                f" {METADATA_FILE} anew with ros2 bag reindex"
            )
    # The recorder writes its metadata before it begins the last file.
    known = {_recording(there[name]) for name in named} | {folder.resolve().name}
    kinds = {_suffix(name) for name in named}
    for name, path in there.items():
        is_part = not {_recording(path), _stem(path)}.isdisjoint(known)
        if name not in named and not (is_part and (_suffix(name) in kinds or not kinds)):
            raise InputError(
                f"{folder}: {path.name} is not named in {METADATA_FILE}; move it to a folder of its"
                f" own, or write {METADATA_FILE} anew with ros2 bag reindex"
            )


def _bare(files: Sequence[Path]) -> list[Bag]:
    """The recordings whose files lie side by side."""
    every, copies = _without_copies([path for path in files if _suffix(path.name) in _STORAGE])
    groups: dict[tuple[str, str], list[Path]] = {}
    for path in every:
        groups.setdefault((_recording(path), _suffix(path.name)), []).append(path)
    bags = []
    for (name, _), paths in groups.items():
        if len(paths) > 1 and any(_number(path) == 0 for path in paths):
            _check_numbers(paths)
            bags.append(_bag_of_files(name, paths, copies))
        else:
            numbers = {_number(path): path for path in paths}
            for path in paths:
                before = numbers.get((_number(path) or 0) - 1)
                bags.append(_bag_of_files(_stem(path), [path], copies, before))
    return bags


def _bag_of_files(
    name: str, files: Sequence[Path], copies: Mapping[Path, Path], before: Path | None = None
) -> Bag:
    return Bag(
        path=files[0],
        name=name,
        storage=tuple(files),
        files=tuple(files),
        copies={path: copies[path] for path in files if path in copies},
        is_by_number=len(files) > 1,
        before=before,
    )


def _check_numbers(files: Sequence[Path]) -> None:
    """Refuse files that are numbered as one recording if one of them is missing."""
    numbered = [path for path in files if _number(path) is not None]
    for one, two in pairwise(numbered):
        number = (_number(one) or 0) + 1
        if _number(two) != number and _recording(one) == _recording(two):
            raise InputError(
                f"{two}: is numbered as a part of one recording with {one.name}, and number"
                f" {number} between them is missing; copy it there, or put the files of each"
                " recording into a folder of its own"
            )


def _without_copies(files: Sequence[Path]) -> tuple[list[Path], dict[Path, Path]]:
    """The files without those that are there compressed as well, and these by the others."""
    by_name: dict[str, list[Path]] = {}
    for path in files:
        by_name.setdefault(plain_name(path.name), []).append(path)
    copies = {}
    for paths in by_name.values():
        paths.sort(key=lambda path: len(path.name))
        if len(paths) > 1:
            copies[paths[0]] = paths[1]
    return sorted((paths[0] for paths in by_name.values()), key=_by_name), copies


def _check_readable(path: Path) -> None:
    """Refuse a recording in a form that is not read; one that is passed over would be missing."""
    if path.suffix in _UNREAD and Path(path.stem).suffix in (*_STORAGE, ".bag"):
        raise InputError(
            f"{path}: is compressed in a way that is not read; unpack it, or move it away"
        )
    if _head(path, len(_ROS1_MAGIC)) == _ROS1_MAGIC:
        bag = path.with_suffix("" if path.suffix == ".active" else ".bag")
        rename = "" if path == bag else f" name it {bag.name}, and"
        raise InputError(
            f"{path}: is a ROS 1 bag, which is not read;{rename} convert it by: rosbags-convert"
            f" --src {bag} --dst {bag.with_suffix('')}"
        )


def _check_whole_file(path: Path) -> None:
    """Refuse a file of which much was never written: it takes long to read, and holds nothing."""
    with explained(path, "cannot be read"), path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        missing = at = 0
        while at < size and size > _HOLE and hasattr(os, "SEEK_HOLE"):
            end = file.seek(at, os.SEEK_HOLE)
            try:
                at = file.seek(end, os.SEEK_DATA)
            except OSError:
                # No data follows.
                at = size
            missing += at - end
    if missing > _HOLE:
        raise InputError(
            f"{path}: {missing / 1e9:.1f} of its {size / 1e9:.1f} GB were never written; copy it"
            " once more, or move it away"
        )


def _head(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def _files(folder: Path) -> list[Path]:
    found = [p for p in folder.iterdir() if p.is_file() and not p.name.startswith(".")]
    return sorted(found, key=_by_name)


def plain_name(name: str) -> str:
    """The name of a file before it was compressed."""
    for ending in _PACKED:
        name = name.removesuffix(ending)
    return name


def _suffix(name: str) -> str:
    return Path(plain_name(name)).suffix


def _stem(path: Path) -> str:
    return Path(plain_name(path.name)).stem


def _recording(path: Path) -> str:
    """The name of the recording that a file is of, by its own."""
    match = _NUMBERED.fullmatch(_stem(path))
    return match["name"] if match else _stem(path)


def _number(path: Path) -> int | None:
    match = _NUMBERED.fullmatch(_stem(path))
    return int(match["number"]) if match else None


def _is_pending(name: str) -> bool:
    return any(name.endswith(f".db3{ending}") for ending in PENDING)


def _by_name(path: Path) -> tuple[list[tuple[int, int | str]], str]:
    """So that `bag_10` comes after `bag_9`."""
    parts = re.split(r"(\d+)", path.name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts], path.name
