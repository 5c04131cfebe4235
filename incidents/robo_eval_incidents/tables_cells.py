"""How times, quantities and evidence are written in one cell of a table, and read back exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from robo_eval_incidents.bodies import LATEST_NS

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION: Final = re.compile(
    r"(?P<whole>[\dW-]{8,10}.\d{2}:\d{2}:\d{2})[.,](?P<part>\d{1,9})(?P<zone>\D.*)?"
)
_MINUTE: Final = timedelta(minutes=1)
# A spreadsheet takes a cell that begins so for a formula, which may call programs.
_FORMULA: Final = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"
_MARK: Final = "'"
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


# Times -----------------------------------------------------------------------------------------


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
    try:
        # Without a zone, `astimezone` takes it as local.
        since = moment.astimezone(UTC) - _EPOCH
    except (OverflowError, OSError) as err:
        raise ValueError("does not fit") from err
    time_ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000 + part
    if not 0 <= time_ns <= LATEST_NS:
        raise ValueError("does not fit")
    return time_ns


# Safety in spreadsheets ------------------------------------------------------------------------


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


# Lists in a cell -------------------------------------------------------------------------------


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


def quantities_of(cell: str) -> list[dict[str, Any]]:
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


def answers_of(cell: str) -> dict[str, str]:
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
