"""Running the web page of an incident log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError
from robo_eval.web import serve as server

if TYPE_CHECKING:
    from fastapi import FastAPI

    from robo_eval_incidents.web.deps import Site

PORT: Final = 8500


def serve(
    target: str | Path,
    *,
    port: int = PORT,
    station: str | None = None,
    evidence: Path | None = None,
    **how: Any,
) -> None:
    """Run the web page until the program is told to stop.

    Args:
        target: Path of the log, a folder that holds `incidents.db`, or URL.
        port: Port to listen on.
        station: As whom to write; None for the log's own station.
        evidence: Folder of evidence; None for `incidents/` beside the log.
        how: What else `robo_eval.web.serve.serve` takes: host, certificate, names and more.

    Raises:
        InputError: If it would be reached from elsewhere without TLS, there is no account, or
            the port or a file cannot be used.
        IncidentLogError: If the log cannot be opened.
        MissingExtraError: If the web page's packages are not installed.
    """

    def make(names: Sequence[str]) -> FastAPI:
        from robo_eval_incidents.web.app import make_app

        app = make_app(target, station=station, evidence=evidence, names=names)
        try:
            _check_usable(app.state.site)
        except BaseException:
            app.state.site.log.close()
            raise
        return app

    server.serve(make, port=port, **how)


def _check_usable(site: Site) -> None:
    site.log.check_named()
    if not any(user.is_open for user in site.accounts.list()):
        raise InputError(
            "nobody has an account yet; make the first one with: robo-eval incidents user add NAME"
            " --role reviewer"
        )
