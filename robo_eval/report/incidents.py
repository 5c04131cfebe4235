"""The incidents of a trial, as its incident log has them, in the words of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from robo_eval.log.incident_log import listed
from robo_eval.page.words import count, shortened, spaced, thousands

_MOST: Final = 100
"""Incidents that are listed; the worst and oldest go first where there are more."""
_LONGEST: Final = 300
"""Characters of a description that are shown."""
_CUT: Final = "incidents/"
"""Where the pieces of traces are that were cut out; each begins with the id of its incident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLine:
    """One incident, as it is shown.

    Attributes:
        name: Station and number in the log.
        severity: How bad it is.
        category: What kind of event.
        what: What happened.
        when: When, UTC, in parts that stay on a line.
        where: Robot, with the side where it is no robot.
        episode_id: Episode; empty outside one.
        status: How far it has got.
        link: The trace around it, from the report's folder; empty without one.
    """

    name: str
    severity: str
    category: str
    what: str
    when: Sequence[str]
    where: str
    episode_id: str
    status: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentList:
    """What the incident log of a trial says.

    Attributes:
        lines: Incidents, the oldest first.
        text: How many there are, in words.
        more: That not all are listed; empty if they are.
    """

    lines: Sequence[IncidentLine]
    text: str
    more: str


def incident_list(trial: Path) -> IncidentList | None:
    """The incidents of a trial; None if it has no incident log, or an empty one.

    Args:
        trial: The trial directory.

    Raises:
        IncidentLogError: If the log cannot be read.
        MissingExtraError: If the package of the incident log is not installed.
    """
    incidents, nils = listed(trial)
    if not incidents and not nils:
        return None
    shown = sorted(incidents, key=lambda one: -one.severity.rank)[:_MOST]
    shown.sort(key=lambda one: (one.report.happened_ns, one.incident_id))
    rest = len(incidents) - len(shown)
    return IncidentList(
        lines=[_line(one, trial) for one in shown],
        text=_text(incidents, nils),
        more=_more(rest),
    )


def _more(rest: int) -> str:
    if not rest:
        return ""
    verb = "is" if rest == 1 else "are"
    return f"The {thousands(_MOST)} worst are listed, {thousands(rest)} more {verb} not."


def _text(incidents: Sequence[Any], nils: int) -> str:
    if not incidents:
        said = "it was said" if nils == 1 else f"it was said {thousands(nils)} times"
        return f"No incident is in the log; {said} that nothing happened."
    drafts = sum(one.status == "draft" for one in incidents)
    text = f"{count(len(incidents), 'incident')} in the log."
    if drafts:
        text += f" Drafted by a rule and not reviewed: {thousands(drafts)}."
    return text


def _line(incident: Any, trial: Path) -> IncidentLine:
    report = incident.report
    moment = datetime.fromtimestamp(report.happened_ns // 10**9, tz=UTC)
    when = (moment.strftime("%Y-%m-%d"), moment.strftime("%H:%M:%S"))
    if report.until_ns is not None:
        when = (report.time, "")
    side = "" if report.side == "real" else f" ({report.side})"
    return IncidentLine(
        name=incident.name,
        severity=spaced(incident.severity),
        category=spaced(incident.category),
        what=shortened(_words(report.description), _LONGEST),
        when=when,
        where=f"{report.robot}{side}",
        episode_id=report.episode_id or "",
        status=spaced(incident.status),
        link=_link(incident, trial),
    )


def _words(description: str) -> str:
    """A description in one line; a draft lists its causes line by line."""
    return " ".join(line.removeprefix("- ") for line in description.splitlines())


def _link(incident: Any, trial: Path) -> str:
    # What people attach lies there too, under other names.
    own = f"{_CUT}{incident.incident_id}-"
    uris = [each.uri for each in incident.evidence if each.uri.startswith(own)]
    there = (uri for uri in uris if (trial / PurePosixPath(uri)).is_file())
    return next((f"../{quote(uri)}" for uri in there), "")
