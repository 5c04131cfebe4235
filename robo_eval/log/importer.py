"""Episodes another lab logged, brought into a trial directory of ours."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from robo_eval.core.canonical import digest, file_digest
from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import Arm, Difficulty, EndReason, Profile, Side
from robo_eval.core.names import unknown_name
from robo_eval.core.plan import TrialPlan
from robo_eval.log.column_map import ISO_TIME, UNITS, ColumnMap, Source, read_column_map
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import PART_SUFFIX, explained
from robo_eval.log.import_plan import plan_of_import
from robo_eval.log.import_score import complete_score
from robo_eval.log.provenance import software
from robo_eval.log.rows import KINDS, OPTIONAL, Kind
from robo_eval.log.store import EpisodeStore

_NEEDED: Final = ("policy", "task", "side")
_WORDS: Final[dict[str, type[StrEnum]]] = {
    "side": Side,
    "arm": Arm,
    "end_reason": EndReason,
    "difficulty": Difficulty,
    "profile": Profile,
}
_MAY_BE_EMPTY: Final = ("episode_id", "duration_s", "start_ns", "family")
_NOT_NEGATIVE: Final = ("duration_s", "exposure_s", "ticks", "interventions", "level", "attempt")
_SHARES: Final = ("quality", "stated_success_probability")
_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_BATCH: Final = 256


def import_csv(
    csv_path: Path | str | os.PathLike[str],
    column_map: Path | str | os.PathLike[str],
    out: Path | str | os.PathLike[str],
) -> TrialDirectory:
    """Read episodes from a CSV file by a column map into a new trial directory.

    Everything is read and checked first; the directory then appears complete or not at all. Its
    plan says that it was imported, from which file (SHA-256) and by which map. docs/log.md
    describes the map.

    Args:
        csv_path: CSV file in UTF-8 with a header line.
        column_map: YAML file: where each of our columns comes from.
        out: Trial directory to create.

    Raises:
        InputError: If map or table are not usable; the message names file, line and column.
        TrialDirectoryError: If the directory exists or cannot be written.
    """
    source, folder = Path(csv_path), Path(out)
    mapping = read_column_map(Path(column_map))
    with explained(source, "cannot be read"):
        sha256 = file_digest(source)
    reader = _Reader(source, mapping, sha256)
    values = list(reader.rows())
    if not values:
        raise InputError(f"{source}: holds no episodes, only a header line")
    plan = plan_of_import(source, mapping, sha256, [row.values for row in values])
    TrialDirectory.check_new(folder)
    return _write(folder, plan, values)


def _write(folder: Path, plan: TrialPlan, values: Sequence[_Row]) -> TrialDirectory:
    with explained(folder, "cannot be created"):
        folder.parent.mkdir(parents=True, exist_ok=True)
    staging = folder.with_name(f".{folder.name}.{os.getpid()}{PART_SUFFIX}.import")
    try:
        trial = TrialDirectory.create(staging, plan, planned=len(values))
        episodes = [row.episode(trial.plan_digest) for row in values]
        with trial.lock(), EpisodeStore(staging, durable=True) as store:
            for first in range(0, len(episodes), _BATCH):
                store.append(episodes[first : first + _BATCH])
            trial.write_manifest(status="complete", store=store)
        try:
            staging.rename(folder)
        except OSError as err:
            raise TrialDirectoryError(
                f"{folder}: cannot take its place: {err.strerror}; name a directory that is not"
                " there yet"
            ) from err
    finally:
        with suppress(OSError):
            shutil.rmtree(staging)
    return TrialDirectory.open(folder)


# Reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """The values of one line."""

    where: str
    values: dict[str, Any]

    def episode(self, plan_digest: str) -> Episode:
        try:
            return Episode(plan_digest=plan_digest, **self.values)
        except InputError as err:
            raise InputError(f"{self.where}: {err}") from err


class _Reader:
    """Turns the lines of one table into values of our columns."""

    def __init__(self, path: Path, mapping: ColumnMap, sha256: str) -> None:
        self._path = path
        self._map = mapping
        self._sha256 = sha256
        self._seen: dict[str, str] = {}

    def rows(self) -> Iterator[_Row]:
        """One row per line that is not blank.

        Raises:
            InputError: If a line cannot be an episode.
        """
        with (
            explained(self._path, "cannot be read"),
            self._path.open(encoding="utf-8-sig", newline="") as file,
        ):
            lines = csv.reader(file, delimiter=self._map.delimiter, strict=True)
            try:
                header = [name.strip() for name in next(lines, [])]
                self._check_header(header)
                for cells in lines:
                    if not any(cell.strip() for cell in cells):
                        continue
                    yield self._row(f"{self._path}: line {lines.line_num}", header, cells)
            except (csv.Error, UnicodeDecodeError) as err:
                raise InputError(
                    f"{self._path}: line {lines.line_num + 1}: is no CSV in UTF-8: {err}"
                ) from err

    def _check_header(self, header: Sequence[str]) -> None:
        if not header:
            raise InputError(f"{self._path}: is empty; it needs a header line")
        for name in header:
            if header.count(name) > 1:
                raise InputError(f"{self._path}: line 1: column {name!r} appears twice")
        for ours, source in self._map.columns.items():
            if source.column not in header:
                problem = unknown_name("column", source.column, header)
                raise InputError(f"{self._path}: line 1: {problem} (mapped to {ours!r})")
        given = {name.partition(".")[0] for name in (*self._map.columns, *self._map.constants)}
        for name in _NEEDED:
            if name not in given:
                raise InputError(
                    f"{self._path}: the column map says nothing about {name!r}; add it to columns"
                    " or constants"
                )
        if not given & {"success", "end_reason", "quality"}:
            raise InputError(
                f"{self._path}: the column map must say where success, end_reason or quality is"
            )

    def _row(self, where: str, header: Sequence[str], cells: Sequence[str]) -> _Row:
        if len(cells) != len(header):
            raise InputError(f"{where}: has {len(cells)} cells, the header has {len(header)}")
        theirs = dict(zip(header, cells, strict=True))
        values: dict[str, Any] = {}
        sources: dict[str, str] = {}
        for ours, source in self._map.columns.items():
            sources[ours.partition(".")[0]] = source.column
            place = f"{where}, column {source.column!r}"
            _put(values, ours, self._value(place, ours, source, theirs[source.column].strip()))
        for ours, text in self._map.constants.items():
            place = f"{where}, constant {ours!r} of the column map"
            _put(values, ours, self._value(place, ours, Source(column=ours), text))
        self._complete(where, values, sources)
        return _Row(where, values)

    def _value(self, place: str, ours: str, source: Source, text: str) -> Any:  # noqa: ANN401
        base, _, entry = ours.partition(".")
        if text in self._map.missing:
            if base in OPTIONAL or entry or base in _MAY_BE_EMPTY:
                return None
            raise InputError(f"{place}: is empty; {base} is needed in every row")
        if source.values:
            if text not in source.values:
                raise InputError(f"{place}: {unknown_name('value', text, source.values)}")
            text = source.values[text]
        if base == "start_ns":
            return self._instant(place, source, text)
        if KINDS[base] is Kind.TRUTH:
            return _truth(place, text)
        if base in _WORDS:
            return _word(place, base, text)
        if KINDS[base] is Kind.MAPPING:
            return self._entry(place, base, source, text)
        return text if KINDS[base] is Kind.TEXT else self._amount(place, base, source, text)

    def _amount(self, place: str, base: str, source: Source, text: str) -> float:
        number = self._number(place, source, text)
        if KINDS[base] is Kind.INTEGER:
            number = _whole(place, number, text)
        if base in _NOT_NEGATIVE and number < 0:
            raise InputError(f"{place}: {text!r} is negative; {base} cannot be")
        if base in _SHARES and not 0.0 <= number <= 1.0:
            raise InputError(f"{place}: {text!r} gives {number:g}, which is outside [0, 1]")
        return number

    def _entry(self, place: str, base: str, source: Source, text: str) -> float | str:
        if base in ("control_quality", "costs") or source.unit or source.scale != 1.0:
            return self._number(place, source, text)
        return text

    def _number(self, place: str, source: Source, text: str) -> float:
        plain = text.replace(self._map.decimal, ".") if self._map.decimal != "." else text
        try:
            number = float(plain) * source.scale * UNITS[source.unit or "s"]
        except (ValueError, KeyError) as err:
            raise InputError(f"{place}: {text!r:.60} is not a number") from err
        if not abs(number) < float("inf"):  # NaN as well
            raise InputError(
                f"{place}: {text!r} is not a finite number; list it under `missing` in the column"
                " map if it means that there is none"
            )
        return number

    def _instant(self, place: str, source: Source, text: str) -> int:
        if source.unit != ISO_TIME:
            if source.unit in (None, "ns") and source.scale == 1.0:
                # Whole nanoseconds since 1970 do not fit into a float.
                with suppress(ValueError):
                    return int(text)
            return round(self._number(place, source, text) * 1e9)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as err:
            raise InputError(f"{place}: {text!r:.60} is not a date like 2026-03-01T10:30") from err
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6)
        return seconds * 1000

    def _complete(self, where: str, values: dict[str, Any], sources: Mapping[str, str]) -> None:
        """Fill in what follows from the rest, and refuse what contradicts it."""
        if values.get("episode_id") is None:
            values["episode_id"] = f"row-{len(self._seen) + 1:06d}"
        name = values["episode_id"]
        if name in self._seen:
            column = sources.get("episode_id", "episode_id")
            raise InputError(
                f"{where}, column {column!r}: {name!r} is in {self._seen[name]} already; an"
                " episode is logged once"
            )
        self._seen[name] = where.rpartition(": ")[2]
        complete_score(where, values, sources, self._map.success_quality)
        values.setdefault("policy_digest", digest([self._sha256, values["policy"]]))
        values.setdefault("software", f"imported by {software()}")
        values.setdefault("initial_state_source", "unknown")
        values.setdefault("ticks", 0)
        values.setdefault("episode_return", None)
        for name in ("start_ns", "duration_s"):
            values[name] = values.get(name) or 0
        values["family"] = values.get("family") or values["task"]


def _put(values: dict[str, Any], ours: str, value: Any) -> None:  # noqa: ANN401
    base, _, entry = ours.partition(".")
    if not entry:
        values[base] = value
    elif value is not None:
        values.setdefault(base, {})[entry] = value


def _truth(place: str, text: str) -> bool:
    if text.lower() not in _TRUTHS:
        raise InputError(
            f"{place}: {text!r:.60} is neither true nor false; say which in `values` of the"
            " column map"
        )
    return _TRUTHS[text.lower()]


def _word(place: str, column: str, text: str) -> str:
    words = _WORDS[column]
    if text not in list(words):
        raise InputError(f"{place}: {unknown_name(column, text, list(words))}")
    word = words(text)
    return word if KINDS[column] is Kind.WORD else word.value


def _whole(place: str, number: float, text: str) -> int:
    with suppress(ValueError):
        return int(text) if number == int(text) else round(number)
    if number != round(number):
        raise InputError(f"{place}: {text!r:.60} is not a whole number")
    return round(number)
