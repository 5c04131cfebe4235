"""What is left to do: what comes next for each incident, who may not do it, and in which order."""

from __future__ import annotations

import random
from datetime import date

import pytest

from robo_eval.core.errors import UnknownNameError
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import (
    Action,
    Closure,
    Correction,
    Effectiveness,
    Reclassification,
    Review,
)
from robo_eval_incidents.lists import overdue_days, todo
from robo_eval_incidents.merge import merge
from robo_eval_incidents.state import OPEN, RefusedError
from robo_eval_incidents.words import Status, Via

TODAY = date(2030, 4, 13)
CONFIRMED = Review(verdict="confirmed", note="seen")
DISMISSED = Review(verdict="dismissed", note="a test of the stop")


@pytest.fixture
def left(log):
    """What is left to do on 13 April 2030: each incident with the texts of its steps."""

    def look(**asked):
        found = todo(log, today=TODAY, **asked)
        return {one.description: [step.text for step in one.steps] for one in found.rows}

    return look


@pytest.fixture
def happen(log, report, say):
    """Files a report, and what people say about it after that; its id."""

    def file(what, *said, via=Via.WEB, **fields):
        record_id = say(log, report(description=what, **fields), via=via).record_id
        for by, body in said:
            say(log, body, by=by, incident_id=record_id)
        return record_id

    return file


def test_each_incident_says_what_comes_next(happen, left):
    happen("reported")
    happen("drafted", via=Via.RULE)
    happen("reviewed", ("R. Example", CONFIRMED))
    assert left() == {
        "reported": ["it needs a review"],
        "drafted": ["it needs a review"],
        "reviewed": ["it can be closed"],
    }


def test_a_second_person_is_asked_for(log, happen, left):
    happen("reported", severity="major")
    assert left() == {
        "reported": [
            "it needs a review by somebody else than Operator A",
            "it needs a corrective action: it is or was major",
        ]
    }
    assert todo(log, today=TODAY).rows[0].steps[0].not_by == ("Operator A",)


def test_a_draft_of_a_rule_needs_two_people(log, happen, left, say):
    about = happen("drafted", severity="critical", via=Via.RULE)
    assert left()["drafted"][0] == "it needs reviews by two people"
    say(log, Correction(fields={"robot": "ur10"}, reason="x"), by="B", incident_id=about)
    assert left()["drafted"][0] == "it needs reviews by two people other than B"
    say(log, DISMISSED, by="C", incident_id=about)
    assert left()["drafted"][0] == "it needs a review by somebody else than B and C"
    with pytest.raises(RefusedError):
        say(log, DISMISSED, by="C", incident_id=about)
    say(log, DISMISSED, by="D", incident_id=about)
    assert left() == {}


def test_an_action_is_overdue_when_its_day_is_over(log, happen, left):
    for due in (date(2030, 4, 1), date(2030, 4, 12), date(2030, 4, 13), None):
        action = Action(what="a longer\nguard", owner="Operator B", due=due)
        happen(f"due {due}", ("R. Example", CONFIRMED), ("R. Example", action))
    assert left() == {
        "due 2030-04-01": [
            "action 'a longer guard' of Operator B, due 2030-04-01, was not checked"
        ],
        "due 2030-04-12": [
            "action 'a longer guard' of Operator B, due 2030-04-12, was not checked"
        ],
        "due 2030-04-13": [
            "action 'a longer guard' of Operator B, due 2030-04-13, was not checked"
        ],
        "due None": ["action 'a longer guard' of Operator B was not checked"],
    }
    days = {
        one.description: overdue_days(one.steps[0].due, TODAY)
        for one in todo(log, today=TODAY).rows
    }
    assert days == {"due 2030-04-01": 12, "due 2030-04-12": 1, "due 2030-04-13": 0, "due None": 0}


def test_an_action_that_does_not_help_is_left(log, happen, left, say):
    about = happen("x", ("R. Example", CONFIRMED))
    action = Action(what="w" * 100, owner="Operator B", due=date(2030, 4, 1))
    action_id = say(log, action, incident_id=about).record_id
    failed = Effectiveness(action_id=action_id, is_effective=False, how="it bends")
    say(log, failed, by="C", incident_id=about)
    said = f"action '{'w' * 57}...' of Operator B was found not to be effective: act anew"
    assert left() == {"x": [f"{said}, or check it again"]}
    assert overdue_days(todo(log, today=TODAY).rows[0].steps[0].due, TODAY)
    helped = Effectiveness(action_id=action_id, is_effective=True, how="200 cycles")
    say(log, helped, by="C", incident_id=about)
    assert left() == {"x": ["it can be closed"]}


def test_of_a_major_one_its_owner_does_not_check_the_action(log, happen, left):
    action = Action(what="a guard", owner="Operator B")
    happen("x", ("R. Example", CONFIRMED), ("R. Example", action), severity="major")
    step = todo(log, today=TODAY).rows[0].steps[0]
    assert (step.verb, step.owner, step.not_by) == ("check", "Operator B", ("Operator B",))
    assert left()["x"][0].endswith("; somebody else than Operator B has to check it")


def test_of_an_action_that_did_not_help_nobody_is_told_who_checks_it(log, happen, left, say):
    about = happen("x", ("R. Example", CONFIRMED), severity="major")
    action_id = say(log, Action(what="a guard", owner="Operator B"), incident_id=about).record_id
    failed = Effectiveness(action_id=action_id, is_effective=False, how="it bends")
    say(log, failed, by="C", incident_id=about)
    said = (
        "action 'a guard' of Operator B was found not to be effective: act anew, or check it again"
    )
    assert left() == {"x": [said]}
    assert todo(log, today=TODAY).rows[0].steps[0].not_by == ("Operator B",)


