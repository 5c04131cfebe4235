"""Which texts a record takes, and how people write and see times, days and what was measured."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, StringConstraints, TypeAdapter, ValidationError

from robo_eval.core.errors import InputError
from robo_eval.core.names import person_key
from robo_eval.log.cells import clock_span, part_span, zone_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LATEST_NS: Final = 2**63 - 1
"""Times are whole nanoseconds since 1970 that fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class Form:
    """How people write a value, and how they see it.

    Attributes:
        read: Makes the value of a text, given the time it is now in ns; raises ValueError with
            what would do.
        show: The text of a value.
        widget: What a form on a page has for it.
    """

    read: Callable[[str, int], Any]
    show: Callable[[Any], str] = str
    widget: str = "line"


class Private:
    """Free text: it enters the canonical form as a salted digest, and can be taken out."""


# Texts -----------------------------------------------------------------------------------------

_LINE_BREAKS: Final = frozenset("\n\t")
# Characters that change the order of what is shown can make a text read as another one.
_STEERING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


def _is_plain(text: str) -> bool:
    """Whether there is nothing to check, as in nearly all."""
    return text.isascii() and text.isprintable()


def _check(text: str, allowed: frozenset[str]) -> str:
    for letter in text:
        category = unicodedata.category(letter)
        if (category in {"Cc", "Cs"} and letter not in allowed) or letter in _STEERING:
            raise ValueError(f"holds the character U+{ord(letter):04X}, which cannot be kept")
    return text


def _line(text: str) -> str:
    if _is_plain(text):
        return " ".join(text.split())
    if not text.isascii():
        # Invisible letters, such as a space of no width, make two names of one.
        hidden = next((letter for letter in text if unicodedata.category(letter) == "Cf"), None)
        if hidden is not None:
            raise ValueError(f"holds the character U+{ord(hidden):04X}, which cannot be seen")
    return " ".join(_check(text, frozenset()).split())


def _name(text: str) -> str:
    return _not_empty(_line(text))


def _prose(text: str) -> str:
    text = text.replace("\r\n", "\n")
    if not _is_plain(text.replace("\n", "").replace("\t", "")):
        _check(text, _LINE_BREAKS)
    return _not_empty(text.strip())


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


def _relative(text: str) -> str:
    parts = PurePosixPath(text).parts
    if not parts or text.startswith("/") or "\\" in text or ":" in text or ".." in parts:
        raise ValueError("is not a path below the folder of evidence, such as traces/e1.mcap")
    return text


Line = Annotated[str, StringConstraints(max_length=200), AfterValidator(_line)]
"""One line, which may be empty."""
Name = Annotated[str, StringConstraints(max_length=120), AfterValidator(_name)]
"""One line that is not empty; white space is that of print."""
Note = Annotated[str, StringConstraints(max_length=200), AfterValidator(_line), Private]
"""One line of free text, which may be empty."""
Prose = Annotated[str, StringConstraints(max_length=8_000), AfterValidator(_prose), Private]
"""Free text of several lines that is not empty."""
Uri = Annotated[
    str, StringConstraints(max_length=500), AfterValidator(_name), AfterValidator(_relative)
]
"""Path of a file of evidence, relative to the folder it is kept in."""


def same_person(one: str, other: str) -> bool:
    """Whether two names are one person's: case, accents' encoding and spaces do not matter.

    Example:
        >>> same_person("R. Example", "  r.  EXAMPLE ")
        True
    """
    return person_key(one) == person_key(other)


_NAME: Final = TypeAdapter(Name)


def name_of(text: object, field: str) -> str:
    """A person's or program's name.

    Raises:
        InputError: If it is none; the message names the field.
    """
    try:
        return _NAME.validate_python(text)
    except ValidationError as err:
        first = err.errors(include_url=False)[0]
        if first["type"] == "string_too_long":
            raise InputError(f"{field}: {too_long(first)}") from err
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{field}: {problem}, given {text!r:.80}") from err


