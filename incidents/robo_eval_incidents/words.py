"""How times, numbers and the words of the taxonomy are put on a page."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import Final

from robo_eval.core.errors import InputError
from robo_eval_incidents.bodies import BODIES, LATEST_NS
from robo_eval_incidents.taxonomy import (
    RECORDABILITY,
    Answer,
    Category,
    Engagement,
    Severity,
    Status,
    Via,
)

SEVERITIES: Final = {
    Severity.NEAR_MISS: "near miss",
    Severity.MINOR: "minor",
    Severity.MAJOR: "major",
    Severity.CRITICAL: "critical",
}
SEVERITY_MEANINGS: Final = {
    Severity.NEAR_MISS: "a protective stop, or a breach of a distance or force margin",
    Severity.MINOR: "contact or damage below what has to be reported; first aid at most",
    Severity.MAJOR: "an injury that has to be reported, or significant damage",
    Severity.CRITICAL: "a severe injury, an uncontrolled hazard, or a breach of a standard",
}
STATUS_MEANINGS: Final = {
    Status.DRAFT: "drafted by a rule; nobody has looked at it",
    Status.REPORTED: "not yet reviewed by as many people as it needs",
    Status.CONFIRMED: "reviewed",
    Status.ACTING: "reviewed, with a corrective action that was not found effective yet",
    Status.CLOSED: "nothing is left to do",
    Status.DISMISSED: "reviewed and found to be none; it does not count",
}
DOORS: Final = {
    Via.WEB: "web page, logged in",
    Via.API: "a program, logged in",
    Via.CLI: "command line",
    Via.RULE: "rule",
    Via.IMPORT: "import",
}
ENGAGEMENTS: Final = {
    Engagement.AUTONOMOUS: "autonomous: a policy, nobody helping",
    Engagement.ASSISTED: "assisted: a policy, a person stepping in",
    Engagement.TELEOPERATED: "teleoperated",
    Engagement.MANUAL: "manual: moved by hand or pendant",
    Engagement.MAINTENANCE: "maintenance",
    Engagement.IDLE: "idle: powered, nothing asked of it",
    Engagement.OFF: "off",
    Engagement.UNKNOWN: "not known",
}
SIDES: Final = {"real": "real robot", "twin": "stand-in (twin)", "sim": "simulator"}
ANSWERS: Final = {Answer.YES: "yes", Answer.NO: "no", Answer.UNKNOWN: "not known"}


_FIELDS: Final = {name for body in BODIES.values() for name in body.model_fields}
_TERMS: Final = sorted({*Severity, *Category, *Engagement, *RECORDABILITY, *_FIELDS})
_TERM: Final = re.compile(rf"\b(?:{'|'.join(name for name in _TERMS if '_' in name)})\b")


def spoken(word: object) -> str:
    """A word of the taxonomy as people read it.

    Example:
        >>> spoken("person_contact")
        'person contact'
    """
    return str(word).replace("_", " ")


def in_words(text: str) -> str:
    """A sentence as people read it: words of the taxonomy and names of fields without underscores.

    Example:
        >>> in_words("incident lab/2 is near_miss; start_ns is not before end_ns of arm_1")
        'incident lab/2 is near miss; start is not before end of arm_1'
    """
    return _TERM.sub(lambda found: spoken(found[0].removesuffix("_ns")), text)


# Times -----------------------------------------------------------------------------------------


# Pages are written in UTC. The browser of whoever reads them shows their own zone instead, and says
# in what it sends which zone that is (static/app.js); without script all of it stays UTC.


def moment(time_ns: int) -> datetime:
    """A time in UTC, to the microsecond."""
    since = timedelta(seconds=time_ns // 10**9, microseconds=time_ns % 10**9 // 1_000)
    return datetime(1970, 1, 1, tzinfo=UTC) + since


def shown_time(time_ns: int) -> str:
    """A time for people."""
    return f"{moment(time_ns):%Y-%m-%d %H:%M:%S} UTC"


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
    """What a time field shows again after it was sent: in UTC as well, unless it is no time.

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
        InputError: If it is no time; the message names the field.
    """
    try:
        return _ns_of(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError) as err:
        raise InputError(f"{field}: {text!r:.60} is no time such as 2026-03-01 09:30") from err


def time_of_day(text: str, field: str, *, days_later: int = 0) -> int | None:
    """When a day begins that somebody put into a form; None if they left it empty.

    A browser sends where its zone begins the day, such as 2026-03-01T00:00+01:00; a day alone is
    one of UTC.

    Raises:
        InputError: If it is no day; the message names the field.
    """
    if not text.strip():
        return None
    try:
        day = datetime.fromisoformat(text.strip())
        if day.time() != time.min:
            raise ValueError("is a time within a day")
        return _ns_of(day + timedelta(days=days_later))
    except (ValueError, OverflowError) as err:
        raise InputError(f"{field}: {text!r:.60} is no day such as 2026-03-01") from err


def _ns_of(when: datetime) -> int:
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    seconds = aware.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    time_ns = (seconds.days * 86_400 + seconds.seconds) * 10**9 + seconds.microseconds * 1_000
    if not 0 <= time_ns <= LATEST_NS:
        raise ValueError("does not fit")
    return time_ns


# Numbers ---------------------------------------------------------------------------------------


def number(value: float) -> str:
    """A number with four digits that count.

    Example:
        >>> number(12.0), number(0.123456), number(1234567.0)
        ('12', '0.1235', '1,234,567')
    """
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def hours(value: float) -> str:
    """Hours, to a tenth; to a hundredth below ten.

    Example:
        >>> hours(1234.56), hours(0.5)
        ('1,234.6 h', '0.50 h')
    """
    return f"{value:,.1f} h" if value >= 10 else f"{value:.2f} h"
