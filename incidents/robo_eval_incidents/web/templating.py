"""How the pages of an incident log are made of templates."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import jinja2
from markupsafe import Markup

from robo_eval.core.wording import shown
from robo_eval.core.yaml_form import Section
from robo_eval.web import templating
from robo_eval_incidents import moments
from robo_eval_incidents.kinds import Injury, in_words
from robo_eval_incidents.lists import overdue_days, utc_today
from robo_eval_incidents.record import new_id
from robo_eval_incidents.text import shown_span, shown_time
from robo_eval_incidents.words import (
    SIDES,
    Answer,
    Category,
    Engagement,
    Question,
    Severity,
    Status,
    Via,
    Word,
    spoken,
)

_ZONE: Final = Markup("<span data-zone>UTC</span>")
"""Which zone the times of a page are in: UTC, until the browser names its own there."""


@cache
def environment() -> jinja2.Environment:
    """The templates, with autoescape on for every one of them."""
    styles = ("base", "parts", "media")
    env = templating.environment("robo_eval_incidents.web", styles=styles)
    env.filters.update(
        spoken=spoken,
        in_words=in_words,
        field_of=field_of,
        shown_span=shown_span,
        shown_time=shown_time,
        short_time=moments.short_time,
        machine_time=moments.machine_time,
        number=shown,
        hours=hours,
        severity=lambda severity: Severity(severity).label,
        gist=_gist,
    )
    env.globals.update(
        severities={one: one.meaning for one in Severity},
        statuses={one: one.meaning for one in Status},
        categories={one: one.meaning for one in Category},
        engagements={one: _choice(one) for one in Engagement},
        sides=SIDES,
        doors={one: one.meaning for one in Via},
        answers={one: _choice(one) for one in Answer},
        questions={one: one.meaning for one in Question},
        injury_fields={name: _field(Injury, name) for name in Injury.model_fields},
        new_id=new_id,
        overdue_days=lambda due: overdue_days(due, utc_today()),
        zone=_ZONE,
    )
    return env


_NAMED: Final = re.compile(r"(?P<name>[a-z_]+)(?:\.(?P<rest>[a-z0-9_.]+))?: ")


def field_of(problem: str) -> str:
    """The field of a form that a problem is about; empty if it names none.

    Example:
        >>> field_of("injuries.0.days_away: is less than 0"), field_of("it cannot be closed")
        ('injury_0_days_away', '')
    """
    found = _NAMED.match(problem)
    if found is None:
        return ""
    name, rest = found["name"], (found["rest"] or "").replace(".", "_")
    if rest:
        return {"injuries": f"injury_{rest}", "answers": f"answer_{rest}"}.get(name, rest)
    if name in set(Question):
        return f"answer_{name}"
    return {"when": "happened", "time": "happened"}.get(name, name.removesuffix("_ns"))


class _Field(NamedTuple):
    """A field of a form."""

    label: str
    help: str
    words: Sequence[str]
    is_number: bool


def _field(model: type[Section], name: str) -> _Field:
    field = model.model_fields[name]
    words = field.annotation
    listed = tuple(words) if isinstance(words, type) and issubclass(words, Word) else ()
    return _Field(
        label=str(field.title),
        help=field.description or "",
        words=listed,
        is_number=name.startswith("days") or name.endswith(("_n", "_cm2")),
    )


def _gist(text: str) -> str:
    """The beginning of a text, as a title has it."""
    return textwrap.shorten(text.strip().partition("\n")[0], 90, placeholder="…") or "Incident"


def _choice(word: Word) -> str:
    """A word with its meaning, as a list offers it."""
    if word.value == "unknown":
        return "not known"
    return f"{word.label}: {word.meaning}" if word.meaning else word.label


def hours(value: float) -> str:
    """Hours, to a tenth; to a hundredth below ten.

    Example:
        >>> hours(1234.56), hours(0.5)
        ('1,234.6 h', '0.50 h')
    """
    return f"{value:,.1f} h" if value >= 10 else f"{value:.2f} h"
