"""What an imported episode needs, wherever its values come from: checked and completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from robo_eval.core.canonical import digest
from robo_eval.core.episode import QUALITY_DECIMALS
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Arm, Difficulty, EndReason, FaultBy, Profile, Side
from robo_eval.core.names import unknown_name
from robo_eval.core.units import ROS_NS
from robo_eval.core.wording import counted
from robo_eval.log.cells import ROUNDING, CellError
from robo_eval.log.column_map import (
    COUNTED,
    NAME,
    NEEDED,
    SCORES,
    Conversion,
    ImportMap,
    MapConstant,
    Source,
)
from robo_eval.log.import_score import ImportedRow, complete_score
from robo_eval.log.outcomes import Outcomes
from robo_eval.log.provenance import software
from robo_eval.log.rows import cells_of
from robo_eval.log.schema import KINDS, LEAST, MOST, OPTIONAL, SHARES, UNIT, Kind

_Source = TypeVar("_Source", bound=Source)
BY_THE_SCORE: Final = "by the score"
"""What `end_reason` may say in a table: played to its end, and success and quality decide."""
_WORDS: Final[dict[str, type[StrEnum]]] = {
    "side": Side,
    "arm": Arm,
    "end_reason": EndReason,
    "fault_by": FaultBy,
    "difficulty": Difficulty,
    "profile": Profile,
}
"""Columns that hold one of a list of words."""
_MAY_BE_EMPTY: Final = ("episode_id", "family", "end_reason", *COUNTED)
_NOT_KNOWN: Final = ("start_ns", "duration_s", "ticks", "episode_return")
"""What stays empty if nothing gives it: a 0 would pass for a measurement."""
_NO_PLAN: Final = "0" * 64
"""Stands for the digest of a plan that can only be written once all rows are read."""


class NamedStart(NamedTuple):
    """A start that has a name."""

    seed: int
    name: str


def start_of(name: str) -> NamedStart:
    """A start by its name; the same name has the same seed in every import.

    Example:
        >>> start_of("pos_A3") == start_of("pos_A3") != start_of("pos_A4")
        True
    """
    # As many digits as a float tells apart, since tables with gaps hold seeds as floats.
    return NamedStart(int(digest(name)[:13], 16), name)


class RowMaker:
    """Turns texts into values of our columns, and these into rows of one import.

    Args:
        mapping: How they are read.
        sha256: SHA-256 of what is imported, without what lies beside it.
    """

    def __init__(self, mapping: ImportMap, *, sha256: str) -> None:
        self.map: Final = mapping
        self._outcomes = Outcomes(mapping)
        self.beside: Final = frozenset(self._outcomes.columns)
        """Our columns that a file beside the recordings tells."""
        self.sha256: Final = self._outcomes.covered(sha256)
        self._read = mapping.reading
        self._seen: dict[str, str] = {}
        self._constants: list[tuple[str, Any]] | None = None
        self._scored: dict[str, tuple[str, str]] = {}
        self._undated: list[str] = []

    def value(self, place: str, ours: str, source: Conversion, text: str) -> Any:
        """The value of one of our columns that a text stands for.

        Raises:
            InputError: If it cannot be; the message begins with `place`.
        """
        missing, base = self._read.missing, ours.partition(".")[0]
        try:
            if source.words and text not in missing:
                text = self._translated(source.words, text)
            if text not in missing:
                return self._value(base, source, text)
        except ValueError as err:
            raise InputError(f"{place}: {err}") from err
        if base in OPTIONAL or base != ours or base in _MAY_BE_EMPTY:
            return None
        raise InputError(f"{place}: is empty; {base} is needed in every row")

    def _translated(self, words: Mapping[str, str], text: str) -> str:
        word = self._read.word(text, words)
        if word is None:
            raise unknown_name("value", text, words)
        return word

    def _value(self, base: str, source: Conversion, text: str) -> Any:
        if base in COUNTED or (base == "end_reason" and text == BY_THE_SCORE):
            return text if base in COUNTED else None
        if base in SCORES and (self._read.plain(text) or 0) < -ROUNDING:
            raise CellError(
                f"{text!r:.60} is negative, which is outside [0, 1]; rewards are mapped to"
                f" episode_return, and {base} says how well the task was done"
            )
        if source.unit == NAME:
            # Tables with gaps hold whole numbers as floats, also in names of several parts.
            return start_of(" / ".join(map(self._read.short, text.split(" / "))))
        if base == "start_ns":
            # A start in the map itself is of no other unit.
            unit = "ns" if source.is_constant else source.unit
            return self._read.instant(text, unit, source.scale, source.formats)
        if KINDS[base] is Kind.TRUTH:
            return self._read.truth(text)
        if base in _WORDS:
            return _word(base, text)
        if KINDS[base] is Kind.MAPPING:
            return self._entry(base, source, text)
        return text if KINDS[base] is Kind.TEXT else self._amount(base, source, text)

    def add(self, row: ImportedRow, place: str, ours: str, source: Conversion, text: str) -> None:
        """Set one of our columns to what a text stands for; see `value`."""
        _put(row.values, ours, self.value(place, ours, source, text))

    def add_outcomes(self, row: ImportedRow, names: Sequence[str] = ()) -> None:
        """Add an id and what lies beside the recordings, and refuse what is said too little of.

        Args:
            row: The episode; completed in place.
            names: What else than its id it is known by.

        Raises:
            InputError: If that cannot be read, or policy, task or side is missing.
        """
        values = row.values
        if values.get("episode_id") is None:
            values["episode_id"] = f"row-{len(self._seen) + 1:06d}"
        for place, ours, source, text in self._outcomes.find([values["episode_id"], *names]):
            row.sources[ours.partition(".")[0]] = source.column
            self.add(row, place, ours, source, text)
        for name in NEEDED:
            if values.get(name) is None:
                raise InputError(
                    f"{row.where}: {name} is missing; add it to the constants of the map"
                )

    def add_constants(self, row: ImportedRow) -> None:
        """Set what is the same in all rows.

        Raises:
            InputError: If it cannot be.
        """
        if self._constants is None:
            self._constants = []
            for ours, text in self.map.constants.items():
                place = f"{row.where}: constants.{ours} of the {self.map.WHAT[0]}"
                self._constants.append((ours, self.value(place, ours, MapConstant(), text)))
        for ours, value in self._constants:
            _put(row.values, ours, value)

    def add_columns(
        self,
        row: ImportedRow,
        columns: Mapping[str, _Source],
        text_of: Callable[[str, _Source], str | None],
    ) -> None:
        """Set what a file with columns says of an episode, and what is the same in all rows.

        Args:
            row: The episode; completed in place.
            columns: Where our columns come from.
            text_of: The text of a source for one of our columns, None if nothing says it.

        Raises:
            InputError: If a text cannot be the value of its column.
        """
        where, values, sources = row.where, row.values, row.sources
        for ours, source in columns.items():
            name = sources[ours.partition(".")[0]] = source.name
            if (text := text_of(ours, source)) is not None:
                _put(values, ours, self.value(f"{where}, column {name!r}", ours, source, text))
        self.add_constants(row)

    def finish(self, row: ImportedRow, *, names: Sequence[str] = (), lost: str = "") -> ImportedRow:
        """The row of one episode of a file with columns, after its columns were added.

        Args:
            row: The episode; completed in place.
            names: What else than its id it is known by.
            lost: Why its recording cannot be read; where nothing else tells how it ended, it is
                lost.

        Raises:
            InputError: If this cannot be an episode; see `fill_in`.
        """
        self.add_outcomes(row, names)
        if lost and all(row.values.get(name) is None for name in SCORES):
            row.values.update(end_reason=EndReason.LOST, end_detail=lost)
        self.fill_in(row)
        return row

    def leave_out(self, names: Sequence[str]) -> None:
        """Say of an episode, by its id and other names, that it was not asked for."""
        self._outcomes.leave_out(names)

    def notes(self, source: Path, rows: Sequence[ImportedRow]) -> Iterator[str]:
        """What somebody should know who looks at the rows only.

        Raises:
            InputError: If nothing that lies beside the recordings is about one of them.
        """
        yield from self._outcomes.notes()
        missing = sum(row.values["end_reason"] is EndReason.NO_VERDICT for row in rows)
        if missing:
            episodes = counted(missing, "episode")
            yield f"{source}: {episodes} without a score, counted as missing (no_verdict)"
        if self._undated:
            yield (
                f"{self._undated[0]}, which no clock shows that was set: when"
                f" {counted(len(self._undated), 'episode')} began is not known; is the unit right?"
            )
        policies: dict[tuple[str, Side], set[str]] = {}
        for row in rows:
            if row.values.get("pair_id") is not None and row.values.get("seed") is None:
                pair = (row.values["pair_id"], row.values["side"])
                policies.setdefault(pair, set()).add(row.values["policy"])
        if shared := [name for (name, _), own in policies.items() if len(own) > 1]:
            yield (
                f"{source}: pair_id {shared[0]!r:.60} is of several policies on one side, which it"
                " does not pair; starts that policies share are seeds: map seed with unit: name"
            )

    def fill_in(self, row: ImportedRow, *, stopped: EndReason | None = None) -> None:
        """Fill in what is missing of an episode, and refuse what contradicts itself.

        Args:
            row: The episode; completed in place.
            stopped: Why it was stopped from outside, which makes it no success.

        Raises:
            InputError: If this cannot be an episode, or is one that was there already.
        """
        values = row.values
        name = values["episode_id"]
        if name in self._seen:
            what = f"{name!r} is in {self._seen[name]} already; an episode is logged once"
            raise row.wrong("episode_id", what)
        self._seen[name] = row.where.rpartition(": ")[2]
        complete_score(row, self.map, stopped=stopped)
        self._check_attempt(row)
        values.setdefault("policy_digest", _policy_digest(self.sha256, values["policy"]))
        values.setdefault("software", f"imported by {software()}")
        values.setdefault("initial_state_source", "unknown")
        for name in _NOT_KNOWN:
            values.setdefault(name, None)
        if began := never_set(values):
            self._undated.append(f"{row.where} says {began}")
        if values.get("exposure_s") is None:
            # Where there is no physical robot, none was exposed.
            values["exposure_s"] = None if values["side"] is Side.REAL else 0.0
        values["family"] = values.get("family") or values["task"]
        # The database would refuse it as well, but knows nothing of this file and its lines.
        cells_of(row.episode(_NO_PLAN), where=row.where)
        row.sources.clear()  # nothing asks any more, and of a million rows they fill the memory

    def _amount(self, base: str, source: Conversion, text: str) -> float:
        if base in SHARES:
            share = self._read.share(text, source.unit, source.scale)
            return round(share, QUALITY_DECIMALS) if base == "quality" else share
        amount: float
        if KINDS[base] is Kind.INTEGER:
            is_seed = base == "seed"
            try:
                amount = self._read.whole(text, source.unit, source.scale, is_name=is_seed)
            except CellError as err:
                hint = "; give unit: name if starts have names" if is_seed else ""
                raise CellError(f"{err}{hint}") from err
        else:
            amount = float(self._read.number(text, source.unit, source.scale))
        if amount < LEAST.get(base, amount):
            raise CellError(f"{text!r:.60} is negative; {base} cannot be")
        most = MOST.get(base, amount)
        if amount > most:
            unit = f" {UNIT[base]}" if UNIT[base] else ""
            raise CellError(
                f"{text!r:.60} gives {amount:g}{unit}; {base} can be at most"
                f" {most:.16g}{unit}; check unit and scale in the {self.map.WHAT[0]}"
            )
        return amount

    def _entry(self, base: str, source: Conversion, text: str) -> float | str:
        if base in ("control_quality", "costs") or source.unit or source.scale != 1:
            return float(self._read.number(text, source.unit, source.scale, is_share=True))
        return text

    def _check_attempt(self, row: ImportedRow) -> None:
        """Refuse a second attempt with a score at one episode: an episode counts once."""
        values = row.values
        if values["quality"] is None:
            return
        name, attempt = values["episode_id"], values.get("attempt", 1)
        base = name.removesuffix(f"-a{attempt}") if attempt > 1 else name
        if base in self._scored:
            other, line = self._scored[base]
            what = f"{name!r} and {other!r} in {line} are both scored attempts at {base!r}"
            raise row.wrong("attempt", f"{what}; an episode has one score")
        self._scored[base] = (name, self._seen[name])


@lru_cache(maxsize=1_024)
def _policy_digest(sha256: str, policy: str) -> str:
    return digest([sha256, policy])


def never_set(values: dict[str, Any]) -> str:
    """Forget when a real episode began if its clock was never set; says what that clock showed."""
    start = values["start_ns"]
    if start is None or start >= ROS_NS or values["side"] is not Side.REAL:
        return ""
    values["start_ns"] = None
    shown = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=start // 1000)
    return shown.date().isoformat()


def _word(column: str, text: str) -> str:
    """One of the words a column can hold."""
    words = _WORDS[column]
    if text not in list(words):
        valid = [*words, *([BY_THE_SCORE] if column == "end_reason" else [])]
        raise unknown_name(column, text, valid)
    found = words(text)
    return found if KINDS[column] is Kind.WORD else found.value


def _put(values: dict[str, Any], ours: str, value: Any) -> None:
    """Set the value of a column, or of an entry such as `costs.energy_j`."""
    base, _, entry = ours.partition(".")
    if isinstance(value, NamedStart):
        values[base] = value.seed
        values.setdefault("initial_state", {})["start"] = value.name
    elif not entry:
        values[base] = value
    elif value is not None:
        values.setdefault(base, {})[entry] = value