def too_long(error: ErrorDetails) -> str:
    """What pydantic's error about a text that is too long means."""
    return f"has {len(error['input'])} characters; {error['ctx']['max_length']} are the most"


# Times -----------------------------------------------------------------------------------------

TIMES: Final = "2026-03-01T09:30:00+01:00, now, or -10min (s, min, h, d)"
"""How a time is written."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION: Final = re.compile(
    r"(?P<whole>[\dW-]{8,10}.\d{2}:\d{2}:\d{2})[.,](?P<part>\d{1,9})(?P<zone>\D.*)?"
)
_MINUTE: Final = timedelta(minutes=1)
_AGO: Final = re.compile(r"-(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>s|min|h|d)")
_UNITS_NS: Final = {"s": 10**9, "min": 60 * 10**9, "h": 3_600 * 10**9, "d": 86_400 * 10**9}
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def iso_of(time_ns: int) -> str:
    """A time as ISO 8601 in UTC, with as many digits as it needs.

    Example:
        >>> iso_of(1_772_357_400_000_000_000), iso_of(1_772_357_400_250_000_001)
        ('2026-03-01T09:30:00Z', '2026-03-01T09:30:00.250000001Z')
    """
    seconds, part = divmod(time_ns, 10**9)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f"{part:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text}.{digits}Z" if digits else f"{text}Z"


def when(time_ns: int, until_ns: int | None = None) -> str:
    """A time for people: UTC, to the second, or as far as it is known."""
    return iso_of(time_ns - time_ns % 10**9) if until_ns is None else span_text(time_ns, until_ns)


def shown_time(time_ns: int) -> str:
    """A time for people, with its zone in words: UTC, to the second."""
    return f"{when(time_ns)[:-1].replace('T', ' ')} UTC"


def ns_of(text: str, *, local: bool = False) -> int:
    """A time in ISO 8601, as ns since 1970.

    Args:
        text: The time; its seconds may have nine digits behind the point.
        local: Take a time without its zone as one of this machine's zone.

    Raises:
        ValueError: If it is none, has no zone, or does not fit.

    Example:
        >>> ns_of("2026-03-01T10:30:00.000000001+01:00")
        1772357400000000001
    """
    part = 0
    if found := _FRACTION.fullmatch(text):
        part = int(found["part"].ljust(9, "0"))
        text = found["whole"] + (found["zone"] or "")
    moment = datetime.fromisoformat(text)
    offset = moment.utcoffset()
    if offset is None and not local:
        raise ValueError("has no zone")
    if offset is not None and offset % _MINUTE:
        raise ValueError("has a zone that is not hours and minutes")
    return moment_ns(moment, part)


def moment_ns(moment: datetime, more_ns: int = 0) -> int:
    """A moment in ns since 1970; without its zone one of this machine's zone.

    Args:
        moment: The moment.
        more_ns: What comes after its microseconds.

    Raises:
        ValueError: If it does not fit.
    """
    try:
        # Without a zone, `astimezone` takes it as local.
        since = moment.astimezone(UTC) - _EPOCH
    except (OverflowError, OSError) as err:
        raise ValueError("does not fit") from err
    time_ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000 + more_ns
    if not 0 <= time_ns <= LATEST_NS:
        raise ValueError("does not fit")
    return time_ns


def instant_of(text: str, now_ns: int | None = None) -> int:
    """A time as people write it, in ns since 1970.

    Args:
        text: ISO 8601 with its zone, `now`, or how long ago, such as `-10min`.
        now_ns: What `now` is; the present time if not given.

    Raises:
        ValueError: If it is none; the message says what would do.

    Example:
        >>> instant_of("-1h", 3_600 * 10**9)
        0
    """
    now_ns = time.time_ns() if now_ns is None else now_ns
    text = text.strip()
    if text == "now":
        return now_ns
    if found := _AGO.fullmatch(text):
        ago = float(found["number"]) * _UNITS_NS[found["unit"]]
        if ago <= now_ns:
            return now_ns - round(ago)
    try:
        return ns_of(text)
    except ValueError as err:
        problem = "is not a time with its zone from 1970 to 2262"
        try:
            ns_of(text, local=True)
            problem = "names no zone"
        except ValueError:
            pass
        raise ValueError(f"{text!r:.60} {problem}; write it like {TIMES}") from err


# Times that are known to a day or a month -------------------------------------------------------

UNKNOWN: Final = "unknown"
"""What stands for a time that nobody knows."""
ROUGHLY: Final = "2025-11-07, 2025-11 (of UTC, or 2025-11 Europe/Berlin), or unknown"
"""How a time is written that is known to a day, to a month, or not at all."""
_QUARTER: Final = re.compile(r"(\d{4})(?:-?Q([1-4]))?", re.ASCII)
_PART: Final = re.compile(
    r"(?P<day>(?P<month>\d{4}-\d{2})(?:-\d{2})?)"
    r"(?P<clock>[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,6})?)?)?"
    r"(?:\s+(?P<zone>[A-Za-z][\w+/:-]*))?",
    re.ASCII,
)


def span_of(text: str, now_ns: int | None = None, zone: str = "") -> tuple[int, int | None]:
    """A time as people write it, and where it ends if it is known to a day or a month only.

    Args:
        text: What `instant_of` reads; a day or a month, of UTC or of the zone behind it; a quarter
            such as `2025-Q4`, or a year; a time of a day and the name of its zone; `BEGIN/END`,
            with the day or month that ends it; or `unknown`.
        now_ns: What `now` is; the present time if not given.
        zone: Zone of what names none; empty for UTC, and for a time of a day, which has to.

    Returns:
        Begin and end, ns since 1970; no end of a time that is known. A time that clocks showed
        twice, because they were set back, is from the one to the other.

    Raises:
        ValueError: If it is none; the message says what would do.

    Example:
        >>> span_text(*span_of("2025-11")), span_text(*span_of("2025-11-02 01:30 America/Chicago"))
        ('2025-11', '2025-11-02T06:30:00Z/2025-11-02T07:30:00.000000001Z')
    """
    text = text.strip()
    if text == UNKNOWN:
        return 0, LATEST_NS
    if "/" in text and len(ends := text.split("/")) == 2 and ends[0][:1].isdigit() and (
        ends[1][:1].isdigit()
    ):  # fmt: skip
        (begin, _), (last, end) = (span_of(one, now_ns, zone) for one in ends)
        end = last if end is None else end
        if begin >= end:
            raise ValueError(f"{text!r:.80} ends before it begins")
        return begin, end
    if quarter := _QUARTER.fullmatch(text):
        first = date(max(int(quarter[1]), 1), 3 * int(quarter[2] or 1) - 2, 1)
        return part_span(first, zone_of(zone or "UTC"), months=3 if quarter[2] else 12)
    found = _PART.fullmatch(text)
    if found is None or (found["clock"] and not (found["zone"] or zone)):
        return _instant(text, now_ns), None
    own = zone_of(found["zone"] or zone or "UTC")
    is_day = found["day"] != found["month"]
    try:
        first = date.fromisoformat(found["day"] if is_day else f"{found['month']}-01")
        if not found["clock"]:
            begin, end = part_span(first, own, months=0 if is_day else 1)
            if begin < 0:
                raise ValueError("does not fit")
            return begin, end
        local = datetime.fromisoformat(found["day"] + found["clock"])
    except (ValueError, OverflowError) as err:
        raise ValueError(f"{text!r:.60} is not a time; write it like {TIMES}, {ROUGHLY}") from err
    return clock_span(local, own, text)


_AHEAD_MIN: Final = 14 * 60
"""No clocks are further from UTC."""
PERIODS: Final = "2025-11-07, 2025-11, 2025-Q4 or 2025"
"""How a period is written."""


def period_of(text: str) -> tuple[int, int]:
    """Begin and end of a day, a month, a quarter, a year, or BEGIN/END; see `span_of`.

    Raises:
        ValueError: If it is none; the message says what would do.
    """
    with suppress(ValueError):
        begin, end = span_of(text)
        if end is not None and text.strip() != UNKNOWN:
            return begin, end
    raise ValueError(f"{text!r:.60} is no period; write it like {PERIODS}")


def _instant(text: str, now_ns: int | None) -> int:
    try:
        return instant_of(text, now_ns)
    except ValueError as err:
        raise ValueError(f"{err}, {ROUGHLY}") from err


def span_text(begin_ns: int, end_ns: int | None) -> str:
    """A time as `span_of` reads it."""
    if end_ns is None:
        return iso_of(begin_ns)
    if (begin_ns, end_ns) == (0, LATEST_NS):
        return UNKNOWN
    begin, end = iso_of(begin_ns), iso_of(end_ns)
    months = _month_from(begin_ns), _month_from(end_ns, is_end=True)
    own = months[0] if months[0] == months[1] else "/".join(filter(None, months))
    for part in (
        begin[:10],
        begin[:7],
        f"{begin[:4]}-Q{int(begin[5:7]) // 3 + 1}",
        begin[:4],
        own or "",
    ):
        with suppress(ValueError):  # the last month that fits does not fit whole
            if span_of(part) == (begin_ns, end_ns):
                return part
    return f"{begin}/{end}"


def _month_from(time_ns: int, *, is_end: bool = False) -> str | None:
    """The month of a zone that begins, or ends, at a time, by what its clocks are ahead of UTC.

    Example:
        >>> _month_from(1_767_222_000 * 10**9), _month_from(1_772_319_600 * 10**9, is_end=True)
        ('2026-01 UTC+01:00', '2026-02 UTC+01:00')
    """
    minutes, rest = divmod(time_ns, 60 * 10**9)
    first = datetime(1970, 1, 1) + timedelta(minutes=minutes)  # noqa: DTZ001 - of its own zone
    ahead = -first.hour * 60 - first.minute
    if first.day != 1:
        ahead += 24 * 60
    local = first + timedelta(minutes=ahead)
    if rest or local.day != 1 or abs(ahead) > _AHEAD_MIN or ahead % 15:
        return None
    month = local - timedelta(days=1) if is_end else local
    sign = "-" if ahead < 0 else "+"
    return f"{month:%Y-%m} UTC{sign}{abs(ahead) // 60:02}:{abs(ahead) % 60:02}"


def shown_span(begin_ns: int, end_ns: int | None) -> str:
    """A time for people, as far as it is known."""
    if end_ns is None:
        return shown_time(begin_ns)
    text = span_text(begin_ns, end_ns)
    if " UTC" in text:
        return f"{text}, on a day not known"
    if "/" in text:
        return f"{shown_time(begin_ns)} to {shown_time(end_ns)}"
    if text == UNKNOWN:
        return "at a time not known"
    return f"{text} UTC, {'at a time' if len(text) == len('2025-11-07') else 'on a day'} not known"


def day_of(text: str, _now_ns: int = 0) -> date:
    """A day that somebody wrote, as year, month and day.

    Raises:
        ValueError: If it is none; the message says what would do.
    """
    text = text.strip()
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError(f"{text!r:.60} is not a day; write it like 2026-04-01")


# Cells of tables -------------------------------------------------------------------------------

# A spreadsheet takes a cell that begins so for a formula, which may call programs.
_FORMULA: Final = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"
_MARK: Final = "'"


def safe_cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe comes before such a one.

    Example:
        >>> safe_cell("=HYPERLINK(1)"), safe_cell("2 = 2"), safe_cell("'tis")
        ("'=HYPERLINK(1)", '2 = 2', "''tis")
    """
    return _MARK + text if text.startswith((*_FORMULA, _MARK)) else text


