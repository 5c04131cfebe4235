"""Lists of incidents and exposure are what the records say, whatever happened in between."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import event

from robo_eval.core.errors import InputError
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import Action, Correction, Reclassification, Review
from robo_eval_incidents.lists import Filter, list_incidents, robots, tally
from robo_eval_incidents.merge import merge
from robo_eval_incidents.state import RefusedError, incidents_of
from robo_eval_incidents.verify import verify_log


def _rows_of(log):
    """What the list has to say, from nothing but the records."""
    return {
        (
            one.incident_id, one.severity, one.counted_severity, one.category, one.status,
            one.counts, one.counted.robot, one.counted.happened_ns,
        )
        for one in incidents_of(log.records())
    }  # fmt: skip


def _listed(log):
    rows, after = [], None
    while True:
        page = list_incidents(log, after=after, limit=7)
        rows += page.rows
        after = page.next
        if after is None:
            break
    times = [(row.happened_ns, row.incident_id) for row in rows]
    assert times == sorted(times, reverse=True)
    return {
        (
            row.incident_id, row.severity, row.counted_severity, row.category, row.status,
            row.counts, row.robot, row.happened_ns,
        )
        for row in rows
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_lists_say_what_the_records_say(log, report, say, tmp_path, seed):
    """A long random history, looked at now and then, with a merge in the middle."""
    draw = random.Random(seed)
    other = open_log(tmp_path / "other" / "incidents.db", station="cell-2", make=True)
    ids = []
    for step in range(120):
        target = other if step < 60 and draw.random() < 0.3 else log
        if not ids or draw.random() < 0.3:
            severity = draw.choice(["near_miss", "minor", "major", "critical"])
            happened_ns = 10**18 + draw.randrange(5) * 10**9
            ids.append((target, say(target, report(severity=severity, happened_ns=happened_ns))))
            continue
        target, record = draw.choice(ids)
        body = draw.choice(
            [
                Review(verdict="confirmed", note="seen"),
                Review(verdict="dismissed", note="none"),
                Reclassification(severity="minor", category="damage", reason="looked"),
                Correction(fields={"robot": draw.choice(["ur5e", "franka"])}, reason="other"),
                Action(what="move it", owner="C"),
            ]
        )
        try:
            say(target, body, by=draw.choice("ABC"), incident_id=record.record_id)
        except RefusedError:
            continue
        if draw.random() < 0.2:
            assert _listed(log) == _rows_of(log)
        if step == 60:
            merge(other.database.path, log)
    merge(other.database.path, log)
    assert _listed(log) == _rows_of(log)
    assert verify_log(log.database.path).ok
    with open_log(log.database.path, read_only=True) as reading:
        assert _listed(reading) == _rows_of(log), "a log that cannot be written lists the same"
    counted = [one for one in incidents_of(log.records()) if one.counts]
    assert sum(tally(log).values()) == len(counted)
    for key, number in tally(log).items():
        same = [
            one for one in counted
            if (one.counted.side, one.counted_severity, one.status) == key
        ]  # fmt: skip
        assert len(same) == number
    other.close()


def test_filters(log, report, say):
    about = say(log, report(robot="franka", severity="major", episode_id="e7")).record_id
    say(log, report(side="twin", category="collision", description="100 % at_the edge"))
    say(log, report(happened_ns=1))
    for wanted, count in (
        (Filter(robot="franka"), 1),
        (Filter(side="twin"), 1),
        (Filter(severity="major"), 1),
        (Filter(severity=("major", "near_miss"), status="reported"), 3),
        (Filter(side=("twin", "sim"), robot=("ur5e", "franka")), 1),
        (Filter(category="collision"), 1),
        (Filter(episode_id="e7"), 1),
        (Filter(status="reported"), 3),
        (Filter(status="closed"), 0),
        (Filter(text="100 %"), 1),
        (Filter(text="AT_THE"), 1),
        (Filter(text="%"), 1),
        (Filter(text="_"), 1),
        (Filter(text="' OR '1'='1"), 0),
        (Filter(until_ns=2), 1),
        (Filter(since_ns=2), 2),
        (Filter(robot="franka", side="twin"), 0),
    ):
        assert len(list_incidents(log, wanted).rows) == count, wanted
    assert list_incidents(log, Filter(robot="franka")).rows[0].incident_id == about
    assert robots(log) == ["franka", "ur5e"]


def test_a_search_looks_at_all_that_was_written_in_any_case(log, report, say):
    long = say(log, report(description=f"{'pressed ' * 500}\nagainst the TÜRZARGE")).record_id
    say(log, report(description="another one"))
    (found,) = list_incidents(log, Filter(text="türzarge")).rows
    assert found.incident_id == long
    assert len(found.description) == 300
    with open_log(log.database.path, read_only=True) as reading:
        assert list_incidents(reading, Filter(text="Türzarge")).rows == (found,)
    correction = Correction(fields={"description": "against the frame"}, reason="plainer")
    say(log, correction, incident_id=long)
    assert list_incidents(log, Filter(text="türzarge")).rows == ()
    assert len(list_incidents(log, Filter(text="FRAME")).rows) == 1


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({"text": "never written"}, "incidents_words"),
        ({"text": "never written", "severity": "near_miss"}, "incidents_words"),
        ({"text": "never written", "status": "reported"}, "incidents_words"),
        ({"severity": "near_miss", "robot": "ur5e"}, "incidents_by_time"),
        ({"status": "reported", "since_ns": 5}, "incidents_by_time"),
    ],
)
def test_a_search_or_filter_reads_an_index_and_not_whole_rows(log, report, say, wanted, index):
    say(log, report())
    list_incidents(log)
    asked = []
    with log.database.reading() as connection:
        event.listen(
            connection.engine, "before_cursor_execute", lambda *args: asked.append(args[2:4])
        )
    list_incidents(log, Filter(**wanted))
    statement, parameters = next(one for one in asked if "FROM incidents" in one[0])
    with log.database.reading() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
    assert [row[-1].split(" USING INDEX ")[1].split()[0] for row in plan] == [index]


@pytest.mark.parametrize("after", ["", "x", "1~x", "1~' OR 1=1", "9" * 30 + "~" + "0" * 36])
def test_a_place_no_page_gave_is_refused(log, after):
    with pytest.raises(InputError, match="is not what a page gave"):
        list_incidents(log, after=after)


def test_a_severity_finds_what_has_it_and_what_counts_at_it(log, report, say):
    made = say(log, report(severity="critical"))
    milder = Reclassification(severity="minor", category="other", reason="it was a scratch")
    say(log, milder, incident_id=made.record_id)
    for severity, count in (("critical", 1), ("minor", 1), ("major", 0)):
        assert len(list_incidents(log, Filter(severity=severity)).rows) == count
