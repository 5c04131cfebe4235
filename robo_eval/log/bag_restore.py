"""How a bag whose recorder was killed becomes a sound one again."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcap.reader import McapReader, make_reader
from mcap.records import Schema
from mcap.summary import Summary

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.log.bag_metadata import (
    HASH_KEY,
    METADATA_FILE,
    QOS_KEY,
    BagTopic,
    described,
    metadata_yaml,
)
from robo_eval.log.bag_recover import BROKEN, LIBRARY, is_cut_short, recover
from robo_eval.log.bag_writer import END_RECORD, EVENT_JSON, START_RECORD
from robo_eval.log.files import PART_SUFFIX, explained, part_of, sync_folder, write_atomically

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a bag holds, now that it is sound.

    Attributes:
        messages: How many messages.
        was_complete: Whether its recorder finished it; False also when it was restored before.
        start: The event that began its episode; None if the bag does not say.
        end: The event that ended it; None if the recorder did not get so far.
    """

    messages: int
    was_complete: bool
    start: dict[str, Any] | None
    end: dict[str, Any] | None = None


class BagBusyError(InputError):
    """The bag is still being written."""


def restore(folder: Path) -> Restored:
    """Make a bag sound that was cut short, with every complete chunk of it.

    A complete bag is left as it is, byte for byte.

    Args:
        folder: The bag: one MCAP file, and what stands beside it.

    Raises:
        InputError: If nothing of it can be read, or it is no such bag.
        BagBusyError: If it is still being written.
        TrialDirectoryError: If a file cannot be read or written; the bag is as it was then.
    """
    path = _storage_of(folder)
    with _locked(path):
        content = None if is_cut_short(path) else _content_of(path)
        if content is None:
            _rewrite(path)
            content = _content_of(path)
            if content is None:
                raise InputError(f"{path}: cannot be read after recovery; leave the bag out")
        found, summary = content
        if not _is_described(folder / METADATA_FILE, path.name, found.messages):
            _write_metadata(folder, path, summary, is_recovered=not found.was_complete)
    _clean(folder)
    return found


def _storage_of(folder: Path) -> Path:
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder; a bag of the recorder is one")
    with explained(folder, "cannot be read"):
        files = sorted(path for path in folder.glob("*.mcap") if not path.name.startswith("."))
    if len(files) != 1:
        found = ", ".join(path.name for path in files) or "none"
        raise InputError(
            f"{folder}: a bag of the recorder holds one .mcap file, this one holds {found};"
            " leave it out"
        )
    return files[0]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with explained(path, "cannot be read"):
        door.check_plain(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise BagBusyError(
                f"{path}: is still being written; stop the recorder, then restore it"
            ) from err
        except OSError:
            _log.debug("%s: its disk knows no locks", path)
        yield
    finally:
        os.close(descriptor)


def _rewrite(path: Path) -> None:
    part = part_of(path)
    try:
        recover(path, part)
        with explained(path, "cannot be recovered"):
            descriptor = os.open(part, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            part.replace(path)
            sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _content_of(path: Path) -> tuple[Restored, Summary] | None:
    """What a file says of itself; None if it is damaged."""
    with explained(path, "cannot be read"), door.opened(path) as file:
        try:
            reader = make_reader(file)
            summary = reader.get_summary()
            if summary is None or summary.statistics is None:
                return None
            events = _events_of(reader)
            found = Restored(
                messages=summary.statistics.message_count,
                was_complete=reader.get_header().library != LIBRARY,
                start=events.get(START_RECORD),
                end=events.get(END_RECORD),
            )
            return found, summary
        except BROKEN:
            return None


def _events_of(reader: McapReader) -> dict[str, dict[str, Any]]:
    events: dict[str, dict[str, Any]] = {}
    for record in reader.iter_metadata():
        if record.name in (START_RECORD, END_RECORD) and EVENT_JSON in record.metadata:
            event = door.json_of(record.metadata[EVENT_JSON])
            if isinstance(event, dict):
                events[record.name] = event
    return events


def _is_described(metadata: Path, name: str, messages: int) -> bool:
    try:
        said = described(metadata)
    except InputError:
        # It was cut short with the rest.
        return False
    return said is not None and (said.files, said.counts[""]) == ((name,), messages)


def _write_metadata(folder: Path, path: Path, summary: Summary, *, is_recovered: bool) -> None:
    statistics = summary.statistics
    assert statistics is not None
    topics, counts = [], {}
    for number, channel in sorted(summary.channels.items()):
        schema = summary.schemas.get(channel.schema_id) or Schema(
            id=0, data=b"", encoding="", name=""
        )
        topics.append(
            BagTopic(
                name=channel.topic,
                type=schema.name,
                text=schema.data.decode(errors="replace"),
                type_hash=channel.metadata.get(HASH_KEY, ""),
                offered_qos=_profiles(channel.metadata.get(QOS_KEY, "")),
            )
        )
        counts[channel.topic] = statistics.channel_message_counts.get(number, 0)
    span = (statistics.message_start_time, statistics.message_end_time)
    custom = {"recovered": "true"} if is_recovered else None
    write_atomically(folder / METADATA_FILE, metadata_yaml(path.name, topics, counts, span, custom))


def _profiles(text: str) -> tuple[dict[str, Any], ...]:
    try:
        profiles = door.yaml_of(text, QOS_KEY)
    except InputError:
        return ()
    if not isinstance(profiles, list):
        return ()
    return tuple(profile for profile in profiles if isinstance(profile, dict))


_HIDDEN: Final = f".*{PART_SUFFIX}"


def _clean(folder: Path) -> None:
    """Remove what a killed restore left behind."""
    with explained(folder, "cannot be cleaned"):
        for path in folder.glob(_HIDDEN):
            path.unlink(missing_ok=True)
