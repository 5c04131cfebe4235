"""What a cell of a table says: one reading for episodes, incidents, exposure and evidence."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from robo_eval.core.kinds import TRUTHS

UNITS: Final[dict[str, Decimal]] = {
    name: Decimal(factor)
    for name, factor in {
        "ns": "1e-9", "us": "1e-6", "ms": "1e-3", "s": "1", "min": "60", "h": "3600", "%": "0.01",
        "J": "1", "kJ": "1e3", "Wh": "3600", "kWh": "3.6e6", "m": "1", "cm": "1e-2", "mm": "1e-3",
        "km": "1e3", "mi": "1609.344", "rad": "1", "deg": repr(math.pi / 180),
    }.items()
}  # fmt: skip
"""Units a column can be given in, as multiples of the SI unit; `%` as a share."""
ISO_TIME: Final = "iso8601"
"""Unit of a time that is written as a date."""
EXCEL_TIME: Final = "excel"
"""Unit of a time that is the number a spreadsheet keeps: days, from 1900 on."""
ROUNDING: Final = Decimal("1e-9")
"""How far sums of shares in floating point are from 1 at most; see `QUALITY_DECIMALS`."""
# Python's float also reads `1_000`, which may as well be an id, and digits of other scripts.
_ORDINARY: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DIGITS: Final = re.compile(r"[+-]?\d+", re.ASCII)
_ALIKE: Final = str.maketrans("\u00a0\u2009\u202f\u2019\u02bc\u00b4", "   '''")
"""Spaces that do not break, and apostrophes, which stand between thousands."""
_UTC: Final = re.compile(r"(?<![A-Za-z])(UTC|GMT|Z)(?![A-Za-z])", re.IGNORECASE)
"""Names of zones that say the same everywhere."""
# Python's own dates end at microseconds and drop what comes after.
_FIXED_ZONE: Final = re.compile(r"UTC([+-]\d{2}:\d{2})")
_FINE_DATE: Final = re.compile(
    r"(?P<head>.{7,10}[Tt ]\d\d:?\d\d:?\d\d)[.,](?P<fraction>\d{7,})(?P<zone>.*)", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXCEL: Final = datetime(1899, 12, 30)  # noqa: DTZ001 - of the zone the table is from
_EXCEL_DAYS: Final = (61, 2_958_466)
"""Before March 1900 spreadsheets disagree; none goes beyond the year 9999."""
_EXACT: Final = Context(prec=80)
"""Digits enough for products of any number, scale and unit down to less than a nanosecond."""
_TODAY: Final = (946_684_800, 4_102_444_800)
"""Seconds since 1970 at the beginnings of 2000 and 2100."""
_LIMIT: Final = 2**63
_QUARTER: Final = re.compile(r"[Qq]([1-4])\b")
_PARTS: Final = (
    ("clock", re.compile(r"%-?[HIMScXTRr]")),
    ("day", re.compile(r"%-?[djxcDFuwe]")),
    ("month", re.compile(r"%-?[mbBhUWVGjxcDFq]")),
)
"""What letters of a format say. One without a month says a year, one without a day a month."""
_PERCENT: Final = "; give unit: '%' if it is a share in percent"
_MONTHS: Final = {"year": 12, "quarter": 3, "month": 1, "day": 0}


class CellError(ValueError):
    """A cell that will not do; the message begins with the cell."""


def number_of(text: str) -> Decimal | None:
    """The number a text spells with a decimal point, exactly.

    Returns:
        None if it is none in an ordinary spelling, or is beyond what a float can hold.
    """
    if not _ORDINARY.fullmatch(text) or not math.isfinite(float(text)):
        return None
    # What a float takes for 0 may have an exponent that no Decimal can have.
    return Decimal(text) if float(text) else Decimal(0)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the cells of one table are read. All methods raise `CellError` where a cell will not do.

    Attributes:
        decimal: Decimal sign of numbers.
        thousands: What stands between thousands; empty if nothing may.
        zone: Zone of times that name none.
        missing: Cells that mean that there is nothing.
        form: What says all this, for messages, such as `column map`; empty where nothing does.
        has_fixed_signs: Whether it has no keys for the signs in numbers.
    """

    decimal: str = "."
    thousands: str = ""
    zone: str = "UTC"
    missing: frozenset[str] = frozenset({""})
    form: str = ""
    has_fixed_signs: bool = False

    # Numbers ------------------------------------------------------------------------------------

    def plain(self, text: str) -> Decimal | None:
        """The number a text spells with these signs; None if it is none."""
        text, mark = text.translate(_ALIKE), self.thousands.translate(_ALIKE)
        if mark and mark in text:
            whole, sign, rest = text.partition(self.decimal)
            if not re.fullmatch(rf"[+-]?\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+", whole, re.ASCII):
                return None
            text = f"{whole.replace(mark, '')}{sign}{rest}"
        if self.decimal != ".":
            # A point is the mark of thousands then.
            text = "" if "." in text else text.replace(self.decimal, ".")
        return number_of(text)

    def number(
        self,
        text: str,
        unit: str | None = None,
        scale: Decimal = Decimal(1),
        *,
        is_share: bool = False,
    ) -> Decimal:
        """A number, exactly, in the SI unit; it may carry its own unit, as in `85%`."""
        bare = text.removesuffix(unit).rstrip() if unit else text
        value = self.plain(bare)
        if value is None:
            is_percent = is_share and self.form and not unit and text.endswith("%")
            raise CellError(f"{text!r:.60} {self._no_number(bare)}{_PERCENT if is_percent else ''}")
        scaled = _EXACT.multiply(value, scale)
        scaled = _EXACT.multiply(scaled, UNITS[unit]) if unit else scaled
        if not math.isfinite(float(scaled)):
            raise CellError(f"{text!r:.60} {self._not_finite()}")
        return scaled

    def share(self, text: str, unit: str | None = None, scale: Decimal = Decimal(1)) -> float:
        """A share; one that is beyond 0 or 1 by the rounding of a sum only is 0 or 1."""
        value = self.number(text, unit, scale, is_share=True)
        nearest = min(max(value, Decimal(0)), Decimal(1))
        if abs(value - nearest) > ROUNDING:
            percent = _PERCENT if self.form and not unit else ""
            raise CellError(
                f"{text!r:.60} gives {float(value):g}, which is outside [0, 1]{percent}"
            )
        return float(nearest)

    def whole(
        self,
        text: str,
        unit: str | None = None,
        scale: Decimal = Decimal(1),
        *,
        is_name: bool = False,
    ) -> int:
        """A whole number of 64 bits, such as `12` or `12.0`; of a name all digits are needed."""
        value = self.number(text, unit, scale)
        if not -_LIMIT <= value < _LIMIT:
            raise CellError(f"{text!r:.60} does not fit into 64 bits")
        if value != int(value):
            raise CellError(f"{text!r:.60} is not a whole number")
        # A seed is a name: two that were rounded to one are one no more than two instants are.
        if is_name:
            self._check_digits(text)
        return int(value)

    def _check_digits(self, text: str) -> None:
        """Refuse a number whose exponent stands for digits that were left out."""
        value = self.plain(text)
        exponent = value.as_tuple().exponent if value else 0
        if isinstance(exponent, int) and exponent > 0:
            raise CellError(
                f"{text!r:.60} has lost its last {exponent} digits to the exponent; write the"
                " column with all digits"
            )

    def _no_number(self, text: str) -> str:
        """Why a text is no number, and what would make it one."""
        try:
            if not math.isfinite(float(text)) and "_" not in text:
                return self._not_finite()
        except ValueError:
            pass
        others = [(f"thousands: {sign!r}", replace(self, thousands=sign)) for sign in ",. '"]
        others += [(f"decimal: {sign!r}", replace(self, decimal=sign)) for sign in ",."]
        would = [
            said
            for said, other in others
            if other.decimal != other.thousands and other.plain(text) is not None
        ]
        with_sign = "" if self.decimal == "." else f" with the decimal sign {self.decimal!r}"
        if not would:
            return f"is not a number{with_sign}"
        remedy = f"say {' or '.join(would)} in the {self.form}"
        if self.has_fixed_signs or not self.form:
            remedy = "write it like 1234.5"
        return f"is not a number{with_sign}; {remedy}"

    def _not_finite(self) -> str:
        rest = f"; list it under `missing` in the {self.form} if it means that there is none"
        return f"is not a finite number{rest if self.form else ''}"

    # Words --------------------------------------------------------------------------------------

    def truth(self, text: str) -> bool:
        """A truth in one of the usual spellings; `1.0` is 1."""
        found = TRUTHS.get(text.lower())
        if found is None and (number := self.plain(text)) is not None:
            found = {0: False, 1: True}.get(int(number)) if number in (0, 1) else None
        if found is None:
            remedy = (
                f"say which in `values` of the {self.form}, or list it under `missing` if it means"
                " that there is none"
                if self.form
                else "write true or false"
            )
            raise CellError(f"{text!r:.60} is neither true nor false; {remedy}")
        return found

    def word(self, text: str, values: Mapping[str, str]) -> str | None:
        """What a word of theirs is called; `1.0` is `1`. None if it is none of them."""
        if text in values:
            return values[text]
        plain = self.short(text)
        return next((ours for word, ours in values.items() if self.short(word) == plain), None)

    def short(self, text: str) -> str:
        """A name as it is, and `1.0` as `1`."""
        value = self.plain(text) if self.decimal in text else None
        return text if value is None or value != int(value) else str(int(value))

    # Times --------------------------------------------------------------------------------------

    def instant(
        self,
        text: str,
        unit: str | None = None,
        scale: Decimal = Decimal(1),
        formats: Sequence[str] = (),
    ) -> int:
        """A time as ns since 1970, UTC: by the formats, or from its unit; a day is its begin."""
        if formats:
            local, part = self._written(text, formats)
            if part in ("year", "quarter", "month"):
                raise CellError(f"{text!r:.60} names no day; a start needs one")
            return ns_of(text, local, self.zone)
        if unit == ISO_TIME:
            return iso_ns(text, self.zone)
        if unit == EXCEL_TIME:
            return ns_of(text, self._of_excel(text), self.zone)
        if unit is None:
            # Only these: a number with a point would most likely be of another unit.
            if not _DIGITS.fullmatch(text):
                raise CellError(
                    f"{text!r:.60} is not whole nanoseconds; give unit: s, ms, us, ns,"
                    f" {ISO_TIME} or {EXCEL_TIME}, or the formats that dates are written in"
                )
            value = Decimal(text)
            _check_unit(value)
        else:
            value = _EXACT.multiply(self.number(text, unit, scale), Decimal(10**9))
            if unit == "ns" and "e" in text.lower():
                raise CellError(
                    f"{text!r:.60} is not whole nanoseconds; write all digits, or give the unit"
                    " that numbers with an exponent have"
                )
            if unit == "ns" and value != value.to_integral_value():
                raise CellError(f"{text!r:.60} is not whole nanoseconds")
        found = _fitting(text, int(value.to_integral_value(ROUND_HALF_EVEN)))
        self._check_digits(text)
        return found

    def _of_excel(self, text: str) -> datetime:
        days = self.number(text)
        if not _EXCEL_DAYS[0] <= days < _EXCEL_DAYS[1]:
            raise CellError(f"{text!r:.60} is not the number a spreadsheet keeps for a date")
        return _EXCEL + timedelta(milliseconds=round(days * 86_400_000))

    def span(self, text: str, formats: Sequence[str], unit: str = "") -> tuple[int, int | None]:
        """A time by the formats, or of the unit `excel`, from when until when, ns since 1970, UTC.

        A number of whole days is a day. A format without hours is a whole day, one without a day a
        month, one with `Q%q` a quarter such as `Q1`, one without any of these a year.

        Returns:
            Begin and end; no end of a time that is known. A time that clocks showed twice, because
            they were set back, is from the one to the other.
        """
        if unit == EXCEL_TIME:
            local = self._of_excel(text)
            part = "day" if local == datetime(local.year, local.month, local.day) else "clock"  # noqa: DTZ001
        else:
            local, part = self._written(text, formats)
        zone = local.tzinfo or zone_of(self.zone)
        if part == "clock":
            return clock_span(local, zone, text)
        return part_span(local.date(), zone, months=_MONTHS[part])

    def _written(self, text: str, formats: Sequence[str]) -> tuple[datetime, str]:
        """A time as it is written, and how far it is known."""
        for form in formats:
            given = text
            if "%Z" in form:
                # Python takes names of the zone of this machine as well, and forgets them.
                offset = "%z" not in form
                given = _UTC.sub("+0000" if offset else "", text)
                form = form.replace("%Z", "%z" if offset else "")
            if "%q" in form:
                given, found = _QUARTER.subn(lambda found: f"Q{3 * int(found[1]) - 2:02}", text)
                if not found:
                    continue  # else a fifth quarter would be the month of May
            try:
                local = datetime.strptime(given, form.replace("%q", "%m"))  # noqa: DTZ007
            except ValueError:
                continue
            told = {part for part, says in _PARTS if says.search(form)}
            # An hour of a day that is not known is no more than that month.
            finer = (("year", "month"), ("month", "day"), ("day", "clock"))
            part = next((part for part, missing in finer if missing not in told), "clock")
            return local, "quarter" if part == "month" and "%q" in form else part
        remedy = excel_hint(text)
        if not remedy and re.search("%[aAbB]", " ".join(formats)):
            remedy = "; names of months and days are English, such as Jan or January, Mon or Monday"
        if any("%Z" in form for form in formats):
            remedy = (
                "; %Z takes UTC, GMT or Z: of another zone write the name itself into the format,"
                " and set zone, such as Europe/Berlin"
            )
        raise CellError(f"{text!r:.60} is none of {', '.join(formats)}{remedy}")


