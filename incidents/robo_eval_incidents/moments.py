"""How moments are written on a page, and read from what a form sent."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from robo_eval.core.errors import InputError
from robo_eval_incidents.text import moment_ns

# Pages are written in UTC. The browser of whoever reads them shows their own zone instead, and says
# in what it sends which zone that is (static/app.js); without script all of it stays UTC.


def moment(time_ns: int) -> datetime:
    """A time in UTC, to the microsecond."""
    since = timedelta(seconds=time_ns // 10**9, microseconds=time_ns % 10**9 // 1_000)
    return datetime(1970, 1, 1, tzinfo=UTC) + since


def short_time(time_ns: int) -> str:
    """A time for a list that says its zone above it: to the minute."""
    return f"{moment(time_ns):%Y-%m-%d %H:%M}"


def machine_time(time_ns: int) -> str:
    """A time for `<time datetime>`."""
    return f"{field_time(time_ns)}Z"


def field_time(time_ns: int) -> str:
    """A time for an `<input type=datetime-local>`."""
    return f"{moment(time_ns):%Y-%m-%dT%H:%M:%S}"


def field_again(text: str) -> str:
    """What a time field shows again after it was sent: in UTC as well, unless it is not a time.

    Example:
        >>> field_again("2026-03-01T10:30:00+01:00"), field_again("soon")
        ('2026-03-01T09:30:00', 'soon')
    """
    try:
        return field_time(time_of_field(text, "time"))
    except InputError:
        return text


def time_of_field(text: str, field: str) -> int:
    """What a form sent of an `<input type=datetime-local>`, in ns since 1970; UTC if no zone.

    Raises:
        InputError: If it is not a time; the message names the field.
    """
    try:
        return _ns_of(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError) as err:
        raise InputError(f"{field}: {text!r:.60} is not a time such as 2026-03-01 09:30") from err


def time_of_day(text: str, field: str, *, days_later: int = 0) -> int | None:
    """When a day begins that somebody put into a form; None if they left it empty.

    A browser sends where its zone begins the day, such as 2026-03-01T00:00+01:00; a day alone is
    one of UTC.

    Raises:
        InputError: If it is not a day; the message names the field.
    """
    if not text.strip():
        return None
    try:
        day = datetime.fromisoformat(text.strip())
        if day.time() != time.min:
            raise ValueError("is a time within a day")
        return _ns_of(day + timedelta(days=days_later))
    except (ValueError, OverflowError) as err:
        raise InputError(f"{field}: {text!r:.60} is not a day such as 2026-03-01") from err


def _ns_of(when: datetime) -> int:
    return moment_ns(when if when.tzinfo is not None else when.replace(tzinfo=UTC))
