"""A starter map of a table that nobody has described, by the names and cells of its columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.log.cells import EXCEL_TIME, ISO_TIME, Reading
from robo_eval.log.column_map import COUNTED, NAME, NEEDED
from robo_eval.log.csv_records import Records, opened
from robo_eval.log.files import write_new
from robo_eval.log.importer import read_rows
from robo_eval.log.schema import KINDS, Kind

_LINES: Final = 1_000
"""Lines that are looked at."""
_NAMES: Final[Mapping[str, str]] = {
    "episode_id": "id episode run_id run trial_id rollout_id rollout trial",
    "policy": "model method agent algorithm algo checkpoint policy_name",
    "task": "task_name env_id env environment",
    "side": "domain",
    "robot": "robot_id arm platform",
    "successes": "n_success num_success n_successes succeeded",
    "rate": "success_rate sr pc_success",
    "trials": "n_trials num_trials n n_episodes num_episodes rollouts",
    "success": "is_success succeeded successful solved outcome result entire s",
    "quality": "score progress partial",
    "start_ns": "start_time started timestamp datetime date time when start",
    "seed": "start_seed start_state initial_condition init start pose position",
    "duration_s": "duration elapsed seconds minutes episode_time time",
    "ticks": "steps n_steps num_steps episode_length length l",
    "episode_return": "return reward sum_reward total_reward episode_reward r",
    "interventions": "n_interventions assists",
    "operator": "experimenter",
}
"""What labs call what each of our columns holds beside its own name, likeliest first."""
_WORDS: Final = {
    **dict.fromkeys(("success", "succeeded", "ok", "pass", "passed", "s", "wahr", "ja"), "true"),
    **dict.fromkeys(("failure", "failed", "fail", "f", "falsch", "nein", "timeout"), "false"),
}
_MISSING: Final = frozenset({"NA", "N/A", "n/a", "NaN", "nan", "None", "null", "-", "?", "NaT"})
_FORMATS: Final = tuple(
    day + clock
    for day in ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y")
    for clock in ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
)
_UNIT: Final = re.compile(r"(?P<name>.+?)[ _]*[\[(_ ](?P<unit>ns|us|ms|sec|s|min|h)[\])]?")
_QUESTIONS: Final = {
    "policy": "which names of letters, digits, '.', '_', '+' and '-'? say so in `values`",
    "side": "which of its words are sim, twin and real? say so in `values`",
    "success": "which of its words are true, and which false? say so in `values`",
    "quality": "is it a share from 0 to 1? `unit: '%'` and `scale` make it one",
    "start_ns": "how is it written? `unit: s` since 1970, or `formats: ['%d/%m/%Y %H:%M']`",
    "duration_s": "in which unit? `unit: s`, `ms` or `min`",
    "episode_id": "it is not another one in every line; which column is?",
}
"""What is asked where a column has the name of one of ours and other cells."""
_Read = Callable[[str], object]


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
        has_comma = any(re.fullmatch(r"-?\d+,\d+", cell) for cell in every)
        self._read = Reading("," if self._delimiter and has_comma else ".")

    def map_lines(self) -> Iterator[str]:
        """The lines of the map."""
        yield "# Our column: theirs. docs/log.md says what else a map can hold."
        given: dict[str, str] = {}
        free = dict(self._cells)
        questions: list[tuple[str, str]] = []
        for ours, words in _NAMES.items():
            names = (ours, *words.split())
            name = next((one for word in names for one in free if word in _plain(one)), None)
            if name is None or (ours == "success" and given.keys() & {"successes", "rate"}):
                continue
            source = self._source(ours, name)
            if source is None:
                questions.append((ours, name))
            else:
                given[ours] = source
                del free[name]
        yield "columns:" if given else "columns: {}"
        yield from (f"  {ours}: {source}" for ours, source in given.items())
        for ours, name in questions:
            if name in free:
                yield f"  # {ours}: {_quoted(name)}  # {_QUESTIONS.get(ours, 'is it this?')}"
        if not given.keys() & {"success", "successes", "rate"}:
            truths = [name for name in free if self._source("success", name)]
            yield from (f"  # success: {_quoted(name)}  # does it say so?" for name in truths)
        if free:
            yield f"  # not used: {', '.join(map(_quoted, free))}"
        yield from self._rest(given)

    def _rest(self, given: Collection[str]) -> Iterator[str]:
        likely = {
            "policy": (re.sub(r"[^\w.+-]+", "-", self._name), "whose episodes are they?"),
            "task": (_quoted(self._name), "what was to be done?"),
            "side": ("real" if "robot" in given else "sim", "was it played in sim, twin or real?"),
        }
        open_ = [ours for ours in NEEDED if ours not in given]
        yield from ["constants:"] if open_ else []
        yield from (f"  {ours}: {likely[ours][0]}  # {likely[ours][1]}" for ours in open_)
        if self._missing:
            yield f"missing: [{', '.join(map(_quoted, self._missing))}]"
        if self._delimiter is not None:
            yield f"delimiter: {_quoted(self._delimiter)}"
        if self._read.decimal != ".":
            yield f"decimal: {_quoted(self._read.decimal)}"
        if "quality" in given and "success" not in given:
            yield "# success_quality: 1.0  # from which quality on is it a success?"

    def _source(self, ours: str, name: str) -> str | None:
        """What the map says of a column of theirs; None if its cells are not those of ours."""
        cells = [cell for cell in self._cells[name] if cell not in {"", *self._missing}]
        is_gapless = len(cells) == len(self._cells[name])
        if not cells or (ours in NEEDED and not is_gapless):
            return None
        if ours == "episode_id" and len({*cells}) != len(self._cells[name]):
            return None
        fits = [more for more, read in self._ways(ours, name, cells) if _reads(read, cells)]
        # Of days and months nobody knows which come first where both would do.
        if not fits or (ours == "start_ns" and len(fits) > 1):
            return None
        return f"{{column: {_quoted(name)}, {fits[0]}}}" if fits[0] else _quoted(name)

    def _ways(self, ours: str, name: str, cells: Sequence[str]) -> list[tuple[str, _Read]]:
        """What a map may say of a column, likeliest first, and what reads its cells then."""
        read, unit = self._read, _unit(name)
        word = re.compile(r"[^\W\d].*").fullmatch
        words = (f"{_quoted(word)}: {_WORDS.get(word.lower())}" for word in sorted({*cells}))
        is_percent = "%" in name or "pc_" in name or cells[0].endswith("%")
        share = ("unit: '%'", partial(read.share, unit="%")) if is_percent else ("", read.share)
        ways: dict[str, list[tuple[str, _Read]]] = {
            "policy": [("", re.compile(r"[\w.+-]+").fullmatch)],
            "side": [("", Side)],
            "success": [
                ("", read.truth),
                (f"values: {{{', '.join(words)}}}", lambda cell: _WORDS.get(cell.lower())),
            ],
            "seed": [("", partial(read.whole, is_name=True)), (f"unit: {NAME}", word)],
            "start_ns": [
                *((f"unit: {at}", partial(read.instant, unit=at)) for at in (ISO_TIME, EXCEL_TIME)),
                *(
                    (f"formats: [{_quoted(form)}]", partial(read.instant, formats=[form]))
                    for form in _FORMATS
                ),
            ],
            "duration_s": [(f"unit: {unit}", read.number)] if unit else [],
            "episode_return": [("", read.number)],
            "quality": [share],
            "rate": [share],
        }
        plain = read.whole if KINDS.get(ours, COUNTED.get(ours)) is Kind.INTEGER else str
        return ways.get(ours, [("", plain)])


def _reads(read: _Read, cells: Sequence[str]) -> bool:
    try:
        return all(read(cell) is not None for cell in cells)
    except ValueError:
        return False


def _plain(name: str) -> list[str]:
    """A name of theirs in small letters, with its unit and without."""
    found = _UNIT.fullmatch(name.lower())
    both = (name.lower(), found["name"] if found else "")
    return [re.sub(r"\W+", "_", one).strip("_") for one in both]


def _unit(name: str) -> str | None:
    """The unit of a time in a name."""
    found = _UNIT.fullmatch(name.lower())
    unit = found["unit"] if found else {"seconds": "s", "minutes": "min"}.get(name.lower())
    return "s" if unit == "sec" else unit


def _quoted(text: str) -> str:
    """A text as YAML has it."""
    is_plain = re.fullmatch(r"[A-Za-z_][\w.-]*(?: [\w.-]+)*", text)
    return text if is_plain else json.dumps(text, ensure_ascii=False)
