"""What follows a form: another page, or the same one with what was wrong."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from robo_eval.core.errors import InputError
from robo_eval_incidents.accounts import BusyError, LoginError
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.state import RefusedError
from robo_eval_incidents.web.deps import FormError, LoggedOutError, NotFoundError
from robo_eval_incidents.web.files import ChangedFileError
from robo_eval_incidents.web.permissions import ForbiddenError
from robo_eval_incidents.web.templating import is_part

_STATUS: Final[tuple[tuple[type[InputError], int], ...]] = (
    (LoggedOutError, 401),
    (LoginError, 401),
    (BusyError, 429),
    (ForbiddenError, 403),
    (NotFoundError, 404),
    (FormError, 400),
    (RefusedError, 409),
    (ChangedFileError, 409),
    (IncidentLogError, 503),
)


def status_of(err: InputError) -> int:
    """The HTTP status of an error somebody can cause."""
    return next((status for kind, status in _STATUS if isinstance(err, kind)), 422)


def go_to(request: Request, url: str) -> Response:
    """Another page, which is asked for anew."""
    if is_part(request):
        # htmx follows a redirect by itself and would put the page into the form.
        return Response(status_code=204, headers={"HX-Redirect": url})
    return RedirectResponse(url, status_code=303)
