"""What is left to do: what comes next for each incident that is not settled, and who may do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final, Literal

from sqlalchemy import select

from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval_incidents.followed import followed
from robo_eval_incidents.incident import Incident, Measure
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.page import robots
from robo_eval_incidents.schema import PAGE
from robo_eval_incidents.taxonomy import Category, Severity, Status
from robo_eval_incidents.text import person_key, same_person

OPEN: Final = (Status.DRAFT, Status.REPORTED, Status.CONFIRMED, Status.ACTING)
"""Statuses of incidents that something is left to do about."""
_SHOWN: Final = 60
"""Characters of an action that a step repeats."""

Verb = Literal["review", "act", "check", "close"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that comes next.

    Attributes:
        verb: The verb of `robo-eval incidents` that records it.
        text: What it is, in words.
        owner: Who sees to it, if it is a corrective action.
        not_by: Who may not do it, because somebody else has to.
        due: Until when; None if nobody said.
        overdue_days: Whole days since that day; 0 if it is not over.
    """

    verb: Verb
    text: str
    owner: str | None = None
    not_by: tuple[str, ...] = ()
    due: date | None = None
    overdue_days: int = 0

    @property
    def is_overdue(self) -> bool:
        """Whether its day is over."""
        return self.overdue_days > 0

    def as_dict(self) -> dict[str, Any]:
        """The step as JSON would have it."""
        return {
            "verb": self.verb,
            "text": self.text,
            "owner": self.owner,
            "not_by": list(self.not_by),
            "due": None if self.due is None else self.due.isoformat(),
            "overdue_days": self.overdue_days,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """An incident that something is left to do about.

    Attributes:
        incident_id: Its id.
        name: What people call it: station and number.
        happened_ns: When it counts as having happened, UTC.
        robot: Robot it counts for.
        side: Side it counts on.
        severity: How bad it is.
        counted_severity: How bad it counts.
        category: What kind of event.
        status: How far it has got.
        description: What happened.
        steps: What comes next, overdue steps first.
    """

    incident_id: str
    name: str
    happened_ns: int
    robot: str
    side: Side
    severity: Severity
    counted_severity: Severity
    category: Category
    status: Status
    description: str
    steps: tuple[Step, ...]

    @property
    def is_overdue(self) -> bool:
        """Whether a step of it is."""
        return any(step.is_overdue for step in self.steps)

    def as_dict(self) -> dict[str, Any]:
        """What is left as JSON would have it."""
        return {
            "incident_id": self.incident_id,
            "name": self.name,
            "happened_ns": self.happened_ns,
            "robot": self.robot,
            "side": self.side.value,
            "severity": self.severity.value,
            "counted_severity": self.counted_severity.value,
            "category": self.category.value,
            "status": self.status.value,
            "description": self.description,
            "steps": [step.as_dict() for step in self.steps],
        }


# Asking ----------------------------------------------------------------------------------------


def utc_today() -> date:
    """The day by which it is decided what is overdue."""
    return datetime.now(UTC).date()


def todo(
    log: IncidentLog,
    *,
    robot: str | None = None,
    owner: str | None = None,
    overdue: bool = False,
    today: date | None = None,
) -> list[Todo]:
    """What is left to do: overdue first, then as bad as it counts, then the oldest.

    Args:
        log: The log.
        robot: Only incidents of this robot.
        owner: Only corrective actions of this person.
        overdue: Only corrective actions whose day is over.
        today: The day to compare with; the present one, UTC, if none is given.

    Raises:
        UnknownNameError: If the log knows no such robot.
    """
    if robot is not None and robot not in (known := robots(log)):
        raise unknown_name("robot", robot, known)
    today = today or utc_today()
    query = select(PAGE.c.incident_id).where(PAGE.c.status.in_([one.value for one in OPEN]))
    if robot is not None:
        query = query.where(PAGE.c.robot == robot)
    with followed(log) as connection:
        ids = list(connection.execute(query).scalars())
    found = []
    for incident in log.incidents_with(ids):
        one = todo_of(incident, today)
        asked = tuple(
            step
            for step in one.steps
            if (owner is None or (step.owner is not None and same_person(step.owner, owner)))
            and (step.is_overdue or not overdue)
        )
        if asked:
            found.append(replace(one, steps=asked))
    return sorted(found, key=_place)


def check_owner(log: IncidentLog, owner: str) -> None:
    """Refuse a person who owns no open corrective action, where others do.

    Args:
        log: The log.
        owner: Name of the person.

    Raises:
        UnknownNameError: If nobody of that name does.
    """
    steps = [step for one in todo(log) for step in one.steps]
    owners = {person_key(step.owner): step.owner for step in steps if step.owner is not None}
    if owners and person_key(owner) not in owners:
        raise unknown_name("owner", owner, sorted(owners.values()))


def _place(one: Todo) -> tuple[bool, int, int, str]:
    return (not one.is_overdue, -one.counted_severity.rank, one.happened_ns, one.incident_id)


# One incident ----------------------------------------------------------------------------------


def todo_of(incident: Incident, today: date) -> Todo:
    """What is left to do about one incident; without steps if it is closed or dismissed.

    Args:
        incident: The incident as it stands.
        today: The day to compare days with by which something was to be done.
    """
    counted = incident.counted_report
    steps = _steps(incident, today) if incident.status in OPEN else ()
    return Todo(
        incident_id=incident.incident_id,
        name=incident.name,
        happened_ns=counted.happened_ns,
        robot=counted.robot,
        side=counted.side,
        severity=incident.severity,
        counted_severity=incident.counted_severity,
        category=incident.category,
        status=incident.status,
        description=incident.report.description,
        steps=tuple(sorted(steps, key=lambda step: -step.overdue_days)),
    )


def _steps(incident: Incident, today: date) -> Iterator[Step]:
    """One step for each of `Incident.open_points`, or the last one if there are none."""
    if not incident.open_points:
        yield Step(verb="close", text="can be closed")
        return
    if not incident.is_reviewed:
        yield _review(incident)
    if incident.highest_severity.needs_two_people and not incident.measures:
        yield Step(
            verb="act",
            text=f"needs a corrective action: it is or was {incident.highest_severity}",
        )
    for measure in incident.measures.values():
        if not measure.is_effective:
            yield _check(measure, today, by_another=incident.people_needed > 1)


def _review(incident: Incident) -> Step:
    if incident.people_needed == 1:
        return Step(verb="review", text="needs a review")
    named = (incident.changed_by, incident.classified_by, *incident.reviewers)
    others = {person_key(name): name for name in named if name is not None}
    not_by = tuple(others.values())
    names = " and ".join(not_by)
    # Who said how bad it is stands behind its being one, before anybody reviewed it.
    has_first = incident.verdict is not None or incident.classified_by is not None
    if has_first:
        text = f"needs a review by somebody else than {names}"
    else:
        text = "needs reviews by two people" + (f" other than {names}" if names else "")
    return Step(verb="review", text=text, not_by=not_by)


def _check(measure: Measure, today: date, *, by_another: bool) -> Step:
    """An action is left until somebody found that it helped."""
    action = measure.action
    days = 0 if action.due is None else max(0, (today - action.due).days)
    said = f"action {_clipped(action.what)!r} of {action.owner} "
    if measure.is_effective is False:
        said += "did not help: act anew, or check it again"
    elif action.due is None:
        said += "has no day by which it is to be done"
    else:
        said += f"{'was' if days else 'is'} to be done by {action.due}"
    if by_another and measure.is_effective is None:
        said += "; somebody else has to check it"
    return Step(
        verb="check",
        text=said,
        owner=action.owner,
        not_by=(action.owner,) if by_another else (),
        due=action.due,
        overdue_days=days,
    )


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
