"""What a recording holds, and where it contradicts the row of its episode."""

from __future__ import annotations

import math
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.log.bag_gaps import Integers, gaps, lasting
from robo_eval.log.bag_metadata import METADATA_FILE

LINK: Final = "recording.json"
"""The trace of an episode that stays in its LeRobot dataset: where it is."""
_INDEX: Final = struct.Struct("<BQHI")
"""Head of a message index: opcode, length, channel, bytes of its pairs of time and place."""
_OPCODE: Final = 7
_SLACK_S: Final = 1.0
_SHARE: Final = 0.9
"""A recording may begin a little late and end a little early, and miss a message."""
_ROUNDING: Final = 1e-6
_FROM_S: Final = 10.0
"""From this length on there has to be a message a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a recording holds.

    Attributes:
        topics: Times of the messages of each topic in their order, ns.
        ticks: Steps of the task; None where it is no trace of ours.
        episode_return: Sum of the rewards; None where it is no trace of ours.
    """

    topics: Sequence[Integers]
    ticks: int | None = None
    episode_return: float | None = None

    @property
    def span_s(self) -> float:
        """Seconds from the first message to the last."""
        ends = [(int(times[0]), int(times[-1])) for times in self.topics if len(times)]
        return (max(b for _, b in ends) - min(a for a, _ in ends)) / 1e9 if ends else 0.0

    def denies(self, row: Mapping[Any, Any], *, is_physical: bool) -> Iterator[str]:
        """What the row of its episode says, and it does not.

        Args:
            row: Columns of the row; what is not known is None or NaN.
            is_physical: Whether its times are those of a clock, and not of a task.
        """
        for name in ("ticks", "uninterrupted_actions"):
            said = _number(row, name)
            if said is None:
                continue
            if self.ticks is None:
                if self._most < _SHARE * said - 1:
                    yield f"{self._holds}, and column {name!r} is {said:.0f}"
            elif said > self.ticks or (name == "ticks" and said < self.ticks):
                yield f"holds {self.ticks} actions, and column {name!r} is {said:.0f}"
        said, got = _number(row, "episode_return"), self.episode_return
        if not (said is None or got is None or math.isclose(said, got, rel_tol=_ROUNDING)):
            yield f"has rewards of {got:g}, and column 'episode_return' is {said:g}"
        seconds = _length(row)
        if is_physical and seconds is not None and self.span_s < _SHARE * seconds - _SLACK_S:
            yield f"is shorter than its episode ({self.span_s:.1f} of {seconds:.1f} s)"

    def lacks(self, row: Mapping[Any, Any]) -> Iterator[str]:
        """Why it shows too little of a physical episode of this length."""
        seconds = _length(row)
        if seconds is None or seconds < _FROM_S:
            return
        if self._most < seconds:
            yield f"{self._holds}, and its episode took {seconds:.1f} s"
            return
        # What the recording lasts beyond the episode is none of it: pauses that do not count.
        silent = sum(b - a for a, b in gaps(self.topics)) / 1e9 - max(self.span_s - seconds, 0.0)
        if silent > (1 - _SHARE) * seconds:
            yield f"is silent for {lasting(silent)} of {lasting(seconds)}"

    def doubt(self, row: Mapping[Any, Any]) -> str | None:
        """The first thing that speaks against the row of a physical episode; None if nothing.

        Args:
            row: As `denies` takes it.
        """
        return next(chain(self.denies(row, is_physical=True), self.lacks(row)), None)

    @property
    def _most(self) -> int:
        return max(map(len, self.topics), default=0)

    @property
    def _holds(self) -> str:
        return f"holds {self._most} messages of a topic at most"