# Times that are written as dates ----------------------------------------------------------------


def zone_of(name: str) -> tzinfo:
    """A zone by its name, or by how far its clocks are from UTC, such as `UTC+01:00`.

    Raises:
        ValueError: If there is none.
    """
    try:
        if fixed := _FIXED_ZONE.fullmatch(name):
            return datetime.strptime(fixed[1], "%z").tzinfo or UTC
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as err:
        raise ValueError(f"{name!r:.40} is no zone; write it like Europe/Berlin or UTC") from err


def iso_ns(text: str, zone: str | None) -> int:
    """A date in ISO 8601, as ns since 1970, UTC, with all its digits.

    Args:
        text: The date.
        zone: Zone of one that names none; None if it has to.

    Raises:
        CellError: If it is none.

    Example:
        >>> iso_ns("2026-03-01 10:30:00.000000001+01:00", None)
        1772357400000000001
    """
    fine = _FINE_DATE.fullmatch(text)
    try:
        moment = datetime.fromisoformat(fine["head"] + fine["zone"] if fine else text)
    except ValueError:
        moment = None
    if moment is None or (zone is None and moment.tzinfo is None):
        if zone is None:
            like = "is not a time with its zone; write it like 2026-03-01T09:30:00+00:00"
        else:
            remedy = excel_hint(text) or "; give formats in place of the unit"
            like = f"is not a date like 2026-03-01T10:30{remedy}"
        raise CellError(f"{text!r:.60} {like}")
    rest = Decimal(f"0.{fine['fraction']}") * 10**9 if fine else Decimal(0)
    return ns_of(text, moment, zone or "UTC", int(rest.to_integral_value(ROUND_HALF_EVEN)))


