"""What may follow what: who has to look at an incident before it is settled."""

from __future__ import annotations

from robo_eval.core.errors import InputError, said
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


def check(incident: Incident, body: Body, by: str, same_as: Incident | None = None) -> None:
    """Refuse a record that may not follow.

    Args:
        incident: The incident as it stands.
        body: What is to be recorded about it.
        by: By whom.
        same_as: The incident it is said to be the same event as, if it is.

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
            _check_review(incident, body, by, same_as)
        case Action():
            if incident.status is Status.DISMISSED:
                raise RefusedError(f"incident {incident.name} was dismissed; it asks for no action")
        case Effectiveness():
            _check_effectiveness(incident, body, by)
        case Closure():
            _check_closure(incident)
        case _:
            pass


def _check_closure(incident: Incident) -> None:
    if incident.status is Status.DISMISSED:
        raise RefusedError(
            f"incident {incident.name} was dismissed; nothing is left to do about it"
        )
    lacking = incident.open_points
    if lacking:
        raise RefusedError(f"incident {incident.name} cannot be closed: {lacking[0]}")


def _check_correction(incident: Incident, body: Correction) -> None:
    try:
        after = corrected(incident.report, body.fields)
    except ValueError as err:
        problem = said(err, named=False)
        raise RefusedError(f"incident {incident.name}: the correction fails: {problem}") from err
    if after == incident.report:
        raise RefusedError(f"incident {incident.name}: the correction changes nothing")


def _check_review(incident: Incident, body: Review, by: str, same_as: Incident | None) -> None:
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
    own = any(
        name is not None and same_person(name, by)
        for name in (incident.changed_by, incident.classified_by)
    )
    if own and incident.people_needed > 1:
        raise RefusedError(
            f"{by} reported or last changed incident {incident.name}, which was"
            f" {incident.highest_severity}; another person has to review it"
        )
    if same_as is not None:
        _check_duplicate(incident, same_as)


def _check_duplicate(incident: Incident, same_as: Incident) -> None:
    """The other one has to count for this one as well."""
    if not same_as.counts:
        raise RefusedError(f"incident {same_as.name} does not count itself; it was dismissed")
    if same_as.counted_report.side is not incident.counted_report.side:
        raise RefusedError(
            f"incident {same_as.name} happened on side {same_as.counted_report.side},"
            f" {incident.name} on {incident.counted_report.side}; they are not the same"
        )
    if same_as.counted_severity.rank < incident.counted_severity.rank:
        raise RefusedError(
            f"incident {same_as.name} counts as {same_as.counted_severity}, {incident.name} as"
            f" {incident.counted_severity}; reclassify {same_as.name} first"
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
