"""The application: the pages of an incident log, and the interface for programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fastapi import FastAPI

from robo_eval.web import app
from robo_eval_incidents.accounts import Accounts
from robo_eval_incidents.log import open_log
from robo_eval_incidents.web import api
from robo_eval_incidents.web.deps import Sessions, Site, Watch
from robo_eval_incidents.web.files import Folder
from robo_eval_incidents.web.pages import (
    account,
    audit,
    export,
    incident,
    lists,
    report,
    safety,
    todo,
)
from robo_eval_incidents.web.templating import environment

API: Final = "/api/v1"
_PAGES: Final = (account, report, lists, todo, incident, safety, export, audit)


def make_app(
    target: str | Path,
    *,
    station: str | None = None,
    evidence: Path | None = None,
    names: Iterable[str] = (),
) -> FastAPI:
    """The web page of an incident log.

    Args:
        target: Path of the log, a folder that holds `incidents.db`, or URL.
        station: As whom to write; None for the log's own station.
        evidence: Folder of evidence; None for `incidents/` beside the log.
        names: Names it is reached by, beside `localhost` and any address.

    Raises:
        IncidentLogError: If the log cannot be opened.
        MissingExtraError: If passwords cannot be hashed.
    """
    log = open_log(target, station=station)
    accounts = Accounts(log)
    site = Site(
        name="incident log",
        log_in=accounts.log_in,
        accounts=accounts,
        sessions=Sessions(log, accounts),
        templates=environment(),
        static=Path(__file__).with_name("static"),
        api=API,
        target=target,
        log=log,
        evidence=Folder.of(log, evidence),
        watch=Watch(target),
    )
    return app.make_app(site, [page.router for page in _PAGES], api.router, names=names)
