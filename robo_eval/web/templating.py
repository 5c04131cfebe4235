"""How pages are made of templates: those of a site, and those that all sites share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import jinja2

import robo_eval

if TYPE_CHECKING:
    from fastapi import Request
    from fastapi.responses import HTMLResponse, Response

    from robo_eval.web.deps import Site
    from robo_eval.web.sessions import WebSession

IS_PART: Final = "hx-request"


def environment(package: str, *, styles: Sequence[str] = ("base",)) -> jinja2.Environment:
    """The templates of a site, with autoescape on for every one of them.

    A template of this room is found by its name where the site has none of that name, and as
    `web/NAME` in any case, so that one of the site can extend it; pieces of reports are found as
    `page/NAME`. A site may give the filters
    `in_words` (how a message reads) and `field_of` (the field of a form that it is about) anew.

    Args:
        package: Package of the site; its folder `templates` holds them.
        styles: Style sheets of a page after that which reports have as well, in their order.
    """
    shared = jinja2.PackageLoader("robo_eval.web", "templates")
    reports = jinja2.PackageLoader("robo_eval.page", "templates")
    env = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [
                jinja2.PackageLoader(package, "templates"),
                shared,
                jinja2.PrefixLoader({"web": shared, "page": reports}),
            ]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(in_words=str, field_of=field_of)
    env.globals.update(software=robo_eval.__version__, styles=("shared", *styles))
    return env


def field_of(problem: str) -> str:
    """The field of a form that a problem is about; empty if it names none.

    Example:
        >>> field_of("name: is empty"), field_of("it cannot be closed")
        ('name', '')
    """
    name, colon, _ = problem.partition(": ")
    return name if colon and name.isidentifier() else ""


def render(
    request: Request,
    template: str,
    session: WebSession[Any] | None = None,
    *,
    status: int = 200,
    **values: Any,
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

    site: Site[Any] = request.app.state.site
    text = site.templates.get_template(template).render(
        user=None if session is None else session.user,
        csrf="" if session is None else session.csrf,
        path=request.url.path,
        site=site,
        **site.shown(session),
        **values,
    )
    return HTMLResponse(text, status_code=status, headers={"vary": "HX-Request"})


def is_part(request: Request) -> bool:
    """Whether htmx asks, for a part of a page that is open."""
    return request.headers.get(IS_PART) == "true"


def go_to(request: Request, url: str) -> Response:
    """Another page, which is asked for anew."""
    from fastapi.responses import RedirectResponse, Response

    if is_part(request):
        # htmx follows a redirect by itself and would put the page into the form.
        return Response(status_code=204, headers={"HX-Redirect": url})
    return RedirectResponse(url, status_code=303)
