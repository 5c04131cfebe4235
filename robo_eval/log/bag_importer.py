"""Bags a lab recorded, brought into a trial directory of ours."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcap.writer import CompressionType, Writer

from robo_eval.core.canonical import digest, file_digest
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.names import listing, nearest_name
from robo_eval.log.bag_find import Bag, find_bags
from robo_eval.log.bag_map import TopicMap, parts_of_id
from robo_eval.log.bag_open import SLACK_NS, OpenBag, check_library, opened
from robo_eval.log.bag_read import BagContent
from robo_eval.log.bag_signals import ControlSignals
from robo_eval.log.bag_storage import FileTopic
from robo_eval.log.bag_window import EpisodeWindow
from robo_eval.log.column_map import SCORES, Conversion
from robo_eval.log.directory import TRACES, TrialDirectory
from robo_eval.log.files import PART_SUFFIX, explained
from robo_eval.log.import_row import RowMaker, never_set
from robo_eval.log.import_score import ImportedRow
from robo_eval.log.import_trial import check_new, plan_of_import, write_trial
from robo_eval.log.mcap_file import CHUNK_BYTES
from robo_eval.log.place import nearest_existing
from robo_eval.log.trace_folder import copy_files


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutMeasure:
    """A control measure that an episode has not, or messages that its measures go without.

    Attributes:
        episode_id: Which episode.
        measure: Which measure, or which messages.
        reason: Why.
    """

    episode_id: str
    measure: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What is to be said and no row shows.

    Attributes:
        episode_id: About which episode; None for the whole import.
        what: What.
    """

    episode_id: str | None
    what: str