def test_what_is_settled_is_absent(log, happen, left, say):
    happen("dismissed", ("R. Example", DISMISSED))
    about = happen("closed", ("R. Example", CONFIRMED), ("R. Example", Closure(note="done")))
    assert left() == {}
    say(log, Reclassification(severity="minor", category="damage", reason="x"), incident_id=about)
    assert left() == {"closed": ["it needs a review"]}


def test_overdue_first_then_the_worst_then_the_oldest(happen, left, log):
    late = Action(what="a guard", owner="Operator B", due=date(2030, 4, 1))
    milder = Reclassification(severity="near_miss", category="other", reason="x")
    happen("mild", happened_ns=1)
    happen("newer", severity="minor", happened_ns=3)
    happen("older", severity="minor", happened_ns=2)
    happen("late and mild", ("R. Example", late), happened_ns=9)
    happen("late and bad", ("R. Example", late), severity="critical", happened_ns=9)
    happen("was major", ("R. Example", milder), severity="major", happened_ns=9)
    assert list(left()) == ["late and bad", "late and mild", "was major", "older", "newer", "mild"]
    assert overdue_days(todo(log, today=TODAY).rows[0].steps[0].due, TODAY), (
        "what is overdue is named first"
    )


def test_only_a_part_is_asked_for(happen, left):
    late = Action(what="a guard", owner="Operator B", due=date(2030, 4, 1))
    later = Action(what="a sign", owner="Operator C", due=date(2030, 5, 1))
    happen("both", ("R. Example", late), ("R. Example", later))
    happen("other", robot="franka")
    assert list(left(robot="franka")) == ["other"]
    assert list(left(robot="ur5e")) == ["both"]
    of_b = "action 'a guard' of Operator B, due 2030-04-01, was not checked"
    assert left(owner="operator  B") == {"both": [of_b]}
    assert left(overdue=True) == {"both": [of_b]}
    assert left(owner="Operator C", overdue=True) == {}
    with pytest.raises(UnknownNameError, match="unknown robot 'ur5'; did you mean 'ur5e'"):
        left(robot="ur5")


def test_only_a_person_who_owns_nothing_open_where_others_do_is_refused(log, happen, say):
    assert todo(log, owner="Operator B").rows == [], "nobody owns anything"
    happen("x", ("R. Example", CONFIRMED), ("R. Example", Action(what="a", owner="Operator B")))
    assert todo(log, owner="operator  b").rows
    with pytest.raises(
        UnknownNameError, match="unknown owner 'Operator'; did you mean 'Operator B"
    ):
        todo(log, owner="Operator")


def test_a_page_of_it_is_as_the_whole_has_it(happen, log):
    late = Action(what="a guard", owner="Operator B", due=date(2030, 4, 1))
    for number in range(7):
        happen(f"event {number}", ("R. Example", late), happened_ns=number % 3)
    whole = todo(log, today=TODAY)
    for asked in ({}, {"owner": "Operator B"}, {"overdue": True}):
        pages = [todo(log, today=TODAY, after=after, limit=3, **asked) for after in (0, 3, 6)]
        assert [len(page.rows) for page in pages] == [3, 3, 1]
        names = [row.name for page in pages for row in page.rows]
        assert names == [row.name for row in whole.rows]
        assert {page.count for page in pages} == {7}


def test_a_log_that_cannot_be_written_says_the_same(log, happen):
    happen("one", severity="major")
    happen("two", ("R. Example", DISMISSED))
    found = todo(log, today=TODAY)
    with open_log(log.database.path, read_only=True) as reading:
        assert todo(reading, today=TODAY) == found
    assert found.count == 1


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_forgotten(log, report, say, tmp_path, seed):
    """After any history there is a step for each open point, and for who is named a refusal."""
    draw = random.Random(seed)
    other = open_log(tmp_path / "other" / "incidents.db", station="cell-2", make=True)
    told = []
    for step in range(90):
        target = other if step < 45 and draw.random() < 0.3 else log
        if not told or draw.random() < 0.3:
            severity = draw.choice(["near_miss", "major", "critical"])
            via = draw.choice([Via.WEB, Via.RULE])
            told.append((target, say(target, report(severity=severity), via=via).record_id))
            continue
        target, about = draw.choice(told)
        body = draw.choice(
            [
                CONFIRMED,
                DISMISSED,
                Reclassification(severity="minor", category="damage", reason="looked"),
                Action(what="move it", owner="C", due=draw.choice([None, date(2030, 4, 1)])),
                Closure(note="done"),
            ]
        )
        try:
            say(target, body, by=draw.choice("ABC"), incident_id=about)
        except RefusedError:
            continue
    merge(other.database.path, log)
    other.close()
    found = {one.incident_id: one for one in todo(log, today=TODAY).rows}
    incidents = log.incidents()
    assert found.keys() == {one.incident_id for one in incidents if one.status in OPEN}
    assert {one.status for one in incidents} >= {Status.DISMISSED, Status.REPORTED}
    for incident in incidents:
        if incident.incident_id not in found:
            continue
        steps = found[incident.incident_id].steps
        assert len(steps) == max(1, len(incident.open_points))
        assert [step.verb == "close" for step in steps] == [not incident.open_points] * len(steps)
        for name in (name for step in steps if step.verb == "review" for name in step.not_by):
            body = Review(verdict=incident.verdict or "dismissed", note="again")
            with pytest.raises(RefusedError):
                say(log, body, by=name, incident_id=incident.incident_id)
