"""Six random histories of two stations: how each incident stood, and what was refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robo_eval.log.chain import GENESIS
from robo_eval_incidents.kinds import KINDS, plain
from robo_eval_incidents.record import Instant, Record
from robo_eval_incidents.state import RefusedError, check, incident_of
from robo_eval_incidents.words import Via

HISTORIES = json.loads(Path(__file__).with_name("histories.json").read_text())


def records_of(history):
    return [
        Record(
            station=one["station"],
            sequence=one["sequence"],
            previous_sha256=GENESIS,
            record_id=one["record_id"],
            incident_id=one["incident_id"],
            at=Instant(time_ns=one["time_ns"], monotonic_ns=0, boot_id="b"),
            clock_step_ns=0,
            by=one["by"],
            via=Via(one["via"]),
            body=KINDS[one["kind"]].model_validate(one["body"]),
            after=tuple(one["after"]),
        )
        for one in history["records"]
    ]


@pytest.mark.parametrize("history", HISTORIES, ids=range(len(HISTORIES)))
def test_each_incident_stands_as_it_did(history):
    records = records_of(history)
    for incident_id, stood in history["incidents"].items():
        found = incident_of([one for one in records if one.incident_id == incident_id])
        counted = found.counted
        assert {
            "status": found.status,
            "severity": found.severity,
            "counted": found.counted_severity,
            "highest": found.highest_severity,
            "category": found.category,
            "counts": found.counts,
            "verdict": found.verdict,
            "reviewers": list(found.reviewers),
            "people": found.people_needed,
            "classified_by": found.classified_by,
            "changed_by": found.changed_by,
            "elsewhere": found.counts_elsewhere,
            "counted_at": [
                counted.robot,
                counted.side,
                counted.happened_ns,
                counted.episode_id,
                counted.policy,
            ],
            "report": plain(found.report),
            "evidence": [one.uri for one in found.evidence],
            "actions": [[one.action.what, one.is_effective] for one in found.measures.values()],
            "order": [one.record_id for one in found.records],
        } == {name: value for name, value in stood.items() if name not in {"closed", "open_points"}}
        is_open = bool(stood["open_points"]) and stood["status"] not in {"closed", "dismissed"}
        assert bool(found.open_points) == is_open


@pytest.mark.parametrize("history", HISTORIES, ids=range(len(HISTORIES)))
def test_the_same_is_refused(history):
    records = records_of(history)
    for attempt in history["attempts"]:
        incident = incident_of([records[place] for place in attempt["known"]])
        body = KINDS[attempt["kind"]].model_validate(attempt["body"])
        same_as = incident if getattr(body, "duplicate_of", None) else None
        refused = None
        try:
            check(incident, body, attempt["by"], same_as)
        except RefusedError as err:
            refused = str(err)
        # Why it cannot be closed is said in the words of what is left to do.
        if refused is None or "cannot be closed" not in refused:
            assert refused == attempt["refused"]
        else:
            assert "cannot be closed" in attempt["refused"]
