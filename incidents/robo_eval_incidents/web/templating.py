"""How pages are made of templates."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

import robo_eval
from robo_eval.core.wording import shown
from robo_eval_incidents import meanings, moments
from robo_eval_incidents.record import new_id
from robo_eval_incidents.taxonomy import MEANINGS, RECORDABILITY, Category, Engagement, Severity
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
        spoken=meanings.spoken,
        in_words=meanings.in_words,
        shown_time=moments.shown_time,
        short_time=moments.short_time,
        machine_time=moments.machine_time,
        number=shown,
        hours=hours,
        severity=lambda severity: meanings.SEVERITIES[Severity(severity)],
    )
    env.globals.update(
        severities=meanings.SEVERITY_MEANINGS,
        statuses=meanings.STATUS_MEANINGS,
        categories={category: MEANINGS[category] for category in Category},
        engagements={engagement: meanings.ENGAGEMENTS[engagement] for engagement in Engagement},
        sides=meanings.SIDES,
        doors=meanings.DOORS,
        answers=meanings.ANSWERS,
        questions=RECORDABILITY,
        new_id=new_id,
        software=robo_eval.__version__,
        zone=_ZONE,
    )
    return env


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
    text = (
        environment()
        .get_template(template)
        .render(
            user=None if session is None else session.user,
            csrf="" if session is None else session.csrf,
            path=request.url.path,
            **values,
        )
    )
    return HTMLResponse(text, status_code=status, headers={"vary": "HX-Request"})


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
