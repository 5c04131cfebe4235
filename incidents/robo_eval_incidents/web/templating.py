"""How pages are made of templates."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import jinja2
from markupsafe import Markup

import robo_eval
from robo_eval.core.wording import shown
from robo_eval.core.yaml_form import Section
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

if TYPE_CHECKING:
    from fastapi import Request
    from fastapi.responses import HTMLResponse

    from robo_eval_incidents.web.sessions import Session

IS_PART: Final = "hx-request"
_ZONE: Final = Markup("<span data-zone>UTC</span>")
"""Which zone the times of a page are in: UTC, until the browser names its own there."""


@cache
def environment() -> jinja2.Environment:
    """The templates, with autoescape on for every one of them."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("robo_eval_incidents.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
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
        software=robo_eval.__version__,
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


def render(
    request: Request,
    template: str,
    session: Session | None = None,
    *,
    status: int = 200,
    **values: Any,  # noqa: ANN401 - whatever the template shows
) -> HTMLResponse:
    """A page.

    Args:
        request: What was asked for.
        template: Name of the template.
        session: Who is logged in; None if nobody is.
        status: HTTP status.
        values: What the template shows.
    """
    # Late: a document to print needs templates, and no server.
    from fastapi.responses import HTMLResponse

    text = (
        environment()
        .get_template(template)
        .render(
            user=None if session is None else session.user,
            csrf="" if session is None else session.csrf,
            path=request.url.path,
            changed="" if session is None else request.app.state.site.watch.problem(),
            **values,
        )
    )
    return HTMLResponse(text, status_code=status, headers={"vary": "HX-Request"})


def _gist(text: str) -> str:
    """The beginning of a text, as a title has it."""
    return textwrap.shorten(text.strip().partition("\n")[0], 90, placeholder="…") or "Incident"


def _choice(word: Word) -> str:
    """A word with its meaning, as a list offers it."""
    if word.value == "unknown":
        return "not known"
    return f"{word.label}: {word.meaning}" if word.meaning else word.label


def is_part(request: Request) -> bool:
    """Whether htmx asks, for a part of a page that is open."""
    return request.headers.get(IS_PART) == "true"


def hours(value: float) -> str:
    """Hours, to a tenth; to a hundredth below ten.

    Example:
        >>> hours(1234.56), hours(0.5)
        ('1,234.6 h', '0.50 h')
    """
    return f"{value:,.1f} h" if value >= 10 else f"{value:.2f} h"
