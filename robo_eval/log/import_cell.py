"""What one cell of another lab's table says: a number, an instant, a truth or a word."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from typing import Final

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import TRUTHS, Arm, Difficulty, EndReason, FaultBy, Profile, Side
from robo_eval.core.names import unknown_name
from robo_eval.log.column_map import ISO_TIME, UNITS, Conversion, number_of
from robo_eval.log.schema import KINDS, Kind

WORDS: Final[dict[str, type[StrEnum]]] = {
    "side": Side,
    "arm": Arm,
    "end_reason": EndReason,
    "fault_by": FaultBy,
    "difficulty": Difficulty,
    "profile": Profile,
}
"""Columns that hold one of a list of words."""

BY_THE_SCORE: Final = "by the score"
"""What `end_reason` may say in a table: played to its end, and success and quality decide."""
_DIGITS: Final = re.compile(r"[+-]?\d+", re.ASCII)
# Python's own dates end at microseconds and drop what comes after.
_FINE_DATE: Final = re.compile(
    r"(?P<head>.{7,10}[Tt ]\d\d:?\d\d:?\d\d)[.,](?P<fraction>\d{7,})(?P<zone>.*)", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = Context(prec=80)
"""Digits enough for products of any number, scale and unit down to less than a nanosecond."""
_TODAY: Final = (946_684_800, 4_102_444_800)
"""Seconds since 1970 at the beginnings of 2000 and 2100."""
_LIMIT: Final = 2**63


def truth(place: str, text: str) -> bool:
    """A truth in one of the usual spellings.

    Raises:
        InputError: If it is none; the message begins with `place`, as in all functions here.
    """
    if text.lower() not in TRUTHS:
        raise InputError(
            f"{place}: {text!r:.60} is neither true nor false; say which in `values` of the"
            " column map, or list it under `missing` if it means that there is none"
        )
    return TRUTHS[text.lower()]


def word(place: str, column: str, text: str) -> str:
    """One of the words a column can hold.

    Raises:
        InputError: If it is none of them.
    """
    words = WORDS[column]
    if text not in list(words):
        valid = [*words, *([BY_THE_SCORE] if column == "end_reason" else [])]
        raise InputError(f"{place}: {unknown_name(column, text, valid)}")
    found = words(text)
    return found if KINDS[column] is Kind.WORD else found.value


def number(
    place: str, source: Conversion, text: str, decimal: str, *, is_share: bool = False
) -> float:
    """A number in the unit of our column; `is_share` says that it can be one in percent.

    Raises:
        InputError: If it is none, or not finite.
    """
    try:
        value = float(_converted(place, source, text, decimal))
    except InputError as err:
        if is_share and text.endswith("%") and source.unit is None:
            raise InputError(f"{err}; give unit: '%' if it is a share in percent") from err
        raise
    if not math.isfinite(value):
        raise _not_finite(place, text)
    return value


def whole(place: str, source: Conversion, text: str, decimal: str, *, is_name: bool = False) -> int:
    """A whole number, such as `12` or `12.0`; of a name all digits are needed.

    Raises:
        InputError: If it is none, or does not fit into 64 bits.
    """
    value = _converted(place, source, text, decimal)
    if not -_LIMIT <= value < _LIMIT:
        raise InputError(f"{place}: {text!r:.60} does not fit into 64 bits")
    if value != int(value):
        raise InputError(f"{place}: {text!r:.60} is not a whole number")
    # A seed is a name: two that were rounded to one are one no more than two instants are.
    if is_name:
        _check_digits(place, text, decimal)
    return int(value)


def instant(place: str, source: Conversion, text: str, decimal: str) -> int:
    """Nanoseconds since 1970, UTC: as they are, or from the unit of the source.

    Raises:
        InputError: If it is no instant in this unit, or one that a row cannot hold.
    """
    if source.unit == ISO_TIME:
        value = _of_date(place, text)
    elif source.unit is None:
        # Only these: a number with a point would most likely be of another unit.
        if not _DIGITS.fullmatch(text):
            remedy = "" if source.is_constant else "; give unit: s, ms, us, ns or iso8601"
            raise InputError(f"{place}: {text!r:.60} is not whole nanoseconds{remedy}")
        value = Decimal(text)
        _check_unit(place, source, value)
    else:
        value = _EXACT.multiply(_converted(place, source, text, decimal), Decimal(10**9))
        if source.unit == "ns" and "e" in text.lower():
            raise InputError(
                f"{place}: {text!r:.60} is not whole nanoseconds; write all digits, or give the"
                " unit that numbers with an exponent have"
            )
        if source.unit == "ns" and value != value.to_integral_value():
            raise InputError(f"{place}: {text!r:.60} is not whole nanoseconds")
    value = value.to_integral_value(ROUND_HALF_EVEN)
    if not -_LIMIT <= value < _LIMIT:
        raise InputError(
            f"{place}: {text!r:.60} is outside the years 1678 to 2261 that nanoseconds can hold"
        )
    if source.unit != ISO_TIME:
        _check_digits(place, text, decimal)
    return int(value)


def _check_unit(place: str, source: Conversion, value: Decimal) -> None:
    """Refuse a start without a unit that is today's date in seconds, ms or us since 1970."""
    for unit in ("s", "ms", "us"):
        if not source.is_constant and _TODAY[0] <= value * UNITS[unit] <= _TODAY[1]:
            raise InputError(
                f"{place}: {value} looks like a date in {unit} since 1970; give unit: {unit}, or"
                " unit: ns if it is nanoseconds"
            )


def _check_digits(place: str, text: str, decimal: str) -> None:
    """Refuse a number whose exponent stands for digits that were left out."""
    value = number_of(text.replace(decimal, "."))
    exponent = value.as_tuple().exponent if value else 0
    if isinstance(exponent, int) and exponent > 0:
        raise InputError(
            f"{place}: {text!r:.60} has lost its last {exponent} digits to the exponent; write the"
            " column with all digits"
        )


def _converted(place: str, source: Conversion, text: str, decimal: str) -> Decimal:
    plain = text
    if source.unit and text.endswith(source.unit):
        plain = text.removesuffix(source.unit).rstrip()
    if decimal != ".":
        # A point is then the mark of thousands.
        plain = "" if "." in plain else plain.replace(decimal, ".")
    value = number_of(plain)
    if value is None:
        if _is_not_finite(plain):
            raise _not_finite(place, text)
        sign = "" if decimal == "." else f" with the decimal sign {decimal!r}"
        raise InputError(f"{place}: {text!r:.60} is not a number{sign}")
    scaled = _EXACT.multiply(value, source.scale)
    return _EXACT.multiply(scaled, UNITS[source.unit]) if source.unit else scaled


def _is_not_finite(plain: str) -> bool:
    """Whether it is spelled like NaN or infinity, or is too large for a float."""
    try:
        return not math.isfinite(float(plain)) and "_" not in plain
    except ValueError:
        return False


def _not_finite(place: str, text: str) -> InputError:
    return InputError(
        f"{place}: {text!r:.60} is not a finite number; list it under `missing` in the column"
        " map if it means that there is none"
    )


def _of_date(place: str, text: str) -> Decimal:
    fine = _FINE_DATE.fullmatch(text)
    plain = fine["head"] + fine["zone"] if fine else text
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError as err:
        raise InputError(f"{place}: {text!r:.60} is not a date like 2026-03-01T10:30") from err
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    whole_ns = Decimal((moment - _EPOCH) // timedelta(microseconds=1) * 1000)
    return whole_ns + Decimal(f"0.{fine['fraction']}") * 10**9 if fine else whole_ns