def plain_cell(cell: str) -> str:
    """What `safe_cell` was given.

    Example:
        >>> plain_cell("'=1"), plain_cell("''tis"), plain_cell("'tis")
        ('=1', "'tis", "'tis")
    """
    is_marked = cell[:1] == _MARK and cell[1:2] and cell[1] in _FORMULA + _MARK
    return cell[1:] if is_marked else cell


# Lists in one text -----------------------------------------------------------------------------

_MEASURED: Final = re.compile(
    r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?P<unit>.*)", re.DOTALL
)
_LIMIT: Final = re.compile(r"(?<!\\)\(limit\b[:=]?(?P<limit>[^()]*)\)\s*$", re.IGNORECASE)
_NO_UNIT: Final = re.compile(
    # More of the number: 81,2 or 1'000, 1 000 or 0x1F, 5 ± 1 or 5/2. A unit may be 1/s.
    r"^(?!1/\D)[^\w(\[%‰°\"$€\\]|^[_\d](?!/\D)|^[xXeE][+-]?\d|(?:[\s([/:±<>~][+-]?|,)[.,]?\d(?!/\D)"
    # A limit that is not where limits are.
    r"|(?<!\\)\blimit\b",
    re.IGNORECASE,
)
_PIECE: Final = re.compile(
    r"(?P<uri>.*?)(?:(?<!\\)\(from (?P<start>\S+) to (?P<end>\S+?)\))?"
    r"\s*(?:(?<!\\)\(sha256 (?P<sha256>[0-9a-f]*)\))?\s*"
)


