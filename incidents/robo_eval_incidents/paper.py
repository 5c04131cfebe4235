"""The incident log of a period as one page to print, that stands by itself."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import shown
from robo_eval.log.files import write_atomically
from robo_eval_incidents.checkpoint import checkpoints_of
from robo_eval_incidents.facts import history, of_incident
from robo_eval_incidents.hours import TITLES, hours, shifts
from robo_eval_incidents.lists import Filter, list_incidents
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.record import now
from robo_eval_incidents.standing import standing
from robo_eval_incidents.text import shown_time
from robo_eval_incidents.web.templating import environment
from robo_eval_incidents.words import SIDES

MOST_INCIDENTS: Final = 2_000
"""Incidents of one document; more are for a table."""


def printed(
    log: IncidentLog,
    since_ns: int | None = None,
    until_ns: int | None = None,
    *,
    made_ns: int | None = None,
) -> str:
    """The log of a period as HTML that needs nothing else, to be read or printed.

    Args:
        log: The log.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        made_ns: When it is made, UTC; now if not given.

    Raises:
        InputError: If the period ends before it begins, or holds too many incidents.
    """
    page = list_incidents(log, Filter(since_ns=since_ns, until_ns=until_ns), limit=MOST_INCIDENTS)
    if page.next is not None:
        raise InputError(
            f"the period holds more than {MOST_INCIDENTS:,} incidents, which is the most for a"
            " document; choose a shorter one, or export it as CSV"
        )
    found = hours(log, since_ns, until_ns)
    rows = page.rows[::-1]
    text: str = (
        environment()
        .get_template("paper.html.j2")
        .render(
            style=files("robo_eval_incidents.web").joinpath("static/paper.css").read_text("utf-8"),
            period=_period(since_ns, until_ns),
            made=shown_time(now().time_ns if made_ns is None else made_ns),
            log_id=log.meta.get("log_id", "unknown"),
            sides=standing(log, since_ns, until_ns).sides,
            names=SIDES,
            found=found,
            titles=TITLES,
            rows=rows,
            shifts=shifts(log, since_ns, until_ns),
            denied={one.name: one.names for one in found.of("contradicted")},
            incidents=log.incidents_with([row.incident_id for row in rows]),
            history=history,
            of_incident=of_incident,
            estimate=_estimate,
            heads=log.heads(),
            **_checkpoint(log),
        )
    )
    return text


def write_paper(
    log: IncidentLog, out: Path, since_ns: int | None = None, until_ns: int | None = None
) -> None:
    """Write the log of a period as one HTML file; see `printed`.

    Raises:
        InputError: If the period ends before it begins, or holds too many incidents.
        TrialDirectoryError: If the file cannot be written.
    """
    write_atomically(out, printed(log, since_ns, until_ns).encode())


def _period(since_ns: int | None, until_ns: int | None) -> str:
    if since_ns is None and until_ns is None:
        return "everything that was recorded"
    begin = "the beginning" if since_ns is None else shown_time(since_ns)
    return f"{begin} to {'the end' if until_ns is None else shown_time(until_ns)} (not included)"


def _checkpoint(log: IncidentLog) -> dict[str, Any]:
    """How far the newest signed statement of the log reaches."""
    found = checkpoints_of(log)
    newest = found[-1] if found else None
    problems = [] if newest is None else newest.problems()
    covered = 0
    if newest is not None and not problems:
        covered = sum(head.sequence for head in newest.heads.values())
    total = sum(head.sequence for head in log.heads().values())
    return {"checkpoint": newest, "number": len(found), "problems": problems,
            "since": total - covered}  # fmt: skip


def _estimate(one: Estimate) -> str:
    """A number with its interval, or why there is none."""
    if one.value is None:
        return f"none: {one.reason}"
    interval = "no interval"
    if one.low is not None and one.high is not None:
        interval = f"{one.level:.0%} interval {shown(one.low)} to {shown(one.high)}"
    reason = f"; {one.reason}" if one.reason is not None else ""
    return f"{shown(one.value)}, {interval}{reason}"
