"""Accounts: one's own password, and for those who look after the log who may use it."""

from __future__ import annotations

import secrets
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from robo_eval.core.errors import InputError
from robo_eval.web.deps import origin_of
from robo_eval.web.login import stay_logged_in
from robo_eval.web.templating import go_to, render
from robo_eval_incidents.accounts import Role
from robo_eval_incidents.web.deps import Person, Posted, Session, Site, ThisForm, ThisSite
from robo_eval_incidents.web.permissions import check_may
from robo_eval_incidents.words import Via

router: Final = APIRouter(include_in_schema=False)
_DONE: Final = {
    "password": "The password is another one; other devices were logged out.",
    "add": "The account was made; hand out its password, and have it changed.",
    "roles": "The roles hold from the next click on.",
    "passwd": "The account has another password, and was logged out.",
    "remove": "The account was closed; its records stay.",
}
"""What was done, by the end of a form's path."""


@router.get("/account")
def show_own(request: Request, site: ThisSite, session: Person, done: str = "") -> HTMLResponse:
    """One's own account, and for admins everybody's."""
    return _page(request, site, session, done=_DONE.get(done, ""))


@router.post("/account/password")
def change_password(request: Request, site: ThisSite, form: ThisForm) -> Response:
    """Another password of one's own; all other sessions end."""
    given = {name: form.fields.get(name, "") for name in ("old", "new", "again")}
    try:
        if given["new"] != given["again"]:
            raise InputError("again: the new password was typed in two ways")
        # As a login: wrong ones are counted, and lock the account.
        site.accounts.log_in(form.user.name, given["old"], origin_of(request))
        site.accounts.set_password(
            form.user.name, given["new"], by=form.user.name, via=Via.WEB, field="new"
        )
    except InputError as err:
        return _page(request, site, form.session, failed="password", err=err)
    answer = go_to(request, "/account?done=password")
    stay_logged_in(request, site, form.user, answer)
    return answer


@router.post("/accounts/{what}")
def change_account(request: Request, site: ThisSite, form: ThisForm, what: str) -> Response:
    """Make an account, give it roles or a password, or close it."""
    check_may(form.user, "admin")
    name, by = form.fields.get("name", ""), form.user.name
    roles = [role.value for role in Role if form.fields.get(f"role_{role}")]
    try:
        match what:
            case "add":
                password = form.fields.get("password", "")
                site.accounts.add(name, password, roles, by=by, via=Via.WEB)
            case "roles":
                site.accounts.set_roles(name, roles, by=by, via=Via.WEB)
            case "passwd":
                password = form.fields.get("password", "")
                site.accounts.set_password(name, password, by=by, via=Via.WEB)
            case "remove":
                site.accounts.remove(name, by=by, via=Via.WEB)
            case _:
                raise InputError(f"there is no form {what:.40}")
    except InputError as err:
        return _page(request, site, form.session, failed=what, err=err, form=form)
    return go_to(request, f"/account?done={what}")


def _page(
    request: Request,
    site: Site,
    session: Session,
    *,
    done: str = "",
    failed: str = "",
    err: InputError | None = None,
    form: Posted | None = None,
) -> HTMLResponse:
    return render(
        request,
        "account.html.j2",
        session,
        status=200 if err is None else err.http_status,
        done=done,
        problem="" if err is None else str(err),
        failed=failed,
        typed={} if form is None else form.fields,
        roles=tuple(Role),
        accounts=site.accounts.list() if session.user.may_admin else (),
        proposed=secrets.token_urlsafe(9),
    )