def quantities_cell(quantities: list[dict[str, Any]]) -> str:
    r"""Quantities, as `name=value unit (limit x)`, divided by semicolons.

    In names and units `\` stands before `;`, `=`, `(` and `\` themselves, and before what would be
    taken for more of the number, or for a limit.

    Example:
        >>> quantities_cell([{"name": "force", "value": 81.2, "unit": "N", "limit": 80.0}])
        'force=81.2 N (limit 80.0)'
    """
    return "; ".join(_quantity_text(one) for one in quantities)


def _quantity_text(one: dict[str, Any]) -> str:
    text = f"{_escaped(one['name'])}={one['value']!r}"
    if one.get("unit"):
        text += f" {_escaped_unit(one['unit'])}"
    if one.get("limit") is not None:
        text += f" (limit {one['limit']!r})"
    return text


def quantities_of(cell: str, _now_ns: int = 0) -> list[dict[str, Any]]:
    """Read what `quantities_cell` wrote, and what people write so.

    Raises:
        ValueError: If a part is not a quantity; the message says what would do.
    """
    return [_quantity_of(part) for part in _parts(cell)]


def _quantity_of(text: str) -> dict[str, Any]:
    name, equals, rest = _divided(text, "=")
    limit = _LIMIT.search(rest)
    try:
        if not equals or not name.strip():
            raise ValueError("is not a quantity")
        value, unit = _measured(rest[: limit.start()] if limit else rest)
        made: dict[str, Any] = {"name": _unescaped(name.strip()), "value": value, "unit": unit}
        if limit is not None:
            made["limit"], its_unit = _measured(limit["limit"])
            if its_unit not in ("", unit):
                raise ValueError(f"has a limit in {its_unit}, which is another unit than its own")
    except ValueError as err:
        raise ValueError(
            f"{text.strip()!r:.60} {err}; write it like force=81.2 N (limit 80)"
        ) from err
    return made


