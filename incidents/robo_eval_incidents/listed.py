"""Rows of the tables that lists are read from, each made from what records say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from robo_eval_incidents.bodies import plain
from robo_eval_incidents.incident import Incident
from robo_eval_incidents.record import Record
from robo_eval_incidents.taxonomy import Status, Via

Row = dict[str, Any]
Said = Mapping[str, Any]
"""What a record says, as its canonical form has it."""
_SHOWN: Final = 300
"""Characters of a description in a list."""


def said_by(record: Record) -> Said:
    """As much of a record as rows are made from."""
    return {
        "record_id": record.record_id,
        "station": record.station,
        "sequence": record.sequence,
        "by": record.by,
        "body": plain(record.body),
    }


# Incidents -------------------------------------------------------------------------------------


def incident_row(incident: Incident) -> Row:
    """How an incident stands."""
    return _incident_row(
        said_by(incident.record),
        # Where and when it counts, in the words of now.
        plain(incident.counted_report) | {"description": incident.report.description},
        severity=incident.severity.value,
        counted_severity=incident.counted_severity.value,
        category=incident.category.value,
        status=incident.status.value,
        counts=int(incident.counts),
    )


def first_row(said: Said) -> Row:
    """How an incident stands of which there is only the report."""
    body = said["body"]
    return _incident_row(
        said,
        body,
        severity=body["severity"],
        counted_severity=body["severity"],
        category=body["category"],
        status=(Status.DRAFT if said["via"] == Via.RULE else Status.REPORTED).value,
        counts=1,
    )


def _incident_row(said: Said, body: Mapping[str, Any], **state: str | int) -> Row:
    return {
        "incident_id": said["record_id"],
        "station": said["station"],
        "sequence": said["sequence"],
        "happened_ns": body["happened_ns"],
        "robot": body["robot"],
        "side": body["side"],
        "engagement": body["engagement"],
        "episode_id": body.get("episode_id"),
        "policy": body.get("policy"),
        "by": said["by"],
        "description": body["description"][:_SHOWN],
        "words": folded(body["description"]),
        **state,
    }


def folded(text: str) -> str:
    """A text as it is searched in: upper and lower case are one."""
    return text.casefold()


# Exposure --------------------------------------------------------------------------------------


def exposed_row(said: Said) -> Row:
    """A time in which a robot was exposed."""
    body = said["body"]
    return {
        "record_id": said["record_id"],
        "station": said["station"],
        "sequence": said["sequence"],
        "by": said["by"],
        "robot": body["robot"],
        "side": body["side"],
        "mode": body["mode"],
        "task": body["task"],
        "policy": body.get("policy"),
        "episode_id": body.get("episode_id"),
        "trial": body.get("trial"),
        "start_ns": body["start_ns"],
        "end_ns": body["start_ns"] + round(body["seconds"] * 1e9),
    }