Measure = Callable[[ControlSignals], tuple[Mapping[str, float], Mapping[str, str]]]
"""Computes control measures by name, unit in the name, and why others are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BagImport:
    """What an import of bags made.

    Attributes:
        trial: The new trial directory.
        bags: How many bags were read.
        episodes: How many episodes they hold.
        recovered: Ids of the episodes of bags that were cut short.
        lost: What is missing of these bags, by id of the episode.
        left_out: Control measures that episodes have not.
        outside: By topic, how many messages of columns, stops and signals belong to none.
        remarks: What else is to be said about episodes.
    """

    trial: TrialDirectory
    bags: int
    episodes: int
    recovered: tuple[str, ...] = ()
    lost: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[LeftOutMeasure, ...] = ()
    outside: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()


def import_bags(
    bags: Iterable[Path | str | os.PathLike[str]],
    topic_map: Path | str | os.PathLike[str],
    out: Path | str | os.PathLike[str],
    *,
    measure: Measure | None = None,
) -> BagImport:
    """Read episodes from bags by a topic map into a new trial directory.

    Everything is read and checked first; the directory then appears complete or not at all. Each
    episode keeps its bag as its trace. docs/bags.md describes the map.

    Args:
        bags: Bag folders, `.mcap` files, or folders of these.
        topic_map: YAML file: what the topics mean.
        out: Trial directory to create.
        measure: Computes control measures, see `robo_eval.metrics.bag_measures`; none are
            computed without it.

    Raises:
        InputError: If map or bags are not usable; the message names bag, topic and remedy.
        MissingExtraError: If the library that reads bags is not installed.
        TrialDirectoryError: If the directory exists or cannot be written.
    """
    folder = Path(out)
    check_new(folder)
    mapping = TopicMap.read(Path(topic_map))
    check_library()
    found = find_bags([Path(bag) for bag in bags])
    if not found:
        raise InputError("name at least one bag")
    digests = _digests(found)
    with explained(folder, "cannot be created"):
        base = nearest_existing(folder.absolute().parent)
        # Beside the new directory: on the same disk, so that traces can be moved.
        holder = tempfile.TemporaryDirectory(
            prefix=f".{folder.name}.", suffix=PART_SUFFIX, dir=base
        )
    with holder as name:
        reader = _BagReader(mapping, digest(digests), Path(name), measure, _names(found))
        for bag in found:
            reader.read(bag)
        reader.remark_unsaid()
        notes = reader.maker.notes(found[0].path, ())
        reader.remarks += [Remark(episode_id=None, what=note) for note in notes]
        source = found[0].path if len(found) == 1 else found[0].path.absolute().parent
        plan = plan_of_import(source, reader.maker, reader.rows, traces="all")
        trial = write_trial(folder, plan, reader.rows, fill=reader.move_traces)
    return BagImport(
        trial=trial,
        bags=len(found),
        episodes=len(reader.rows),
        recovered=tuple(reader.lost),
        lost=reader.lost,
        left_out=tuple(reader.left_out),
        outside=dict(sorted(reader.outside.items())),
        remarks=tuple(reader.remarks),
    )


def _digests(bags: Sequence[Bag]) -> list[dict[str, str]]:
    """The SHA-256 of each file of each bag."""
    digests: list[dict[str, str]] = []
    for bag in bags:
        with explained(bag.path, "cannot be read"):
            digests.append({path.name: file_digest(path) for path in bag.files})
    return digests


def _names(bags: Sequence[Bag]) -> dict[Path, str]:
    """What the episode of each bag is called: as the bag, with folders above it where two are."""
    parts = {bag.path: [*bag.path.absolute().parent.parts[1:], bag.name] for bag in bags}
    names = {bag.path: bag.name for bag in bags}
    for depth in range(2, max(map(len, parts.values())) + 1):
        counts = Counter(names.values())
        if len(counts) == len(names):
            break
        for path, name in names.items():
            if counts[name] > 1:
                names[path] = "-".join(parts[path][-depth:])
    return names


class _BagReader:
    """Turns bags into rows, and puts their traces ready."""

    def __init__(
        self,
        mapping: TopicMap,
        sha256: str,
        scratch: Path,
        measure: Measure | None,
        names: Mapping[Path, str],
    ) -> None:
        self.rows: list[ImportedRow] = []
        self.lost: dict[str, str] = {}
        self.left_out: list[LeftOutMeasure] = []
        self.outside: Counter[str] = Counter()
        self.remarks: list[Remark] = []
        self._topics: set[str] = set()
        self._assumed: set[str] = set()
        self._map = mapping
        self._measure = measure
        self._scratch = scratch
        self._names = names
        self._seen: dict[str, Path] = {}
        self._ends: dict[Path, int] = {}
        self._traces: list[Path] = []
        self.maker = RowMaker(mapping, sha256=sha256)

    def read(self, bag: Bag) -> None:
        """Add the episodes of a bag."""
        with explained(bag.path, "cannot be read"):
            place = self._scratch / f"{len(self._traces)}-recovered"
            place.mkdir()
        with opened(bag, place) as messages:
            first = self._seen.setdefault(messages.fingerprint, bag.path)
            if first is not bag.path:
                raise InputError(
                    f"{bag.path}: holds the same messages as {first}; an episode is imported once:"
                    " leave one out"
                )
            self._topics |= messages.topics.keys()
            self._check_begins(messages)
            content = BagContent(messages, self._map)
            for window in content.windows:
                self._episode(content, window)
            self.outside.update(content.outside())
            self._assumed |= content.assumed
        with explained(bag.path, "cannot be read"):
            shutil.rmtree(place)

    def _check_begins(self, messages: OpenBag) -> None:
        """Refuse a bag that goes on where the one that is numbered before it ends."""
        bag = messages.bag
        self._ends[bag.path] = messages.end_ns
        end = self._ends.get(bag.before) if bag.before is not None else None
        if end is not None and abs(messages.start_ns - end) <= SLACK_NS:
            raise InputError(
                f"{bag.path}: begins where {bag.before} ends, and is numbered after it; number the"
                " files of one recording from 0 on, or put each recording into a folder of its own"
            )

    def _episode(self, content: BagContent, window: EpisodeWindow) -> None:
        bag = content.bag
        where = str(bag.bag.path)
        if window.number:
            where += f": episode {window.number}"
        row = ImportedRow(where)
        self.maker.add_constants(row)
        self._add_folder(row, bag.bag)
        stopped = self._stopped(where, content, window)
        self._add_columns(row, content, window, stopped)
        values = row.values
        if values.get("episode_id") is None:
            values["episode_id"] = self._id(where, bag.bag, window, values)
            row.sources["episode_id"] = "id"
        _check_id(where, values["episode_id"])
        path = bag.bag.path.absolute()
        known = [str(path.parent / bag.bag.name), *([] if path.is_dir() else [str(path.parent)])]
        self.maker.add_outcomes(row, () if window.number else known)
        if bag.is_recovered:
            values["recovered"] = True
            if content.may_be_cut(window):
                _add_lost(values, stopped)
        self._add_computed(row, content, window)
        self.maker.fill_in(row, stopped=stopped)
        self.rows.append(row)
        if bag.is_recovered:
            self.lost[values["episode_id"]] = bag.lost
        self.remarks += [
            Remark(episode_id=values["episode_id"], what=what)
            for what in content.remarks[window.number]
        ]
        self._add_trace(bag, window, values)

    def _id(self, where: str, bag: Bag, window: EpisodeWindow, values: Mapping[str, Any]) -> str:
        template = self._map.id
        if template is None:
            name = self._names[bag.path]
        else:
            known = {"bag": bag.name, "folder": bag.path.absolute().parent.name, **values}
            for part in parts_of_id(template):
                if known.get(part) is None:
                    raise InputError(f"{where}: {part} is missing, which id of the topic map needs")
            name = template.format_map(known)
        return f"{name}-{window.number:03d}" if window.number else name

    def remark_unsaid(self) -> None:
        """Say which topics of the map are in no bag, and what is assumed of joints."""
        absent = {path.topic for _, path, _ in self._map.fields()} - self._topics
        for topic in sorted(absent):
            near = nearest_name(topic, sorted(self._topics))
            hint = f"; did you mean {near}?" if near else ""
            self.remarks.append(Remark(episode_id=None, what=f"no bag has topic {topic}{hint}"))
        # Of a single joint no number mixes units.
        if len(self._assumed) > 1:
            names = listing(sorted(self._assumed))
            what = f"{names} are taken to turn (rad); signals.joint_unit says which slide (m)"
            self.remarks.append(Remark(episode_id=None, what=what))

    # Values ------------------------------------------------------------------------------------

    def _add_folder(self, row: ImportedRow, bag: Bag) -> None:
        folder = self._map.folder
        if folder is None:
            return
        pattern = folder.regex
        # A pattern with slashes also looks at the folders above.
        parts = pattern.pattern.count("/") + 1
        name = "/".join([*bag.path.absolute().parent.parts, bag.name][-parts:])
        match = pattern.fullmatch(name)
        if match is None:
            raise InputError(
                f"{row.where}: the name {name!r} does not match {pattern.pattern!r} (folder of the"
                f" topic map {self._map.path}); change the pattern, or leave the bag out"
            )
        for ours, text in match.groupdict().items():
            place = f"{row.where}: {ours} in its name (folder of the topic map)"
            source = Conversion(values=folder.values.get(ours, {}))
            row.sources[ours] = ours
            self.maker.add(row, place, ours, source, text or "")

    def _add_columns(
        self,
        row: ImportedRow,
        content: BagContent,
        window: EpisodeWindow,
        stopped: EndReason | None,
    ) -> None:
        for ours, column in self._map.columns.items():
            place = f"{row.where}: {column.field.text} (columns.{ours} of the topic map)"
            row.sources[ours.partition(".")[0]] = column.field.text
            may_be_cut = content.may_be_cut(window)
            if may_be_cut and ours in SCORES:
                # Silence is a default in a whole recording; of this one the end is missing.
                column = column.model_copy(update={"default": None})
            text = content.text(ours, place, column, window)
            # Of an episode that was stopped the stop says how it ended.
            if text is None and (may_be_cut or (stopped is not None and ours in SCORES)):
                continue
            if text is None:
                raise InputError(
                    f"{place}: no message says it{content.too_short(column.field)}; give it a"
                    " default if it may be absent"
                )
            self.maker.add(row, place, ours, column, text)

    def _stopped(self, where: str, content: BagContent, window: EpisodeWindow) -> EndReason | None:
        found = [
            reason
            for reason, source in self._map.stops.by_reason.items()
            if content.was_true(
                f"{where}: {source.field.text} (stops.{reason.value} of the topic map)",
                source,
                window,
            )
        ]
        return found[0] if found else None

    def _add_computed(self, row: ImportedRow, content: BagContent, window: EpisodeWindow) -> None:
        values = row.values
        values.setdefault("start_ns", window.first_ns)
        if began := never_set(values):
            content.remarks[window.number].append(
                f"the clock of the recording says {began}: when it began is not known"
            )
        values.setdefault("duration_s", window.seconds())
        values.setdefault("ticks", content.ticks(window))
        # Where there is no physical robot, none is exposed.
        if values["side"] is Side.REAL and "exposure_s" not in values:
            place = f"{row.where}: exposure of the topic map"
            values["exposure_s"] = content.motion_s(place, window)
        if self._measure is None:
            return
        signals = content.signals(window)
        measured, left_out = self._measure(signals)
        values["control_quality"] = {**measured, **values.get("control_quality", {})}
        self.left_out += [
            LeftOutMeasure(episode_id=values["episode_id"], measure=name, reason=reason)
            for name, reason in {**left_out, **signals.skipped}.items()
        ]

    # Traces ------------------------------------------------------------------------------------

    def _add_trace(self, bag: OpenBag, window: EpisodeWindow, values: dict[str, Any]) -> None:
        ready = self._scratch / f"{len(self._traces)}-trace"
        with explained(bag.bag.path, "cannot be copied"):
            if window.number:
                name = f"{values['episode_id']}.mcap"
                sha256 = _copy_part(bag, window.first_ns, window.last_ns, ready / name)
            else:
                sha256 = copy_files(bag.files, ready)
        self._traces.append(ready)
        values["trace_uri"] = f"{TRACES}/{values['episode_id']}"
        values["trace_sha256"] = sha256

    def move_traces(self, trial: Path) -> None:
        """Put the traces into a trial directory."""
        with explained(trial, "cannot be written"):
            for row, ready in zip(self.rows, self._traces, strict=True):
                shutil.move(ready, trial / row.values["trace_uri"])


def _copy_part(bag: OpenBag, first_ns: int, last_ns: int, target: Path) -> str:
    """Write the messages of a bag between two times to an MCAP file in a folder of its own.

    Args:
        bag: The bag.
        first_ns: From then on.
        last_ns: Until then.
        target: File to write; its folder is created.

    Returns:
        The digest of the folder, see `trace_folder.trace_digest`.

    Raises:
        InputError: If the bag is damaged.
        OSError: If the file cannot be written.
    """
    target.parent.mkdir(parents=True)
    with target.open("xb") as out:
        writer = Writer(out, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
        writer.start(profile="ros2", library="robo-eval")
        schemas: dict[tuple[str, str, str], int] = {}
        channels: dict[FileTopic, int] = {}
        for channel, stamp, data in bag.raw_messages(first_ns, last_ns):
            if channel not in channels:
                form, text = bag.definition_of(channel, data)
                key = (channel.type, form, text)
                if key not in schemas:
                    schemas[key] = writer.register_schema(channel.type, form, text.encode())
                channels[channel] = writer.register_channel(
                    channel.topic, channel.encoding, schemas[key]
                )
            writer.add_message(channels[channel], stamp, data, stamp)
        writer.finish()  # type: ignore[no-untyped-call]
        out.flush()
        os.fsync(out.fileno())
    return digest({target.name: file_digest(target)})


def _add_lost(values: dict[str, Any], stopped: EndReason | None) -> None:
    """What a bag that was cut short is silent about was lost: no success, and no failure."""
    if stopped is None and all(values.get(name) is None for name in SCORES):
        values["end_reason"] = EndReason.LOST
        values.setdefault("end_detail", "the recording was cut short before the outcome")


def _check_id(where: str, name: str) -> None:
    if name.startswith(".") or "/" in name or "\0" in name or len(name.encode()) > 200:
        raise InputError(
            f"{where}: {name!r:.80} cannot name a folder of traces; change id, or the column"
            " episode_id, of the topic map"
        )