def read_recorded(path: Path) -> Recorded:
    """Read what a recording holds.

    Args:
        path: A trace of ours, or the folder of a recording: a bag, or a link into a dataset.

    Raises:
        InputError: If it cannot be read, or holds no message.
    """
    if (path / LINK).is_file():
        return Recorded(topics=[_of_dataset(path / LINK)])
    from mcap.exceptions import McapError

    files = sorted(path.iterdir()) if path.is_dir() else [path]
    try:
        indexed = [_indexed(file) for file in files if file.name != METADATA_FILE]
    except (OSError, McapError, ValueError, struct.error):
        indexed = [None]
    if not indexed or None in indexed:
        return Recorded(topics=_scanned(path))
    topics: dict[str, list[Integers]] = {}
    for found in indexed:
        for topic, times in (found or {}).items():
            topics.setdefault(topic, []).append(times)
    joined = {topic: np.sort(np.concatenate(times)) for topic, times in topics.items()}
    ours = _rewards(path) if path.is_file() else None
    if ours is None:
        return Recorded(topics=tuple(joined.values()))
    return Recorded(
        topics=tuple(joined.values()),
        ticks=min(len(joined.get(topic, ())) for topic in ("/action", "/reward")),
        episode_return=ours,
    )


def _indexed(file: Path) -> dict[str, Integers] | None:
    """Times by topic, from the indexes of an MCAP file; None if they do not cover it."""
    from mcap.reader import make_reader

    found: dict[str, list[Integers]] = {}
    with file.open("rb") as stream:
        summary = make_reader(stream).get_summary()
        if summary is None or summary.statistics is None:
            return None
        for chunk in summary.chunk_indexes:
            for place in chunk.message_index_offsets.values():
                stream.seek(place)
                opcode, _, channel, size = _INDEX.unpack(stream.read(_INDEX.size))
                if opcode != _OPCODE or channel not in summary.channels:
                    return None
                pairs = np.frombuffer(stream.read(size), dtype="<u8").reshape(-1, 2)
                topic = summary.channels[channel].topic
                found.setdefault(topic, []).append(pairs[:, 0].astype(np.int64))
    times = {topic: np.concatenate(parts) for topic, parts in found.items()}
    return times if sum(map(len, times.values())) == summary.statistics.message_count > 0 else None


def _scanned(path: Path) -> Sequence[Integers]:
    """Times by topic of whatever else can be imported as a bag."""
    from robo_eval.log.bag_find import find_bags
    from robo_eval.log.bag_open import opened

    bags = find_bags([path])
    if len(bags) != 1:
        raise InputError(f"{path}: holds {len(bags)} bags; an episode has one")
    with tempfile.TemporaryDirectory() as scratch, opened(bags[0], Path(scratch)) as bag:
        return bag.times()


def _rewards(file: Path) -> float | None:
    """The sum of the rewards of a trace of ours; None if it is none."""
    from mcap.reader import make_reader

    from robo_eval.log.cdr import Cursor
    from robo_eval.log.trace_reader import LAYOUT_RECORD

    with file.open("rb") as stream:
        reader = make_reader(stream)
        if not any(record.name == LAYOUT_RECORD for record in reader.iter_metadata()):
            return None
        return math.fsum(
            Cursor(message.data).numbers(1)[0]
            for _, _, message in reader.iter_messages(topics=["/reward"], log_time_order=False)
        )


def _of_dataset(link: Path) -> Integers:
    """Times of the frames of a linked episode."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        said = door.json_of(door.bytes_of(link))
        number, stamps = said["episode_index"], []
        for file in said["data"]:
            table = parquet.read_table(
                Path(said["dataset"]) / file["file"], columns=["timestamp"],
                filters=[("episode_index", "=", number)],
            )  # fmt: skip
            stamps.append(table["timestamp"].to_numpy())
        seconds = np.concatenate(stamps)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as err:
        raise InputError(f"{link}: the dataset it leads to cannot be read: {err}") from err
    return np.sort((seconds * 1e9).astype(np.int64))


def _length(row: Mapping[Any, Any]) -> float | None:
    """Seconds an episode took: those of its exposure where nobody says its duration."""
    known = _number(row, "duration_s")
    return _number(row, "exposure_s") if known is None else known


def _number(row: Mapping[Any, Any], name: str) -> float | None:
    value = row.get(name)
    if not isinstance(value, int | float | np.number) or value != value:
        return None
    return float(value)