def _measured(text: str) -> tuple[float, str]:
    """A number and its unit.

    Raises:
        ValueError: If it is none, or what follows the number is more of it.
    """
    found = _MEASURED.fullmatch(text)
    if found is None:
        raise ValueError("is not a quantity")
    unit = found["unit"].strip()
    if _NO_UNIT.search(unit):
        raise ValueError(
            f"has {unit!r:.30} where its unit is: a number has a point and no commas or spaces"
        )
    return float(found["number"]), _unescaped(unit)


def evidence_cell(pieces: list[dict[str, Any]]) -> str:
    """Evidence, as `path (from TIME to TIME) (sha256 DIGEST)`, divided by semicolons."""
    return "; ".join(_piece_text(one) for one in pieces)


def _piece_text(one: dict[str, Any]) -> str:
    text = _escaped(one["uri"])
    if one.get("start") is not None:
        text += f" (from {one['start']} to {one['end']})"
    if one.get("sha256") is not None:
        text += f" (sha256 {one['sha256']})"
    return text


def evidence_of(cell: str) -> list[dict[str, Any]]:
    """Read what `evidence_cell` wrote."""
    pieces = []
    for part in _parts(cell):
        found = _PIECE.fullmatch(part)
        # Every part of it may be missing, but for the path.
        assert found is not None
        made = {name: value for name, value in found.groupdict().items() if value is not None}
        pieces.append({**made, "uri": _unescaped(found["uri"].strip())})
    return pieces


