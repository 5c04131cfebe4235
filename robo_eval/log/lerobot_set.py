"""What lies in a LeRobot dataset: its episodes by the metadata, and their frames, checked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from robo_eval.core import door
from robo_eval.core.canonical import file_digest
from robo_eval.core.episode import is_below
from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.names import unknown_name
from robo_eval.log.files import explained

if TYPE_CHECKING:
    import pyarrow as pa

    Numbers = np.ndarray[Any, Any]

_INFO: Final = "meta/info.json"
_WIDE: Final = re.compile(r":[^}]*\d{3}")
_OFFSETS: Final = ("dataset_from_index", "dataset_to_index")
_BY: Final = ("episode_index", "index")
"""Columns of frames that say whose they are."""
_TASK: Final = "task_index"
"""Column of frames, and of the list of tasks, that says the task."""
_UNNAMED: Final = "__index_level_0__"
"""What an index of pandas without a name is called, in which the library keeps the tasks."""
_NEEDED: Final = ("episode_index", "length")


@dataclass(slots=True, kw_only=True)
class SetEpisode:
    """One episode by the metadata.

    Attributes:
        number: Its `episode_index`.
        length: How many frames it has.
        first: The number of its first frame in the dataset; None if the metadata do not say.
        said: What the metadata say of it, by column.
        rows: Its frames, in the table that was read; None if they cannot be used.
        files: The files they are in, from the folder of the dataset.
        problem: Why its frames cannot be used; empty if they can.
    """

    number: int
    length: int
    first: int | None = None
    said: Mapping[str, Any]
    rows: slice | None = None
    files: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"episode_{self.number:06d}"


class LeRobotSet:
    """A dataset in the layout of version 2.0, 2.1 or 3.0; no image and no video is decoded.

    Args:
        folder: The folder that holds `meta` and `data`.

    Raises:
        InputError: If it is no such dataset.
        MissingExtraError: If pyarrow is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as err:
            raise MissingExtraError(
                f"{folder}: LeRobot datasets are read with the pyarrow library; run:"
                f" {pip_install('parquet')}"
            ) from err
        self.path = folder
        self.notes: list[str] = []
        self._digests: dict[str, str | None] = {}
        place = folder / _INFO
        if not place.exists():
            for above in folder.absolute().parents:
                if (above / _INFO).is_file():
                    raise InputError(f"{folder}: is a part of the dataset {above}; give that one")
            raise InputError(f"{folder}: is no LeRobot dataset, a folder that holds {_INFO}")
        self._info = _object(str(place), self._text(place))
        version, storage = str(self._info.get("codebase_version")), "storage_format"
        if self._info.get(storage, "parquet") != "parquet":
            raise InputError(
                f"{place}: {storage} is {self._info[storage]!r:.40}, and only Parquet is read;"
                " write the dataset as Parquet with the lerobot library"
            )
        if not version.startswith(("v2.", "v3.")):
            raise InputError(
                f"{place}: codebase_version is {version!r:.40}, and only v2.0, v2.1 and v3.0 are"
                " read; convert the dataset with the lerobot library"
            )
        fps, features = self._info.get("fps"), self._info.get("features") or {}
        if isinstance(fps, bool) or not isinstance(fps, int | float) or not 0 < fps < 1e6:
            raise InputError(f"{place}: fps is {fps!r:.40}; it must be a number of frames a second")
        if not isinstance(features, dict) or not all(
            isinstance(f, dict) for f in features.values()
        ):
            raise InputError(f"{place}: features must say what each column is")
        self.fps = float(fps)
        self._features = features
        self._is_v3 = version.startswith("v3.")

    # Metadata -----------------------------------------------------------------------------------

    def episodes(self, columns: Collection[str]) -> list[SetEpisode]:
        """The episodes, by their numbers.

        Args:
            columns: Further columns of the metadata that are taken where they are there.

        Raises:
            InputError: If the metadata tell of none, of one twice, or not where its frames are.
        """
        found: dict[int, SetEpisode] = {}
        pattern = "episodes/**/*.parquet" if self._is_v3 else "episodes.jsonl"
        for where, said in self._entries(pattern, {*_NEEDED, *_OFFSETS, "tasks", *columns}):
            for name in (*_NEEDED, *(_OFFSETS if self._is_v3 else ())):
                if type(said.get(name)) is not int or not 0 <= said[name] < 2**53:
                    raise InputError(f"{where}: {name} is {said.get(name)!r:.40}, no whole number")
            number, length = (said[name] for name in _NEEDED)
            if number in found:
                raise InputError(f"{where}: episode {number} is there twice")
            found[number] = SetEpisode(number=number, length=length, said=said)
            if self._is_v3:
                found[number].first, last = (said[name] for name in _OFFSETS)
                if last - said[_OFFSETS[0]] != length:
                    found[number].problem = f"the metadata give it {length} frames, and others"
        total = self._info.get("total_episodes")
        if isinstance(total, int) and total > len(found):
            self.notes.append(
                f"{self.path / _INFO}: {total - len(found)} of {total} episodes left out: no"
                " metadata of them can be read"
            )
        if not found:
            raise InputError(f"{self.path / 'meta'}: {'; '.join(self.notes) or 'has no episodes'}")
        return [found[number] for number in sorted(found)]

    def _entries(
        self, pattern: str, wanted: Collection[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """What files of metadata say by row or line; what of them cannot be read is noted."""
        for path in sorted((self.path / "meta").glob(pattern)):
            try:
                if path.suffix == ".parquet":
                    table = _table(path, lambda name: name in wanted or name.startswith("videos/"))
                    yield from ((str(path), entry) for entry in table.to_pylist())
                    continue
                with explained(path, "cannot be read"):
                    lines = door.bytes_of(path).splitlines()
            except InputError as err:
                self.notes.append(str(err))
                continue
            for number, line in enumerate(lines, start=1):
                where = f"{path}: line {number}"
                try:
                    if line.strip():
                        yield where, _object(where, line)
                except InputError as err:
                    self.notes.append(str(err))

    def _add_tasks(self, episodes: Sequence[SetEpisode], table: pa.Table) -> None:
        """Complete the episodes, of which the metadata name no task, by those of their frames."""
        unnamed = [one for one in episodes if one.rows and not one.said.get("tasks")]
        if not unnamed or _TASK not in table.column_names:
            return
        texts = {
            entry.get(_TASK): entry.get("task", entry.get(_UNNAMED))
            for _, entry in self._entries("tasks.*", (_TASK, "task", _UNNAMED))
        }
        for one in unnamed:
            numbers = table[_TASK][one.rows].unique().to_pylist()
            one.said = {**one.said, "tasks": [texts[n] for n in numbers if texts.get(n)]}

    @staticmethod
    def _text(path: Path) -> str:
        with explained(path, "cannot be read"):
            return door.decoded(door.bytes_of(path), path)

    # Frames -------------------------------------------------------------------------------------

    def read(self, episodes: Sequence[SetEpisode], columns: Collection[str]) -> pa.Table:
        """Some columns of all frames; completes the episodes by where in them theirs are.

        In which file an episode is, the metadata often say wrongly, and they are not asked: its
        frames are those that they count off, from all files, and these have to bear its number.

        Args:
            episodes: The episodes.
            columns: The columns.

        Raises:
            InputError: If no episode can be read, or a column is not there.
        """
        import pyarrow as pa

        wanted, tables = {*_BY, _TASK, *columns}, {}
        for path in sorted((self.path / "data").rglob("*.parquet")):
            try:
                tables[path.relative_to(self.path).as_posix()] = _table(path, wanted.__contains__)
            except InputError as err:
                self.notes.append(str(err))
        if not tables:
            raise InputError(f"{self.path / 'data'}: {'; '.join(self.notes) or 'has no frames'}")
        try:
            table = pa.concat_tables(tables.values(), promote_options="permissive").combine_chunks()
            if "index" not in table.column_names:
                # Frames without numbers are counted as they stand, as the library does.
                table = table.append_column("index", pa.array(np.arange(table.num_rows)))
            numbers = [table[name].cast(pa.int64()).to_numpy() for name in _BY]
        except (KeyError, pa.ArrowException, ValueError) as err:
            raise InputError(
                f"{self.path / 'data'}: every file needs whole numbers in {' and '.join(_BY)}, and"
                " one kind of value in each column"
            ) from err
        for name in columns:
            if name not in table.column_names:
                raise InputError(f"{self.path}: {unknown_name('column', name, self._features)}")
        order = np.lexsort(numbers[::-1])
        files = np.repeat(list(tables), [part.num_rows for part in tables.values()])[order]
        self._find(episodes, numbers[0][order], numbers[-1][order], files)
        table = table.take(order)
        self._add_tasks(episodes, table)
        return table

    def _find(
        self, episodes: Sequence[SetEpisode], own: Numbers, index: Numbers, files: Numbers
    ) -> None:
        """Complete the episodes, given of each row its episode, its number and its file."""
        for one in episodes:
            low, high = np.searchsorted(own, [one.number, one.number + 1]).tolist()
            if one.problem:
                continue
            if high - low != one.length:
                one.problem = f"{high - low} of its {one.length} frames can be read"
            elif one.first is not None and not np.array_equal(
                index[low:high] - one.first, np.arange(one.length)
            ):
                one.problem = "frames of others stand where the metadata say that its own are"
            else:
                one.rows = slice(low, high)
                one.files = np.unique(files[low:high]).tolist()
        if all(one.problem for one in episodes):
            reason = "; ".join([*self.notes, episodes[0].problem])
            raise InputError(f"{self.path}: none of its episodes can be read: {reason}")

    # Files --------------------------------------------------------------------------------------

    def videos(self, one: SetEpisode) -> Iterator[dict[str, Any]]:
        """The videos of an episode: camera, file with its digest, and its seconds in it."""
        template = self._info.get("video_path")
        for key, feature in self._features.items():
            if feature.get("dtype") != "video" or not isinstance(template, str):
                continue
            parts = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
            own = {part: one.said.get(f"videos/{key}/{part}") for part in parts}
            if self._is_v3 and None in own.values():
                continue
            try:
                own["episode_chunk"] = one.number // int(self._info.get("chunks_size", 1000))
                uri = template.format(video_key=key, episode_index=one.number, **own)
            except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError):
                uri = ".."
            # Of a width of many digits the name would fill the memory.
            if not is_below(uri) or _WIDE.search(template):
                raise InputError(f"{self.path / _INFO}: video_path {template!r:.80} names no file")
            seconds = {"from_s": own["from_timestamp"], "to_s": own["to_timestamp"]}
            yield {"camera": key, **self.named(uri), **(seconds if self._is_v3 else {})}

    def named(self, uri: str) -> dict[str, str | None]:
        """A file of the dataset with its digest; None if it is not there."""
        path = self.path / uri
        if uri not in self._digests:
            with explained(path, "cannot be read"):
                self._digests[uri] = file_digest(path) if path.is_file() else None
        return {"file": uri, "sha256": self._digests[uri]}

    def digests(self) -> dict[str, str | None]:
        """The digests of the metadata, and of the files that were named before."""
        for path in sorted((self.path / "meta").rglob("*")):
            if path.is_file():
                self.named(path.relative_to(self.path).as_posix())
        return dict(self._digests)


def _object(where: str, text: str | bytes) -> dict[str, Any]:
    try:
        found = door.json_of(text)
    except ValueError as err:
        raise InputError(f"{where}: is not JSON, or cut short: {err}") from err
    if not isinstance(found, dict):
        raise InputError(f"{where}: is not a JSON object")
    return found


def _table(path: Path, is_wanted: Any) -> pa.Table:
    """Some columns of a Parquet file.

    Raises:
        InputError: If it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        door.check_plain(path)
        with pq.ParquetFile(path) as file:
            return file.read(columns=[name for name in file.schema_arrow.names if is_wanted(name)])
    except (pa.ArrowException, OSError, ValueError) as err:
        # Of the library's sentences the first one says what is wrong.
        what = getattr(err, "strerror", None) or " ".join(str(err).split()).split(". ")[0]
        raise InputError(
            f"{path}: cannot be read: {what.rstrip('.')}; where it is damaged, or was never"
            " finalised by the recorder, copy it again, or leave its episodes out"
        ) from err
