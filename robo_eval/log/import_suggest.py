"""A starter map of a table that nobody has described, by the names and cells of its columns."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain, count, islice
from math import ceil
from pathlib import Path
from typing import Final, NamedTuple

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import TRUTHS, Side
from robo_eval.log.cells import EXCEL_TIME, ISO_TIME, UNITS, Reading
from robo_eval.log.column_map import COUNTED, NAME, NEEDED
from robo_eval.log.csv_records import Records, opened
from robo_eval.log.files import write_new
from robo_eval.log.import_score import counts_of
from robo_eval.log.importer import read_rows
from robo_eval.log.schema import KINDS, Kind

_LINES: Final = 1_000
"""Lines that are looked at."""
_NAMES: Final[Mapping[str, str]] = {
    "episode_id": "id episode run_id run trial_id rollout_id rollout trial versuch lauf nummer nr",
    "policy": "policy_name model method agent algorithm algo checkpoint modell verfahren",
    "side": "domain sim_or_real sim_real env environment umgebung",
    "task": "task_name env_id env environment aufgabe",
    "robot": "robot_id arm platform roboter",
    "successes": "n_success num_success n_successes succeeded success erfolge",
    "rate": "success_rate sr pc_success erfolgsrate erfolgsquote",
    "trials": "n_trials num_trials n n_episodes num_episodes rollouts versuche",
    "success": "is_success succeeded successful solved outcome result entire s"
    " erfolg erfolgreich geschafft ergebnis",
    "quality": "score progress partial fortschritt",
    "start_ns": "start_time started timestamp datetime date time when start"
    " datum uhrzeit zeit zeitpunkt clock time_of_day",
    "seed": "start_seed start_state initial_condition init start pose position",
    "duration_s": "duration elapsed seconds minutes episode_time time dauer zeit",
    "ticks": "steps n_steps num_steps episode_length length l schritte",
    "episode_return": "return reward sum_reward total_reward episode_reward r",
    "interventions": "n_interventions assists eingriffe",
    "costs.energy_j": "energy energy_consumption energie energieverbrauch",
    "operator": "experimenter bediener",
}
"""What labs call what each of our columns holds beside its own name, likeliest first."""
_PARTS: Final = ("object", "objekt", "item", "scene", "szene", "pose", "position")
"""What may be a part of a start beside the columns of one."""
_TRUTHS: Final = {
    **{word: str(truth).lower() for word, truth in TRUTHS.items()},
    **dict.fromkeys(("success", "succeeded", "ok", "pass", "passed", "s"), "true"),
    **dict.fromkeys(("wahr", "ja", "y", "j", "t"), "true"),
    **dict.fromkeys(("failure", "failed", "fail", "f", "falsch", "nein", "n", "timeout"), "false"),
}
_SIDES: Final = {
    **{side.value: side.value for side in Side},
    **dict.fromkeys(("simulation", "simulated", "simulator"), "sim"),
    **dict.fromkeys(("real world", "real-world", "real_world", "real robot"), "real"),
}
_MISSING: Final = frozenset({"NA", "N/A", "n/a", "NaN", "nan", "None", "null", "-", "?", "NaT"})
_CLOCK: Final = re.compile(r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?( [AaPp][Mm])?")
_FORMATS: Final = tuple(
    day + clock
    for day in (
        *("%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y"),
        *("%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y-%m-%d"),
    )
    for clock in ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
)
_SINCE: Final = ("s", "ms", "us", "ns")
_CENTURY: Final = (946_684_800 * 10**9, 4_102_444_800 * 10**9)
"""The beginnings of 2000 and 2100, ns: a number that is a time between them has that unit."""
_UNITS: Final = {
    **{unit.lower(): unit for unit in UNITS},
    **dict.fromkeys(("sec", "secs", "second", "seconds", "sek", "sekunden"), "s"),
    **dict.fromkeys(("mins", "minute", "minutes", "minuten"), "min"),
    **dict.fromkeys(("hour", "hours", "stunden"), "h"),
}
_UNIT: Final = re.compile(
    rf"(?P<name>.+?)(?:[ _]*[\[(/_ ]|[ _]in[ _])(?P<unit>{'|'.join(map(re.escape, _UNITS))})[\])]?"
)
_SLUG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_BARE: Final = ("start_ns", "duration_s", "costs.energy_j", "quality", "rate")
"""Columns whose name may end with a unit."""
_FEW: Final = 30
"""Words of which a map can say each."""
_Read = Callable[[str], object]


class _Way(NamedTuple):
    """What a map may say of a column, what reads its cells then, and what is asked first."""

    more: str
    read: _Read
    ask: str = ""


class _Found(NamedTuple):
    """Columns of theirs, what the map says of them, and the question if they are not sure."""

    names: Sequence[str]
    source: str
    ask: str

    def line(self, ours: str) -> str:
        """The line of the map: an offer behind a `#` if it is not sure, else only a question."""
        if not self.source:
            return f"  # {ours}? {' + '.join(map(_quoted, self.names))}: {self.ask}"
        return (
            f"  # {ours}: {self.source}  # {self.ask}" if self.ask else f"  {ours}: {self.source}"
        )


def suggest_map(table: Path, out: Path) -> str | None:
    """Write a map for a table: what is sure, and as comments what only people can say.

    Args:
        table: The table.
        out: The map to write; one that is there is refused.

    Returns:
        Why the table cannot be imported by it yet; None if it can.

    Raises:
        InputError: If the table cannot be read, or the map is there already.
        TrialDirectoryError: If the map cannot be written.
    """
    text = "\n".join(_Table(table).map_lines()) + "\n"
    write_new(out, text, "choose another name")
    try:
        read_rows(table, out)
    except InputError as err:
        return str(err)
    return None


class _Table:
    """What the first lines of a table hold."""

    def __init__(self, path: Path) -> None:
        self._name = path.stem
        with opened(path) as file:
            self._delimiter = Records(path, file).other_delimiter()
        with opened(path) as file:
            records = Records(path, file, delimiter=self._delimiter)
            lines = [cells for _, cells in islice(records, _LINES)]
        self._cells = {
            name: [cells[place].strip() for cells in lines]
            for place, name in enumerate(records.header)
            if name and records.header.count(name) == 1
        }
        every = {cell for cells in self._cells.values() for cell in cells}
        self._missing = sorted(every & _MISSING)
        self._read = _reading(every, self._delimiter)
        self._free = dict.fromkeys(self._cells)
        self._given: dict[str, _Found] = {}
        self._has_trials = False
        self._has_trials = any(self._source("trials", [name]) for name in self._named("trials"))

    def map_lines(self) -> Iterator[str]:
        """The lines of the map."""
        yield "# Our column: theirs. docs/log.md says what else a map can hold."
        asked: list[tuple[str, _Found]] = []
        for ours in _NAMES:
            found = self._found(ours)
            if len(found) == 1 and not found[0].ask:
                self._given[ours] = found[0]
                self._free = {name: None for name in self._free if name not in found[0].names}
            asked += [(ours, one) for one in found if one.ask]
        yield "columns:"
        yield from (one.line(ours) for ours, one in self._given.items())
        asked = [(ours, one) for ours, one in asked if {*one.names} <= self._free.keys()]
        yield from (one.line(ours) for ours, one in asked)
        open_ = {ours for ours, _ in asked}
        if not (open_ | self._given.keys()) & {"success", "successes", "rate"}:
            yield from self._truths()
        if self._free:
            yield f"  # not used: {', '.join(map(_quoted, self._free))}"
        yield from self._rest([ours for ours in NEEDED if ours not in self._given], open_)

    def _truths(self) -> Iterator[str]:
        """Columns of which people have to say whether they tell the success, and of whom."""
        found = {
            name: (ours, one.source)
            for name in self._free
            for ours in ("success", "successes")
            if (one := self._source(ours, [name])) and not one.ask
        }
        for ours, source in found.values():
            yield f"  # {ours}: {source}  # does it say so?"
        if len(found) > 1 and "policy" not in self._given:
            own = (
                f"{policy}: {{{ours}: {source}}}"
                for policy, (ours, source) in zip(_slugs(found), found.values(), strict=True)
            )
            yield f"# policies: {{{', '.join(own)}}}  # or is each the success of a policy?"

    def _rest(self, needed: Sequence[str], asked: Collection[str]) -> Iterator[str]:
        likely = {
            "policy": f"# policy: {_slugs([self._name])[0]}  # whose episodes are they?",
            "task": f"# task: {_quoted(self._name)}  # what was to be done?",
            "side": "# side: sim  # or twin, or real: where was it played?",
        }
        yield from ["constants:"] if needed else []
        yield from (f"  {likely[ours]}" for ours in needed if ours not in asked)
        if self._missing:
            yield f"missing: [{', '.join(map(_quoted, self._missing))}]"
        if self._delimiter is not None:
            yield f"delimiter: {_quoted(self._delimiter)}"
        if self._read.decimal != ".":
            yield f"decimal: {_quoted(self._read.decimal)}"
        if self._read.thousands:
            yield f"thousands: {_quoted(self._read.thousands)}"
        if "quality" in self._given and "success" not in self._given:
            yield "# success_quality: 1.0  # from which quality on is it a success?"
        if "interventions" in self._given:
            yield "# assisted_success: failure  # is a success with interventions one?"

    def _found(self, ours: str) -> list[_Found]:
        """The one source of a column of ours that is sure, or all that are to be asked about."""
        if self._given.keys() & {"successes", "rate"} and ours in ("rate", "success", "quality"):
            return []
        if ours == "trials" and not self._given.keys() & {"successes", "rate"}:
            asked = [
                one for other in ("successes", "rate") for one in self._found(other) if one.ask
            ]
            trials = [self._source(ours, [name]) for name in self._named(ours)[:1] if asked]
            return [one._replace(ask="beside such a number only") for one in trials if one]
        names = self._named(ours)
        if ours == "seed":
            return self._starts(names)
        places = [[name] for name in names]
        if ours == "start_ns":
            clocks = [name for name in names if _reads(_CLOCK.fullmatch, self._known([name]))]
            places = [
                [one, *([] if any(":" in cell for cell in self._cells[one]) else clocks[:1])]
                for one in names
                if one not in clocks
            ]
        found = [one for place in places if (one := self._source(ours, place))]
        if ours == "success":
            dashed = "is `-` no score, as `missing` has it, or a failure?"
            found = [
                one._replace(ask=dashed) if "-" in self._cells[one.names[0]] else one
                for one in found
            ]
        sure = [one for one in found if not one.ask]
        if len(sure) > 1 and ours in ("policy", "success"):
            return [one._replace(ask="which of these is it?") for one in sure]
        return sure[:1] or found[:1]

    def _named(self, ours: str) -> list[str]:
        """Columns that are free and named like one of ours, likeliest first; ours is meant."""
        words = (ours, *_NAMES[ours].split())
        bare = (False, True) if ours in _BARE else (False,)
        plain = {name: {_plain(name, is_bare=one) for one in bare} for name in self._free}
        names = [name for word in words for name in plain if word in plain[name]]
        own = [name for name in names if ours in plain[name]]
        if not names and ours == "successes":  # `18/20` is that by any name
            names = [name for name in plain if all("/" in cell for cell in self._known([name]))]
        return list(dict.fromkeys(own or names))

    def _starts(self, names: Sequence[str]) -> list[_Found]:
        """The start: a seed, or the name of one, with all columns that are a part of it."""
        whole = [name for name in names if _plain(name) in ("seed", "start_seed")][:1]
        base = whole or list(names)
        context = [name for ours in (*NEEDED, "robot") for name in self._of(ours)]
        parts = [
            name
            for name in self._free
            if _plain(name) in _PARTS
            and name not in base
            and self._n([*context, *base, name]) > self._n([*context, *base])
        ]
        names = [name for name in self._free if name in (*base, *parts)]
        found = self._source("seed", names) if names else None
        if found is None or found.ask or (whole and not parts):
            return [found] if found else []
        is_apart = self._n([*context, *names]) == len(self._cells[names[0]])
        return [found if base and is_apart else found._replace(ask="do these tell how it began?")]

    def _of(self, ours: str) -> Sequence[str]:
        return self._given[ours].names if ours in self._given else ()

    def _n(self, names: Sequence[str]) -> int:
        """How many different cells some columns hold together."""
        return len({*zip(*(self._cells[name] for name in names), strict=True)})

    def _known(self, names: Sequence[str]) -> list[str]:
        """The cells of some columns, put together as an import does, where there are any."""
        lines = zip(*(self._cells[name] for name in names), strict=True)
        told = ([cell for cell in line if cell not in {"", *self._missing}] for line in lines)
        return [" ".join(cells) for cells in told if cells]

    def _source(self, ours: str, names: Sequence[str]) -> _Found | None:
        """What the map says of columns of theirs; None if their cells are not those of ours."""
        cells = self._known(names)
        n_lines = len(self._cells[names[0]])
        if not cells:
            return None
        if ours in NEEDED and len(cells) < n_lines:
            return _Found(names, "", "it is empty in some lines, and needed in all")
        if ours == "episode_id" and len({*cells}) < n_lines:
            return _Found(names, "", "it is not another one in every line; which column is?")
        fits = [way for way in self._ways(ours, names, cells) if _reads(way.read, cells)]
        if not fits:
            return None
        more, _, ask = fits[0]
        # Of days and months nobody knows which come first where both would do.
        if ours == "start_ns" and len({tuple(map(way.read, cells)) for way in fits}) > 1:
            ask = f"how is it written? or: {fits[1].more}"
        key = f"columns: [{', '.join(map(_quoted, names))}]"
        if len(names) == 1:
            key = f"column: {_quoted(names[0])}" if more else ""
        whole = f"{{{', '.join(filter(None, (key, more)))}}}" if key else _quoted(names[0])
        return _Found(names, whole, ask)

    def _ways(self, ours: str, names: Sequence[str], cells: Sequence[str]) -> list[_Way]:
        """What a map may say of columns, likeliest first."""
        read, name, words = self._read, names[0], sorted({*cells})
        percent = ("unit: '%'", partial(read.share, unit="%"))
        is_percent = "%" in name or "pc_" in name or cells[0].endswith("%")
        share = _Way(*percent) if is_percent else _Way("", read.share)
        # A 1 beside a number of trials may be one of them, or all that happened.
        is_count = self._has_trials and {*words} <= {"0", "1"}
        dates = [ISO_TIME, *([EXCEL_TIME] if "dat" in name.lower() else [])]
        ways: dict[str, list[_Way]] = {
            "policy": [
                _Way("", lambda cell: _slugs([cell]) == [cell] or None),
                *_worded(dict(zip(words, _slugs(words), strict=True)), words),
            ],
            "side": [
                _Way("", Side),
                *_worded(_by_word(_SIDES, words), words, "sim, twin or real?"),
            ],
            "successes": [
                _Way("", lambda cell: counts_of({"successes": cell}, read, {})),
                _Way("", self._counted, "a number of them, or a truth?" if is_count else ""),
            ],
            "success": [
                _Way("", read.truth, "a truth, or a number of them?" if is_count else ""),
                *_worded(_by_word(_TRUTHS, words), words, "true or false?"),
            ],
            "seed": [
                _Way("", partial(read.whole, is_name=True)),
                _Way(f"unit: {NAME}", re.compile(r"[^\W\d].*").fullmatch),
                _Way(f"unit: {NAME}", str, "are these names of starts?"),
            ][1 if len(names) > 1 else 0 :],
            "start_ns": [
                *(_Way(f"unit: {unit}", partial(read.instant, unit=unit)) for unit in dates),
                *(_Way(f"unit: {unit}", partial(self._since, unit)) for unit in _SINCE),
                *(
                    _Way(f"formats: [{_quoted(form)}]", partial(read.instant, formats=[form]))
                    for form in _FORMATS
                ),
            ],
            "duration_s": [self._measured(name, ("s", "ms", "min", "us", "ns", "h"))],
            "costs.energy_j": [self._measured(name, ("J", "kJ", "Wh", "kWh"))],
            "episode_return": [_Way("", read.number)],
            "quality": [share, *self._scaled(words)],
            "rate": [share, _Way(*percent, "is it in percent?")] if self._has_trials else [],
        }
        plain = read.whole if KINDS.get(ours, COUNTED.get(ours)) is Kind.INTEGER else str
        return ways.get(ours, [_Way("", plain)])

    def _counted(self, cell: str) -> int | None:
        return self._read.whole(cell) if self._has_trials else None

    def _since(self, unit: str, cell: str) -> int | None:
        """A number as a time, if that is one of this century."""
        time_ns = self._read.instant(cell, unit)
        return time_ns if _CENTURY[0] <= time_ns < _CENTURY[1] else None

    def _measured(self, name: str, units: Sequence[str]) -> _Way:
        """A number with a unit, which the name of the column says or nobody."""
        unit = _unit(name)
        ask = "" if unit in units else f"in which unit? {', '.join(units)}"
        unit = units[0] if ask else unit
        return _Way(f"unit: {unit}", partial(self._read.number, unit=unit), ask)

    def _scaled(self, words: Sequence[str]) -> Iterator[_Way]:
        """Points as shares of the next power of ten."""
        points = [self._read.plain(word) or Decimal(0) for word in words]
        scale = Decimal(1).scaleb(-len(str(ceil(max(points)) - 1)))
        yield _Way(
            f"scale: {scale}",
            partial(self._read.share, scale=scale),
            "is it a share from 0 to 1? `scale` makes it one",
        )


def _reads(read: _Read, cells: Sequence[str]) -> bool:
    try:
        return all(read(cell) is not None for cell in cells)
    except ValueError:
        return False


def _by_word(known: Mapping[str, str], words: Sequence[str]) -> dict[str, str]:
    return {word: known[word.lower()] for word in words if word.lower() in known}


def _worded(known: Mapping[str, str], words: Sequence[str], ask: str = "") -> Iterator[_Way]:
    """What `values` says of words; of those that are not known it holds the question."""
    if len(words) <= _FEW:
        values = (f"{_quoted(word)}: {_quoted(known.get(word, ask))}" for word in words)
        is_known = {*words} <= known.keys()
        asked = "" if is_known else f"which of its words are {ask} say so in `values`"
        yield _Way(f"values: {{{', '.join(values)}}}", str, asked)


def _slugs(names: Iterable[str]) -> list[str]:
    """Names that policies may have, as near to theirs as that allows, and as many."""
    names = list(names)
    found: dict[str, str] = {name: name for name in names if _SLUG.fullmatch(name)}
    for name in names:
        plain = unicodedata.normalize("NFKD", name.replace("π", "pi")).encode("ascii", "ignore")
        slug = re.sub(r"[^A-Za-z0-9.+-]+", "_", plain.decode()).strip("_.+-")[:50] or "policy"
        more = (f"{slug}-{number}" for number in count(2))
        if name not in found:
            taken = {*found.values()}
            found[name] = next(one for one in chain([slug], more) if one not in taken)
    return [found[name] for name in names]


def _reading(cells: Collection[str], delimiter: str | None) -> Reading:
    """The signs in numbers, as far as they are sure: `1,234` alone may be either."""
    comma, point = (
        any(
            re.fullmatch(rf"-?(0|\d{{4,}}|\d{{1,3}}(\{other}\d{{3}})+)\{sign}\d+", cell)
            or re.fullmatch(rf"-?\d+\{sign}(?!\d{{3}}$)\d+", cell)
            for cell in cells
        )
        for sign, other in (",.", ".,")
    )
    decimal, other = ",." if comma and (delimiter or not point) else ".,"
    groups = re.compile(rf"-?\d{{1,3}}(\{other}\d{{3}})+(\{decimal}\d+)?")
    has_thousands = (comma or point) and any(map(groups.fullmatch, cells))
    return Reading(decimal, other if has_thousands else "")


def _plain(name: str, *, is_bare: bool = False) -> str:
    """A name of theirs in small letters, with its unit or without."""
    found = _UNIT.fullmatch(name.lower()) if is_bare else None
    return re.sub(r"\W+", "_", found["name"] if found else name.lower()).strip("_")


def _unit(name: str) -> str | None:
    """The unit in a name, or that is one."""
    found = _UNIT.fullmatch(name.lower())
    return _UNITS.get(found["unit"] if found else name.lower())


def _quoted(text: str) -> str:
    """A text as YAML has it."""
    is_plain = re.fullmatch(r"[A-Za-z_][\w.-]*(?: [\w.-]+)*", text)
    return text if is_plain else json.dumps(text, ensure_ascii=False)