def answers_cell(answers: dict[str, str]) -> str:
    """Answers to questions, as `question=answer`, divided by semicolons."""
    return "; ".join(f"{name}={answer}" for name, answer in answers.items())


def answers_of(cell: str, _now_ns: int = 0) -> dict[str, str]:
    """Read what `answers_cell` wrote.

    Raises:
        ValueError: If a part is not an answer; the message says what would do.
    """
    answers = {}
    for part in _parts(cell):
        name, equals, answer = part.partition("=")
        if not equals:
            raise ValueError(
                f"{part.strip()!r:.60} is not an answer; write it like medical_treatment=no"
            )
        answers[name.strip()] = answer.strip()
    return answers


def section_text(values: Mapping[str, Any]) -> str:
    r"""Named values, as `name=value`, divided by commas; `sections_of` reads them.

    Example:
        >>> section_text({"who": "operator", "nature": "a cut, deep"})
        'who=operator, nature=a cut\\, deep'
    """
    cleaned = {name: re.sub(r"([\\,;=])", r"\\\1", str(one)) for name, one in values.items()}
    return ", ".join(f"{name}={text}" for name, text in cleaned.items())


def sections_of(cell: str, names: Sequence[str]) -> list[dict[str, str]]:
    """Read sections of named values: parts divided by commas, sections by semicolons.

    Args:
        cell: The text.
        names: Names of values; spaces stand for their underscores.

    Raises:
        ValueError: If a part is none; the message says what would do.
    """
    found = []
    for part in _parts(cell):
        section = {}
        rest, more = part, ","
        while more:
            pair, more, rest = _divided(rest, ",")
            name, equals, value = _divided(pair, "=")
            name = name.strip().replace(" ", "_")
            if not equals or name not in names:
                raise ValueError(
                    f"{pair.strip()!r:.60} says none of {', '.join(names)}; write it like"
                    f" {names[0]}=..., {names[1]}=..."
                )
            section[name] = _unescaped(value.strip())
        found.append(section)
    return found


def _escaped(text: str) -> str:
    return re.sub(r"([\\;=(])", r"\\\1", text)


def _escaped_unit(unit: str) -> str:
    text = _escaped(unit)
    while found := _NO_UNIT.search(text):
        place = (
            found.start() if found.start() == 0 or found[0].lower() == "limit" else found.end() - 1
        )
        text = f"{text[:place]}\\{text[place:]}"
    return text


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _parts(cell: str) -> Iterator[str]:
    """Parts of a cell between semicolons that no backslash stands before; none that are empty."""
    rest, more = cell, ";"
    while more:
        part, more, rest = _divided(rest, ";")
        if part.strip():
            yield part.strip()


def _divided(text: str, letter: str) -> tuple[str, str, str]:
    """A text around the first letter of a kind that no backslash stands before."""
    found = re.match(rf"(?P<before>(?:[^\\{letter}]|\\.)*){letter}", text, re.DOTALL)
    if found is None:
        return text, "", ""
    return found["before"], letter, text[found.end() :]
