"""Outcomes that lie beside recordings, in a sheet, a text or objects, by name of the episode."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from robo_eval.core import door
from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason
from robo_eval.core.names import listing
from robo_eval.core.wording import counted
from robo_eval.log.bag_value import cell_of
from robo_eval.log.column_map import SCORES, ImportMap, OutcomeFile, Source
from robo_eval.log.csv_records import records
from robo_eval.log.evidence_read import bytes_of, check_columns

_KEYS: Final = ("episode_id", "episode_index", "episode_ix", "episode", "id", "name", "file")
"""Columns that name an episode, where the map does not say which one does."""
_LISTS: Final = ("episodes", "per_episode")
"""Under which of several lists episodes are."""
_KINDS: Final = re.compile(
    r"(\.(parquet|mcap|db3|bag|zstd?|tar|t?gz|bz2|xz|zip|mp4|mkv|mov|avi|webm|jsonl?|ya?ml|txt|csv"
    r"|h5|hdf5|npz|log))+$",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"0*(\d+)(?:[.,]0+)?", re.ASCII)
_ZEROS: Final = re.compile(r"(?<![\d.])0+(?=\d)", re.ASCII)
_REMARK: Final = re.compile(r"^\s*(%|//).*|(^|\s)#.*")
_LINE: Final = re.compile(r"(?:(?P<id>.*[^\s,;:=])(?:\s*[,;:=]\s*|\s+))?(?P<value>[^\s,;:=]+)")


@dataclass(slots=True, eq=False)
class _SaidOutcome:
    """What a file says of one episode: where, by column, and of which one."""

    where: str
    cells: Mapping[str, str]
    keys: Sequence[str] = ()
    of: str | None = None


class Outcomes:
    """What a file beside the recordings says of their episodes.

    Args:
        mapping: The map of the import; without `outcomes` nothing is said.

    Raises:
        InputError: If the file cannot be read, or lacks a column of the map.
    """

    def __init__(self, mapping: ImportMap) -> None:
        self.columns: Mapping[str, Source] = {}
        self._digests: list[str] = []
        self._said: list[_SaidOutcome] = []
        self._without: list[str] = []
        self._outside: set[_SaidOutcome] = set()
        self._whole: dict[str, list[_SaidOutcome]] = defaultdict(list)
        self._last: dict[str, list[_SaidOutcome]] = defaultdict(list)
        if (section := mapping.outcomes) is None:
            return
        self._file = (mapping.path.parent / section.file).absolute()
        self._said = list(self._read(section))
        keys = self._choose(section)
        # Which of several columns names the episodes only they can tell.
        several = f"columns {listing(keys)} name different episodes: set outcomes.key, or "
        self._remedy = several if len(keys) > 1 else ""
        for said in self._said:
            said.keys = [key for name in keys if (key := said.cells.get(name, "").strip())]
            if not said.keys:
                place = f"{said.where}, column {keys[0]!r}"
                raise InputError(f"{place}: is empty; it names the episode")
            for name in {_alike(_plain(key)) for key in said.keys}:
                self._whole[name].append(said)
                self._last[name.rpartition("/")[2]].append(said)

    def covered(self, sha256: str) -> str:
        """The digest of an import: of what was recorded alone, or with what lies beside it."""
        return digest([sha256, *self._digests]) if self._digests else sha256

    def find(self, names: Sequence[str]) -> Iterator[tuple[str, str, Source, str]]:
        """What is said of an episode: place, our column, its source and the text of the cell.

        Args:
            names: Its id, and the paths and numbers it is known by.

        Raises:
            InputError: If two lines are about it, or one line about two episodes.
        """
        if not self.columns:
            return
        found = self._about(names)
        if not found:
            self._without.append(names[0])
            return
        said = found[0]
        if other := next((one for one in found if one is not said), None):
            both = f"{said.where}: is about {names[0]}, and so is {other.where}"
            raise InputError(f"{both}; {self._remedy}leave one line")
        if said.of is not None:
            raise InputError(
                f"{said.where}: {said.keys[0]!r} names two episodes, {said.of} and {names[0]};"
                f" {self._remedy}write the id, or the folder before the name"
            )
        said.of = names[0]
        for ours, source in self.columns.items():
            place = f"{said.where}, column {source.column!r}"
            yield place, ours, source, said.cells.get(source.column, "").strip()

    def leave_out(self, names: Sequence[str]) -> None:
        """Say of an episode that it was not asked for; see `find`."""
        self._outside |= {said for said in self._about(names) if said.of is None}

    def _about(self, names: Sequence[str]) -> list[_SaidOutcome]:
        ends = [end for name in names for end in _ends(name)]
        found = [said for end in ends for said in self._meant(end)]
        if not found and not any("/" in name for name in names):
            # An episode that is known by no path may be meant by any.
            found = [said for end in ends for said in self._last.get(_alike(end), ())]
        return found

    def _meant(self, end: str) -> list[_SaidOutcome]:
        """What is written the same, or else alike."""
        alike = self._whole.get(_alike(end), [])
        return [said for said in alike if end in map(_plain, said.keys)] or alike

    def notes(self) -> Iterator[str]:
        """What found no partner, on both sides.

        Raises:
            InputError: If nothing found one.
        """
        left = [said for said in self._said if said.of is None and said not in self._outside]
        outside = [said for said in self._said if said in self._outside]
        if outside and len(left) + len(outside) == len(self._said):
            raise InputError(
                f"{self._file}: is about none of the episodes of --episodes, only about others,"
                f" such as {outside[0].keys[0]!r:.60}; choose among those"
            )
        if left and len(left) == len(self._said):
            raise InputError(
                f"{left[0].where}: {left[0].keys[0]!r:.60} is none of the episodes, such as"
                f" {self._without[0]!r:.60}, nor is any other there; set outcomes.key in the map to"
                " the column that names them"
            )
        for found, what in (
            (left, "without an episode"),
            (outside, "about episodes not among --episodes"),
        ):
            if found:
                lines, keys = counted(len(found), "line"), listing([one.keys[0] for one in found])
                yield f"{self._file}: {lines} of {len(self._said)} {what}: {keys}"
        if self._without:
            episodes = counted(len(self._without), "episode")
            yield f"{self._file}: says nothing of {episodes}: {listing(self._without)}"

    def _choose(self, section: OutcomeFile) -> list[str]:
        """Choose the columns that are read; returns those with the key."""
        header = list(dict.fromkeys(name for said in self._said for name in said.cells))
        known = [str(name) for name in _KEYS if name in header] or [_KEYS[0]]
        # Of one file for each episode its place is the name.
        known = known[:1] if "*" in section.file else known
        keys: list[str] = [section.key] if section.key else known
        if "episode_id" in section.columns:
            keys = [section.columns["episode_id"].column]
        usual: dict[str, Source] = {ours: Source(column=ours) for ours in SCORES if ours in header}
        self.columns = section.told or usual
        if not self.columns and "value" in header:
            is_end = all(said.cells.get("value") in list(EndReason) for said in self._said)
            self.columns = {"end_reason" if is_end else "success": Source(column="value")}
        self.columns = self.columns or {"success": Source(column="success")}
        needed = (*keys, *(source.column for source in self.columns.values()))
        check_columns(self._file, header, (), needed, "set outcomes.key and outcomes.columns")
        return keys

    def _read(self, section: OutcomeFile) -> Iterator[_SaidOutcome]:
        """What all files say; where the name has a `*`, it names the episode of each."""
        parts = self._file.parts
        first = next((place for place, part in enumerate(parts) if "*" in part), None)
        found = [self._file]
        if first is not None:
            base = Path(*parts[:first])
            found = sorted(base.glob("/".join(parts[first:])))
        for path in found:
            data = bytes_of(path, "outcomes")
            self._digests.append(hashlib.sha256(data).hexdigest())
            for said in _lines(path, data, section, is_one=first is not None):
                if first is not None:
                    named = path if "*" in parts[-1] else path.parent
                    said.cells = {"episode_id": named.relative_to(base).as_posix(), **said.cells}
                yield said
        if not found:
            raise InputError(f"{self._file}: no such file of outcomes")


def _lines(
    path: Path, data: bytes, section: OutcomeFile, *, is_one: bool
) -> Iterator[_SaidOutcome]:
    """What a file says, a line or an object after the other; `is_one` of a file that is one."""
    kind = path.suffix.lower()
    if kind not in (".json", ".yaml", ".yml", ".txt"):
        stated = section.delimiter if "delimiter" in section.model_fields_set else None
        table = records(path, data, stated)
        for first, cells in table:
            yield _SaidOutcome(f"{path}: line {first}", dict(zip(table.header, cells, strict=True)))
        return
    text = door.decoded(data, path)
    if kind in (".json", ".yaml", ".yml"):
        try:
            found = door.json_of(text) if kind == ".json" else None
        except ValueError as err:
            raise InputError(f"{path}: is not JSON: {err}") from err
        found = door.yaml_of(text, path, as_texts=True) if kind != ".json" else found
        objects = [("", found)] if is_one else _objects(path, found)
        for entry, (key, item) in enumerate(objects, start=1):
            where = f"{path}: entry {entry}"
            whole = item if isinstance(item, Mapping) else {"value": item}
            if item is not whole and not is_one:
                key = key or str(entry - 1)  # values alone count the episodes
            yield _SaidOutcome(
                where, dict(_cells(where, {"episode_id": key, **whole} if key else whole))
            )
    else:
        lines = [_REMARK.sub("", line).strip() for line in text.splitlines()]
        told = [(number, line) for number, line in enumerate(lines, start=1) if line]
        if is_one and told:
            told = [(told[0][0], "\n".join(line for _, line in told))]
        for place, (number, line) in enumerate(told):
            if (match := _LINE.fullmatch(line)) is None:
                raise InputError(f"{path}: line {number}: write an episode and its outcome")
            named = {} if is_one else {"episode_id": match["id"] or str(place)}
            yield _SaidOutcome(f"{path}: line {number}", {**named, "value": match["value"]})


def _objects(path: Path, data: Any) -> list[tuple[str, Any]]:
    """The objects of episodes in a file, each with the key it stands under, if it does."""
    while isinstance(data, Mapping):
        lists = [
            key for key, part in data.items() if isinstance(part, list) and part
            and all(isinstance(one, Mapping) for one in part)
        ]  # fmt: skip
        named = [key for key in _LISTS if key in data] or lists
        if len(named) != 1:
            if lists:
                raise InputError(f"{path}: which list is of episodes? {listing(lists)}")
            return [(str(key), item) for key, item in data.items()]
        data = data[named[0]]
    if not isinstance(data, list):
        raise InputError(f"{path}: holds no list of episodes")
    return [("", item) for item in data]


def _cells(where: str, item: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """What an object says as cells of a table; a part of a part is called `part.name`."""
    for name, part in item.items():
        if isinstance(part, Mapping) and not before:
            yield from _cells(where, part, f"{name}.")
        elif not isinstance(part, Mapping | list):
            yield f"{before}{name}", cell_of(where, part)


def _plain(name: str) -> str:
    """A name or path without what may differ: kind of file, zeros before a number."""
    path, slash, last = name.strip().replace("\\", "/").strip("/").rpartition("/")
    last = _KINDS.sub("", last) or last
    return path + slash + (found[1] if (found := _NUMBER.fullmatch(last)) else last)


def _alike(name: str) -> str:
    """A name or path as others may write it: in lower case, numbers without zeros before."""
    return _ZEROS.sub("", name.casefold())


def _ends(name: str) -> list[str]:
    """A path, and what it ends with: `a/b/c`, `b/c`, `c`."""
    parts = _plain(name).split("/")
    return ["/".join(parts[first:]) for first in range(len(parts))]
