"""Episodes another lab logged, brought into a trial directory of ours."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from robo_eval.core.canonical import digest, file_digest
from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.plan import TrialPlan
from robo_eval.log.column_map import ColumnMap, Source, read_column_map
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import PART_SUFFIX, explained
from robo_eval.log.import_cell import WORDS, instant, number, truth, whole, word
from robo_eval.log.import_plan import plan_of_import
from robo_eval.log.import_score import complete_score
from robo_eval.log.provenance import software
from robo_eval.log.rows import COUNT_LIMIT, KINDS, LONGEST_S, OPTIONAL, Kind, cells_of
from robo_eval.log.store import EpisodeStore

_NEEDED: Final = ("policy", "task", "side")
_TIMES: Final = ("duration_s", "exposure_s")
_MAY_BE_EMPTY: Final = ("episode_id", "family")
_NOT_NEGATIVE: Final = (
    "duration_s", "exposure_s", "ticks", "interventions", "level", "attempt", "score_version",
)  # fmt: skip
_COUNTS: Final = {name for name in KINDS if KINDS[name] is Kind.INTEGER} - {"start_ns", "seed"}
"""Whole numbers that something is computed from; a seed is only a name."""
_SHARES: Final = ("quality", "stated_success_probability")
_NOT_KNOWN: Final = ("start_ns", "duration_s", "ticks", "episode_return")
"""What stays empty if no column gives it: a 0 would pass for a measurement."""
_BATCH: Final = 256
_NO_PLAN: Final = "0" * 64
"""Stands for the digest of a plan that can only be written once all rows are read."""


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
    _check_new(folder)
    mapping = read_column_map(Path(column_map))
    with explained(source, "cannot be read"):
        sha256 = file_digest(source)
    reader = _Reader(source, mapping, sha256)
    values = list(reader.rows())
    if not values:
        raise InputError(f"{source}: holds no episodes, only a header line")
    plan = plan_of_import(source, mapping, sha256, [row.values for row in values])
    return _write(folder, plan, values)


def _check_new(folder: Path) -> None:
    # Said here, since for a trial `check_new` would advise to resume it.
    with explained(folder, "cannot be used"):
        if folder.is_dir() and any(folder.iterdir()):
            raise TrialDirectoryError(
                f"{folder}: exists already and is not empty; choose another --out"
            )
    TrialDirectory.check_new(folder)


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
                f"{folder}: cannot take its place: {err.strerror}; choose another --out"
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
        self._scored: dict[str, tuple[str, str]] = {}

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
            except csv.Error as err:
                raise InputError(
                    f"{self._path}: line {lines.line_num + 1}: is no CSV: {err}"
                ) from err
            except UnicodeDecodeError as err:
                raise self._not_utf8() from err

    def _not_utf8(self) -> InputError:
        # Read again: the error counts from the start of some buffer.
        data = self._path.read_bytes()
        try:
            data.decode()
        except UnicodeDecodeError as err:
            line = data.count(b"\n", 0, err.start) + 1
            given = f": byte 0x{data[err.start]:02x}"
        else:  # written meanwhile
            line, given = 1, ""
        return InputError(
            f"{self._path}: line {line}: is no CSV in UTF-8{given}; save the table as UTF-8"
        )

    def _check_header(self, header: Sequence[str]) -> None:
        if not header:
            raise InputError(f"{self._path}: is empty; it needs a header line")
        for name in header:
            if header.count(name) > 1:
                raise InputError(f"{self._path}: line 1: column {name!r} appears twice")
        for ours, source in self._map.columns.items():
            if source.column not in header:
                self._check_delimiter(header)
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

    def _check_delimiter(self, header: Sequence[str]) -> None:
        """Refuse a header that the delimiter of the map does not divide, but another would."""
        for sign, written in ((";", "';'"), ("\t", "tab"), (",", "','")):
            if len(header) == 1 and sign in header[0]:
                raise InputError(
                    f"{self._path}: line 1: {self._map.delimiter!r} does not divide the header"
                    f" {header[0]!r:.60}; set delimiter: {written} in the column map"
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
            source = Source(column=ours, is_constant=True)
            _put(values, ours, self._value(place, ours, source, text))
        self._complete(where, values, sources)
        row = _Row(where, values)
        # The database would refuse it as well, but knows nothing of this file and its lines.
        cells_of(row.episode(_NO_PLAN), where=where)
        return row

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
            return instant(place, source, text, self._map.decimal)
        if KINDS[base] is Kind.TRUTH:
            return truth(place, text)
        if base in WORDS:
            return word(place, base, text)
        if KINDS[base] is Kind.MAPPING:
            return self._entry(place, base, source, text)
        return text if KINDS[base] is Kind.TEXT else self._amount(place, base, source, text)

    def _amount(self, place: str, base: str, source: Source, text: str) -> float:
        parse = whole if KINDS[base] is Kind.INTEGER else number
        amount = parse(place, source, text, self._map.decimal)
        if base in _NOT_NEGATIVE and amount < 0:
            raise InputError(f"{place}: {text!r:.60} is negative; {base} cannot be")
        if base in _COUNTS and amount >= COUNT_LIMIT:
            raise InputError(
                f"{place}: {text!r:.60} is too large; {base} must be less than {COUNT_LIMIT} (2^53)"
            )
        if base in _TIMES and amount > LONGEST_S:
            raise InputError(
                f"{place}: {text!r:.60} gives {amount:g} s; {base} can be at most {LONGEST_S:g} s;"
                " check unit and scale in the column map"
            )
        if base in _SHARES and not 0.0 <= amount <= 1.0:
            percent = "" if source.unit or source.is_constant else "; give unit: '%' if it is one"
            raise InputError(
                f"{place}: {text!r:.60} gives {amount:g}, which is outside [0, 1]{percent}"
            )
        return amount

    def _entry(self, place: str, base: str, source: Source, text: str) -> float | str:
        if base in ("control_quality", "costs") or source.unit or source.scale != 1:
            return number(place, source, text, self._map.decimal)
        return text

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
        complete_score(
            where,
            values,
            sources,
            threshold=self._map.success_quality,
            assisted_success=self._map.assisted_success,
        )
        self._check_attempt(where, values, sources)
        values.setdefault("policy_digest", digest([self._sha256, values["policy"]]))
        values.setdefault("software", f"imported by {software()}")
        values.setdefault("initial_state_source", "unknown")
        for name in _NOT_KNOWN:
            values.setdefault(name, None)
        if values.get("exposure_s") is None:
            # Where there is no physical robot, none was exposed.
            values["exposure_s"] = None if values["side"] is Side.REAL else 0.0
        values["family"] = values.get("family") or values["task"]

    def _check_attempt(
        self, where: str, values: Mapping[str, Any], sources: Mapping[str, str]
    ) -> None:
        """Refuse a second attempt with a score at one episode: an episode counts once."""
        if values["quality"] is None:
            return
        name, attempt = values["episode_id"], values.get("attempt", 1)
        base = name.removesuffix(f"-a{attempt}") if attempt > 1 else name
        if base in self._scored:
            other, line = self._scored[base]
            column = sources.get("attempt", "attempt")
            raise InputError(
                f"{where}, column {column!r}: {name!r} and {other!r} in {line} are both scored"
                f" attempts at {base!r}; leave one out, or give it end_reason void"
            )
        self._scored[base] = (name, self._seen[name])


def _put(values: dict[str, Any], ours: str, value: Any) -> None:  # noqa: ANN401
    base, _, entry = ours.partition(".")
    if not entry:
        values[base] = value
    elif value is not None:
        values.setdefault(base, {})[entry] = value
