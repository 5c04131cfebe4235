"""What may follow what: who has to look at an incident before it is settled."""

from __future__ import annotations

from robo_eval.core.errors import InputError
from robo_eval_incidents.bodies import (
    Action,
    Body,
    Closure,
    Correction,
    Effectiveness,
    Reclassification,
    Review,
)
from robo_eval_incidents.incident import Incident, corrected
from robo_eval_incidents.taxonomy import Status
from robo_eval_incidents.text import same_person


class RefusedError(InputError):
    """The record would not be one that may follow; nothing was added."""


def check(incident: Incident, body: Body, by: str) -> None:
    """Refuse a record that may not follow.

    Args:
        incident: The incident as it stands.
        body: What is to be recorded about it.
        by: By whom.

    Raises:
        RefusedError: If it may not follow; the message says why and what would do.
    """
    match body:
        case Correction():
            _check_correction(incident, body)
        case Reclassification():
            if (body.severity, body.category) == (incident.severity, incident.category):
                raise RefusedError(
                    f"incident {incident.name} is {body.severity} and {body.category} already"
                )
        case Review():
            _check_review(incident, body, by)
        case Action():
            if incident.status is Status.DISMISSED:
                raise RefusedError(f"incident {incident.name} was dismissed; it asks for no action")
        case Effectiveness():
            _check_effectiveness(incident, body, by)
        case Closure():
            lacking = open_points(incident)
            if lacking:
                raise RefusedError(f"incident {incident.name} cannot be closed: {lacking[0]}")
        case _:
            pass


def open_points(incident: Incident) -> list[str]:
    """What is missing until an incident may be closed."""
    if incident.is_closed:
        return ["it is closed already"]
    lacking = []
    if not incident.is_reviewed:
        named = ", ".join(incident.reviewers) or "nobody"
        wanted = incident.people_needed
        lacking.append(
            "it needs a review"
            if wanted == 1
            else f"{wanted} people have to stand behind one verdict; so far {named}"
        )
    if incident.verdict == "dismissed" and not lacking:
        return []
    if incident.highest_severity.needs_two_people and not incident.measures:
        lacking.append(f"a {incident.highest_severity} incident needs a corrective action")
    lacking += [
        f"action {measure.action.what!r:.60} was "
        + ("not checked" if measure.is_effective is None else "found not to be effective")
        for measure in incident.measures.values()
        if not measure.is_effective
    ]
    return lacking


def _check_correction(incident: Incident, body: Correction) -> None:
    try:
        after = corrected(incident.report, body.fields)
    except ValueError as err:
        problem = " ".join(str(err).split())
        raise RefusedError(f"incident {incident.name}: the correction fails: {problem}") from err
    if after == incident.report:
        raise RefusedError(f"incident {incident.name}: the correction changes nothing")


def _check_review(incident: Incident, body: Review, by: str) -> None:
    if incident.is_closed:
        raise RefusedError(f"incident {incident.name} is closed; correct or reclassify it first")
    if body.duplicate_of == incident.incident_id:
        raise RefusedError(f"incident {incident.name} cannot be a duplicate of itself")
    behind = incident.reviewers if incident.verdict == body.verdict else ()
    if any(same_person(name, by) for name in behind):
        raise RefusedError(
            f"{by} stands behind {body.verdict!r} already; a second person has to look at"
            f" incident {incident.name}"
        )
    own = incident.changed_by is not None and same_person(incident.changed_by, by)
    if own and incident.people_needed > 1:
        raise RefusedError(
            f"{by} reported or last changed incident {incident.name}, which was"
            f" {incident.highest_severity}; another person has to review it"
        )


def _check_effectiveness(incident: Incident, body: Effectiveness, by: str) -> None:
    measure = incident.measures.get(body.action_id)
    if measure is None:
        raise RefusedError(f"incident {incident.name} has no action {body.action_id}")
    if incident.people_needed > 1 and same_person(measure.action.owner, by):
        raise RefusedError(
            f"{by} owns this action; of an incident that was {incident.highest_severity} another"
            " person has to check whether it helped"
        )