def excel_hint(text: str) -> str:
    """What would do for a cell that is the number a spreadsheet keeps for a date."""
    days = number_of(text.replace(",", "."))
    is_one = days is not None and 30_000 <= days < 80_000
    return f"; give unit: {EXCEL_TIME} if a spreadsheet counted the days" if is_one else ""


def ns_of(text: str, moment: datetime, zone: str, more_ns: int = 0) -> int:
    """A moment as ns since 1970, UTC.

    Args:
        text: How it was written, for messages.
        moment: The moment.
        zone: Its zone, if it names none.
        more_ns: What to add, ns.

    Raises:
        CellError: If clocks of the zone showed it twice or never, or it is too early or late.
    """
    if moment.tzinfo is None:
        own = UTC if zone == "UTC" else zone_of(zone)
        moment = moment.replace(tzinfo=own)
        if own is not UTC and moment.utcoffset() != moment.replace(fold=1).utcoffset():
            raise CellError(
                f"{text!r:.60} is a time that clocks of {zone} showed twice or never, being set;"
                " write its offset, such as +01:00"
            )
    return _fitting(text, (moment - _EPOCH) // timedelta(microseconds=1) * 1000 + more_ns)


def clock_span(local: datetime, zone: tzinfo, text: str) -> tuple[int, int | None]:
    """What a clock of a zone showed: one instant, or from the first to the second one.

    Raises:
        CellError: If it showed that never, or it is too early or late.
    """
    first, second = (ns_of(text, local.replace(tzinfo=zone, fold=fold), "UTC") for fold in (0, 1))
    if first > second:
        raise CellError(f"{text!r:.60} is a time that clocks skipped there, being set forward")
    return first, None if first == second else second + 1


def part_span(first: date, zone: tzinfo, *, months: int) -> tuple[int, int]:
    """Begin and end of a day, or of so many months from the one of a day on, ns since 1970.

    Raises:
        CellError: If they are too early or late.
    """
    if months:
        first = first.replace(day=1)
        year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
        last = date(year, month + 1, 1)
    else:
        last = first + timedelta(days=1)
    begin, end = (
        ns_of(str(one), datetime(one.year, one.month, one.day, tzinfo=zone), "UTC")
        for one in (first, last)
    )
    return begin, end


def _fitting(text: str, time_ns: int) -> int:
    if not -_LIMIT <= time_ns < _LIMIT:
        raise CellError(f"{text!r:.60} is outside the years 1678 to 2261 that nanoseconds can hold")
    return time_ns


def _check_unit(value: Decimal) -> None:
    """Refuse a time without a unit that is today's date in seconds, ms or us since 1970."""
    for unit in ("s", "ms", "us"):
        if _TODAY[0] <= value * UNITS[unit] <= _TODAY[1]:
            raise CellError(
                f"{value} looks like a date in {unit} since 1970; give unit: {unit}, or unit: ns if"
                " it is nanoseconds"
            )
